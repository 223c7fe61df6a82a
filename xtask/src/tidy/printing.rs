//! Rule: what the command prints goes through `crates/cli/src/stdout.rs`, where text from outside
//! is made harmless, and where a full disk or a closed terminal ends nothing in the middle.

use super::Violation;
use crate::repo::Repo;

const ROOM: &str = "crates/cli/src/";
/// Exceptions, and their reasons.
const FREE: &[&str] = &[
    "crates/cli/src/stdout.rs",
    // Draws on the terminal, numbers of its own alone.
    "crates/cli/src/measure/cyclictest/screen.rs",
    // Draws what `draw.rs` beside it has made harmless.
    "crates/cli/src/top/terminal.rs",
    // Prints a summary, which may have colours, and in which `report` has made all else harmless.
    "crates/cli/src/conclude.rs",
    // Talk to their parent, not to a terminal.
    "crates/cli/src/internal.rs",
    // Passes on what the guest's program has printed, byte by byte.
    "crates/cli/src/lab_verb.rs",
];
const CALLS: &[&str] = &[
    "io::stdout()",
    " stdout()",
    "(stdout()",
    "io::stderr()",
    " stderr()",
    "(stderr()",
    // What drives the terminal.
    "stdout::put(",
];
/// Whether it is a terminal, and how wide, may be asked.
const ASKED: [&str; 2] = ["is_terminal()", "terminal_size_of("];

/// The printing macros are that file's own for the modules behind this line alone.
const MAIN: &str = "crates/cli/src/main.rs";
const FIRST: &str = "#[macro_use]\nmod stdout;\n";

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in repo.texts(|path| path == MAIN) {
        if text.split_once(FIRST).is_none_or(|(before, _)| before.contains("\nmod ")) {
            let what = "the printing macros are not those of crate::stdout";
            found.push(Violation::file(path, what, "#[macro_use] mod stdout; before every other module"));
        }
    }
    for (path, text) in repo.texts(|path| path.starts_with(ROOM) && !FREE.contains(&path)) {
        for (at, line) in text.lines().enumerate() {
            if CALLS.iter().any(|word| line.contains(word)) && !ASKED.iter().any(|word| line.contains(word)) {
                let what = "printing past the one place that makes text from outside harmless";
                found.push(Violation::at(path, at + 1, what, "println!, eprintln!, or crate::stdout"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_past_it_is_found() {
        let repo = |path: &str, line: &str| Repo::of(&[(path, line)]);
        let found = |path: &str, line: &str| check(&repo(path, line)).len();
        assert_eq!(found("crates/cli/src/x.rs", "writeln!(std::io::stdout(), \"{comm}\")"), 1);
        assert_eq!(found("crates/cli/src/x.rs", "let mut out = stderr().lock();"), 1);
        assert_eq!(found("crates/cli/src/x.rs", "    stdout::put(&text);"), 1);
        assert_eq!(found("crates/cli/src/x.rs", "std::io::stdout().is_terminal()"), 0);
        assert_eq!(found("crates/cli/src/x.rs", "terminal_size_of(stdout())"), 0);
        assert_eq!(found("crates/cli/src/stdout.rs", "stdout().lock()"), 0);
        assert_eq!(found("crates/lab/src/x.rs", "stdout().lock()"), 0);
    }

    #[test]
    fn macros_that_only_later_modules_would_have_are_found() {
        let found = |text: &str| check(&Repo::of(&[(MAIN, text)])).len();
        assert_eq!(found("//! x\n\n#[macro_use]\nmod stdout;\n\nmod args;\n"), 0);
        assert_eq!(found("//! x\n\nmod args;\n#[macro_use]\nmod stdout;\n"), 1);
        assert_eq!(found("//! x\n\n#[macro_use]\nmod args;\nmod stdout;\n"), 1);
    }
}
