//! Rule: every source file opens with a `//!` header of at least one sentence that says which idea
//! lives there.

use super::Violation;
use crate::repo::Repo;

/// The `//!` lines a file opens with, without the marker.
pub(super) fn header(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map_while(|line| line.strip_prefix("//!"))
}

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    repo.rust()
        .filter(|(_, text)| !has_sentence(text))
        .map(|(path, _)| {
            Violation::at(
                path,
                1,
                "no `//!` header",
                "a first line `//! One sentence that says which idea this is.`",
            )
        })
        .collect()
}

/// A sentence: three words or more and a full stop (question mark, colon) at the end of a word.
fn has_sentence(text: &str) -> bool {
    let joined = header(text).map(str::trim).collect::<Vec<_>>().join(" ");
    let ends = |word: &str| word.trim_end_matches(['`', ')', '"', '*']).ends_with(['.', '?', ':']);
    joined.split_whitespace().enumerate().any(|(at, word)| at >= 2 && ends(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_a_sentence_over_lines_and_refuses_less() {
        let good = "//! What a run directory holds,\n//! file by file.\n\nuse std::fs;\n";
        for (text, wanted) in [
            (good, 0),
            ("use std::fs;\n//! Too late to be a header.\n", 1),
            ("//! Stub\n", 1),
            ("//! no full stop in here\n", 1),
            ("// A plain comment is not a header.\n", 1),
            ("", 1),
        ] {
            assert_eq!(check(&Repo::of(&[("crates/a/src/b.rs", text)])).len(), wanted, "{text:?}");
        }
    }
}
