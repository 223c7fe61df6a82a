//! Rule: only crates at the kernel's face may hold `unsafe`; the root file of every other crate
//! forbids it.

use super::Violation;
use crate::repo::Repo;

/// System calls and shared memory (`sys`), rings and counters of the recorder and the probes, and
/// stressors that call the kernel in ways that no library offers.
const FREE: [&str; 4] = ["crates/sys/", "crates/record/", "crates/disturb/", "crates/measure/"];

const FORBID: &str = "#![forbid(unsafe_code)]";

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    repo.rust()
        .filter(|(path, _)| is_crate_root(path) && !FREE.iter().any(|free| path.starts_with(free)))
        .filter(|(_, text)| !text.lines().any(|line| line.trim_end() == FORBID))
        .map(|(path, _)| Violation::file(path, format!("no `{FORBID}`"), "it after the file header"))
        .collect()
}

fn is_crate_root(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    match parts.as_slice() {
        ["crates", _, "src", file] | ["xtask", "src", file] => matches!(*file, "lib.rs" | "main.rs"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_without_the_line_are_reported_and_some_are_free() {
        let repo = Repo::of(&[
            ("crates/model/src/lib.rs", "//! Data.\n"),
            ("crates/sched/src/lib.rs", "//! Theory.\n#![forbid(unsafe_code)]\n"),
            ("crates/sys/src/lib.rs", "//! System calls.\n"),
            ("crates/model/src/class.rs", "//! Not a root.\n"),
        ]);
        let found = check(&repo);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/model/src/lib.rs");
    }

    #[test]
    fn a_comment_about_the_line_is_not_the_line() {
        let repo = Repo::of(&[("crates/cli/src/main.rs", "//! We say #![forbid(unsafe_code)] here.\n")]);
        assert_eq!(check(&repo).len(), 1);
    }
}
