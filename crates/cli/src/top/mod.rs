//! `stillcore top`: what runs on CPUs now, what disturbs them, and the worst so far, on a terminal.
//!
//! [`recorded`] or, without root, [`counters`] gives a [`shot`] every second; [`state`] is what the
//! user has chosen to see; [`draw`] makes lines of both; [`terminal`] alone touches the terminal.

mod counters;
mod draw;
mod drift;
mod pen;
mod recorded;
mod shot;
mod state;
mod terminal;

use crate::conclude;
use crate::run::output;
use crate::run::place::{Asked, Place};
use clap::Args;
use counters::Counters;
use draw::Size;
use drift::Drift;
use machine::Root;
use model::Cpus;
use model::events::Stacks;
use model::quantity::duration;
use recorded::Recorded;
use shot::{Facts, Shot};
use state::{Action, State};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::clock::{self, ClockId};
use sys::process::is_root;
use sys::signals::EndSignals;
use terminal::{Input, Keyboard, Screen};

/// A refresh.
const SECOND: Duration = Duration::from_secs(1);
/// Pages are taken in, and signals looked for, so often.
const STEP: Duration = Duration::from_millis(200);
/// A second that lasted so long is late.
const LATE: Duration = Duration::from_millis(1500);
/// What a tick of /proc/stat is, ms (USER_HZ).
const TICK_MS: u64 = 10;

/// Arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// CPUs to show, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest].
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Measure the wake-ups of the thread with this name: on each CPU one, the most urgent.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    comm: String,
    /// Quit after this time [default: when q is pressed].
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Keep the recording as a run in this new or empty directory [default: keep nothing].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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

/// Where the seconds come from.
enum Source {
    Recorded(Box<Recorded>),
    Counters(Counters),
}

/// Shows until the user quits.
pub(crate) fn run(args: &TopArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    anyhow::ensure!(
        std::io::stdout().is_terminal() && std::io::stdin().is_terminal(),
        "top needs a terminal as standard input and output; for a file, record: stillcore trace watch"
    );
    let asked =
        Asked { cpus: args.cpus.as_ref(), state: args.state.as_deref(), all_cpus: true, ..Asked::default() };
    let place = Place::resolve(&asked)?;
    let stacks = Stacks { own: args.stacks, users: false };
    let (source, counters_only) = match why_only_counters(args) {
        None => {
            eprintln!("preparing to record on CPUs {}", place.measured);
            let recorded = Recorded::begin(&place, args.out.as_deref(), stacks, &args.comm)?;
            (Source::Recorded(Box::new(recorded)), None)
        }
        Some(why) => {
            let refused = args.out.is_some() || args.stacks || !args.comm.is_empty();
            anyhow::ensure!(
                !refused,
                "--out, --stacks and --comm record kernel events, for which top must be root"
            );
            (Source::Counters(Counters::new(Root::live(), &place.measured, clock::now_ns())), Some(why))
        }
    };
    let facts = Facts {
        host: host_name(),
        kernel: place.machine.kernel.release.clone(),
        cpus: place.measured.to_string(),
        counters_only: counters_only.map(str::to_owned),
        ascii: args.ascii,
        plain: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    };
    let begun = Instant::now();
    let mut view = View::new(&place, source, facts, args)?;
    let shown = view.show(args, signals);
    let View { source, drift, .. } = view;
    drop(drift);
    // Whatever went wrong: what was put on the machine is taken away.
    let asked = format!("CPUs {}", place.measured);
    let kept = match source {
        Source::Recorded(recorded) => recorded.end(&place, &asked)?,
        Source::Counters(_) => None,
    };
    shown?;
    if let Some(dir) = kept {
        store_conclusions(&dir)?;
        let dir = dir.display();
        println!("recorded {:.0} s to {dir}; report: stillcore report {dir}", begun.elapsed().as_secs_f64());
    }
    Ok(0)
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

fn host_name() -> String {
    Root::live().maybe("proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// All that is behind the screen.
struct View<'a> {
    place: &'a Place,
    source: Source,
    state: State,
    drift: Drift,
    steal: BTreeMap<u32, u64>,
    cpu_ns: i64,
    last: Instant,
}

impl<'a> View<'a> {
    fn new(place: &'a Place, source: Source, facts: Facts, args: &TopArgs) -> anyhow::Result<Self> {
        let drift = Drift::begin(args.state.clone())?;
        let steal = counters::steal(&Root::live(), &place.measured);
        let (cpu_ns, last) = (clock::process_cpu_ns(), Instant::now());
        Ok(Self { place, source, state: State::new(facts), drift, steal, cpu_ns, last })
    }

    fn show(&mut self, args: &TopArgs, signals: &EndSignals) -> anyhow::Result<()> {
        let mut screen = Screen::enter()?;
        let mut keyboard = Keyboard::default();
        let begun = Instant::now();
        let mut next = begun + SECOND;
        loop {
            let state = &self.state;
            screen.draw(|columns, rows| draw::draw(state, Size { columns, rows }))?;
            loop {
                let over = args.duration.is_some_and(|most| begun.elapsed() >= most);
                if over || signals.arrived().is_some() {
                    return Ok(());
                }
                if let Source::Recorded(recorded) = &mut self.source {
                    recorded.feed()?;
                }
                let now = Instant::now();
                if now >= next {
                    self.second()?;
                    next = (next + SECOND).max(now);
                    break;
                }
                match keyboard.input(signals, STEP.min(next - now))? {
                    Input::Nothing => {}
                    Input::Gone => return Ok(()),
                    Input::Redraw => break,
                    Input::Key(key) => {
                        if self.key(key) {
                            return Ok(());
                        }
                        break;
                    }
                }
            }
        }
    }

    /// Whether that was to quit.
    fn key(&mut self, key: state::Key) -> bool {
        match (self.state.key(key), &mut self.source) {
            (Action::Quit, _) => return true,
            (Action::Reset, Source::Recorded(recorded)) => recorded.reset(),
            (Action::Follow(comm), Source::Recorded(recorded)) => recorded.follow(&comm),
            _ => {}
        }
        false
    }

    fn second(&mut self) -> anyhow::Result<()> {
        let passed = self.last.elapsed();
        self.last = Instant::now();
        let root = Root::live();
        let (mut view, lost) = match &mut self.source {
            Source::Recorded(recorded) => (recorded.second()?, Some(recorded.lost())),
            Source::Counters(counters) => (counters.second(clock::now_ns()), None),
        };
        // A task that was there before recording began, and has run alone since.
        if view.cpus.iter().any(|cpu| cpu.running.is_none()) {
            let running = counters::running(&root, &self.place.measured);
            for cpu in view.cpus.iter_mut().filter(|cpu| cpu.running.is_none()) {
                cpu.running = running.get(&cpu.cpu).cloned();
            }
        }
        let steal = counters::steal(&root, &self.place.measured);
        let since = |(cpu, ticks): (u32, u64)| {
            (cpu, ticks.saturating_sub(self.steal.get(&cpu).copied().unwrap_or(ticks)) * TICK_MS)
        };
        let cpu_ns = clock::process_cpu_ns();
        let own_ns = cpu_ns - std::mem::replace(&mut self.cpu_ns, cpu_ns);
        let shot = Shot {
            view,
            wall_ns: ClockId::Realtime.now_ns() - clock::now_ns(),
            own_percent: own_ns as f64 * 100.0 / passed.as_nanos().max(1) as f64,
            lost,
            late: passed > LATE,
            steal_ms: steal.into_iter().map(since).collect(),
            drifted: self.drift.seen(),
        };
        self.state.push(shot);
        Ok(())
    }
}
