//! Reading at fixed places gives the same as reading the fields, for every user of the events: on
//! traces of six kernels, by our own recorder and by trace-cmd, lossy ones among them. 6.1-rt has
//! one common field more, and is read field by field.

use super::*;
use crate::attribute::paths::{Keep, Paths};
use crate::attribute::watch::decode::{Decoder as WatchDecoder, head};
use crate::attribute::watch::program::{Follow, Watch};
use crate::decode::{Decoder, Says};
use crate::names::Names;
use crate::spans::MeasuredCpu;
use crate::view::{KernelEvent, Switch, Wake, What};
use ftrace::{Item, TraceFile};
use model::events::EventCatalogue;
use std::collections::BTreeMap;
use std::path::Path;

const TRACES: [&str; 7] = [
    "runs/small/trace.dat",
    "traces/cyclictest/5.10.dat",
    "traces/cyclictest/6.1.dat",
    "traces/cyclictest/6.1-rt.dat",
    "traces/cyclictest/6.12.dat",
    "traces/cyclictest/6.12-rt.dat",
    "traces/host-6.18/lost-v7-zstd.dat",
];

fn open(name: &str) -> TraceFile {
    TraceFile::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)).unwrap()
}

fn each(file: &TraceFile, mut take: impl FnMut(Item<'_>)) {
    let mut stream = file.stream().unwrap();
    while let Some(item) = stream.next().unwrap() {
        take(item);
    }
}

/// What a record says, as an event.
fn said(at: crate::view::At, says: Says) -> KernelEvent {
    at.says(match says {
        Says::Switch(Switch { prev, runnable, next }) => What::Switch { prev, runnable, next },
        Says::Wake(Wake { pid, target, done }) => What::Wake { pid, target, done },
    })
}

/// An event, and the names of its tasks: labels of two decoders have different numbers.
fn without_labels(event: KernelEvent, decoder: &Decoder) -> (KernelEvent, Vec<String>) {
    let What::Switch { prev, runnable, next } = event.what else { return (event, Vec::new()) };
    let [nameless, other] = [prev, next].map(|task| crate::view::Task { comm: 0, ..task });
    let what = What::Switch { prev: nameless, runnable, next: other };
    let names = [prev, next].map(|task| decoder.labels().text(task.comm).to_owned());
    (KernelEvent { what, ..event }, names.to_vec())
}

#[test]
fn a_record_says_what_its_fields_say() {
    let catalogue = EventCatalogue::embedded().unwrap();
    for name in TRACES {
        let file = open(name);
        let new = || Decoder::of(&file, &catalogue).unwrap();
        let records = new().records(file.formats());
        let (mut by_fields, mut by_record) = (new(), new());
        let symbols = || file.symbols().unwrap();
        let mut tasks = [(); 2].map(|()| Names::default());
        let mut watchers =
            tasks.each_mut().map(|tasks| WatchDecoder::new(file.formats(), symbols(), &mut tasks.labels));
        let mut seen = [0u32; 4];
        each(&file, |item| {
            let Item::Event(event) = item else { return };
            let record = records.read(&event);
            let [watch_fields, watch_record] = &mut watchers;
            let [tasks_fields, tasks_record] = &mut tasks;
            let names = tasks_record.of_record(&record, event.cpu);
            assert_eq!(
                watch_fields.decode(&event, tasks_fields),
                watch_record.of_record(&event, &record, names, tasks_record),
                "{name}"
            );
            let expected = by_fields.decode(&event).unwrap();
            let kind = match expected.what {
                What::Switch { .. } => 0,
                What::Wake { done, .. }
                    if by_fields.names()[usize::from(expected.event)] != "sched:sched_wakeup_new" =>
                {
                    1 + usize::from(done)
                }
                _ => 3,
            };
            seen[kind] += 1;
            let names = by_record.tasks_mut().of_record(&record, event.cpu);
            if let Some((at, says)) = by_record.of_record(&event, &record, names) {
                let ours = without_labels(said(at, says), &by_record);
                let theirs = without_labels(KernelEvent { event: 0, ..expected }, &by_fields);
                assert_eq!(ours, theirs, "{name}");
            } else {
                assert!(kind == 3 || name.contains("6.1-rt"), "{name}: {expected:?}");
                assert!(by_record.decode(&event).is_some());
            }
        });
        assert!(seen.iter().all(|one| *one > 20), "{name}: {seen:?}");
    }
}

#[test]
fn what_is_passed_over_changes_nothing_that_is_known_of_threads() {
    let mut passed = 0;
    for (name, named) in TRACES.iter().flat_map(|name| [(name, false), (name, true)]) {
        let file = open(name);
        let records = Records::of(file.formats(), |_| true);
        let mut tasks = [(); 2].map(|()| Names::default());
        let mut decoders = tasks
            .each_mut()
            .map(|tasks| WatchDecoder::new(file.formats(), file.symbols().unwrap(), &mut tasks.labels));
        let mut watches = tasks.each_mut().map(|tasks| {
            let follow = if named { Follow::Named(tasks.labels.id("cyclictest")) } else { Follow::RealTime };
            Watch::new("x86_64", 0, []).following(follow)
        });
        each(&file, |item| match item {
            Item::Event(event) => {
                let record = records.read(&event);
                watches[0].event(&decoders[0].decode(&event, &mut tasks[0]), &tasks[0]);
                let names = tasks[1].of_record(&record, event.cpu);
                if watches[1].passes(&head(&event), &record, names, || decoders[1].knows(event.id)) {
                    passed += 1;
                } else {
                    let said = decoders[1].of_record(&event, &record, names, &mut tasks[1]);
                    watches[1].event(&said, &tasks[1]);
                }
                assert_eq!(watches[0].touched, watches[1].touched, "{name}");
            }
            Item::Lost { cpu, .. } => watches.iter_mut().for_each(|watch| watch.lost(cpu)),
        });
        // Labels have other numbers, and the same texts.
        let known = |at: usize| {
            let (watch, tasks) = (&watches[at], &tasks[at]);
            let text = |label| tasks.labels.text(label).to_owned();
            let names: Vec<_> = watch.threads.iter().map(|thread| tasks.of(thread.tid).map(text)).collect();
            let threads: Vec<_> =
                watch.threads.iter().map(|one| (one.tid, one.prio, one.state, one.times)).collect();
            let preempted: u64 =
                watch.threads.iter().flat_map(|one| one.preemptions.values()).map(|sums| sums.n).sum();
            let mut by: Vec<_> =
                watch.threads.iter().flat_map(|one| one.preemptions.keys()).map(|key| text(key.by)).collect();
            by.sort();
            (names, threads, preempted, by, watch.wakeups.clone(), watch.missing)
        };
        assert_eq!(known(0), known(1), "{name}");
    }
    assert!(passed > 5_000, "{passed}");
}

#[test]
fn wake_ups_are_taken_apart_the_same_by_records_and_by_events() {
    let catalogue = EventCatalogue::embedded().unwrap();
    for name in TRACES {
        let file = open(name);
        let mut decoder = Decoder::of(&file, &catalogue).unwrap();
        let records = decoder.records(file.formats());
        // The threads that run most, on each CPU one, a sample every time they are woken there.
        let mut wakes: BTreeMap<(u32, i32), Vec<(i64, i64)>> = BTreeMap::new();
        each(&file, |item| {
            if let Item::Event(event) = item
                && let Some(KernelEvent { ts_ns, what: What::Wake { pid, target, done: false }, .. }) =
                    decoder.decode(&event)
            {
                wakes.entry((target, pid)).or_default().push((ts_ns, 50_000));
            }
        });
        let mut most: Vec<_> = wakes.into_iter().collect();
        most.sort_by_key(|(_, samples)| std::cmp::Reverse(samples.len()));
        let new = || {
            let mut paths = Paths::of_each();
            for (place, ((cpu, tid), samples)) in most.iter().enumerate() {
                let thread = MeasuredCpu { cpu: *cpu, tid: *tid };
                paths.add(place, thread, Keep::default(), decoder.known(), samples.iter().copied());
            }
            paths
        };
        let (mut by_event, mut by_record) = (new(), new());
        each(&file, |item| match item {
            Item::Event(event) => {
                let record = records.read(&event);
                let said = decoder.decode(&event).unwrap();
                by_event.each_event(&said);
                let names = decoder.tasks_mut().of_record(&record, event.cpu);
                match decoder.of_record(&event, &record, names) {
                    Some((at, Says::Switch(switch))) => by_record.switch(at, switch),
                    Some((at, Says::Wake(wake))) => by_record.wake(at, wake),
                    None => by_record.event(&said),
                }
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                let hole = crate::holes::Hole::new(cpu, after_ts_ns, before_ts_ns);
                [&mut by_event, &mut by_record].into_iter().for_each(|paths| paths.lost(hole));
            }
        });
        let paths: Vec<_> = by_event.finish_each().collect();
        assert_eq!(paths, by_record.finish_each().collect::<Vec<_>>(), "{name}");
        assert!(paths.len() >= 5, "{name}: {}", paths.len());
    }
}
