//! A watched program: where each thread's time went, how long it waited for a CPU after its
//! wake-ups, what released it, and who took the CPU from it.

use attribution::attribute::lint::shape::LintSection;
use attribution::attribute::locks::shape::LockSection;
use attribution::attribute::watch::shape::{Chain, Figures, Preemption, Release, ThreadSection};
use minijinja::{Value, context};

use super::bounds;
use super::plot::rooms;
use super::value;
use crate::svg::{Room, Spread, lanes, spread};
use crate::{Document, every_lock, format, lint, locks};

/// Threads in the tables and the plot: those that waited longest for a CPU.
const THREADS: usize = 24;
/// Rows of releases, of preemptions and of chains.
const ROWS: usize = 40;
/// Waits for locks in sentences.
const WORST: usize = 4;

pub(super) fn figures(document: &Document) -> Value {
    let Some(watch) = &document.analysis.watch else { return Value::from(()) };
    let threads = worst_first(&watch.threads);
    let releases = threads.iter().flat_map(|one| one.releases.iter().map(move |release| (*one, release)));
    let preemptions = threads.iter().flat_map(|one| one.preemptions.iter().map(move |other| (*one, other)));
    let mut preemptions: Vec<_> = preemptions.collect();
    preemptions.sort_by_key(|(_, one)| {
        std::cmp::Reverse(one.lost.map_or(0.0, |lost| lost.mean_ns * one.n as f64) as u64)
    });
    context! {
        asked => watch.asked.as_str(),
        ended => watch.command.as_ref().map(|command| context! {
            pid => command.pid, code => command.exit_code, signal => command.signal, asked => command.ended,
        }),
        threads => threads.iter().take(THREADS).map(|one| thread(one)).collect::<Vec<_>>(),
        left_out => threads.len().saturating_sub(THREADS),
        releases => releases.take(ROWS).map(|(one, other)| release(one, other)).collect::<Vec<_>>(),
        preemptions => preemptions.iter().take(ROWS).map(|(one, other)| preemption(one, other)).collect::<Vec<_>>(),
        lint => watch.lint.as_ref().map(|section| lint_figures(section, watch.t0_ns)),
        locks => watch.locks.as_ref().filter(|locks| !locks.locks.is_empty() || locks.withheld > 0).map(lock_figures),
        every => watch.locks.as_ref().and_then(|locks| locks.every.as_ref()).map(|every| context! {
            account => every_lock::account(&document.run, every),
            head => every_lock::HEAD,
            rows => every.locks.iter().take(every_lock::ROWS).map(every_lock::row).collect::<Vec<_>>(),
            signals => every_lock::signals(every).collect::<Vec<_>>(),
        }),
        bounds => bounds::of_threads(&watch.paths),
        chains => watch.chains.iter().take(ROWS).map(chain).collect::<Vec<_>>(),
        statements => watch.statements.clone(),
    }
}

/// Those that waited longest for a CPU first.
fn worst_first(threads: &[ThreadSection]) -> Vec<&ThreadSection> {
    let mut all: Vec<&ThreadSection> = threads.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.run_latency.map(|latency| latency.max_ns)));
    all
}

fn name(thread: &ThreadSection) -> String {
    format!("{}[{}]", thread.comm, thread.tid)
}

/// The wait for a lock that the page speaks of first, as it passed, else the run latencies.
pub(super) fn opening(document: &Document) -> Value {
    let locks = document.analysis.watch.as_ref().and_then(|watch| watch.locks.as_ref());
    if let Some(wait) = locks.and_then(locks::first) {
        let spans = locks::spans(wait);
        let draw = |room| {
            let id = if room == Room::Desk { "ok" } else { "okh" };
            lanes(id, "The wait, thread by thread", &spans, room)
        };
        let caption = "Who did what from the waiter's call to its wake-up. A thread less urgent than the waiter that has the holder's CPU \
                       is priority inversion: nothing bounds that time.";
        return rooms(draw, caption.to_owned());
    }
    latencies(document)
}

/// The run latencies of the threads that waited longest.
fn latencies(document: &Document) -> Value {
    const DRAWN: usize = 10;
    let Some(watch) = &document.analysis.watch else { return Value::UNDEFINED };
    let bar = |one: &&ThreadSection| {
        let latency = one.run_latency?;
        Some(Spread {
            label: name(one),
            min_ns: latency.min_ns,
            median_ns: latency.median_ns,
            p99_ns: (latency.n >= 1000).then_some(latency.p99_ns),
            max_ns: latency.max_ns,
            calculated_ns: None,
            deadline_ns: None,
        })
    };
    let bars: Vec<Spread> = worst_first(&watch.threads).iter().filter_map(bar).take(DRAWN).collect();
    let draw = |room| {
        let id = if room == Room::Desk { "ow" } else { "owh" };
        spread(id, "From the wake-up to running", "from the wake-up to running", &bars, room)
    };
    let caption = "How long each thread waited for a CPU after its wake-ups: from the least to the observed \
                   maximum, a dot at the median, a bar to the 99th percentile.";
    rooms(draw, caption.to_owned())
}

