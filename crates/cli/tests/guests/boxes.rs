//! The boxes of wake-ups against planted delays of known length: each delay in its own box, and no
//! task in the box of another.

use crate::machine::Guest;
use crate::support::print_row;
use attribution::attribute::delay::Blocking;
use attribution::attribute::off::Offs;
use attribution::attribute::path::{Part, Path as WakePath, Taken, Taker};
use attribution::attribute::step::Step;
use attribution::attribute::windows::{MeasuredWindow, paths_in};
use attribution::attribute::{Confidence, Source, Who};
use attribution::decode::Decoder;
use attribution::prio::Prio;
use attribution::spans::MeasuredCpu;
use attribution::view::Task;
use ftrace::{Item, TraceFile};
use model::EventClass;
use model::events::EventCatalogue;
use record::plant::{KINDS, Kind, Truth};
use result::{Limit, Of, Row};
use std::fs;

/// A smaller share in its box, %, is a mistake of ours; the result has the budget. A few are
/// unknown by chance: an interrupt takes the CPU from a task right after a section with preemption
/// off, or the kernel throttles while the victim sleeps, and no task is seen to be passed over.
const LEAST: f64 = 75.0;

/// Where the delays of one kind were found, ns.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    samples: u32,
    /// In the step that it delays, without interruptions.
    held: u64,
    /// Of that, in its box.
    right: u64,
    /// In a box of a task that was not in the way.
    wrong: u64,
}

/// The least share in its box, %, that a result allows. A stop of the machine while the victim or
/// an interrupt is in the kernel cannot be recognised.
fn least(kind: Kind) -> f64 {
    if kind == Kind::Stopped { 75.0 } else { 99.0 }
}

/// The task that a part blames: the one that ran, or the one that was in the kernel.
fn blamed(taken: &Taken) -> Option<i32> {
    let of = |source: Source| if let Who::Task(pid) = source.who { Some(pid) } else { None };
    match taken.taker {
        Taker::Event(_) => taken.task.map(|task| task.pid),
        Taker::Blocking(_) => taken.causes.iter().next().and_then(|cause| of(cause.source)),
    }
}

/// Whether a task has precedence over the victim, by the scheduler's events.
fn goes_before(task: Task) -> bool {
    // SCHED_FIFO 90.
    task.prio.may_delay(Prio::new(9))
}

fn is_exact(taken: &Taken) -> bool {
    taken.causes.iter().next().is_some_and(|cause| cause.confidence == Confidence::Exact)
}

/// A function that is probed.
const PROBED: Taker = Taker::Blocking(Blocking::ProbedFunction);

/// How holdups were planted and recorded.
#[derive(Debug, Clone, Copy)]
struct Ground {
    rt: bool,
    /// Whether the function that is held with interrupts off is probed.
    probed: bool,
    /// The task that is in the way.
    planter: i32,
}

/// The step that a kind delays; `None` for one that delays nothing.
fn step(kind: Kind, rt: bool) -> Option<Step> {
    match kind {
        Kind::TaskBelow | Kind::Ordinary => None,
        // On PREEMPT_RT a thread serves it.
        Kind::Timer if rt => Some(Step::Switch),
        Kind::Timer | Kind::InterruptsOff | Kind::Stopped => Some(Step::TimerLate),
        _ => Some(Step::Switch),
    }
}

/// Whether the time of a part is in the box of what was planted.
fn is_right(kind: Kind, ground: Ground, taken: Option<&Taken>) -> bool {
    let Ground { rt, probed, planter } = ground;
    let by_planter = taken.and_then(blamed) == Some(planter);
    let taker = taken.map(|taken| taken.taker);
    let kernel_code = taker == Some(Taker::Blocking(Blocking::KernelCode));
    match kind {
        Kind::TaskAbove | Kind::TaskEqual | Kind::Deadline | Kind::Boosted => {
            by_planter && taker == Some(Taker::Event(EventClass::Switch))
        }
        // These kernels record no event of it; a switch may show a raised task by chance.
        Kind::Raised => taken.is_none() || by_planter && taker == Some(Taker::Event(EventClass::Switch)),
        Kind::InterruptsOff if probed => by_planter && taker == Some(PROBED),
        Kind::InterruptsOff => taken.is_none(),
        Kind::PreemptionOff => by_planter && kernel_code,
        // On PREEMPT_RT it runs in the task that sends, or in a thread, and the probe keeps
        // preemption off: either box is its own.
        Kind::Softirq | Kind::Timer if rt => {
            let served = [EventClass::Softirq, EventClass::TimerHrtimer].map(Taker::Event);
            kernel_code || taker.is_some_and(|taker| served.contains(&taker))
        }
        Kind::Softirq => taker == Some(Taker::Event(EventClass::Softirq)),
        Kind::Timer => taker == Some(Taker::Event(EventClass::TimerHrtimer)),
        Kind::Throttled => taker == Some(Taker::Event(EventClass::Throttle)),
        Kind::Stopped => taker == Some(Taker::Blocking(Blocking::NotExecuting)),
        Kind::TaskBelow | Kind::Ordinary => false,
    }
}

