//! A recorded trace as if it came now: the same result however it is cut into chunks.

use super::view::LiveView;
use super::*;
use crate::attribute::path::{Part, Path as PathOfSample};
use crate::attribute::step::Step;
use crate::spans::MeasuredCpu;
use ftrace::{Item, PageLayout, TraceFile};
use model::events::EventCatalogue;
use model::{Sample, samples_file};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small/trace.dat")
}

/// The pages of every CPU, of all buffers.
fn pages(file: &TraceFile) -> Vec<(u32, Vec<u8>)> {
    let bytes = std::fs::read(file.path()).unwrap();
    let all = file.buffers().iter().flat_map(|buffer| buffer.cpus.iter().filter(|cpu| cpu.size > 0));
    all.map(|cpu| (cpu.cpu, bytes[cpu.offset as usize..][..cpu.size as usize].to_vec())).collect()
}

fn times(layout: &PageLayout, file: &TraceFile, bytes: &[u8]) -> Vec<i64> {
    let time = |page| layout.header(page, file.formats().endian()).unwrap().timestamp as i64;
    bytes.chunks(layout.page_size()).map(time).collect()
}

struct Reading {
    file: TraceFile,
    measured: Vec<u32>,
    tid: i32,
    cpu: u32,
    file_of_samples: String,
    period_ns: i64,
}

impl Reading {
    /// Of the first wake-up probe.
    fn new() -> Self {
        Self::of("wakeup")
    }

    fn of(probe: &str) -> Self {
        let run = model::run::stored::read_run(trace().parent().unwrap()).unwrap();
        let probe = run.probes.iter().find(|record| record.file.contains(probe)).unwrap();
        let (tid, cpu, file_of_samples) = (probe.tid, probe.cpu, probe.file.clone());
        let period_ns = probe.period_ns().unwrap_or(1) as i64;
        Self {
            file_of_samples,
            period_ns,
            file: TraceFile::open(&trace()).unwrap(),
            measured: run.measured_cpus.iter().collect(),
            tid,
            cpu,
        }
    }

    /// What the probe stored.
    fn samples(&self) -> Vec<Sample> {
        samples_file::read(&trace().with_file_name(&self.file_of_samples)).unwrap().1
    }

    /// Its releases.
    fn releases(&self) -> Follow {
        Follow::Releases { first_ns: self.samples()[0].t_ns, period_ns: self.period_ns }
    }

    fn decoder(&self) -> Decoder {
        Decoder::of(&self.file, &EventCatalogue::embedded().unwrap()).unwrap()
    }

    fn live(&self, follow: Option<Follow>) -> Live {
        let followed = follow.map(|follow| Followed { cpu: self.cpu, tid: self.tid, follow });
        let followed: Vec<_> = followed.into_iter().collect();
        Live::new(self.decoder(), self.file.formats().clone(), &self.measured, &followed, 0)
    }

