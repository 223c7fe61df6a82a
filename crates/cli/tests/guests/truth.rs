//! Attribution against known causes: what a thread elsewhere did to a measured CPU, one by one, and
//! the source that the trace names.

use crate::machine::Guest;
use crate::support::print_row;
use attribution::attribute::Confidence;
use attribution::attribute::events::Attributed;
use attribution::attribute::path::Path as WakePath;
use attribution::attribute::section::SourceText;
use attribution::attribute::step::Step;
use attribution::attribute::windows::{MeasuredWindow, attributed_in, paths_in};
use attribution::decode::Decoder;
use attribution::labels::Labels;
use attribution::spans::MeasuredCpu;
use attribution::view::{KernelEvent, What};
use ftrace::{Item, TraceFile};
use model::EventClass;
use model::events::EventCatalogue;
use model::run::TraceRecord;
use record::provoke::{KINDS, Kind, Provoked, Truth};
use result::{Limit, Of, Row};
use std::collections::BTreeMap;
use std::fs;

/// How the events of one kind were attributed.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    events: u32,
    exact: u32,
    by_order: u32,
    unknown: u32,
    wrong_exact: u32,
    wrong_order: u32,
    /// Of the events whose sender was named, those of a task, and of these the ones whose stack
    /// goes back to its system call.
    of_tasks: u32,
    to_the_call: u32,
    /// And on to the program that made it.
    to_the_program: u32,
}

impl Score {
    fn right(&self) -> u32 {
        self.exact + self.by_order
    }

    fn recall(&self) -> f64 {
        f64::from(self.right()) / f64::from(self.events.max(1))
    }

    /// Of the events whose source was named, those whose source it was.
    fn precision(&self) -> f64 {
        f64::from(self.right()) / f64::from((self.right() + self.wrong_exact + self.wrong_order).max(1))
    }

    fn count(&mut self, right: Option<Confidence>, named: Option<Confidence>) {
        self.events += 1;
        match (right, named) {
            (Some(Confidence::Exact), _) => self.exact += 1,
            (Some(Confidence::Order), _) => self.by_order += 1,
            (None, Some(Confidence::Exact)) => self.wrong_exact += 1,
            (None, Some(Confidence::Order)) => self.wrong_order += 1,
            (None, None) => self.unknown += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.exact += other.exact;
        self.by_order += other.by_order;
        self.unknown += other.unknown;
        self.wrong_exact += other.wrong_exact;
        self.wrong_order += other.wrong_order;
        self.of_tasks += other.of_tasks;
        self.to_the_call += other.to_the_call;
        self.to_the_program += other.to_the_program;
    }
}

/// Whether an event is the effect of a kind. Kernels before 6.5 do not name the function that an
/// IPI brings.
fn is_effect(kind: Kind, event: &Attributed) -> bool {
    let label = event.label.as_str();
    let unnamed = label.starts_with("call_function");
    match kind {
        Kind::Membarrier => event.class == EventClass::IpiCall && (label.starts_with("ipi_") || unnamed),
        Kind::Mprotect => {
            event.class == EventClass::Tlb
                || event.class == EventClass::IpiCall && (label.starts_with("flush_tlb") || unnamed)
        }
        Kind::StatRefresh => event.class == EventClass::Work && label == "refresh_vm_stats",
        Kind::StaticKey => event.class == EventClass::IpiCall && (label == "do_sync_core" || unnamed),
        Kind::Wake => event.class == EventClass::Switch && label == "wakee",
        Kind::Timer | Kind::Wheel => event.class == EventClass::Switch && label == "sleeper",
    }
}

/// When and where the timer expired that the sleeper armed, by its address in the raw events; and
/// what it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expired {
    cpu: u32,
    function: String,
}

/// Every event of a trace that the catalogue knows, in order of time.
fn each_event(trace: &TraceFile, mut look: impl FnMut(&KernelEvent, &Labels)) {
    let catalogue = EventCatalogue::embedded().unwrap();
    let (symbols, constants) = (trace.symbols().unwrap(), trace.constants().unwrap());
    let mut decoder = Decoder::new(&catalogue, trace.formats(), symbols, &constants);
    let mut stream = trace.stream_buffers(&["", "sender"]).unwrap();
    while let Some(item) = stream.next().unwrap() {
        let Item::Event(event) = item else { continue };
        if let Some(event) = decoder.decode(&event) {
            look(&event, decoder.labels());
        }
    }
}

