//! A recorded trace as if it came now: the same result however it is cut into chunks.

use super::view::LiveView;
use super::*;
use crate::spans::MeasuredCpu;
use ftrace::{Item, PageLayout, TraceFile};
use model::events::EventCatalogue;
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
}

impl Reading {
    fn new() -> Self {
        let run = model::run::stored::read_run(trace().parent().unwrap()).unwrap();
        let probe = run.probes.iter().find(|probe| probe.file.contains("wakeup")).unwrap();
        let (tid, cpu) = (probe.tid, probe.cpu);
        Self {
            file: TraceFile::open(&trace()).unwrap(),
            measured: run.measured_cpus.iter().collect(),
            tid,
            cpu,
        }
    }

    fn decoder(&self) -> Decoder {
        Decoder::of(&self.file, &EventCatalogue::embedded().unwrap()).unwrap()
    }

    fn live(&self, followed: bool) -> Live {
        let followed = [Followed { cpu: self.cpu, tid: self.tid }][..usize::from(followed)].to_vec();
        Live::new(self.decoder(), self.file.formats().clone(), &self.measured, &followed, 0)
    }

    /// In chunks of so many pages of each CPU; each is known up to the earliest time that the next
    /// chunk may bring, as of a reader that takes one CPU after the other.
    fn in_chunks(&self, sizes: &[usize], followed: bool) -> LiveView {
        let layout = *self.file.formats().page();
        let mut live = self.live(followed);
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
    let view = reading.in_chunks(&[3], false);
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
    let view = Reading::new().in_chunks(&[2], true);
    let followed = view.cpus.iter().find_map(|cpu| cpu.latency.as_ref()).unwrap();
    assert!(followed.n > 10 && followed.p999_ns <= followed.max_ns, "{followed:?}");
    assert!(!view.worst.is_empty() && view.worst.iter().all(|one| one.is_wakeup));
    for one in &view.worst {
        assert_eq!(one.parts.iter().map(|part| part.ns).sum::<u64>(), one.ns, "{one:?}");
    }
    assert!(view.worst[0].ns <= followed.max_ns && view.self_ns > 0);
}

#[test]
fn going_on_with_a_new_decoder_keeps_the_sums() {
    let reading = Reading::new();
    let mut live = reading.live(false);
    live.pages(pages(&reading.file), i64::MAX - 1).unwrap();
    let before = by_name(&live.second());
    live.renew(reading.decoder(), &[]);
    live.pages(Vec::new(), i64::MAX - 1).unwrap();
    let after = live.second();
    assert_eq!((by_name(&after), after.losses.renewals), (before, 1));
    assert!(!live.is_full());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// However the pages come.
    #[test]
    fn chunks_cut_nothing(sizes in prop::collection::vec(1usize..9, 1..6), followed: bool) {
        let reading = Reading::new();
        let (cut, whole) = (reading.in_chunks(&sizes, followed), reading.in_chunks(&[100_000], followed));
        prop_assert_eq!(by_name(&cut), by_name(&whole));
        prop_assert_eq!(cut.worst, whole.worst);
        prop_assert_eq!(cut.cpus, whole.cpus);
        prop_assert_eq!((cut.events, cut.losses), (whole.events, whole.losses));
    }
}
