//! The calls of an experiment, checked before the first is made: a misspelt verb or option is found
//! by `--plan`, and starts nothing.

use crate::calls;
use model::Error;
use study::experiment::{Experiment, Place, Planned, commands};

/// Refuses an experiment one of whose calls is none.
pub(super) fn check(experiment: &Experiment, cells: &[Planned], scale: f64) -> Result<(), Error> {
    let place = Place { cpus: "1".to_owned(), housekeeping: "0".to_owned(), out: "out".to_owned() };
    for planned in cells.iter().filter(|planned| planned.cell.repetition == 0) {
        let made = commands(experiment, &planned.cell, scale, &place, false);
        let steps = made.steps.into_iter().map(|(_, words)| words);
        for words in made.before.into_iter().chain(steps).chain(made.after) {
            if let Some(why) = calls::wrong(&words) {
                let found = format!("{:?}: {why}", words.join(" "));
                return Err(Error::invalid(experiment.name.get_ref(), found, "calls that stillcore takes"));
            }
        }
    }
    Ok(())
}