/// The expiry that ended each sleep, by the start of the sleep. Nothing but addresses joins the two
/// ends.
fn expiries(trace: &TraceFile, truth: &Truth) -> BTreeMap<i64, Expired> {
    let sleeps = truth.provoked.iter().filter(|one| sleeps(one.kind));
    let mut sleeps = sleeps.peekable();
    let (mut armed, mut found) = (Vec::new(), BTreeMap::new());
    each_event(trace, |event, labels| {
        while sleeps.next_if(|one| one.t1_ns < event.ts_ns).is_some() {
            armed.clear();
        }
        let Some(sleep) = sleeps.peek().filter(|one| one.t0_ns <= event.ts_ns) else { return };
        match event.what {
            What::Armed { timer, .. } if event.in_task() && event.pid == truth.sleeper => armed.push(timer),
            What::Enter { key, label, .. } if armed.contains(&key) => {
                let function = labels.text(label).to_owned();
                if function == ends(sleep.kind) {
                    found.entry(sleep.t0_ns).or_insert(Expired { cpu: event.cpu, function });
                }
            }
            _ => {}
        }
    });
    found
}

/// A request just before may arrive during the next operation.
const EARLIER_NS: i64 = 1_000_000;

/// When a task other than ours asked the measured CPU to call a function, where the kernel has an
/// event for that, and which task was current: kernel workers flip static keys, and a kernel timer
/// goes from CPU to CPU (`clocksource_watchdog`).
fn calls_of_others(trace: &TraceFile, truth: &Truth) -> Vec<(i64, i32)> {
    let mut found = Vec::new();
    each_event(trace, |event, _| {
        if matches!(event.what, What::CallQueued { target, .. } if target == truth.cpu)
            && !(event.in_task() && event.pid == truth.tid)
        {
            found.push((event.ts_ns, event.pid));
        }
    });
    found
}

fn sleeps(kind: Kind) -> bool {
    matches!(kind, Kind::Timer | Kind::Wheel)
}

/// The function of the timer that ends a sleep (kernel/time/hrtimer.c, kernel/time/timer.c).
fn ends(kind: Kind) -> &'static str {
    if kind == Kind::Timer { "hrtimer_wakeup" } else { "process_timeout" }
}

/// Whether a source is the one that is known. On PREEMPT_RT wheels turn in threads, which then are
/// the source.
fn is_source(truth: &Truth, one: &Provoked, expired: Option<&Expired>, source: &SourceText) -> bool {
    if !sleeps(one.kind) {
        return source.pid == Some(truth.tid) && source.cpu == truth.from;
    }
    let turns = |name: &str| name.starts_with("ktimers/") || name.starts_with("ksoftirqd/");
    expired.is_some_and(|expired| {
        let by = source.who == format!("interrupt: {}", expired.function)
            || one.kind == Kind::Wheel && turns(&source.who);
        source.cpu == expired.cpu && by
    })
}

fn score(
    truth: &Truth,
    events: &[Attributed],
    expiries: &BTreeMap<i64, Expired>,
    others: &mut Vec<(i64, i32)>,
    kind: Kind,
    classes: &mut BTreeMap<&'static str, Score>,
) -> Score {
    let during = |one: &Provoked, event: &Attributed| one.t0_ns <= event.t0_ns && event.t0_ns <= one.t1_ns;
    let mut score = Score::default();
    for one in truth.provoked.iter().filter(|one| one.kind == kind) {
        let expired = expiries.get(&one.t0_ns);
        let effects =
            events.iter().filter(|event| event.counts && during(one, event) && is_effect(kind, event));
        for event in effects {
            let right = event.sources.iter().find(|(source, _)| is_source(truth, one, expired, source));
            let first = event.sources.first();
            let pid = first.and_then(|(source, _)| source.pid);
            let is_interrupt = first.is_some_and(|(source, _)| source.who.starts_with("interrupt: "));
            let is_by = |by: i32| pid == Some(by) || is_interrupt;
            // A call accounts for one effect: a source with fewer requests is wrong.
            let asked = others.iter().position(|&(at_ns, by)| {
                is_by(by) && one.t0_ns - EARLIER_NS <= at_ns && at_ns <= event.t0_ns
            });
            if let Some(call) = asked.filter(|_| event.class == EventClass::IpiCall && right.is_none()) {
                others.remove(call);
                println!("an effect of another task: {:?}", first.map(|(source, _)| &source.who));
                continue;
            }
            if let Some((source, _)) = right.filter(|_| !sleeps(kind)) {
                score.of_tasks += 1;
                let call = source.began.as_deref().is_some_and(|began| began.starts_with("system call "));
                score.to_the_call += u32::from(call);
                // The command is the guest's first program, too.
                let program =
                    |function: &String| function.ends_with(" (init)") || function.starts_with("init+");
                score.to_the_program += u32::from(call && source.users.first().is_some_and(program));
            }
            let (right, named) = (right.map(|source| source.1), first.map(|source| source.1));
            score.count(right, named);
            classes.entry(event.class.name()).or_default().count(right, named);
        }
    }
    score
}

