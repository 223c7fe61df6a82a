//! A run one of whose calls that write fails as on a full disk: every call of every process of it,
//! one run a call; once alone, once with all calls behind it. `cargo bench -p stillcore --bench
//! write_faults [-- --program FILE]`; needs root and Python.

#[path = "../tests/support/full_disk.rs"]
mod full_disk;
#[path = "../tests/support/kills.rs"]
mod kills;
#[path = "../tests/support/write_faults.rs"]
mod write_faults;

mod common;

use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use std::path::{Path, PathBuf};
use write_faults::{Fault, Faulty, run_with};

/// Runs whose call has none of that number any more, in turn: how many calls there are depends on
/// what came when.
const WHOLE_IN_TURN: usize = 3;
const DURATION: &str = "1200ms";

fn main() {
    run("write_faults", |rows| {
        let program: PathBuf = option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore")));
        rows.note(format!(
            "calls that make, fill, rename or sync files of run and state directory, of all processes; measure wakeup --period 1ms --duration {DURATION}"
        ))?;
        for trace in [false, true] {
            for stay in [false, true] {
                let faulty = rising(&program, stay, trace)?;
                let how = if stay { "with all behind it" } else { "alone" };
                say(&format!("{how}{}", if trace { ", traced" } else { "" }), &faulty, rows)?;
            }
        }
        Ok(())
    });
}

/// Every call from the first on, until there is none of that number.
fn rising(program: &Path, stay: bool, trace: bool) -> Result<Vec<Faulty>, Failed> {
    let (mut all, mut passed) = (Vec::new(), 0);
    for call in 1.. {
        let scratch = tempfile::tempdir()?;
        let faulty = run_with(program, scratch.path(), Fault { call, stay, trace }, DURATION);
        let faulty = faulty.ok_or_else(|| Failed::because("no call can be made to fail here"))?;
        if !faulty.outcome.wrong.is_empty() || !faulty.left.is_empty() {
            eprintln!("call {call}, stay {stay}, trace {trace}: {faulty:?}");
        }
        passed = if faulty.failed.is_none() { passed + 1 } else { 0 };
        if passed == WHOLE_IN_TURN {
            break;
        }
        if faulty.failed.is_some() {
            all.push(faulty);
        }
    }
    Ok(all)
}

fn say(how: &str, all: &[Faulty], rows: &mut Sink) -> Result<(), Failed> {
    let count = |is: &dyn Fn(&&Faulty) -> bool| all.iter().filter(is).count() as f64;
    let row = |what: &str, value: f64| Row::new(format!("{how}: {what}"), value, "").n(all.len() as u64);
    let wrong = count(&|one| !one.outcome.wrong.is_empty());
    rows.push(
        row("not one sentence, exit 1, what is stored readable", wrong).budget(Of::Value, Limit::AtMost(0.0)),
    )?;
    let left = count(&|one| !one.left.is_empty());
    rows.push(row("something left", left).budget(Of::Value, Limit::AtMost(0.0)))?;
    rows.push(row("another way taken, the run whole", count(&|one| one.outcome.whole)))?;
    let kept = count(&|one| !one.outcome.whole && one.outcome.samples > 0);
    rows.push(row("not whole, samples kept", kept))?;
    Ok(())
}
