//! Runs of every kind, in each of which one process is killed at a random moment: what is left on
//! the machine, which samples are readable, what the report says. `cargo bench -p stillcore --bench
//! kills [-- --program FILE --kills N --seed N --minutes N]`; needs root.

#[path = "../tests/support/kills.rs"]
mod kills;

mod common;

use common::{Failed, option, run};
use kills::{Outcome, Random, VERBS, kill_one};
use result::{Limit, Of, Row, Sink};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn main() {
    run("kills", |rows| {
        let program: PathBuf = option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore")));
        let (wanted, seed): (usize, u64) = (option("--kills", 500), option("--seed", 1));
        let until = Instant::now() + Duration::from_secs(60 * option("--minutes", 120));
        let mut random = Random(seed);
        let (mut done, mut ended) = (Vec::new(), 0usize);
        while done.len() < wanted && Instant::now() < until {
            let dir = tempfile::tempdir().map_err(Failed::because)?;
            let outcome = kill_one(&program, dir.path(), &mut random);
            if !outcome.left.is_empty() || !outcome.wrong.is_empty() {
                eprintln!("{outcome:?}, kept in {}", dir.keep().display());
            }
            match outcome.role {
                Some(_) => done.push(outcome),
                None => ended += 1,
            }
        }
        say(&done, ended, wanted, seed, rows)
    });
}

fn say(done: &[Outcome], ended: usize, wanted: usize, seed: u64, rows: &mut Sink) -> Result<(), Failed> {
    rows.note(format!(
        "{} of {wanted} kills; seed {seed}; {ended} runs had ended before their moment; kinds of runs: {}",
        done.len(),
        VERBS.map(|verb| verb.join(" ")).join("; ")
    ))?;
    let zero = |what: &str, count: usize, n: usize| {
        Row::new(what, count as f64, "").n(n as u64).budget(Of::Value, Limit::AtMost(0.0))
    };
    let n = done.len();
    rows.push(zero("kills that left something over", count(done, |one| !one.left.is_empty()), n))?;
    rows.push(zero(
        "kills after which something is unreadable or said wrongly",
        count(done, |one| !one.wrong.is_empty()),
        n,
    ))?;
    let compared = count(done, |one| !one.beside);
    rows.push(
        Row::new("kills before and after which all settings were compared", compared as f64, "").n(n as u64),
    )?;
    let roles: BTreeSet<&str> = done.iter().filter_map(|one| one.role.as_deref()).collect();
    for role in roles {
        let killed = count(done, |one| one.role.as_deref() == Some(role));
        rows.push(Row::new(format!("killed: {role}"), killed as f64, "").n(n as u64))?;
    }
    let mut ages: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (probe, age) in done.iter().flat_map(|one| &one.age_ms) {
        ages.entry(probe).or_default().push(*age);
    }
    for (probe, ages) in ages {
        let largest = ages.iter().copied().fold(0.0, f64::max);
        // The gaps of a busy loop are placed when its stretch of 0.8 s is closed.
        let limit = if probe == "noise" { 2_000.0 } else { 1_000.0 };
        let row = Row::new(format!("{probe}: last readable sample before the kill, at most"), largest, "ms");
        rows.push(row.n(ages.len() as u64).budget(Of::Value, Limit::AtMost(limit)))?;
    }
    Ok(())
}

fn count(done: &[Outcome], which: impl Fn(&Outcome) -> bool) -> usize {
    done.iter().filter(|one| which(one)).count()
}
