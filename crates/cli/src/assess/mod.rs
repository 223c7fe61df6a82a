//! `stillcore assess`: read the machine, audit it, measure it idle, disturbed and idle again, and say what that means.
//!
//! `plan` resolves the arguments and refuses what cannot be done; `execute` carries the plan out
//! with the parts of `crate::run` that all measuring verbs share. `crate::conclude` draws the
//! conclusions, as for any run.

mod execute;
mod plan;

use crate::args::AssessArgs;
use crate::run::interrupted::Interrupted;
use crate::run::output::{self, RunOutput};
use crate::{conclude, failure};
use journal::session::Session;
use plan::Plan;
use std::path::Path;
use sys::sched;
use sys::signals::EndSignals;

/// Carries out `assess`.
pub(crate) fn run(args: &AssessArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let plan = Plan::resolve(args)?;
    // Everything that is not a probe, the guardian included, stays off the measured CPUs.
    sched::pin(&plan.place.housekeeping)?;
    let session = Session::open(&plan.place.program, &plan.place.state)?;
    let mut output = RunOutput::create(&plan.out, &plan.place)?;
    let ended = execute::execute(&plan, &mut output, signals, session);
    let reason = ended.as_ref().err().map(failure::sentence);
    let closed = output.close(reason);
    if let Err(error) = ended {
        let kept = format!("the partial run is kept in {}", plan.out.display());
        let interrupted = error.is::<Interrupted>();
        return Err(error.context(
            match closed.and_then(|()| if interrupted { conclude_at(&plan.out) } else { Ok(()) }) {
                Ok(()) => kept,
                Err(why) => {
                    format!("{kept}, but not all of it could be written ({})", failure::sentence(&why))
                }
            },
        ));
    }
    closed?;
    let document = conclude::document(&plan.out)?;
    conclude::write(&document, &plan.out)?;
    output::mark_complete(&plan.out)?;
    conclude::print(&document, args.json)?;
    Ok(document.outcome.exit_code())
}

/// An interrupted run gets a report of what it has, which says that it is partial.
fn conclude_at(dir: &Path) -> anyhow::Result<()> {
    conclude::write(&conclude::document(dir)?, dir)
}
