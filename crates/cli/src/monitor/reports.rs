//! Reports of programs that they were late, on a socket: a line `late NAME [TIME]`. The kernel says
//! whose it is.

use crate::failure;
use clap::Args;
use journal::session;
use model::monitor::{BreachKind, Late};
use model::quantity::{duration, spelled};
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::letters::{Letter, Letterbox, send};

/// The socket in the state directory.
const SOCKET: &str = "monitor.sock";
/// Reports that are read at once: others wait in the kernel.
const AT_ONCE: usize = 32;
/// The longest name of what was late, characters.
const LONGEST: usize = 40;

/// Arguments of `monitor report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// What was late, such as control-loop: letters, digits, dots, dashes and underscores.
    #[arg(value_name = "NAME", value_parser = named)]
    name: String,
    /// How late it was, or how long it took.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    took: Option<Duration>,
    /// Directory of the monitor's journal [default: /var/lib/stillcore].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// Tells the monitor that something was late.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<u8> {
    let places = match &args.state {
        Some(state) => vec![state.clone()],
        None => session::states_to_read(session::home().as_deref()),
    };
    let took = args.took.map(|took| format!(" {}", spelled(took.as_nanos() as u64))).unwrap_or_default();
    for state in places {
        if send(&state.join(SOCKET), &format!("late {}{took}", args.name))? {
            return Ok(0);
        }
    }
    anyhow::bail!("no monitor runs here: nobody would hear of it")
}

fn named(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    if text.is_empty() || text.len() > LONGEST || !text.chars().all(fits) {
        return Err(format!(
            "invalid name: expected 1 to {LONGEST} letters, digits, dots, dashes or underscores"
        ));
    }
    Ok(text.to_owned())
}

/// What comes in.
pub(super) struct Reports {
    letterbox: Letterbox,
    /// Users who are heard.
    users: Vec<u32>,
    /// Reports of others, and such that say nothing.
    pub(super) refused: u64,
}

impl Reports {
    /// Opens the socket; root and these users are heard.
    pub(super) fn open(state: &Path, users: &[u32]) -> anyhow::Result<Self> {
        let letterbox = Letterbox::open(&state.join(SOCKET), !users.is_empty())?;
        let users = [&[0], users].concat();
        Ok(Self { letterbox, users, refused: 0 })
    }

    /// What has come since the last call, as of `now_ns`.
    pub(super) fn next(&mut self, now_ns: i64) -> Vec<Late> {
        let mut all = Vec::new();
        for _ in 0..AT_ONCE {
            match self.letterbox.next() {
                Ok(Some(letter)) => {
                    match late(&letter, now_ns).filter(|_| self.users.contains(&letter.uid)) {
                        Some(late) => all.push(late),
                        None => self.refused += 1,
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    eprintln!("note: {}", failure::sentence(&error.into()));
                    break;
                }
            }
        }
        all
    }
}

/// What a letter says; `None` where it is no report.
fn late(letter: &Letter, now_ns: i64) -> Option<Late> {
    let mut words = letter.text.trim_end().split(' ');
    if words.next()? != "late" {
        return None;
    }
    let name = named(words.next()?).ok()?;
    let took = words.next().map(duration).transpose().ok()?;
    let ns = took.map(|took| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    let t_ns = now_ns.saturating_sub(i64::try_from(ns.unwrap_or(0)).unwrap_or(i64::MAX));
    words.next().is_none().then_some(Late {
        kind: BreachKind::Reported,
        cpu: None,
        tid: Some(letter.pid),
        comm: name,
        t_ns,
        value_ns: ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_name_and_perhaps_a_time() {
        let of = |text: &str| late(&Letter { pid: 7, uid: 0, text: text.to_owned() }, 1_000_000);
        let timed = of("late control-loop 5us\n").unwrap();
        assert_eq!((timed.comm.as_str(), timed.value_ns, timed.t_ns), ("control-loop", Some(5_000), 995_000));
        assert_eq!((of("late x").unwrap().value_ns, of("late x").unwrap().end_ns()), (None, 1_000_000));
        for wrong in
            ["", "late", "late ", "late a b c", "late a 5", "early x", "late \u{1b}[31m", "late a 5us x"]
        {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
        assert_eq!(of(&format!("late {}", "x".repeat(41))), None);
    }
}
