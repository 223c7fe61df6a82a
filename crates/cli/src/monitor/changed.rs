//! What was different on the machine at a breach from when watching began: settings, who may run or
//! interrupt on the watched CPUs, and packages that were installed since.

use analysis::exposure::changed::shifted;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::machine::Snapshot;
use model::{Run, store};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Where Debian's package manager writes what it does (dpkg(1)), and where that was written before
/// the month began.
const DPKG_LOGS: [&str; 2] = ["/var/log/dpkg.log.1", "/var/log/dpkg.log"];
/// The most of its end that is read, bytes.
const MOST_LOG: u64 = 256 << 10;
/// The most sentences of a kind.
const MOST: usize = 10;

/// One sentence each.
pub(super) fn since_the_beginning(dir: &Path, run: &Run, began: &str) -> anyhow::Result<Vec<String>> {
    let Some(after) = &run.machine_after else { return Ok(Vec::new()) };
    let before: Snapshot = store::read_json(&dir.join(&run.machine_before))?;
    let after: Snapshot = store::read_json(&dir.join(after))?;
    let settings = shifted(&before.state, &after.state, &run.measured_cpus);
    let packages = match began.parse() {
        Ok(began) => packages(&log(), [began, Timestamp::MAX], &TimeZone::system()),
        Err(_) => Vec::new(),
    };
    Ok([settings, packages].into_iter().flat_map(few).collect())
}

/// Packages that were installed, upgraded or removed on this machine in that time; `None` where its
/// log does not reach back to it.
pub(super) fn packages_between(span: [Timestamp; 2]) -> Option<Vec<String>> {
    packages_in(&log(), span, &TimeZone::system())
}

fn packages_in(log: &str, span: [Timestamp; 2], zone: &TimeZone) -> Option<Vec<String>> {
    let first = log.lines().find_map(|line| time(line, zone))?;
    (first <= span[0]).then(|| few(packages(log, span, zone)))
}

/// The first ones, and how many more there are.
fn few(mut all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    all.extend((more > 0).then(|| format!("and {more} more")));
    all
}

/// What there is of both logs without a gap: of the earlier one nothing where only the end of the
/// later is read.
fn log() -> String {
    let [earlier, later] = DPKG_LOGS.map(|path| log_end(Path::new(path)));
    joined(earlier, later)
}

fn joined(earlier: Option<LogEnd>, later: Option<LogEnd>) -> String {
    let later = later.unwrap_or(LogEnd { text: String::new(), is_whole: true });
    earlier.filter(|_| later.is_whole).map(|earlier| earlier.text).unwrap_or_default() + &later.text
}

/// The end of a log, and whether that is all of it.
struct LogEnd {
    text: String,
    is_whole: bool,
}

fn log_end(path: &Path) -> Option<LogEnd> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_LOG))).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_LOG).read_to_end(&mut bytes).ok()?;
    Some(LogEnd { text: String::from_utf8_lossy(&bytes).into_owned(), is_whole: length <= MOST_LOG })
}

/// When a line such as `2026-11-29 17:01:02 startup archives unpack` was written, in local time.
fn time(line: &str, zone: &TimeZone) -> Option<Timestamp> {
    let mut words = line.split(' ');
    let (day, time) = (words.next()?, words.next()?);
    let at: jiff::civil::DateTime = format!("{day}T{time}").parse().ok()?;
    Some(at.to_zoned(zone.clone()).ok()?.timestamp())
}

/// Packages that were installed, upgraded or removed in that time: lines such as `2026-11-29
/// 17:01:02 upgrade linux-image-amd64:amd64 6.1.1 6.1.2`.
fn packages(log: &str, [since, until]: [Timestamp; 2], zone: &TimeZone) -> Vec<String> {
    let sentence = |line: &str| {
        time(line, zone).filter(|at| (since..=until).contains(at))?;
        let mut words = line.split(' ').skip(2);
        let (deed, package, old, new) = (words.next()?, words.next()?, words.next()?, words.next()?);
        match deed {
            "install" => Some(format!("package {package} {new} was installed")),
            "upgrade" => Some(format!("package {package} was upgraded from {old} to {new}")),
            "remove" | "purge" => Some(format!("package {package} {old} was removed")),
            _ => None,
        }
    };
    log.lines().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_since_a_time_are_named() {
        let log = "ng line\n2026-11-29 16:59:59 upgrade a:amd64 1 2\n2026-11-29 17:00:01 startup archives unpack\n\
                   2026-11-29 17:00:02 upgrade linux-image-amd64:amd64 6.1.1 6.1.2\n\
                   2026-11-29 17:00:03 install irqbalance:amd64 <none> 1.9\n2026-11-29 17:00:04 status installed x 1\n\
                   2026-11-29 17:00:05 remove tuned:all 2.20 <none>\n";
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let since = at("2026-11-29T17:00:00.5Z");
        let found = packages(log, [since, Timestamp::MAX], &TimeZone::UTC);
        assert_eq!(
            found,
            [
                "package linux-image-amd64:amd64 was upgraded from 6.1.1 to 6.1.2",
                "package irqbalance:amd64 1.9 was installed",
                "package tuned:all 2.20 was removed",
            ]
        );
        let few = packages_in(log, [since, at("2026-11-29T17:00:02Z")], &TimeZone::UTC).unwrap();
        assert_eq!(few, found[..1]);
        // Before the log's first line nothing is known.
        assert_eq!(packages_in(log, [at("2026-11-29T16:00:00Z"), since], &TimeZone::UTC), None);
        assert_eq!(packages_in("", [since; 2], &TimeZone::UTC), None);
    }

    #[test]
    fn a_log_has_no_gap() {
        let end = |text: &str, is_whole| Some(LogEnd { text: text.to_owned(), is_whole });
        assert_eq!(joined(end("a\n", false), end("b\n", true)), "a\nb\n");
        assert_eq!(joined(end("a\n", true), end("b\n", false)), "b\n");
        assert_eq!(joined(end("a\n", true), None) + &joined(None, None), "a\n");
    }

    #[test]
    fn of_many_the_first_are_named() {
        let many = few((0..25).map(|one| one.to_string()).collect());
        assert_eq!((many.len(), many[10].as_str()), (11, "and 15 more"));
    }
}
