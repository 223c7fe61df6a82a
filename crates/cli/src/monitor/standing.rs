//! How things stand: sums since the monitor began, as the status and the metrics have them.

use attribution::attribute::Confidence;
use attribution::attribute::table::UNNAMED;
use attribution::live::view::Ran;
use attribution::live::wakeups::Woken;
use machine::Root;
use model::EventClass;
use model::monitor::{Buckets, Cost, InterferenceStatus, Offence, OffenceSum, ThreadStatus};
use monitor::offences::{Call, Offences};
use monitor::rows::Rows;
use record::groups::Thread;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use sys::clock;

/// Names of threads that have a row of their own in the metrics.
const THREADS: usize = 32;
/// Kinds of interference that do: a class with a source.
const SOURCES: usize = 64;
/// Names of threads that are remembered as watched ones.
const MOST_OWN: usize = 1024;
/// Callers of what runs on watched CPUs that have a row of their own.
const CALLERS: usize = 256;
/// Threads whose groups are looked for between two times that names may get rows.
const MOST_LOOKS: usize = 256;
/// What runs when another CPU has queued a thread to be woken here (kernel/sched/core.c).
const WAKE_UP: &str = "sched_ttwu_pending";
/// The row of all others.
const OTHER: &str = "other";

/// Events and their time, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    ns: u64,
}

/// What is summed.
pub(super) struct Sums {
    threads: Rows<String, BTreeMap<u32, Buckets>>,
    interference: Rows<(EventClass, String), BTreeMap<(u32, EventClass), Sum>>,
    /// Names of threads whose wake-ups are measured: that they run is what the CPU is there for.
    own: BTreeSet<String>,
    offences: Offences,
    /// Callers as they are now, by number, for some seconds; none where they have ended.
    callers: HashMap<i32, Option<Thread>>,
}

impl Sums {
    pub(super) fn new() -> Self {
        Self {
            threads: Rows::new(THREADS),
            interference: Rows::new(SOURCES),
            own: BTreeSet::new(),
            offences: Offences::new(CALLERS),
            callers: HashMap::new(),
        }
    }

    /// Wake-ups that have come since the last call.
    pub(super) fn woken(&mut self, woken: &[Woken]) {
        for one in woken {
            let latencies = self.threads.of(&one.comm, one.latency.count());
            latencies.entry(one.cpu).or_default().merge(&one.latency);
            if self.own.len() < MOST_OWN {
                self.own.insert(one.comm.clone());
            }
        }
    }

    /// What ran in the second that has just ended.
    pub(super) fn ran(&mut self, row: &Ran<'_>) {
        let own = row.class == EventClass::Switch && self.own.contains(row.label);
        if own || (row.count, row.ns) == (0, 0) {
            return;
        }
        let sums = self.interference.of(&(row.class, source(row)), row.ns);
        let sum = sums.entry((row.cpu, row.class)).or_default();
        sum.count += row.count;
        sum.ns = sum.ns.saturating_add(row.ns);
        self.offence(row);
    }

    /// Takes note of who asked for it, if that was a task on another CPU. Requests to run a thread
    /// are left out: where one is no business of this CPU, the thread itself is in the way. So is
    /// what takes no time of its own, such as the flush of a TLB within the interrupt that asks for
    /// it.
    fn offence(&mut self, row: &Ran<'_>) {
        let asks_to_run =
            matches!(row.class, EventClass::Switch | EventClass::IpiResched) || row.label == WAKE_UP;
        if asks_to_run || row.count == 0 || row.ns == 0 {
            return;
        }
        let Some(source) = row.source else {
            if row.class == EventClass::IpiCall {
                self.offences.add_unnamed(row.count);
            }
            return;
        };
        let Some(pid) = source.pid.filter(|_| source.cpu != row.cpu) else { return };
        let is_known = self.callers.contains_key(&pid);
        if !is_known && self.callers.len() < MOST_LOOKS {
            self.callers.insert(pid, Thread::look(pid));
        }
        let caller = self.callers.get(&pid).and_then(Option::as_ref);
        // One that the recording does not name; of another name it is not the caller, who has
        // ended.
        let caller = caller.filter(|now| source.who == UNNAMED || source.who == now.comm);
        let who = caller.map_or(source.who.as_str(), |now| now.comm.as_str());
        let call = Call {
            class: row.class,
            what: row.label.to_owned(),
            who: family(who).to_owned(),
            group: caller.and_then(|now| now.group.clone()),
            call: source.began.clone().or_else(|| source.site.clone()),
            confidence: if row.confidence == Some(Confidence::Exact) { "exact" } else { "by-order" },
        };
        let now_ns = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        self.offences.add(call, row.cpu, [row.count, row.ns], now_ns);
    }

