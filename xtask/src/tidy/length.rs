//! Rule: a file fits in the head. Over 500 lines it says why, in its header:
//! `//! Long because: ...`.

use super::{Violation, headers::header};
use crate::repo::Repo;

const LIMIT: usize = 500;
const REASON: &str = "Long because:";

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    repo.rust()
        .filter(|(_, text)| text.lines().count() > LIMIT && !explained(text))
        .map(|(path, text)| {
            Violation::file(
                path,
                format!("{} lines", text.lines().count()),
                format!("at most {LIMIT}, or a header line `//! {REASON} ...`"),
            )
        })
        .collect()
}

/// The reason must have words after the colon.
fn explained(text: &str) -> bool {
    header(text).any(|l| l.trim().strip_prefix(REASON).is_some_and(|why| !why.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Vec<Violation> {
        check(&Repo::of(&[("crates/a/src/b.rs", text)]))
    }

    #[test]
    fn the_limit_itself_is_fine_and_one_more_is_not() {
        assert_eq!(check_text(&"//! A.\n".repeat(LIMIT)), []);
        assert_eq!(check_text(&"//! A.\n".repeat(LIMIT + 1)).len(), 1);
    }

    #[test]
    fn a_reason_in_the_header_lifts_the_limit() {
        let long = "\n".repeat(LIMIT);
        assert_eq!(check_text(&format!("//! A table.\n//! Long because: one row a vector.\n{long}")), []);
        assert_eq!(check_text(&format!("//! A table.\n//! Long because:\n{long}")).len(), 1);
        assert_eq!(check_text(&format!("{long}//! Long because: too late.\n")).len(), 1);
    }
}
