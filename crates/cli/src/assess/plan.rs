//! What an assessment will do: arguments resolved against this machine. It refuses everything that
//! can be refused before anything is written or changed.

use super::AssessArgs;
use crate::run::place::{Asked, Place, default_out};
use crate::run::recording;
use crate::values::TraceMode;
use disturb::{Order, suite};
use measure::spec::{NoiseSpec, ProbeSpec, Task, WakeupSpec};
use model::events::{EventCatalogue, Stacks};
use model::sample::{Policy, ProbeKind};
use model::{Cpus, Error};
use std::path::PathBuf;
use std::time::Duration;
use sys::clock::ClockId;

/// Half of the shortest phase must hold at least this many releases.
const LEAST_RELEASES: u128 = 20;
/// How long the noise loop runs before it pauses: four fifths of the CPU, below the 95 % at which
/// RT throttling begins.
const SPIN_NS: i64 = 800_000_000;
const PAUSE_NS: i64 = 200_000_000;
/// Samples of the wake-up probe that only warm it up.
const WARM_UP: u32 = 20;

/// An assessment, resolved.
pub(crate) struct Plan {
    /// The machine and its parts.
    pub(crate) place: Place,
    /// Length of a window: half a phase.
    pub(crate) window: Duration,
    /// Interval between wake-up releases.
    pub(crate) period: Duration,
    /// Shortest gap stored, if the user gave one.
    pub(crate) threshold: Option<Duration>,
    /// SCHED_FIFO priority, 0 for SCHED_OTHER.
    pub(crate) priority: u32,
    /// The stressors.
    pub(crate) stressors: Vec<&'static str>,
    /// Value to hold in `/dev/cpu_dma_latency` while it measures, us.
    pub(crate) dma_latency: Option<i32>,
    /// The first sample of this value or more ends the assessment, ns.
    pub(crate) stop_over_ns: Option<i64>,
    /// Whether to trace.
    pub(crate) trace: TraceMode,
    /// Whether the kernel may be probed for senders.
    pub(crate) kprobes: bool,
    /// The events.
    pub(crate) events: EventCatalogue,
    /// The run directory.
    pub(crate) out: PathBuf,
}

impl Plan {
    /// Resolves arguments against the machine, after undoing what a killed stillcore may have left.
    pub(crate) fn resolve(args: &AssessArgs) -> anyhow::Result<Self> {
        let place = Place::resolve(&Asked {
            cpus: args.cpus.as_ref(),
            state: args.state.as_deref(),
            catalogue: args.catalogue.as_deref(),
            all_cpus: false,
        })?;
        let (window, period) = times(args)?;
        let stacks = Stacks { own: args.stacks, users: args.user_stacks };
        if args.trace == TraceMode::Off {
            recording::only_with_a_trace(stacks, args.kprobes, "no --trace=off")?;
        }
        Ok(Self {
            place,
            window,
            period,
            threshold: args.threshold,
            priority: args.priority,
            stressors: stressors(&args.stressors)?,
            dma_latency: (!args.no_dma_latency).then_some(0),
            stop_over_ns: args.stopping.limit_ns(),
            trace: args.trace,
            kprobes: args.kprobes,
            events: recording::events(stacks)?,
            out: args.out.clone().unwrap_or_else(default_out),
        })
    }

    /// The stressors, each with all housekeeping CPUs.
    pub(crate) fn orders(&self) -> Vec<Order> {
        self.stressors.iter().map(|name| Order::plain(name, &self.place.housekeeping)).collect()
    }

    /// The probes of one window, one per measured CPU.
    pub(crate) fn probes(&self, kind: ProbeKind) -> Vec<ProbeSpec> {
        let nanos = |time: Duration| time.as_nanos() as i64;
        let task = || match kind {
            ProbeKind::Noise => Task::Noise(NoiseSpec {
                threshold_ns: self.threshold.map_or(0, |time| nanos(time) as u64),
                spin_ns: SPIN_NS,
                pause_ns: PAUSE_NS,
                memmove_bytes: 0,
                preheat_ns: 0,
                bias: false,
            }),
            _ => Task::Wakeup(WakeupSpec {
                period_ns: nanos(self.period),
                offset_ns: 0,
                warm_up: WARM_UP,
                clock: ClockId::Monotonic,
                loops: 0,
            }),
        };
        let spec = |(thread, cpu)| ProbeSpec {
            thread,
            cpus: Cpus::one(cpu),
            policy: Policy::fifo(self.priority),
            timer_slack_ns: 1,
            duration_ns: nanos(self.window),
            task: task(),
        };
        (0..).zip(self.place.measured.iter()).map(spec).collect()
    }
}

fn times(args: &AssessArgs) -> Result<(Duration, Duration), Error> {
    let window = args.duration / 2;
    if args.period < Duration::from_micros(20) {
        return Err(Error::invalid("--period", format!("{:?}", args.period), "at least 20us"));
    }
    if window.as_nanos() < LEAST_RELEASES * args.period.as_nanos() {
        let least = args.period * 2 * LEAST_RELEASES as u32;
        return Err(Error::invalid(
            "--duration",
            format!("{:?}", args.duration),
            format!("at least {least:?} with this period"),
        ));
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return Err(Error::invalid("--duration", format!("{:?}", args.duration), "at most 168h"));
    }
    Ok((window, args.period))
}

fn stressors(names: &[String]) -> anyhow::Result<Vec<&'static str>> {
    let ordinary = suite::find("ordinary")?.stressors;
    let ordinary: Vec<String> = ordinary.into_iter().map(|member| member.name).collect();
    let known = disturb::catalogue();
    let find = |name: &String| {
        let found = known.iter().find(|spec| spec.name == name && !spec.dangerous).map(|spec| spec.name);
        found.ok_or_else(|| {
            let names = known.iter().filter(|spec| !spec.dangerous).map(|spec| spec.name);
            Error::unknown("--stressors", "stressor", name, names).into()
        })
    };
    (if names.is_empty() { &ordinary } else { names }).iter().map(find).collect()
}
