//! A run on disks of every size at which it cannot be whole, by pages and by names: each allocation
//! of a page or a name fails once. `cargo bench -p stillcore --bench full_disk [-- --program
//! FILE]`; needs root.

#[path = "../tests/support/full_disk.rs"]
mod full_disk;

mod common;

use common::{Failed, option, run};
use full_disk::{Outcome, Size, run_on};
use result::{Limit, Of, Row, Sink};
use std::path::{Path, PathBuf};

/// More than any run of this length needs.
const ENOUGH: u64 = 4096;
/// A run that is whole is not asked with less room behind it: times differ, and with them what is
/// written.
const WHOLE_IN_TURN: usize = 5;

fn main() {
    run("full_disk", |rows| {
        let program: PathBuf = option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore")));
        rows.note(
            "tmpfs with run and state directory; measure wakeup --period 1ms --duration 1500ms".to_owned(),
        )?;
        let pages = rising(&program, "page", |pages| Size { pages, names: ENOUGH })?;
        say("page", &pages, rows)?;
        let names = rising(&program, "name", |names| Size { pages: ENOUGH, names })?;
        say("name", &names, rows)
    });
}

/// Every size from the smallest on, until there is room enough.
fn rising(program: &Path, what: &str, size: impl Fn(u64) -> Size) -> Result<Vec<Outcome>, Failed> {
    let (mut outcomes, mut whole) = (Vec::new(), 0);
    for number in 1..ENOUGH {
        let scratch = tempfile::tempdir()?;
        let outcome = run_on(program, scratch.path(), size(number), "1500ms");
        let outcome = outcome.ok_or_else(|| Failed::because("a tmpfs cannot be mounted"))?;
        if !outcome.wrong.is_empty() {
            eprintln!("{number} {what}s: {:?}", outcome.wrong);
        }
        whole = if outcome.whole { whole + 1 } else { 0 };
        if whole == WHOLE_IN_TURN {
            return Ok(outcomes);
        }
        outcomes.push(outcome);
    }
    Err(Failed::because(format!("{ENOUGH} {what}s are not enough")))
}

fn say(what: &str, outcomes: &[Outcome], rows: &mut Sink) -> Result<(), Failed> {
    let full: Vec<_> = outcomes.iter().filter(|one| !one.whole).collect();
    let n = full.len() as u64;
    let wrong = full.iter().filter(|one| !one.wrong.is_empty()).count();
    let row = Row::new(
        format!("{what}s that fail: not one sentence, exit 1, what is stored readable"),
        wrong as f64,
        "",
    );
    rows.push(row.n(n).budget(Of::Value, Limit::AtMost(0.0)))?;
    let kept = full.iter().filter(|one| one.samples > 0).count();
    rows.push(Row::new(format!("{what}s that fail behind the first sample kept"), kept as f64, "").n(n))?;
    Ok(())
}
