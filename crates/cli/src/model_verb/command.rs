//! The command that answers again with something changed, so that a proposal can be checked.

use super::{MARGIN, ModelArgs};
use analysis::task_model::change::Change;
use std::path::Path;

/// The same model of the run or trace, with the same assumptions: without what is changed.
pub(super) fn again(args: &ModelArgs, source: &Path) -> String {
    let mut words = vec!["stillcore model --from".to_owned(), quoted(&source.display().to_string())];
    if args.margin != MARGIN {
        words.push(format!("--margin {}", args.margin));
    }
    let deadlines = args.deadline.iter().map(|(name, ns)| quoted(&format!("{name}={ns}ns")));
    words.extend(deadlines.map(|one| format!("--deadline {one}")));
    words.join(" ")
}

/// With these changes.
pub(super) fn what_if(again: &str, changes: &[Change]) -> String {
    let one = |change: &Change| format!(" --what-if {}", quoted(&change.to_string()));
    again.to_owned() + &changes.iter().map(one).collect::<String>()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_read_are_quoted() {
        let changes = ["a b[7].priority=80", "it's.cpu=1"].map(|text| Change::parse(text).unwrap());
        assert_eq!(
            what_if("stillcore model --from run", &changes),
            r"stillcore model --from run --what-if 'a b[7].priority=80' --what-if 'it'\''s.cpu=1'"
        );
    }
}