/// Whether a part blames a task that was not in the way.
fn is_wrong(kind: Kind, ground: Ground, part: &Part) -> bool {
    let planter = ground.planter;
    let Some(taken) = &part.taken else { return false };
    let interrupt = matches!(part.step, Step::TimerLate | Step::IpiInFlight);
    match (blamed(taken), taken.taker) {
        (None, _) => false,
        // In its function interrupts are off.
        (Some(pid), PROBED) if kind == Kind::InterruptsOff => pid != planter,
        // An interrupt is never held up by a task.
        (Some(_), _) if interrupt => true,
        // A task that does not delay by running may delay for a moment by one of its system calls.
        (Some(pid), Taker::Blocking(_)) if matches!(kind, Kind::TaskBelow | Kind::Ordinary) => pid != planter,
        // Tasks that run after a stop, before the clock was read.
        (Some(_), Taker::Blocking(_)) if kind == Kind::Stopped => false,
        // Kernel threads with precedence, such as the stopper, run at any time.
        (Some(pid), Taker::Event(_)) if pid != planter => !taken.task.is_some_and(goes_before),
        // Causes that are reported as exact.
        (Some(_), Taker::Blocking(_)) if !is_exact(taken) => false,
        _ => !is_right(kind, ground, part.taken.as_ref()),
    }
}

/// Whether it is an interrupt or a softirq that has events of its own, and takes its own time from
/// whatever is in the way.
fn interrupts(taken: &Taken) -> bool {
    !matches!(taken.taker, Taker::Event(EventClass::Switch | EventClass::Throttle) | Taker::Blocking(_))
}

fn score(truth: &Truth, ground: Ground, paths: &[WakePath], kind: Kind) -> Score {
    let mut score = Score::default();
    for planted in truth.planted.iter().filter(|one| one.kind == kind) {
        let overlap =
            |t0_ns: i64, t1_ns: i64| (t1_ns.min(planted.t1_ns) - t0_ns.max(planted.t0_ns)).max(0) as u64;
        for path in paths.iter().filter(|path| overlap(path.t_ns, path.t_ns + path.value_ns) > 0) {
            score.samples += 1;
            for piece in &path.pieces {
                let (part, ns) = (&path.parts[piece.part], overlap(piece.t0_ns, piece.t1_ns));
                let taken = part.taken.as_ref();
                let right = is_right(kind, ground, taken);
                let other = !right && taken.is_some_and(interrupts);
                if Some(part.step) == step(kind, ground.rt) && !other {
                    score.held += ns;
                    score.right += if right { ns } else { 0 };
                }
                if ns > 0 && is_wrong(kind, ground, part) {
                    println!("{kind:?}: {ns} ns blamed on a task: {part:?} of the wake-up at {}", path.t_ns);
                    score.wrong += ns;
                }
            }
        }
    }
    score
}

fn paths(trace: &TraceFile, truth: &Truth) -> Vec<WakePath> {
    let samples: Vec<_> =
        truth.slept.iter().map(|one| (one.release_ns, one.ran_ns - one.release_ns)).collect();
    let victim = MeasuredCpu { cpu: truth.cpu, tid: truth.victim };
    let window = MeasuredWindow {
        t0_ns: samples[0].0,
        t1_ns: truth.slept.last().unwrap().ran_ns,
        measured: vec![victim],
        snapshot: false,
    };
    let mut paths = Vec::new();
    let buffers = ["", "sender"];
    paths_in(trace, &buffers, &window, &[(victim, samples.clone())], |_, path| paths.push(path)).unwrap();
    assert_eq!(paths.len(), samples.len(), "not every wake-up was taken apart");
    paths
}

/// As people read it.
fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::TaskAbove => "task above",
        Kind::TaskEqual => "task equal",
        Kind::Deadline => "deadline",
        Kind::Raised => "task raised",
        Kind::Boosted => "priority inherited",
        Kind::TaskBelow => "task below",
        Kind::Ordinary => "ordinary loop",
        Kind::PreemptionOff => "preemption off",
        Kind::InterruptsOff => "interrupts off",
        Kind::Softirq => "softirq",
        Kind::Timer => "timer",
        Kind::Throttled => "throttled",
        Kind::Stopped => "CPU stopped",
    }
}