fn thread(one: &ThreadSection) -> Value {
    context! {
        name => name(one), policy => one.policy.as_deref(), cpus => one.cpus.to_string(),
        times => value(&one.times), latency => one.run_latency.as_ref().map(numbers),
        activations => one.activations, migrations => one.migrations_waking + one.migrations_runnable,
    }
}

/// A 99th percentile needs ten values above it.
fn numbers(figures: &Figures) -> Value {
    context! {
        n => figures.n, median_ns => figures.median_ns, max_ns => figures.max_ns,
        p99_ns => (figures.n >= 1000).then_some(figures.p99_ns),
    }
}

fn release(thread: &ThreadSection, one: &Release) -> Value {
    context! {
        thread => name(thread), kind => one.kind.words(), call => one.call.as_deref(), by => one.by.as_str(),
        from => one.from.to_string(), n => one.n, lateness => one.lateness.as_ref().map(numbers),
        latency => one.run_latency.as_ref().map(numbers),
    }
}

fn preemption(thread: &ThreadSection, one: &Preemption) -> Value {
    context! {
        thread => name(thread), by => one.by.as_str(), woken_by => one.woken_by.as_deref(), n => one.n,
        lost => one.lost.as_ref().map(numbers),
        total => one.lost.as_ref().map(|lost| format::ns_f(lost.mean_ns * lost.n as f64)),
    }
}

/// What real-time threads do wrong.
fn lint_figures(section: &LintSection, t0_ns: i64) -> Value {
    context! {
        account => lint::account(section),
        rows => section.open().take(ROWS).map(|finding| context! {
            rule => finding.rule.name(), thread => lint::thread(finding),
            what => lint::sentence(finding, t0_ns), callers => lint::callers(finding), remedy => finding.rule.remedy(),
        }).collect::<Vec<_>>(),
        not_applied => section.not_applied.iter().map(|one| {
            format!("{}: not applicable: {}", one.rule.name(), one.why)
        }).chain(section.unused.iter().map(|one| {
            format!("{}: {}", one.rule.name(), lint::unused(one))
        })).collect::<Vec<_>>(),
    }
}

/// Waits for locks: the worst in sentences, all of them by lock.
fn lock_figures(section: &LockSection) -> Value {
    context! {
        account => locks::account(section),
        worst => section.worst.iter().take(WORST).map(|wait| context! {
            sentence => locks::sentence(wait), callers => locks::callers(wait), advice => locks::advice(wait),
            evidence => (!wait.holders.is_empty()).then(|| locks::evidence(wait)),
            inversion => wait.inversion_ns > 0 || !wait.circle.is_empty(),
        }).collect::<Vec<_>>(),
        rows => section.locks.iter().take(ROWS).map(|lock| context! {
            word => locks::which(lock.name.as_deref(), lock.word), kind => lock.kind.words(), n => lock.n,
            waited => lock.waited.as_ref().map(numbers),
            waiters => locks::names(lock.waiters.iter().map(|waiter| &waiter.thread)),
            holders => locks::names(lock.holders.iter().map(|holder| &holder.thread)),
            inversions => lock.waiters.iter().map(|waiter| waiter.inversions).sum::<u64>(),
        }).collect::<Vec<_>>(),
        unknown => locks::unknown(section),
    }
}