/// Each sleep until a time, taken apart: its boxes add up, and it waited for the very CPU where its
/// timer expired. Returns whether that was usually another CPU.
fn sleeps_are_taken_apart(
    kernel: &str,
    trace: &TraceFile,
    truth: &Truth,
    expiries: &BTreeMap<i64, Expired>,
) -> bool {
    let thread = MeasuredCpu { cpu: truth.cpu, tid: truth.sleeper };
    let samples: Vec<_> =
        truth.slept.iter().map(|one| (one.release_ns, one.ran_ns - one.release_ns)).collect();
    let timers: Vec<_> = truth.provoked.iter().filter(|one| one.kind == Kind::Timer).collect();
    let window = MeasuredWindow {
        t0_ns: timers[0].t0_ns,
        t1_ns: truth.provoked.last().unwrap().t1_ns,
        measured: vec![thread],
        snapshot: false,
    };
    let mut paths: Vec<WakePath> = Vec::new();
    paths_in(trace, &["", "sender"], &window, &[(thread, samples.clone())], |_, path| paths.push(path))
        .unwrap();
    assert_eq!(paths.len(), samples.len(), "{kernel}: not every sleep was taken apart");
    let (mut elsewhere, mut unseen) = (0, 0);
    for (path, one) in paths.iter().zip(timers) {
        assert_eq!(
            path.parts.iter().map(|part| part.ns).sum::<u64>(),
            path.value_ns.unsigned_abs(),
            "{path:?}"
        );
        let late = path.parts.iter().find(|part| part.step == Step::TimerLate);
        match (expiries.get(&one.t0_ns), late) {
            (Some(expired), Some(late)) => {
                assert_eq!(
                    (late.cpu, late.mark),
                    (expired.cpu, Some(Confidence::Exact)),
                    "{kernel}: {path:?}"
                );
                elsewhere += u32::from(expired.cpu != truth.cpu);
            }
            // It was awake already when its timer expired.
            _ => unseen += 1,
        }
    }
    let what = format!("{kernel}: sleeps that waited for a timer on another CPU");
    print_row(&Row::new(what, f64::from(elsewhere), "").n(paths.len() as u64));
    println!(
        "{kernel:>7} {} sleeps of an idle core taken apart: {elsewhere} waited for a timer on another CPU, each named by its timer's \
         address; {unseen} did not wait",
        paths.len()
    );
    elsewhere as usize * 2 > paths.len()
}

/// Compares, and prints a row a kind.
pub(crate) fn causes_are_named(guest: &Guest) {
    let kernel = guest.kernel();
    let score = compare(guest);
    let kprobes = guest.case.arguments[1] == "1";
    let least = match kernel {
        "5.10" | "6.1" if kprobes => 0.9,
        "5.10-rt" | "6.1-rt" if kprobes => 0.8,
        // Events that an old kernel does not report without probes.
        "6.1" => 0.5,
        _ => 0.99,
    };
    assert!(score.recall() >= least && score.wrong_exact == 0, "{kernel}: {score:?}");
    assert!(score.to_the_call * 100 >= score.of_tasks * 95, "{kernel}: stacks: {score:?}");
    assert!(score.to_the_program * 100 >= score.to_the_call * 95, "{kernel}: programs: {score:?}");
}