pub(crate) fn holdups_are_in_their_boxes(guest: &Guest) {
    let (kernel, dir) = (guest.kernel(), guest.root.join("truth"));
    let truth: Truth = serde_json::from_slice(&fs::read(dir.join("truth.json")).unwrap()).unwrap();
    assert_eq!(truth.absent, [], "{kernel}");
    let rt = kernel.ends_with("-rt");
    let ground = Ground { rt, probed: false, planter: truth.planter };
    let paths = paths(&TraceFile::open(&dir.join("trace.dat")).unwrap(), &truth);
    let (mut failed, mut blamed) = (Vec::new(), 0);
    for kind in KINDS {
        let planted = truth.planted.iter().filter(|one| one.kind == kind).count();
        let score = score(&truth, ground, &paths, kind);
        let share = score.right as f64 / score.held.max(1) as f64 * 100.0;
        println!("{kernel:>7} {kind:?}: {planted} planted, {score:?}, {share:.2} % right");
        blamed += score.wrong;
        // Most delays hit a wake-up.
        let mut holds = planted > 0 && score.wrong == 0 && score.samples as usize * 2 >= planted;
        if step(kind, rt).is_some() {
            let row = Row::new(format!("{kernel}: {}", words(kind)), (share * 100.0).round() / 100.0, "%");
            print_row(&row.n(u64::from(score.samples)).budget(Of::Value, Limit::AtLeast(least(kind))));
            // The kernel decides how long it throttles, and chance decides what a stop hits.
            holds &= share >= LEAST || kind == Kind::Throttled || kind == Kind::Stopped && score.right > 0;
        }
        if !holds {
            failed.push((kind, planted, score));
        }
    }
    let row = Row::new(format!("{kernel}: in boxes of other tasks"), blamed as f64 / 1e6, "ms");
    print_row(&row.n(paths.len() as u64).budget(Of::Value, Limit::AtMost(0.0)));
    assert!(failed.is_empty(), "{kernel}: {failed:?}");
}

/// Without stacks and without events of interrupts that are off, a function that is named shows when
/// the CPU was in it, and the wake-up that came late meanwhile has it in its box.
pub(crate) fn a_probed_function_is_seen_and_blamed(guest: &Guest) {
    let (kernel, dir) = (guest.kernel(), guest.root.join("truth"));
    let truth: Truth = serde_json::from_slice(&fs::read(dir.join("truth.json")).unwrap()).unwrap();
    let trace = TraceFile::open(&dir.join("trace.dat")).unwrap();
    let ground = Ground { rt: kernel.ends_with("-rt"), probed: true, planter: truth.planter };
    let paths = paths(&trace, &truth);
    let score = score(&truth, ground, &paths, Kind::InterruptsOff);
    let share = score.right as f64 / score.held.max(1) as f64 * 100.0;
    println!("{kernel:>7} {score:?}, {share:.2} % right");
    assert!(share >= LEAST && score.wrong == 0 && score.samples > 0, "{kernel}: {score:?}");

    let mut offs = Offs::default();
    let catalogue = EventCatalogue::embedded().unwrap();
    let mut decoder = Decoder::of(&trace, &catalogue).unwrap();
    let mut stream = trace.stream_buffers(&[""]).unwrap();
    while let Some(item) = stream.next().unwrap() {
        if let Item::Event(event) = item {
            let event = decoder.decode(&event).unwrap();
            offs.event("planted", &event);
        }
    }
    let held: Vec<_> = truth.planted.iter().filter(|one| one.kind == Kind::InterruptsOff).collect();
    let sections = offs.sections(decoder.labels(), &|_| None);
    let row = &sections.iter().find(|one| one.cpu == truth.cpu).expect("it was seen on its CPU").rows[0];
    assert_eq!(row.blocking, Blocking::ProbedFunction, "{row:?}");
    assert_eq!(row.count, held.len() as u64, "{kernel}: {row:?}");
    let longest = held.iter().map(|one| one.t1_ns.abs_diff(one.t0_ns)).max().unwrap();
    assert!(row.max_ns >= longest && row.p50_ns >= longest / 2, "{kernel}: held {longest} ns, {row:?}");
    assert_eq!(row.by.as_ref().and_then(|by| by.pid), Some(truth.planter));
}
