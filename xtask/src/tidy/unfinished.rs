//! Rule: nothing unfinished is committed: no place-holder macros, no debug prints, no switched-off
//! tests, no unresolved merge.

use super::Violation;
use crate::repo::Repo;

/// Written in two halves, so that this file does not report itself.
const MARKS: &[(&str, &str)] = &[
    (concat!("todo", "!("), "the code itself"),
    (concat!("unimplemented", "!("), "the code itself"),
    (concat!("dbg", "!("), "no debug print"),
    (concat!("#[", "ignore"), "a test that runs, behind a feature where it needs more than this machine"),
];

/// How the lines begin between which a merge leaves both sides.
const SIDES: [&str; 2] = [concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in repo.rust() {
        for (at, line) in text.lines().enumerate() {
            for (mark, expected) in MARKS.iter().filter(|(mark, _)| line.contains(mark)) {
                found.push(Violation::at(path, at + 1, format!("`{mark}`"), *expected));
            }
        }
    }
    for (path, text) in repo.texts(|_| true) {
        let sides = |line: &str| SIDES.iter().any(|side| line.starts_with(side));
        let lines = text.lines().enumerate().filter(|(_, line)| sides(line));
        found.extend(lines.map(|(at, _)| Violation::at(path, at + 1, "two sides of a merge", "one of them")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_found_with_its_line() {
        for (mark, _) in MARKS {
            let found = check(&Repo::of(&[("crates/a/src/b.rs", &format!("//! A.\nfn f() {{ {mark}\n"))]));
            assert_eq!(found.len(), 1, "{mark}");
            assert_eq!(found[0].line, Some(2));
        }
        assert_eq!(check(&Repo::of(&[("a.rs", "fn todo() {}\n"), ("a.md", MARKS[0].0)])), []);
        let merge = format!("a\n{}HEAD\nb\n=======\nc\n{}x\n", SIDES[0], SIDES[1]);
        let lines: Vec<_> = check(&Repo::of(&[("a.md", &merge)])).iter().map(|one| one.line).collect();
        assert_eq!(lines, [Some(2), Some(6)]);
    }
}
