//! The command in virtual machines: each machine of `table.rs` boots once and is put through its
//! scripts; every script is a test that judges what came back.
//!
//! This program is its own harness, because tests share machines: it boots those that the chosen
//! tests need, `--test-threads` at a time. A test is named TIER::MACHINE::SCRIPT, and any part of
//! that chooses; `matrix::..::isolate` are two parts in this order.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "shared with the tests outside of guests")]
mod support;

mod admission;
mod asid;
mod assess;
mod boot_line;
mod boxes;
mod cards;
mod counts;
mod disturb_kill;
mod every;
mod exported;
mod exposure;
mod fixes;
mod graph;
mod guides;
mod held;
mod hold;
mod install;
mod isolate;
mod keep;
mod loaders;
mod machine;
mod matrix;
mod measure;
mod misbooted;
mod monitor;
mod monitor_faults;
mod monitor_quiet;
mod owners;
mod pages;
mod planted;
mod probes;
mod state;
mod study;
mod table;
mod theirs;
mod time;
mod truth;
mod tutorial;

use libtest_mimic::{Arguments, Failed, Trial};
use machine::{Booted, Case, Guest, Machine};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Virtual machines at once, where the command line does not say.
const AT_ONCE: usize = 2;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The harness knows no parts.
    let (filter, skip, exact) = (arguments.filter.take(), arguments.skip.clone(), arguments.exact);
    let chosen = |name: &str| {
        let is_it = |part: &String| if exact { name == part } else { has_parts(name, part) };
        filter.as_ref().is_none_or(is_it) && !skip.iter().any(is_it)
    };
    let mut machines = Vec::new();
    let mut trials: Vec<Trial> = table::on_this_host()
        .into_iter()
        .filter(|(name, _)| chosen(name))
        .map(|(name, test)| Trial::test(name, move || Ok::<(), Failed>(test())))
        .collect();
    for mut machine in table::machines() {
        let name = machine.name.clone();
        machine.cases.retain(|case| chosen(&format!("{name}::{}", case.name)));
        if machine.cases.is_empty() {
            continue;
        }
        let shared = Arc::new(Shared { machine, booted: OnceLock::new() });
        machines.push(Arc::clone(&shared));
        for at in 0..shared.machine.cases.len() {
            let shared = Arc::clone(&shared);
            let name = format!("{name}::{}", shared.machine.cases[at].name);
            trials.push(Trial::test(name, move || shared.judge(at)));
        }
    }
    let at_once = arguments.test_threads.unwrap_or(AT_ONCE);
    if !arguments.list {
        boot_in_turn(machines, at_once);
    }
    // Tests wait for their machines; those that do not are few.
    arguments.test_threads = Some(64);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Whether a name has the parts, between which `..` stands, one behind the other.
fn has_parts(name: &str, parts: &str) -> bool {
    let mut rest = name;
    parts.split("..").all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// A machine that several tests judge.
struct Shared {
    machine: Machine,
    booted: OnceLock<Booted>,
}

impl Shared {
    fn judge(&self, at: usize) -> Result<(), Failed> {
        let booted = self.booted.wait();
        let case = &self.machine.cases[at];
        let root = booted.root.join(case.name);
        if !machine::ended(case, &root) {
            return Err(
                format!("no result: {}\n{}", booted.trouble.join("\n"), machine::printed(&root)).into()
            );
        }
        (case.check)(&Guest { machine: &self.machine, case, root });
        Ok(())
    }
}

/// Boots machines in the background, so many at a time, in the order of the table.
fn boot_in_turn(machines: Vec<Arc<Shared>>, at_once: usize) {
    let (next, machines) = (Arc::new(AtomicUsize::new(0)), Arc::new(machines));
    for _ in 0..at_once.max(1) {
        let (next, machines) = (Arc::clone(&next), Arc::clone(&machines));
        std::thread::spawn(move || {
            while let Some(shared) = machines.get(next.fetch_add(1, Ordering::Relaxed)) {
                let cases: Vec<&Case> = shared.machine.cases.iter().collect();
                let ran = catch_unwind(AssertUnwindSafe(|| machine::run(&shared.machine, &cases)));
                let failed = |_| Booted { root: PathBuf::new(), trouble: vec!["the harness failed".into()] };
                let _ = shared.booted.set(ran.unwrap_or_else(failed));
            }
        });
    }
}
