//! Every command that README and the pages of docs/ show has an account in `../data/pages.toml`.
//! Those that this test runs are run as pasted, in a directory with the files that the page names;
//! they must end as the account says and print what the page shows below them.
//!
//! `src/main.rs` has the test that parses every command line, `../guests/pages.rs` the one that
//! runs those that need root or more CPUs.

use crate::compare::write_run;
use crate::support::pages::{Accounts, Page, Shown, accounts, fits, holds, pages, repository};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn every_command_has_an_account() {
    let (pages, accounts) = (pages(), accounts());
    let mut wrong = Vec::new();
    let mut counts = [0; 4];
    for page in &pages {
        let none = Accounts::default();
        let known = accounts.get(&page.path).unwrap_or(&none);
        let kinds: [BTreeSet<&String>; 4] = [
            known.here.keys().collect(),
            known.guest.keys().collect(),
            known.elsewhere.keys().collect(),
            known.parsed.keys().collect(),
        ];
        for shown in &page.commands {
            let kinds: Vec<usize> = (0..4).filter(|kind| kinds[*kind].contains(&shown.text)).collect();
            match kinds[..] {
                [kind] => counts[kind] += 1,
                _ => wrong.push(format!(
                    "{}:{}: {} accounts: {}",
                    page.path,
                    shown.line,
                    kinds.len(),
                    shown.text
                )),
            }
        }
        let shown: BTreeSet<&String> = page.commands.iter().map(|shown| &shown.text).collect();
        let gone = kinds.iter().flatten().filter(|command| !shown.contains(*command));
        wrong.extend(gone.map(|command| format!("{}: not on the page: {command}", page.path)));
    }
    let paths: BTreeSet<&String> = pages.iter().map(|page| &page.path).collect();
    wrong.extend(accounts.keys().filter(|path| !paths.contains(path)).map(|path| format!("no page {path}")));
    assert!(wrong.is_empty(), "tests/data/pages.toml:\n{}", wrong.join("\n"));
    for (path, known) in &accounts {
        let guest =
            known.guest.iter().map(|(command, account)| (command, &account.exits, account.stop_after_s));
        let all = known.here.iter().map(|(command, exits)| (command, exits, None)).chain(guest);
        for (command, exits, stop_after_s) in all {
            assert!(!exits.is_empty() && stop_after_s.unwrap_or(1) <= 60, "{path}: {command}");
        }
    }
    for (command, by) in accounts.values().flat_map(|known| &known.elsewhere) {
        assert!(tests_named(by).iter().all(|path| path.exists()), "{command}: no such test: {by}");
    }
    let [here, guest, elsewhere, parsed] = counts;
    println!(
        "commands of the pages: {here} run here as pasted, {guest} in a guest, {elsewhere} by other tests, {parsed} parsed only"
    );
}

/// Files of the tests that an account names: `it: NAME` or `guests: NAME`, up to a comma.
fn tests_named(by: &str) -> Vec<PathBuf> {
    let tests = repository().join("crates/cli/tests");
    let name = |kind: &str| {
        let (_, rest) = by.split_once(kind)?;
        let name = rest.split([',', ' ']).next().unwrap_or_default();
        Some(
            name.rsplit("::")
                .next()
                .unwrap_or_default()
                .trim_end_matches("-before")
                .trim_end_matches("-after"),
        )
    };
    let guest = name("guests: ").map(|name| tests.join(format!("guests/{}.sh", name.replace('-', "_"))));
    let here = name("it: ").map(|name| tests.join(format!("it/{name}.rs")));
    guest.into_iter().chain(here).collect()
}

#[test]
fn commands_run_as_pasted() {
    let accounts = accounts();
    let mut wrong = Vec::new();
    for page in pages() {
        let Some(known) = accounts.get(&page.path).filter(|known| !known.here.is_empty()) else { continue };
        let place = tempfile::tempdir().unwrap();
        prepare(place.path(), &page, known);
        for shown in &page.commands {
            if let Some(exits) = known.here.get(&shown.text) {
                wrong.extend(run(place.path(), shown, exits).map(|why| format!("{}:{why}", page.path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Runs a command by the shell; the result says what is wrong.
fn run(place: &Path, shown: &Shown, exits: &[i32]) -> Option<String> {
    let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", &shown.text])
        .current_dir(place)
        .env("PATH", path)
        .env("HOME", place.join("home"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    let code = output.status.code().unwrap_or(-1);
    let says = |why: String| Some(format!("{}: {}\n{why}; it prints\n{printed}", shown.line, shown.text));
    if !exits.contains(&code) {
        return says(format!("exit {code}"));
    }
    holds(&printed, &shown.output).err().and_then(|line| says(format!("no {line:?} there")))
}

#[test]
fn what_stands_between_marks_is_free_and_nothing_else() {
    assert!(fits("took 3 ms at most", "took [..] at most") && fits("a", "[..]") && fits("a  ", "a"));
    assert!(!fits("took 3 ms at mos", "took [..] at most") && !fits("ab", "a") && !fits("a", "a[..]b"));
    let expected = ["...", "c"].map(str::to_owned);
    assert_eq!((holds("a\nb\nc", &expected), holds("a\nc\nb", &expected)), (Ok(()), Ok(())));
    assert_eq!(holds("a\nb", &expected), Err("c"));
    assert_eq!(holds("a\nc", &["a".to_owned(), "b".to_owned()]), Err("b"));
}

/// Makes the files of a page, and a PATH with this program and a `sudo`.
fn prepare(place: &Path, page: &Page, known: &Accounts) {
    for name in ["bin", "home"] {
        fs::create_dir(place.join(name)).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_stillcore"), place.join("bin/stillcore")).unwrap();
    program(&place.join("bin/sudo"), "exec \"$@\"");
    for (name, what) in &known.files {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make(&path, what, page);
    }
}

fn program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn make(path: &Path, what: &str, page: &Page) {
    match what.split_once(':').unwrap_or((what, "")) {
        ("text", text) => fs::write(path, format!("{text}\n")).unwrap(),
        ("block", first) => fs::write(path, page.block(first)).unwrap(),
        ("program", text) => program(path, text),
        ("directory", _) => fs::create_dir_all(path).unwrap(),
        ("tar", from) => {
            let mut archive = tar::Builder::new(fs::File::create(path).unwrap());
            archive.append_dir_all(".", repository().join(from)).unwrap();
            archive.finish().unwrap();
        }
        ("copy", from) => {
            let copied =
                Command::new("cp").arg("-r").arg(repository().join(from)).arg(path).status().unwrap();
            assert!(copied.success());
        }
        // So many runs around a latency in us; `first` makes those of several groups differ.
        ("runs", numbers) => {
            let numbers: Vec<u64> = numbers.split(' ').map(|word| word.parse().unwrap()).collect();
            let [count, base_us, first] = numbers[..] else { panic!("{what}") };
            for run in 0..count {
                let dir = path.join(format!("run{run}"));
                write_run(&dir, 1_000 * base_us as i64, 1_000_000, first + 2 * run, 12_000);
            }
        }
        ("run", numbers) => {
            let numbers: Vec<u64> = numbers.split(' ').map(|word| word.parse().unwrap()).collect();
            let [base_us, seed] = numbers[..] else { panic!("{what}") };
            write_run(path, 1_000 * base_us as i64, 1_000_000, seed, 12_000);
        }
        (from, "") => {
            let from = repository().join(from).canonicalize();
            symlink(from.unwrap_or_else(|error| panic!("{what}: {error}")), path).unwrap();
        }
        _ => panic!("{}: files: {what}", page.path),
    }
}