fn compare(guest: &Guest) -> Score {
    let (kernel, dir) = (guest.kernel(), guest.root.join("truth"));
    let read = |name: &str| fs::read(dir.join(name)).unwrap();
    let truth: Truth = serde_json::from_slice(&read("truth.json")).unwrap();
    let record: TraceRecord = serde_json::from_slice(&read("trace.json")).unwrap();
    let trace = TraceFile::open(&dir.join("trace.dat")).unwrap();
    let events = events(&trace, &truth, &record);
    let expiries = expiries(&trace, &truth);
    let mut others = calls_of_others(&trace, &truth);
    let probes = if guest.case.arguments[1] == "1" { ", --kprobes" } else { "" };
    let of = format!("{kernel}{probes}");
    let (mut all, mut classes) = (Score::default(), BTreeMap::new());
    for kind in KINDS {
        let score = score(&truth, &events, &expiries, &mut others, kind, &mut classes);
        let provoked = truth.provoked.iter().filter(|one| one.kind == kind).count();
        println!("{kernel:>7} {kind:?}: {provoked} provoked, {score:?}");
        assert!(provoked == 0 || score.events as usize * 2 >= provoked, "{kernel} {kind:?}: {score:?}");
        all.add(&score);
    }
    for (class, score) in &classes {
        let (precision, recall) = (score.precision() * 100.0, score.recall() * 100.0);
        for (what, value) in [("recall", recall), ("precision", precision)] {
            let row = Row::new(format!("{of}: {class} {what}"), (value * 10.0).round() / 10.0, "%");
            print_row(&row.n(u64::from(score.events)));
        }
        println!(
            "{kernel:>7} class {class}: {} events, precision {precision:.1} %, recall {recall:.1} %",
            score.events
        );
    }
    let (events, wrong) = (u64::from(all.events), all.wrong_exact + all.wrong_order);
    let count = |what: &str, value: u32| Row::new(format!("{of}: {what}"), f64::from(value), "");
    print_row(&count("events", all.events));
    print_row(&count("exact", all.exact));
    print_row(&count("wrong", wrong).n(events));
    let whole = f64::from(all.to_the_call) / f64::from(all.of_tasks.max(1));
    let row =
        Row::new(format!("{of}: sends of a task with its system call"), (whole * 1000.0).round() / 10.0, "%");
    print_row(&row.n(u64::from(all.of_tasks)).budget(Of::Value, Limit::AtLeast(95.0)));
    let onward = f64::from(all.to_the_program) / f64::from(all.to_the_call.max(1));
    let what = format!("{of}: of these with its place in the program");
    let row = Row::new(what, (onward * 1000.0).round() / 10.0, "%").n(u64::from(all.to_the_call));
    print_row(&row.budget(Of::Value, Limit::AtLeast(95.0)));
    let called_exact = u64::from(all.exact + all.wrong_exact);
    let none = (Of::Value, Limit::AtMost(0.0));
    print_row(&count("called exact and wrong", all.wrong_exact).n(called_exact).budget(none.0, none.1));
    println!("{kernel:>7} in all: {:.1} % right, {all:?}", all.recall() * 100.0);
    let migrate = sleeps_are_taken_apart(&of, &trace, &truth, &expiries);
    // Timers leave a CPU without a tick only where the kernel has such CPUs.
    let without_tick = guest.read("nohz_full");
    let some = !matches!(without_tick.trim(), "" | "(null)");
    assert_eq!(migrate, some, "{kernel}: timers that expire elsewhere");
    all
}

fn events(file: &TraceFile, truth: &Truth, record: &TraceRecord) -> Vec<Attributed> {
    let lost = record.cpus.iter().chain(record.sender.iter().flat_map(|sender| &sender.cpus));
    assert!(lost.clone().all(|cpu| cpu.left + cpu.overrun + cpu.dropped == 0), "{record:?}");
    let window = MeasuredWindow {
        t0_ns: truth.provoked[0].t0_ns - 1_000_000,
        t1_ns: truth.provoked.last().unwrap().t1_ns,
        measured: vec![MeasuredCpu { cpu: truth.cpu, tid: truth.spinner }],
        snapshot: false,
    };
    let mut events = Vec::new();
    attributed_in(file, &["", "sender"], &[window], |event| {
        events.push(event);
        Ok::<_, attribution::Error>(())
    })
    .unwrap();
    events
}
