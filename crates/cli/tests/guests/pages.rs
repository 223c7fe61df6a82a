//! Commands of README and docs/ that need root or four CPUs are run as pasted, page by page, in one
//! guest. `data/pages.toml` says which they are and how each ends.

use crate::machine::{Case, Guest};
use crate::support::pages::{Accounts, InGuest, Page, Shown, accounts, holds, pages, repository};
use std::fmt::Write as _;
use std::fs;

/// A command of a page.
struct Pasted {
    place: String,
    shown: Shown,
    account: InGuest,
}

/// The commands in the order of the pages.
fn pasted(pages: &[Page]) -> Vec<Pasted> {
    let accounts = accounts();
    let of_page = |page: &Page| {
        let known = accounts.get(&page.path).map(|known| known.guest.clone()).unwrap_or_default();
        let commands = page.commands.iter().filter_map(|shown| {
            let account = known.get(&shown.text)?.clone();
            let place = format!("{}:{}", page.path, shown.line);
            Some(Pasted { place, shown: shown.clone(), account })
        });
        commands.collect::<Vec<_>>()
    };
    pages.iter().flat_map(of_page).collect()
}

pub(crate) fn case() -> Case {
    Case::new("pages", "pages.sh", ends_as_the_pages_say).limit(2400).file("orders.sh", orders())
}

/// Input of the guest's script: a call per page and command.
fn orders() -> String {
    let (pages, accounts) = (pages(), accounts());
    let mut script = String::new();
    let mut number = 0;
    for page in &pages {
        let Some(known) = accounts.get(&page.path).filter(|known| !known.guest.is_empty()) else { continue };
        writeln!(script, "page {}", page.path.replace(['/', '.'], "-")).unwrap();
        script += &files(page, known);
        for one in pasted(std::slice::from_ref(page)) {
            number += 1;
            let stop_after_s = one.account.stop_after_s.unwrap_or(0);
            writeln!(script, "run {number} {stop_after_s} <<'PASTED'\n{}\nPASTED", one.shown.text).unwrap();
        }
        script += "leave\n";
    }
    script
}

/// The files of a page that are texts; a guest has no captured runs, and makes its own.
fn files(page: &Page, known: &Accounts) -> String {
    let mut script = String::new();
    for (name, what) in &known.files {
        let (text, mode) = match what.split_once(':').unwrap_or((what, "")) {
            ("text", text) => (format!("{text}\n"), 644),
            ("block", first) => (page.block(first).to_owned(), 644),
            ("program", text) => (format!("#!/bin/busybox sh\nPATH={PATH}\n{text}\n"), 755),
            ("directory", _) => {
                writeln!(script, "mkdir -p '{name}'").unwrap();
                continue;
            }
            (path, "") if repository().join(path).is_file() => {
                match fs::read_to_string(repository().join(path)) {
                    Ok(text) => (text, 644),
                    Err(_) => continue,
                }
            }
            _ => continue,
        };
        writeln!(
            script,
            "mkdir -p \"$(dirname '{name}')\"; cat >'{name}' <<'TEXT'\n{text}TEXT\nchmod {mode} '{name}'"
        )
        .unwrap();
    }
    script
}

/// Where the programs of busybox are.
const PATH: &str = "/usr/bin:/bin:/sbin:/usr/sbin";

fn ends_as_the_pages_say(guest: &Guest) {
    let pages = pages();
    let mut wrong = Vec::new();
    let (mut count, mut took_s) = (0, 0);
    for (number, Pasted { place, shown, account }) in (1..).zip(pasted(&pages)) {
        let status: Option<i32> = guest.read(&format!("status-{number}")).trim().parse().ok();
        took_s += guest.read(&format!("took-{number}")).trim().parse::<u64>().unwrap_or(0);
        count += 1;
        let printed = guest.read(&format!("out-{number}"));
        let is_shown = holds(&printed, &shown.output);
        if !status.is_some_and(|status| account.exits.contains(&status)) || is_shown.is_err() {
            let read = |name: &str| {
                let printed = guest.read(&format!("{name}-{number}"));
                let lines: Vec<&str> = printed.lines().rev().take(12).collect();
                lines.into_iter().rev().collect::<Vec<_>>().join("\n")
            };
            let (text, out, err) = (&shown.text, read("out"), read("err"));
            wrong.push(format!("{place}: {text}: exit {status:?}, {is_shown:?}\n{out}\n{err}"));
        }
    }
    println!("commands of the pages in a guest: {count}, {} as expected, {took_s} s", count - wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