    /// The paths of its samples, by release, as of a finished run.
    fn paths_of_samples(&self) -> BTreeMap<i64, PathOfSample> {
        let mut decoder = self.decoder();
        let measured = [MeasuredCpu { cpu: self.cpu, tid: self.tid }];
        let mut builder = SpanBuilder::new(0, i64::MAX, &measured, decoder.known());
        let mut paths = Paths::of_each();
        let samples = self.samples();
        let keep = Keep { worst: 0, sample: None };
        let values = samples.iter().map(|sample| (sample.t_ns, sample.value_ns));
        paths.add(0, measured[0], keep, decoder.known(), values);
        let names: Vec<String> = self.file.buffers().iter().map(|buffer| buffer.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut stream = self.file.stream_buffers(&names).unwrap();
        let mut said = KernelEvent::NOTHING;
        while let Some(item) = stream.next().unwrap() {
            let Item::Event(event) = item else { continue };
            if decoder.decode_into(&event, &mut said) {
                paths.event(&said);
                builder.event(&said, decoder.sets(), &mut |span: &Span| paths.span(span));
            }
        }
        paths.finish_each().map(|(_, path)| (path.t_ns, path)).collect()
    }

    /// In chunks of so many pages of each CPU; each is known up to the earliest time that the next
    /// chunk may bring, as of a reader that takes one CPU after the other.
    fn in_chunks(&self, sizes: &[usize], follow: Option<Follow>) -> LiveView {
        let layout = *self.file.formats().page();
        let mut live = self.live(follow);
        let lanes = pages(&self.file);
        let mut at: Vec<usize> = vec![0; lanes.len()];
        for turn in 0.. {
            let size = sizes[turn % sizes.len()];
            let mut chunk = Vec::new();
            let mut until_ns = i64::MAX - 1;
            for (lane, (cpu, bytes)) in lanes.iter().enumerate() {
                // Some CPUs are ahead of others.
                let more = size + lane % 2;
                let from = (at[lane] * layout.page_size()).min(bytes.len());
                let to = (from + more * layout.page_size()).min(bytes.len());
                chunk.push((*cpu, bytes[from..to].to_vec()));
                at[lane] += more;
                let next = times(&layout, &self.file, &bytes[to..]).first().copied();
                until_ns = until_ns.min(next.map_or(i64::MAX - 1, |next| next - 1));
            }
            live.pages(chunk, until_ns).unwrap();
            if lanes.iter().zip(&at).all(|((_, bytes), at)| at * layout.page_size() >= bytes.len()) {
                break;
            }
        }
        live.second()
    }
}

fn by_name(view: &LiveView) -> BTreeMap<String, (u64, u64, u64)> {
    let name = |row: &view::RowView| {
        format!("{} {} {:?} {} {:?}", row.cpu, row.class, row.pid, row.label, row.source)
    };
    view.rows.iter().map(|row| (name(row), (row.total_count, row.total_ns, row.max_ns))).collect()
}

#[test]
fn live_sums_are_those_of_the_spans_of_the_whole_trace() {
    let reading = Reading::new();
    let view = reading.in_chunks(&[3], None);
    let mut decoder = reading.decoder();
    let measured: Vec<_> =
        reading.measured.iter().map(|cpu| MeasuredCpu { cpu: *cpu, tid: NOBODY }).collect();
    let mut builder = SpanBuilder::new(0, i64::MAX, &measured, decoder.known());
    let mut classes: BTreeMap<(u32, EventClass), u64> = BTreeMap::new();
    let names: Vec<String> = reading.file.buffers().iter().map(|buffer| buffer.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut stream = reading.file.stream_buffers(&names).unwrap();
    let mut said = KernelEvent::NOTHING;
    while let Some(item) = stream.next().unwrap() {
        let Item::Event(event) = item else { continue };
        if decoder.decode_into(&event, &mut said) {
            builder.event(&said, decoder.sets(), &mut |span: &Span| {
                *classes.entry((span.cpu, span.class)).or_default() += span.net_ns;
            });
        }
    }
    classes.retain(|(_, class), ns| *class != EventClass::SelfCaused && *ns > 0);
    let mut ours: BTreeMap<(u32, EventClass), u64> = BTreeMap::new();
    for row in view.rows.iter().filter(|row| row.total_ns > 0) {
        *ours.entry((row.cpu, row.class)).or_default() += row.total_ns;
    }
    assert!(classes.len() > 3, "{classes:?}");
    // An event of several senders is shared: a remainder of its division may be missing.
    assert_eq!(ours.keys().collect::<Vec<_>>(), classes.keys().collect::<Vec<_>>());
    for (key, ns) in &classes {
        assert!(ours[key] <= *ns && ours[key] + view.events >= *ns, "{key:?} {ns} {}", ours[key]);
    }
    assert_eq!((view.losses, view.worst.is_empty()), (Losses::default(), false));
}

#[test]
fn a_followed_thread_has_its_wake_ups_and_their_parts_add_up() {
    let view = Reading::new().in_chunks(&[2], Some(Follow::Requests));
    let followed = view.cpus.iter().find_map(|cpu| cpu.latency.as_ref()).unwrap();
    assert!(followed.n > 10 && followed.p999_ns <= followed.max_ns, "{followed:?}");
    assert!(!view.worst.is_empty() && view.worst.iter().all(|one| one.is_wakeup));
    for one in &view.worst {
        assert_eq!(one.parts.iter().map(|part| part.ns).sum::<u64>(), one.ns, "{one:?}");
    }
    assert!(view.worst[0].ns <= followed.max_ns && view.self_ns > 0);
}

#[test]
fn from_its_releases_a_thread_is_as_late_as_it_measured_itself() {
    let reading = Reading::new();
    let view = reading.in_chunks(&[2], Some(reading.releases()));
    let latency = view.cpus.iter().find_map(|cpu| cpu.latency.as_ref()).unwrap();
    // Those for which it did not sleep, being late already, are no wake-ups.
    let (n, all) = (latency.n as usize, reading.samples().len());
    assert!(n <= all && n > all * 9 / 10, "{n} of {all}");
    let known = reading.paths_of_samples();
    assert!(view.worst.len() > 2);
    for one in &view.worst {
        // Up to the switch: reading the clock comes behind, and may take as long as it likes.
        let until_switch = |part: &&Part| part.step != Step::Return;
        let parts: Vec<_> = known[&one.t_ns].parts.iter().filter(until_switch).collect();
        let parts: Vec<_> =
            parts.iter().map(|part| (part.step.words().to_owned(), part.cpu, part.ns)).collect();
        let ours: Vec<_> = one.parts.iter().map(|part| (part.step.clone(), part.cpu, part.ns)).collect();
        assert_eq!(ours, parts, "{one:?}");
        assert_eq!(one.parts.iter().map(|part| part.ns).sum::<u64>(), one.ns);
    }
    assert!(view.worst.iter().any(|one| one.parts.iter().any(|part| part.step == "timer late")));
}

impl Reading {
    /// A loop while it measures; the rest of the trace is of others.
    fn in_window(&self, follow: Follow) -> LiveView {
        let samples = self.samples();
        let mut live = self.live(Some(follow));
        live.pages(pages(&self.file), samples[0].t_ns).unwrap();
        live.second();
        live.reset();
        live.pages(Vec::new(), end_ns(&samples[samples.len() - 1])).unwrap();
        live.second()
    }
}

fn end_ns(sample: &Sample) -> i64 {
    sample.t_ns + sample.value_ns
}

#[test]
fn what_interrupts_a_loop_is_a_gap_of_it() {
    let reading = Reading::of("noise");
    let view = reading.in_window(Follow::Loop);
    let gaps = reading.samples();
    assert!(!view.worst.is_empty());
    for one in &view.worst {
        let is_in = |gap: &Sample| gap.t_ns <= one.t_ns && one.t_ns + one.ns as i64 <= end_ns(gap);
        assert!(gaps.iter().any(is_in) && !one.is_wakeup, "{one:?}");
    }
    assert!(view.cpus.iter().all(|cpu| cpu.latency.is_none()));
}

#[test]
fn what_runs_in_the_pauses_of_a_loop_is_left_out() {
    let reading = Reading::of("noise");
    let Live { mut derived, mut paths, .. } = reading.live(Some(Follow::Loop));
    let task = |pid| Task::unnamed(pid, 0);
    let at = |ts_ns| KernelEvent { ts_ns, cpu: reading.cpu, ..KernelEvent::NOTHING };
    let names = Names::of_numbers();
    let pauses = |derived: &Derived, t_ns| derived.cpus.iter().any(|cpu| cpu.pauses_at(t_ns));
    assert!(!pauses(&derived, 5));
    // Preempted, it does not pause.
    derived.switch(&at(10), (task(reading.tid), true, task(7)), &mut paths, &names);
    derived.switch(&at(20), (task(7), true, task(reading.tid)), &mut paths, &names);
    assert!(!pauses(&derived, 15));
    derived.switch(&at(30), (task(reading.tid), false, task(7)), &mut paths, &names);
    assert!(!pauses(&derived, 29) && pauses(&derived, 30) && pauses(&derived, 1_000));
    derived.switch(&at(40), (task(7), true, task(reading.tid)), &mut paths, &names);
    assert!(pauses(&derived, 39) && !pauses(&derived, 40) && !pauses(&derived, 29));
}

#[test]
fn a_wake_up_that_waits_for_seconds_is_the_worst() {
    let reading = Reading::new();
    let Live { mut derived, mut paths, .. } = reading.live(Some(Follow::Requests));
    let (task, names) = (|pid| Task::unnamed(pid, 0), Names::of_numbers());
    let at = |ts_ns| KernelEvent { ts_ns, cpu: reading.cpu, ..KernelEvent::NOTHING };
    derived.switch(&at(10), (task(reading.tid), false, task(7)), &mut paths, &names);
    let woken = What::Wake { pid: reading.tid, target: reading.cpu, done: false };
    derived.follow(&KernelEvent { what: woken, ..at(20) }, &mut paths, &names);
    let ran_ns = 20 + 2 * MOST_AWAITED_NS;
    derived.releases(ran_ns - 5, &mut paths);
    derived.releases(ran_ns - 4, &mut paths);
    derived.switch(&at(ran_ns), (task(7), true, task(reading.tid)), &mut paths, &names);
    let worst = &derived.worst.all()[0];
    assert_eq!((worst.ns as i64, worst.t_ns, worst.parts.len()), (2 * MOST_AWAITED_NS, 20, 0));
    assert!(derived.cpus.iter().any(|cpu| cpu.max_ns as i64 == 2 * MOST_AWAITED_NS));
}

#[test]
fn releases_come_at_their_interval() {
    let follow = Follow::Releases { first_ns: 100, period_ns: 10 };
    for (slept_ns, release_ns) in [(99, None), (100, Some(110)), (109, Some(110)), (110, Some(120))] {
        assert_eq!(follow.next_release(slept_ns), release_ns, "{slept_ns}");
    }
}

#[test]
fn going_on_with_a_new_decoder_keeps_the_sums() {
    let reading = Reading::new();
    let mut live = reading.live(None);
    live.pages(pages(&reading.file), i64::MAX - 1).unwrap();
    let before = by_name(&live.second());
    live.renew(reading.decoder(), &[]);
    live.pages(Vec::new(), i64::MAX - 1).unwrap();
    let after = live.second();
    assert_eq!((by_name(&after), after.losses.renewals), (before, 1));
    assert!(!live.is_full());
    live.hold_at_most(0);
    assert!(live.is_full(), "it knows a task");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// However the pages come.
    #[test]
    fn chunks_cut_nothing(sizes in prop::collection::vec(1usize..9, 1..6), how in 0usize..4) {
        let reading = Reading::new();
        let follows = [None, Some(Follow::Requests), Some(reading.releases()), Some(Follow::Loop)];
        let followed = follows[how];
        let (cut, whole) = (reading.in_chunks(&sizes, followed), reading.in_chunks(&[100_000], followed));
        prop_assert_eq!(by_name(&cut), by_name(&whole));
        prop_assert_eq!(cut.worst, whole.worst);
        prop_assert_eq!(cut.cpus, whole.cpus);
        prop_assert_eq!((cut.events, cut.losses), (whole.events, whole.losses));
    }
}
