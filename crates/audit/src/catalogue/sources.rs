//! Sources name what was read so that it can be found again: a version, a commit, an edition, an
//! address.

/// What a source must be.
pub(super) const EXPECTED: &str = "\"Linux 6.12.118 PATH\", \"commit 0123456789ab (what, version)\", \"NAME(8) of PACKAGE 1.2\", \"NAME 1.2, WHERE\", \
     \"VENUE 2024, TITLE\" or https://";

/// Publications that are cited by venue and year.
const VENUES: [&str; 3] = ["RTSS 20", "IEEE Access 20", "OSPERT 20"];

/// Whether a source can be found again as it was read.
pub(super) fn is_dated(source: &str) -> bool {
    if source.starts_with("https://") || VENUES.iter().any(|venue| source.starts_with(venue)) {
        return true;
    }
    if let Some(rest) = source.strip_prefix("commit ") {
        let id: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
        return id.len() >= 12 && rest[id.len()..].starts_with(" (");
    }
    if let Some(rest) = source.strip_prefix("Linux ") {
        let version = rest.split(' ').next().unwrap_or_default();
        return is_version(version) && rest.len() > version.len();
    }
    source.split([' ', ',']).any(is_version)
}

/// Numbers with a dot between them.
fn is_version(word: &str) -> bool {
    let word = word.strip_prefix('v').unwrap_or(word);
    let numbers: Vec<_> = word.split('.').collect();
    numbers.len() > 1 && numbers.iter().all(|one| !one.is_empty() && one.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_says_which_version_was_read() {
        for dated in [
            "Linux 6.12.118 kernel/sched/isolation.c",
            "Linux 5.10 mm/swap.c (lru_add_drain_all)",
            "commit 11ea68f553e2 (managed interrupts, 5.6)",
            "membarrier(2) of man-pages 6.03",
            "tuned 2.20, profile network-latency",
            "RTSS 2024, interference-free operating system, Table III",
            "https://example.org/a",
        ] {
            assert!(is_dated(dated), "{dated}");
        }
        for bare in [
            "Linux kernel/sched/isolation.c",
            "Linux 6.12.118",
            "membarrier(2)",
            "commit 11ea68f (5.6)",
            "commit 11ea68f553e2",
            "ksmtuned",
        ] {
            assert!(!is_dated(bare), "{bare}");
        }
    }
}