    /// Names may get rows of their own.
    pub(super) fn settle(&mut self) {
        self.threads.settle();
        self.interference.settle();
        self.callers.clear();
    }

    pub(super) fn offences(&self) -> Vec<Offence> {
        let time = |ns: i64| {
            let time = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
            time.round(jiff::Unit::Second).unwrap_or(time).to_string()
        };
        let of = |(call, calls): (&Call, &monitor::offences::Calls)| Offence {
            class: call.class,
            what: call.what.clone(),
            who: call.who.clone(),
            group: call.group.clone(),
            call: call.call.clone(),
            confidence: call.confidence.to_owned(),
            cpus: calls.cpus.clone(),
            count: calls.count,
            ns: calls.ns,
            since: time(calls.since_ns),
            last: time(calls.last_ns),
        };
        self.offences.all().into_iter().map(of).collect()
    }

    pub(super) fn offences_unnamed(&self) -> u64 {
        self.offences.unnamed()
    }

    pub(super) fn offence_sums(&self) -> Vec<OffenceSum> {
        let of = |(class, [count, ns]): (&EventClass, &[u64; 2])| OffenceSum {
            class: *class,
            count: *count,
            ns: *ns,
        };
        self.offences.by_class().iter().map(of).collect()
    }

    pub(super) fn threads(&self) -> Vec<ThreadStatus> {
        let (named, other) = self.threads.all();
        let named = named.into_iter().map(|(comm, cpus)| (comm.as_str(), cpus));
        let rows = named.chain([(OTHER, other)]);
        let of = |(comm, cpus): (&str, &BTreeMap<u32, Buckets>)| {
            let row = |(cpu, latency): (&u32, &Buckets)| ThreadStatus {
                comm: comm.to_owned(),
                cpu: *cpu,
                latency: latency.clone(),
            };
            cpus.iter().map(row).collect::<Vec<_>>()
        };
        rows.flat_map(of).collect()
    }

    pub(super) fn interference(&self) -> Vec<InterferenceStatus> {
        let (named, other) = self.interference.all();
        let rows = named.into_iter().map(|((_, source), sums)| (source.as_str(), sums));
        let of = |(source, sums): (&str, &BTreeMap<(u32, EventClass), Sum>)| {
            let row = |(&(cpu, class), sum): (&(u32, EventClass), &Sum)| InterferenceStatus {
                cpu,
                class,
                source: source.to_owned(),
                count: sum.count,
                ns: sum.ns,
            };
            sums.iter().map(row).collect::<Vec<_>>()
        };
        rows.chain([(OTHER, other)]).flat_map(of).collect()
    }
}

/// Who caused it; of tasks that ran, and of what has no known source, what ran.
fn source(row: &Ran<'_>) -> String {
    let known = row.source.filter(|_| row.class != EventClass::Switch);
    family(known.map_or(row.label, |source| source.who.as_str())).to_owned()
}

/// A name without the numbers of CPUs and workers that kernel threads have in theirs: there would
/// be a row for each.
fn family(name: &str) -> &str {
    if name.starts_with("kworker/") {
        return "kworker";
    }
    let of_a_cpu = name.split_once('/').filter(|(_, rest)| rest.bytes().all(|byte| byte.is_ascii_digit()));
    of_a_cpu.map_or(name, |(family, _)| family)
}

