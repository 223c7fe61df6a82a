//! Rule: what changed is written down while it changes: CHANGELOG.md has an Unreleased section that
//! says something (format: Keep a Changelog 1.1).

use super::Violation;
use crate::repo::Repo;

const FILE: &str = "CHANGELOG.md";

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let Some(Some(text)) = repo.files.get(FILE) else {
        return vec![Violation::file(FILE, "no such file", "a changelog")];
    };
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| line.trim() != "## [Unreleased]");
    let Some((at, _)) = lines.next() else {
        return vec![Violation::file(FILE, "no Unreleased section", "a heading `## [Unreleased]`")];
    };
    let entry =
        lines.take_while(|(_, line)| !line.starts_with("## ")).any(|(_, line)| line.starts_with("- "));
    if entry { Vec::new() } else { vec![Violation::at(FILE, at + 1, "no entry", "a line `- what changed`")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_must_exist_and_say_something() {
        for (text, wanted) in [
            ("# Changelog\n\n## [Unreleased]\n### Added\n- a probe\n", 0),
            ("# Changelog\n\n## [0.1.0]\n- a probe\n", 1),
            ("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n- a probe\n", 1),
        ] {
            assert_eq!(check(&Repo::of(&[(FILE, text)])).len(), wanted, "{text:?}");
        }
        assert_eq!(check(&Repo::default()).len(), 1);
    }
}
