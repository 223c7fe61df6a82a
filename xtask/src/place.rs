//! What a stored result says about the place and time of its measurement: commit, machine, start.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};

/// The short hash of HEAD; `-dirty` where tracked files outside docs/, whose pages change no
/// program, differ from it.
pub(crate) fn commit(root: &Path) -> Result<String> {
    if !root.join(".git").exists() {
        return Ok("unknown".to_owned());
    }
    let head = git(root, &["rev-parse", "--short=7", "HEAD"])?;
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"])?;
    Ok(if changed.is_empty() { head } else { format!("{head}-dirty") })
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let safe = format!("safe.directory={}", root.display());
    let out =
        Command::new("git").args(["-c", &safe]).args(words).current_dir(root).output().context("run git")?;
    ensure!(out.status.success(), "git {}: {}", words[0], String::from_utf8_lossy(&out.stderr).trim());
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Kernel, architecture, processor, number of CPUs.
pub(crate) fn machine() -> String {
    let first = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpuinfo = first("/proc/cpuinfo");
    let model =
        cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    format!(
        "{} {} {}, {}, {} CPUs",
        first("/proc/sys/kernel/ostype"),
        first("/proc/sys/kernel/osrelease"),
        std::env::consts::ARCH,
        model.map_or("processor unknown", |(_, name)| name),
        std::thread::available_parallelism().map_or(0, std::num::NonZero::get)
    )
}

/// The time as `YYYY-MM-DDTHH:MM:SSZ`.
pub(crate) fn utc(now: SystemTime) -> String {
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a date of the proleptic Gregorian calendar, eras of 400 years from March on (Hinnant,
    // chrono-compatible low-level date algorithms).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn seconds_become_dates() {
        // By `date -u -d @N`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_382_399, "2026-11-22T21:19:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