/// What watching has cost so far.
pub(super) fn cost(events: u64, event_ns: Option<f64>) -> Cost {
    Cost {
        process_ns: u64::try_from(clock::process_cpu_ns()).unwrap_or(0),
        children_ns: children_ns(),
        events,
        event_ns,
        rss_kib: rss_kib(),
    }
}

/// CPU time of the children that have ended, of `/proc/self/stat` (proc_pid_stat(5): fields 16 and
/// 17, in ticks of 1/100 s).
fn children_ns() -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let text = Root::live().maybe("proc/self/stat").unwrap_or_default();
    // The name may have blanks and parentheses.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok());
    ticks.sum::<u64>() * TICK_NS
}

/// Memory of this process, of `/proc/self/status`.
fn rss_kib() -> u64 {
    let text = Root::live().maybe("proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::attribute::section::SourceText;

    fn row<'a>(class: EventClass, label: &'a str, source: Option<&'a SourceText>) -> Ran<'a> {
        let confidence = source.map(|_| Confidence::Order);
        Ran { cpu: 2, class, label, source, confidence, count: 3, ns: 500 }
    }

    #[test]
    fn who_asks_from_another_cpu_is_an_offender_as_surely_as_it_is_known() {
        let source = |cpu: u32, pid: Option<i32>| SourceText {
            began: Some("system call munmap".to_owned()),
            ..SourceText::new(cpu, "gone", pid)
        };
        let mut sums = Sums::new();
        let (far, own, device) = (source(0, Some(-5)), source(2, Some(-5)), source(0, None));
        for source in [Some(&far), Some(&own), Some(&device), None] {
            sums.ran(&row(EventClass::IpiCall, "flush_tlb_func", source));
        }
        // Requests to run a thread are none.
        sums.ran(&row(EventClass::IpiResched, "", Some(&far)));
        sums.ran(&row(EventClass::IpiCall, WAKE_UP, Some(&far)));
        let all = sums.offences();
        let [one] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((one.who.as_str(), one.count, one.confidence.as_str()), ("gone", 3, "by-order"));
        assert_eq!((one.call.as_deref(), one.cpus.to_string()), (Some("system call munmap"), "2".to_owned()));
        assert_eq!((sums.offences_unnamed(), sums.offence_sums()[0].count), (3, 3));
    }

    #[test]
    fn workers_of_all_cpus_are_one_source() {
        for (class, label, who, expected) in [
            (EventClass::Switch, "kworker/2:1-events", None, "kworker"),
            (EventClass::Switch, "ksoftirqd/2", Some("x"), "ksoftirqd"),
            (EventClass::Switch, "irq/24-eth0", None, "irq/24-eth0"),
            (EventClass::IpiCall, "flush_tlb_func", Some("memhog"), "memhog"),
            (EventClass::Irq, "eth0", None, "eth0"),
        ] {
            let who = who.map(|who| SourceText::new(0, who, Some(7)));
            assert_eq!(source(&row(class, label, who.as_ref())), expected);
        }
    }

    #[test]
    fn a_watched_thread_is_no_interference() {
        let mut sums = Sums::new();
        let mut latency = Buckets::default();
        latency.add(7);
        sums.woken(&[Woken { comm: "control".to_owned(), cpu: 2, latency }]);
        let rows = [row(EventClass::Switch, "control", None), row(EventClass::Switch, "logger", None)];
        for _ in 0..2 {
            rows.iter().for_each(|row| sums.ran(row));
        }
        let counts = |sums: &Sums| {
            let all = sums.interference();
            all.iter().map(|one| (one.source.clone(), one.count, one.ns)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&sums), [(OTHER.to_owned(), 6, 1_000)]);
        sums.settle();
        rows.iter().for_each(|row| sums.ran(row));
        assert_eq!(counts(&sums), [("logger".to_owned(), 3, 500), (OTHER.to_owned(), 6, 1_000)]);
    }
}
