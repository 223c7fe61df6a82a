//! `stillcore measure exposure`: one stressor alone between two idle controls, and the interference
//! events on the measured CPUs that one of its operations costs.
//!
//! `cell` measures. What is printed as JSON are the counts; `analysis::exposure` concludes from
//! those of one cell or, with controls, of a study.

mod cell;

use crate::disturb_verb::Asked as AskedOfStressor;
use crate::failure;
use crate::run::interrupted::Interrupted;
use crate::run::output::RunOutput;
use crate::run::place::{Asked, Place, default_out};
use analysis::exposure::{self, CellFacts};
use clap::Args;
use disturb::{Order, catalogue};
use model::quantity::duration;
use model::{Cpus, Error};
use std::path::PathBuf;
use std::time::Duration;
use sys::sched;
use sys::signals::EndSignals;

/// Schema of `--json`.
const SCHEMA: &str = "stillcore.measure-exposure/1";

/// Arguments of `measure exposure`.
#[derive(Debug, Args)]
pub(crate) struct ExposureArgs {
    /// The stressor; `stillcore disturb --list` prints their names.
    #[arg(value_name = "STRESSOR")]
    stressor: String,
    /// Length of each idle control and of the disturbance.
    #[arg(long, short = 'D', default_value = "2s", value_name = "TIME", value_parser = duration)]
    duration: Duration,
    /// CPUs to measure [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// SCHED_FIFO priority of the loop that keeps the measured CPUs busy; 0 = SCHED_OTHER.
    #[arg(long, default_value_t = 0, value_name = "0-98", value_parser = clap::value_parser!(u32).range(0..=98))]
    priority: u32,
    /// What is asked of the stressor.
    #[command(flatten)]
    of: AskedOfStressor,
    /// If the kernel has no events for senders of IPIs (before 6.4), find them with kprobes.
    #[arg(long)]
    kprobes: bool,
    /// Only count: write neither the audit nor the conclusions into the run directory.
    #[arg(long)]
    count_only: bool,
    /// New or empty directory for the run [default: stillcore-TIME in the current directory].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore
    /// in the home directory].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print one JSON object instead of a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measures and prints. A stressor that cannot be run here is a result: the counts are void, and
/// say why.
pub(crate) fn run(args: &ExposureArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if catalogue::find(&args.stressor)?.dangerous {
        let found = format!("{} may harm the machine beyond its own end", args.stressor);
        return Err(Error::invalid("STRESSOR", found, "stressors that end with themselves").into());
    }
    let asked = Asked { cpus: args.cpus.as_ref(), state: args.state.as_deref(), ..Asked::default() };
    let place = Place::resolve(&asked)?;
    // Everything that is not a probe or a stressor's own thread stays off the measured CPUs,
    // guardians included.
    sched::pin(&place.housekeeping)?;
    let dir = args.out.clone().unwrap_or_else(default_out);
    let order = Order {
        rate: args.of.rate,
        bytes: args.of.bytes,
        workers: args.of.workers,
        ..Order::plain(&args.stressor, &place.housekeeping)
    };
    let output = RunOutput::create(&dir, &place)?;
    let asking = cell::Asking { place: &place, args, signals };
    let facts = match cell::measure(&asking, &order, output) {
        Ok(facts) => facts,
        Err(error) => {
            if let Some(signal) = signals.arrived() {
                return Err(Interrupted(signal).into());
            }
            CellFacts::failed(&order.name, &order.cpus, &place.measured, failure::sentence(&error))
        }
    };
    if args.json {
        let mut object = serde_json::to_value(&facts)?;
        object["schema"] = SCHEMA.into();
        object["run"] = dir.display().to_string().into();
        println!("{object}");
    } else {
        println!("{}\n{}", in_short(&facts), dir.display());
    }
    Ok(0)
}

/// What the cell of one stressor shows, in a line.
fn in_short(facts: &CellFacts) -> String {
    let found = exposure::conclude(std::slice::from_ref(facts), &[]);
    found.rows.first().map_or_else(String::new, report::exposure_line)
}
