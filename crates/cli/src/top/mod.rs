//! `stillcore top`: what runs on CPUs now, what disturbs them, and the worst so far, on a terminal;
//! and the same view beside a measurement.
//!
//! A [`view::Source`] says every second how things stand: [`recorded`], [`counters`] without root,
//! [`beside`] of a measurement. [`engine`] decodes events for the first and the last. [`state`] is
//! what the user has chosen to see; [`draw`] makes lines of both; [`terminal`] alone touches the
//! terminal.

pub(crate) mod beside;
pub(crate) mod counters;
mod draw;
pub(crate) mod drift;
pub(crate) mod engine;
mod family;
mod pen;
mod recorded;
pub(crate) mod shot;
mod state;
mod terminal;
mod view;

use crate::conclude;
use crate::run::output;
use crate::run::place::{Asked, Place, default_out};
use crate::slow;
use crate::terminal::columns as columns_of_stdout;
use clap::Args;
use counters::Counters;
use machine::Root;
use model::Cpus;
use model::events::Stacks;
use model::quantity::{bytes, duration};
use recorded::{Kept, Recorded, Recording};
use shot::{Facts, Seen};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::clock;
use sys::process::is_root;
use sys::signals::EndSignals;
use view::{Source, View};

/// Columns of the view where neither a terminal nor COLUMNS says otherwise.
const PLAIN_COLUMNS: u16 = 100;

/// Arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// CPUs to show, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest].
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Measure the wake-ups of the thread with this name: on each CPU one, the most urgent.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    comm: String,
    /// Quit after this time; without a terminal, then print what was seen [default: when q is
    /// pressed].
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// New or empty directory for the recording, which is a run [default: stillcore-TIME in the
    /// current directory].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Most disk space for events while recording, such as 64M or 2G; the oldest events give way.
    /// 0 keeps no recording.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = disk)]
    disk: u64,
    /// Also record kernel stacks on these CPUs. Shows which kernel code delayed a thread.
    #[arg(long)]
    stacks: bool,
    /// Read only the kernel's counters, as without root: no tracing, no sources.
    #[arg(long, conflicts_with_all = ["out", "stacks", "comm"])]
    counters: bool,
    /// Draw with ASCII characters only.
    #[arg(long)]
    ascii: bool,
    /// Directory for the journal [default: /var/lib/stillcore].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// A size of which something fits, or 0.
fn disk(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 16 << 20;
    let wrong = || format!("invalid size {text:?}: expected 0, or a number with M or G, such as 64M");
    match bytes(text).ok_or_else(wrong)? {
        size @ 1..LEAST => Err(format!("{size} bytes hold too little: expected 0, or at least 16M")),
        size => Ok(size),
    }
}

/// Shows until the user quits.
pub(crate) fn run(args: &TopArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let shown = is_looked_at();
    anyhow::ensure!(
        shown || args.duration.is_some(),
        "top needs a terminal as standard input and output, or --duration: then it prints what it has seen at the end"
    );
    anyhow::ensure!(args.out.is_none() || args.disk > 0, "--out with --disk 0: nothing would be kept in it");
    let asked =
        Asked { cpus: args.cpus.as_ref(), state: args.state.as_deref(), all_cpus: true, ..Asked::default() };
    let place = Place::resolve(&asked)?;
    let facts = Facts::of("top", &place, args.ascii);
    let mut view = View::new(&place.measured, facts, args.state.clone())?;
    let over = |begun: Instant| {
        let is_over = move || args.duration.is_some_and(|most| begun.elapsed() >= most);
        move || is_over() || signals.arrived().is_some()
    };
    let mut look = |source: &mut dyn Source| -> anyhow::Result<Vec<String>> {
        let over = over(Instant::now());
        if shown {
            return view.show(source, &over, signals).map(|()| Vec::new());
        }
        view.watch(source, &over, signals, columns_of_stdout().unwrap_or(PLAIN_COLUMNS))
    };
    if let Some(why) = why_only_counters(args) {
        let refused = args.out.is_some() || args.stacks || !args.comm.is_empty();
        anyhow::ensure!(
            !refused,
            "--out, --stacks and --comm record kernel events, for which top must be root"
        );
        let mut counters =
            Only { counters: Counters::new(Root::live(), &place.measured, clock::now_ns()), why };
        look(&mut counters)?.iter().for_each(|line| println!("{line}"));
        return Ok(0);
    }
    eprintln!("preparing to record on CPUs {}", place.measured);
    let stacks = Stacks { own: args.stacks, users: false };
    let out = (args.disk > 0).then(|| args.out.clone().unwrap_or_else(default_out));
    let kept = out.map(|dir| Kept { dir, bytes: args.disk });
    // Each event makes the kernel patch its own code, on every CPU: an emulated machine takes
    // minutes where one of its CPUs is busy.
    let mut recorded =
        slow::with_notice("preparing: the kernel patches its code for each event, on every CPU", || {
            Recorded::begin(&place, kept.as_ref(), stacks, &args.comm)
        })?;
    let seen = look(&mut recorded);
    // Whatever went wrong: what was put on the machine is taken away.
    let kept = recorded.end(&place, &format!("CPUs {}", place.measured))?;
    seen?.iter().for_each(|line| println!("{line}"));
    if let Some(Recording { dir, of_s, last_s }) = kept {
        store_conclusions(&dir)?;
        let last = last_s.map_or_else(String::new, |last_s| format!("the last {last_s:.0} s of "));
        println!(
            "recorded {last}{of_s:.0} s to {0}; who did what: stillcore trace explain {0}",
            dir.display()
        );
    }
    Ok(0)
}

/// Whether there is a terminal to draw on, and to read keys from.
pub(crate) fn is_looked_at() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

/// Writes the conclusions of the run, after which it is whole.
fn store_conclusions(dir: &Path) -> anyhow::Result<()> {
    let analysis = analysis::analyse(dir)?;
    if analysis.complete {
        output::mark_complete(dir)?;
    }
    let run = model::run::stored::read_run(dir)?;
    conclude::write(&conclude::of_analysis(dir, run, analysis)?, dir)?;
    Ok(())
}

/// The sentence of line 2, where no events can be recorded.
fn why_only_counters(args: &TopArgs) -> Option<&'static str> {
    if args.counters {
        return Some("counters only, no sources (--counters)");
    }
    (!is_root()).then_some("no root: counters only, no sources")
}

/// The kernel's counters, and why there is nothing else.
struct Only {
    counters: Counters,
    why: &'static str,
}

impl Source for Only {
    fn feed(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn second(&mut self) -> anyhow::Result<Seen> {
        let view = self.counters.second(clock::now_ns());
        Ok(Seen { view, lost: None, note: Some(self.why.to_owned()) })
    }

    fn reset(&mut self) {}

    fn follow(&mut self, _comm: &str) {}
}