fn chain(one: &Chain) -> Value {
    context! { comms => one.comms.join(" \u{2192} "), n => one.n, latency => one.latency.as_ref().map(numbers) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::attribute::lint::rules::Rule;
    use attribution::attribute::lint::shape::Finding;
    use attribution::attribute::locks::shape::{
        Activity, Evidence, Holder, Lock, LockHolder, LockKind, LockWait, Part, Step, ThreadName, WaitEnd,
        Waiter,
    };
    use attribution::attribute::watch::WatchSection;
    use attribution::attribute::watch::shape::{ReleaseKind, Times};

    fn watched() -> Document {
        let figures =
            |max_ns| Figures { n: 5, min_ns: 1_000, mean_ns: 2e3, median_ns: 2_000, p99_ns: max_ns, max_ns };
        let thread = |tid, max_ns| ThreadSection {
            tid,
            tgid: Some(tid),
            comm: "ro<b>ot".to_owned(),
            policy: Some("SCHED_FIFO 80".to_owned()),
            prio: Some(19),
            times: Times { observed_ns: 9_000_000, on_cpu_ns: 1_000_000, ..Times::default() },
            cpus: "2".parse().unwrap(),
            activations: 5,
            early_wakes: 0,
            unseen_switches: 0,
            run_latency: Some(figures(max_ns)),
            releases: vec![Release {
                kind: ReleaseKind::Timer,
                call: Some("clock_nanosleep".to_owned()),
                by: "hrtimer".to_owned(),
                by_tid: None,
                signal: None,
                from: "0".parse().unwrap(),
                n: 5,
                lateness: Some(figures(70_000)),
                run_latency: None,
                total: None,
            }],
            preemptions: vec![Preemption {
                by: "kworker/2:1".to_owned(),
                by_tid: Some(7),
                woken_by: None,
                n: 2,
                lost: Some(figures(31_000)),
            }],
            migrations_waking: 0,
            migrations_runnable: 1,
        };
        let mut document = crate::fixture::measurement("clocks");
        document.analysis.clocks = None;
        document.run.command = ["stillcore", "trace", "watch"].map(str::to_owned).to_vec();
        document.analysis.watch = Some(WatchSection {
            asked: "command robot".to_owned(),
            t0_ns: 0,
            t1_ns: 9_000_000,
            command: None,
            threads: vec![thread(11, 40_000), thread(12, 250_000)],
            paths: Vec::new(),
            locks: Some(contended()),
            lint: Some(mistaken()),
            attribution: Vec::new(),
            chains: Vec::new(),
            chains_dropped: 0,
            statements: vec!["an event is missing".to_owned()],
        });
        document
    }

    /// One finding.
    fn mistaken() -> LintSection {
        let finding = Finding {
            rule: Rule::RelativeSleep,
            tid: 11,
            comm: "con<b>trol".to_owned(),
            prio: Some(19),
            detail: "nanosleep".to_owned(),
            n: 3,
            first_ns: Some(1_500_000),
            faults: None,
            callers: Some("st<i>ep (robot) < main (robot)".to_owned()),
            suppressed: false,
        };
        let known = Finding { rule: Rule::File, suppressed: true, ..finding.clone() };
        LintSection {
            findings: vec![known, finding],
            not_applied: Vec::new(),
            threads: 1,
            unused: Vec::new(),
        }
    }

    #[test]
    fn what_is_known_by_its_value_alone_is_not_said_to_be_a_lock() {
        let mut document = watched();
        let locks = document.analysis.watch.as_mut().unwrap().locks.as_mut().unwrap();
        (locks.locks[0].kind, locks.worst[0].kind) = (LockKind::ByValue, LockKind::ByValue);
        let account = locks::account(locks);
        assert!(
            account.contains("known in 0, who released it in 1 more, 1 with priority inversion if these"),
            "{account}"
        );
        let page = crate::html::page(&document).unwrap();
        let flat = page.split("<footer>").next().unwrap().replace('\u{a0}', " ");
        assert!(
            flat.contains("released by log&lt;b&gt;[13]")
                && flat.contains("priority inversion if it is a lock"),
            "{flat}"
        );
        assert!(
            flat.contains("priority inversion, if for a lock") && !flat.contains("held by log"),
            "{flat}"
        );
    }

    #[test]
    fn a_lock_of_the_kernel_has_its_name_and_no_advice_for_programs() {
        let mut document = watched();
        let locks = document.analysis.watch.as_mut().unwrap().locks.as_mut().unwrap();
        let name = Some("cgroup_mutex".to_owned());
        (locks.locks[0].kind, locks.locks[0].name) = (LockKind::KernelMutex, name.clone());
        let wait = &mut locks.worst[0];
        (wait.kind, wait.name, wait.call) = (LockKind::KernelMutex, name, Some("mkdir".to_owned()));
        assert!(locks::account(locks).starts_with("1 wait for 1 lock of the kernel: "));
        assert!(locks::unknown(locks)[0].contains("owners of the kernel's locks were not recorded"));
        let page = crate::html::page(&document).unwrap();
        let flat = page.split("<footer>").next().unwrap().replace('\u{a0}', " ");
        for part in ["for kernel mutex cgroup_mutex in mkdir, held by", "leave mkdir out of the loop"] {
            assert!(flat.contains(part), "{part}: {flat}");
        }
        assert!(!flat.contains("PTHREAD"), "{flat}");
    }

    #[test]
    fn inversion_that_is_certain_is_counted_alone() {
        let mut section = contended();
        let mut perhaps = section.locks[0].clone();
        perhaps.kind = LockKind::ByValue;
        perhaps.waiters[0].inversions = 3;
        section.locks.push(perhaps);
        section.inversions = 4;
        assert_eq!(locks::inversions(&section), (1, 3));
        let account = locks::account(&section);
        assert!(account.ends_with(", 1 with priority inversion, 3 more if these are locks"), "{account}");
        let mut document = watched();
        document.analysis.watch.as_mut().unwrap().locks = Some(section);
        let card = &crate::opening::opening(&document).cards[0];
        assert_eq!(card.value, crate::opening::Value::Known("1".to_owned()), "{card:?}");
    }

    #[test]
    fn mistakes_are_a_table_with_what_to_do_and_suppressed_ones_are_counted() {
        let page = crate::html::page(&watched()).unwrap();
        crate::html::tests::assert_balanced(&page);
        let flat = page.split("<footer>").next().unwrap().replace('\u{a0}', " ");
        for part in [
            "1 finding in 1 real-time thread, 1 more suppressed",
            "con&lt;b&gt;trol[11] (priority 80)",
            "(nanosleep): 3 times, first 1.500 ms after the start",
            "from st&lt;i&gt;ep (robot) &lt; main (robot)",
            "clock_nanosleep with TIMER_ABSTIME",
        ] {
            assert!(flat.contains(part), "{part}: {flat}");
        }
        assert!(!flat.contains("a file was opened"));
    }

    /// One wait, with inversion.
    fn contended() -> LockSection {
        let thread = |tid, comm: &str, prio| ThreadName { tid, comm: comm.to_owned(), prio: Some(prio) };
        let [control, logger, ui] =
            [thread(11, "control", 19), thread(13, "log<b>", 79), thread(14, "ui", 74)];
        let holder = Holder {
            thread: logger.clone(),
            t0_ns: 0,
            t1_ns: 3_100_000,
            evidence: vec![Evidence::Memory, Evidence::Order],
        };
        let part = Part {
            holder: logger.clone(),
            through: Vec::new(),
            doing: Activity::Preempted { by: Some(ui) },
            ns: 2_800_000,
            inversion: true,
        };
        let wait = LockWait {
            waiter: control.clone(),
            word: 0x7f00,
            kind: LockKind::GlibcMutex,
            name: None,
            call: None,
            callers: Some("queue<i> (libfoo.so)".to_owned()),
            t0_ns: 0,
            t1_ns: 3_100_000,
            end: WaitEnd::Released,
            holders: vec![holder],
            unknown: None,
            course: vec![Step {
                t0_ns: 100_000,
                t1_ns: 2_900_000,
                holder: part.holder.clone(),
                doing: part.doing.clone(),
                inversion: true,
            }],
            parts: vec![part],
            inherited: false,
            inversion_ns: 2_800_000,
            circle: Vec::new(),
        };
        let lock = Lock {
            word: 0x7f00,
            tgid: Some(11),
            kind: LockKind::GlibcMutex,
            name: None,
            waited: None,
            known: 1,
            n: 1,
            waiters: vec![Waiter { thread: control, waited: None, first_ns: 0, lasting: 0, inversions: 1 }],
            holders: vec![LockHolder { thread: logger, waits: 1 }],
        };
        LockSection {
            locks: vec![lock],
            worst: vec![wait],
            inversions: 1,
            memory: true,
            ..LockSection::default()
        }
    }

    #[test]
    fn priority_inversion_is_what_the_page_says_first() {
        let page = crate::html::page(&watched()).unwrap();
        let flat = page.split("<footer>").next().unwrap().replace('\u{a0}', " ");
        let sentence = "control[11] (priority 80) waited 3.100 ms for mutex 0x7f00, held by log&lt;b&gt;[13] (priority 20), which was kept \
                        off its CPU for 2.800 ms by ui[14] (priority 25): priority inversion, not inherited";
        assert_eq!(flat.replace('µ', "u").matches(sentence).count(), 2, "{flat}");
        assert!(flat.contains("has its CPU: inversion at 100.0 µs for 2.800 ms"), "{flat}");
        assert!(flat.contains("; asked for in queue&lt;i&gt; (libfoo.so)."), "{flat}");
        assert!(flat.contains("give 0x7f00 the protocol PTHREAD_PRIO_INHERIT"), "{flat}");
        assert!(flat.contains("the lock&#x27;s own memory and by the order of wake-ups"), "{flat}");
    }

    #[test]
    fn the_thread_that_waited_longest_is_named_first_and_every_table_is_there() {
        let mut document = watched();
        document.analysis.watch.as_mut().unwrap().locks = None;
        let page = crate::html::page(&document).unwrap();
        crate::html::tests::assert_balanced(&page);
        let flat = page.split("<footer>").next().unwrap().replace('\u{a0}', " ");
        assert!(flat.contains("waited longest for a CPU after a wake-up: 250.0 µs"), "{flat}");
        assert!(flat.find("ro&lt;b&gt;ot[12]").unwrap() < flat.find("ro&lt;b&gt;ot[11]").unwrap());
        for part in ["clock_nanosleep", "kworker", "an event is missing", "250.0 µs", "70.00 µs"] {
            assert!(flat.contains(part), "{part}");
        }
        assert!(!flat.contains("NaN") && !flat.contains("<b>ot"));
    }
}
