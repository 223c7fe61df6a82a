//! `stillcore assess`: read the machine, audit it, measure it idle, disturbed and idle again, and
//! say what that means.
//!
//! `plan` resolves the arguments and refuses what cannot be done; `execute` carries the plan out
//! with the parts of `crate::run` that all measuring verbs share. `crate::conclude` draws the
//! conclusions, as for any run.

mod execute;
mod plan;

use crate::measure::stopping::Stopping;
use crate::run::interrupted::{Interrupted, Stopped};
use crate::run::output::{self, RunOutput};
use crate::values::TraceMode;
use crate::{conclude, failure};
use clap::Args;
use journal::session::Session;
use model::Cpus;
use model::quantity::duration;
use plan::Plan;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::sched;
use sys::signals::EndSignals;

/// Arguments of `assess`.
#[derive(Debug, Args)]
pub(crate) struct AssessArgs {
    /// CPUs to measure, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest
    /// one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Length of each of the three phases; half measures wake-ups, half noise.
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
    /// Release interval of the wake-up probe.
    #[arg(long, default_value = "200us", value_name = "TIME", value_parser = duration)]
    pub(crate) period: Duration,
    /// Shortest gap that the noise probe stores [default: five loop iterations, at least 500 ns].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) threshold: Option<Duration>,
    /// SCHED_FIFO priority of the probes; 0 = SCHED_OTHER.
    #[arg(long, default_value_t = 80, value_name = "0-98", value_parser = clap::value_parser!(u32).range(0..=98))]
    pub(crate) priority: u32,
    /// Leave idle states enabled. By default, hold /dev/cpu_dma_latency at 0 us while measuring, as
    /// cyclictest does.
    #[arg(long)]
    pub(crate) no_dma_latency: bool,
    /// Stressors for the disturbed phase [default: those of the suite `ordinary`].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) stressors: Vec<String>,
    /// What ends it before its time.
    #[command(flatten)]
    pub(crate) stopping: Stopping,
    /// Record kernel events; --trace alone = on, which fails if events cannot be recorded. auto
    /// records them where possible, and reports where not.
    #[arg(long, value_name = "MODE", default_value = "auto", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) trace: TraceMode,
    /// If the kernel has no events for senders of IPIs (before 6.4), find them with kprobes.
    #[arg(long)]
    pub(crate) kprobes: bool,
    /// Also record the kernel stack on the measured CPUs when a real-time task replaces an ordinary
    /// task. Shows kernel code that could not be preempted. Adds microseconds to each wake-up of a
    /// busy CPU.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Also record the user-space stacks of senders, for functions with frame pointers. Costs them
    /// some microseconds per event.
    #[arg(long)]
    pub(crate) user_stacks: bool,
    /// Directory of mechanisms to use instead of the built-in catalogue.
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore
    /// in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

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
    // Phases are missing, so the run stays partial; it is what the user asked for all the same.
    if ended.as_ref().is_err_and(anyhow::Error::is::<Stopped>) {
        closed?;
        let document = conclude::document(&plan.out)?;
        conclude::write(&document, &plan.out)?;
        conclude::print(&document, args.json, conclude::Length::Screen)?;
        return Ok(2);
    }
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
    conclude::print(&document, args.json, conclude::Length::Screen)?;
    Ok(document.outcome.exit_code())
}

/// An interrupted run gets a report of what it has, which says that it is partial.
fn conclude_at(dir: &Path) -> anyhow::Result<()> {
    conclude::write(&conclude::document(dir)?, dir)
}
