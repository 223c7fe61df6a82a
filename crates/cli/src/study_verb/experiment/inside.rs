//! The guest's side of a boot: runs its cells one after the other. It prints each result on the
//! console at once, so that a killed host has lost no more than the running cell.

use super::cell::Room;
use super::{files, ground};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use study::experiment::CellResult;
use study::{Cell, Store};
use sys::signals::EndSignals;

/// Second word of the hidden verb.
pub(crate) const VERB: &str = "study-cells";
/// The order, where the guest's command finds it.
pub(super) const ORDER: &str = "study-order.json";
/// Begins a line with a result.
const MARK: &str = "stillcore-cell";

/// What to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    /// The file of the experiment.
    pub(super) experiment: String,
    /// CPUs to measure.
    pub(super) cpus: String,
    /// The others.
    pub(super) housekeeping: String,
    /// The scale.
    pub(super) scale: f64,
    /// Whether run directories are brought back.
    pub(super) keep: bool,
    /// `place` of the results.
    pub(super) name: String,
    /// What to run.
    pub(super) cells: Vec<Cell>,
}

/// Carries the order out.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let path = words.first().map_or_else(|| PathBuf::from(ORDER), PathBuf::from);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let order: Order = serde_json::from_str(&text).context("the order of the cells")?;
    let experiment = files::read(&order.experiment)?.map_err(anyhow::Error::new)?;
    let machine = machine::read(&machine::Root::live())?;
    let room = Room {
        ground: ground::of(machine, order.cpus.parse()?, order.housekeeping.parse()?),
        cpus: order.cpus,
        housekeeping: order.housekeeping,
        dir: PathBuf::from("runs"),
        keep: order.keep,
        name: order.name,
        emulated: true,
        scale: order.scale,
    };
    let signals = EndSignals::block()?;
    let store = Store::new(".");
    // All cells of a boot have the levels that are set once in it.
    let refused = match order.cells.first() {
        Some(cell) => room.once_booted(&experiment, cell, &signals)?,
        None => None,
    };
    for cell in &order.cells {
        let result = match &refused {
            Some(refused) => Ok(refused.clone()),
            None => room.run(&experiment, cell, &signals),
        };
        let result = match result {
            Ok(result) => result,
            Err(error) if signals.arrived().is_some() => return Err(error),
            Err(error) => super::cell::failed(&error, &room.name, true),
        };
        store.save(cell, serde_json::to_value(&result)?)?;
        // A guest's stderr is on its console at once.
        eprintln!("{}", line(&cell.id, &serde_json::to_string(&result)?));
    }
    Ok(())
}

/// A result as a line: the console is shared with the kernel, so the line proves itself.
fn line(id: &str, result: &str) -> String {
    format!("{MARK} {id} {} {result}", proof(id, result))
}

fn proof(id: &str, result: &str) -> String {
    study::digest(&[id, result], 8)
}

/// The result of such a line, if it is whole.
pub(super) fn heard(text: &str) -> Option<(String, CellResult)> {
    let mut parts = text.trim_end().get(text.find(MARK)?..)?.splitn(4, ' ').skip(1);
    let (id, digest, result) = (parts.next()?, parts.next()?, parts.next()?);
    if proof(id, result) != digest {
        return None;
    }
    Some((id.to_owned(), serde_json::from_str(result).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::experiment::CellState;

    #[test]
    fn a_line_of_the_console_is_a_result_only_if_it_is_whole() {
        let result = CellResult::without(CellState::Failed, "no \"such\" CPU".to_owned(), "6.1", true, "0");
        let console_line = line("ab12", &serde_json::to_string(&result).unwrap());
        assert_eq!(heard(&console_line), Some(("ab12".to_owned(), result.clone())));
        assert_eq!(heard(&format!("[   12.3] noise {console_line}\r\n")), Some(("ab12".to_owned(), result)));
        for cut in 0..console_line.len() {
            assert_eq!(heard(&console_line[..cut]), None, "cut at {cut}");
        }
        assert_eq!(heard(&console_line.replace("CPU", "[ 1.0] CPU")), None);
    }
}
