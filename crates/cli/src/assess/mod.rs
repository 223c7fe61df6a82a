//! `stillcore assess`: read the machine, audit it, measure it idle, disturbed and idle again, and say what that means.
//!
//! `plan` turns arguments into what will be done, and refuses here what cannot be done; `output` is the run directory while it is
//! being written; `execute` does it; `progress` shows it. The conclusions are drawn by `crate::conclude`, as for any run.

mod execute;
mod output;
mod plan;
mod progress;

use crate::args::AssessArgs;
use crate::conclude;
use linux::sys::signals::EndSignals;
use model::store;
use output::RunOutput;
use plan::Plan;

/// Carries out `assess`.
pub(crate) fn run(args: &AssessArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let plan = Plan::resolve(args)?;
    let mut output = RunOutput::create(&plan)?;
    let ended = execute::execute(&plan, &mut output, signals);
    let (run, dir) = match ended {
        Ok(()) => output.close(None)?,
        Err(error) => {
            let told = format!("{error:#}");
            let interrupted = error.is::<execute::Interrupted>();
            let kept = output.close(Some(told));
            return Err(match kept {
                Ok((run, dir)) if interrupted && !run.probes.is_empty() => {
                    error.context(partial_report(&dir).map_or_else(
                        |why| {
                            format!("the partial run is kept in {} without a report ({why:#})", dir.display())
                        },
                        |()| format!("the partial run is kept in {}", dir.display()),
                    ))
                }
                Ok((_, dir)) => error.context(format!("the partial run is kept in {}", dir.display())),
                Err(why) => error.context(format!("the run could not be marked as partial ({why:#})")),
            });
        }
    };
    let document = conclude::document(&dir)?;
    conclude::write(&document, &dir, &dir.join(store::REPORT))?;
    output::mark_complete(&dir)?;
    debug_assert!(run.complete);
    conclude::print(&document, args.json)?;
    Ok(document.outcome.exit_code())
}

fn partial_report(dir: &std::path::Path) -> anyhow::Result<()> {
    conclude::write(&conclude::document(dir)?, dir, &dir.join(store::REPORT))
}
