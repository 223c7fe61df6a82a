//! A small run directory made by hand: a trace written record by record in the kernel's own page
//! format, samples, `run.json`.
//!
//! Page and record layout: Linux include/linux/ring_buffer.h (`enum ring_buffer_type`); field
//! layouts follow the format files of Linux 6.1 on x86-64, common fields first.

use ftrace::{TraceInput, write_v6};
use model::probe::{NoiseDetail, ProbeDetail, Releases};
use model::run::{Losses, ObserverCost, Phase, ProbeRecord, Run, TraceCpu, TraceRecord, Window};
use model::sample::{Policy, ProbeKind, SampleMeta};
use model::samples_file::SampleWriter;
use model::usage::Stretch;
use model::{Cpus, Sample, store};
use std::collections::BTreeMap;
use std::path::Path;

/// The measured CPU.
pub(crate) const CPU: u32 = 1;
/// Thread of every probe.
pub(crate) const TID: i32 = 4242;
/// A kworker.
pub(crate) const KWORKER: i32 = 33;

/// Addresses of functions in [`KALLSYMS`].
pub(crate) const TICK: u64 = 0xffff_ffff_8100_1000;
/// `hrtimer_wakeup`.
pub(crate) const WAKEUP: u64 = 0xffff_ffff_8100_2000;
/// A workqueue function.
pub(crate) const VMSTAT: u64 = 0xffff_ffff_8100_3000;

const KALLSYMS: &str = "ffffffff81001000 t tick_sched_timer\nffffffff81002000 t hrtimer_wakeup\n\
                        ffffffff81003000 t vmstat_update\nffffffff81009000 T _etext\n";

/// Name, and fields as (C declaration, bytes, signed).
type Layout = (&'static str, &'static [(&'static str, usize, bool)]);

/// The recorded events; the number of an event is 300 + its place.
const EVENTS: &[Layout] = &[
    ("irq_vectors:local_timer_entry", &[("int vector", 4, true)]),
    ("irq_vectors:local_timer_exit", &[("int vector", 4, true)]),
    (
        "timer:hrtimer_expire_entry",
        &[("void * hrtimer", 8, false), ("s64 now", 8, true), ("void *function", 8, false)],
    ),
    ("timer:hrtimer_expire_exit", &[("void * hrtimer", 8, false)]),
    ("irq_vectors:reschedule_entry", &[("int vector", 4, true)]),
    ("irq_vectors:reschedule_exit", &[("int vector", 4, true)]),
    ("irq:softirq_entry", &[("unsigned int vec", 4, false)]),
    ("irq:softirq_exit", &[("unsigned int vec", 4, false)]),
    (
        "sched:sched_switch",
        &[
            ("char prev_comm[16]", 16, false),
            ("pid_t prev_pid", 4, true),
            ("int prev_prio", 4, true),
            ("long prev_state", 8, true),
            ("char next_comm[16]", 16, false),
            ("pid_t next_pid", 4, true),
            ("int next_prio", 4, true),
        ],
    ),
    (
        "sched:sched_waking",
        &[
            ("char comm[16]", 16, false),
            ("pid_t pid", 4, true),
            ("int prio", 4, true),
            ("int target_cpu", 4, true),
        ],
    ),
    ("workqueue:workqueue_execute_start", &[("void * work", 8, false), ("void * function", 8, false)]),
    ("workqueue:workqueue_execute_end", &[("void * work", 8, false), ("void * function", 8, false)]),
    ("tlb:tlb_flush", &[("int reason", 4, true), ("unsigned long pages", 8, false)]),
    ("sched:sched_process_fork", &[("pid_t parent_pid", 4, true)]),
];

/// A value of a field.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// A number or pointer.
    N(u64),
    /// A task name.
    T(&'static str),
}
pub(crate) use Value::{N, T};

/// The text of an event's format file.
fn format(number: usize) -> (String, Vec<u8>) {
    let (name, fields) = EVENTS[number];
    let (system, name) = name.split_once(':').unwrap();
    let mut text = format!("name: {name}\nID: {}\nformat:\n", 300 + number);
    for (declaration, offset, size, signed) in [
        ("unsigned short common_type", 0, 2, 0),
        ("unsigned char common_flags", 2, 1, 0),
        ("unsigned char common_preempt_count", 3, 1, 0),
        ("int common_pid", 4, 4, 1),
    ] {
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    for (place, (declaration, size, signed)) in fields.iter().enumerate() {
        let offset = offset(fields, place);
        text += &format!(
            "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{};\n",
            u8::from(*signed)
        );
    }
    text += "\nprint fmt: \"\"\n";
    (system.to_owned(), text.into_bytes())
}

/// Offset of a field: C's alignment, behind eight bytes of common fields.
fn offset(fields: &[(&str, usize, bool)], place: usize) -> usize {
    let aligned = |at: usize, size: usize| at.next_multiple_of(if size == 16 { 1 } else { size });
    let mut at = 8;
    for (_, size, _) in &fields[..place] {
        at = aligned(at, *size) + size;
    }
    aligned(at, fields[place].1)
}

/// The trace of [`CPU`] under construction.
#[derive(Default)]
pub(crate) struct Trace {
    records: Vec<(u64, Vec<u8>)>,
    now: u64,
}

impl Trace {
    /// Adds an event `later` ns after the last one.
    pub(crate) fn event(&mut self, later: u64, pid: i32, name: &str, values: &[Value]) -> &mut Self {
        self.flagged(later, pid, 0, name, values)
    }

    /// The same with `common_flags`.
    pub(crate) fn flagged(
        &mut self,
        later: u64,
        pid: i32,
        flags: u8,
        name: &str,
        values: &[Value],
    ) -> &mut Self {
        let number = EVENTS.iter().position(|event| event.0 == name).unwrap_or_else(|| panic!("no {name}"));
        let fields = EVENTS[number].1;
        assert_eq!(fields.len(), values.len(), "{name}");
        let end = offset(fields, fields.len() - 1) + fields[fields.len() - 1].1;
        let mut data = vec![0u8; end.next_multiple_of(4)];
        data[..2].copy_from_slice(&(300 + number as u16).to_le_bytes());
        data[2] = flags;
        data[4..8].copy_from_slice(&pid.to_le_bytes());
        for (place, value) in values.iter().enumerate() {
            let (at, size) = (offset(fields, place), fields[place].1);
            match value {
                N(number) => data[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]),
                T(text) => data[at..at + text.len()].copy_from_slice(text.as_bytes()),
            }
        }
        self.now += later;
        self.records.push((self.now, data));
        self
    }

    /// Goes to an absolute time.
    pub(crate) fn at(&mut self, now: u64) -> &mut Self {
        assert!(now >= self.now);
        self.now = now;
        self
    }

    /// A switch between tasks.
    pub(crate) fn switch(&mut self, later: u64, prev: i32, next: i32, comm: &'static str) -> &mut Self {
        let values = [T("x"), N(prev as u64), N(120), N(0), T(comm), N(next as u64), N(120)];
        self.event(later, prev, "sched:sched_switch", &values)
    }

    /// The timer's interrupt, 4 µs, with one expiry inside; `wakes` says whether that wakes the
    /// probe.
    pub(crate) fn timer(&mut self, later: u64, pid: i32, function: u64, wakes: bool) -> &mut Self {
        self.flagged(later, pid, 8, "irq_vectors:local_timer_entry", &[N(236)]);
        self.flagged(1_000, pid, 8, "timer:hrtimer_expire_entry", &[N(function ^ 0xf0f0), N(0), N(function)]);
        if wakes {
            self.flagged(
                500,
                pid,
                8,
                "sched:sched_waking",
                &[T("probe"), N(TID as u64), N(19), N(u64::from(CPU))],
            );
        } else {
            self.now += 500;
        }
        self.flagged(1_500, pid, 8, "timer:hrtimer_expire_exit", &[N(function ^ 0xf0f0)]);
        self.flagged(1_000, pid, 8, "irq_vectors:local_timer_exit", &[N(236)])
    }

    /// How many events there are.
    pub(crate) fn len(&self) -> u64 {
        self.records.len() as u64
    }

    /// The records in sub-buffers of 4 KiB.
    fn pages(&self) -> Vec<u8> {
        let mut pages = Vec::new();
        let mut page: Vec<u8> = Vec::new();
        let mut last = 0;
        let close = |page: &mut Vec<u8>, pages: &mut Vec<u8>| {
            if !page.is_empty() {
                let length = page.len() as u64 - 16;
                page[8..16].copy_from_slice(&length.to_le_bytes());
                page.resize(4096, 0);
                pages.append(page);
            }
        };
        for (time, data) in &self.records {
            if page.len() + data.len() + 12 > 4096 {
                close(&mut page, &mut pages);
            }
            if page.is_empty() {
                page.extend_from_slice(&time.to_le_bytes());
                page.extend_from_slice(&[0; 8]);
                last = *time;
            }
            let mut delta = time - last;
            last = *time;
            if delta >= 1 << 27 {
                // A time_extend record holds the upper bits.
                page.extend_from_slice(&(0x1e_u32 | ((delta & 0x7ff_ffff) as u32) << 5).to_le_bytes());
                page.extend_from_slice(&((delta >> 27) as u32).to_le_bytes());
                delta = 0;
            }
            page.extend_from_slice(&((data.len() / 4) as u32 | (delta as u32) << 5).to_le_bytes());
            page.extend_from_slice(data);
        }
        close(&mut page, &mut pages);
        pages
    }

    /// Writes `trace.dat` into the run.
    pub(crate) fn write(&self, dir: &Path) {
        self.write_with(dir, KALLSYMS);
    }

    /// The same with another symbol table.
    pub(crate) fn write_with(&self, dir: &Path, kallsyms: &str) {
        let raw = dir.join("cpu.raw");
        std::fs::write(&raw, self.pages()).unwrap();
        let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                           \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                           \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                           \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        let input = TraceInput {
            header_page: header_page.into(),
            formats: (0..EVENTS.len()).map(format).collect(),
            kallsyms: kallsyms.into(),
            cmdlines: b"4242 probe\n".to_vec(),
            clock: "mono".into(),
            cpus: vec![(CPU, raw.clone())],
            ..TraceInput::default()
        };
        write_v6(&dir.join(store::TRACE), &input).unwrap();
        std::fs::remove_file(raw).unwrap();
    }
}

/// A run of three phases with a wake-up and a noise window each, all of `length_ns`, on [`CPU`].
pub(crate) fn run(length_ns: i64, trace: Option<u64>) -> Run {
    let phases = ["idle-before", "disturbed", "idle-after"];
    let (mut windows, mut probes) = (Vec::new(), Vec::new());
    for (at, phase) in phases.iter().enumerate() {
        for (half, probe) in [ProbeKind::Wakeup, ProbeKind::Noise].into_iter().enumerate() {
            let t0_ns = window_start(at, half, length_ns);
            windows.push(Window {
                phase: (*phase).into(),
                probe,
                t0_ns,
                t1_ns: t0_ns + length_ns,
                interrupts: BTreeMap::new(),
                softirqs: BTreeMap::new(),
                steal_ns: BTreeMap::new(),
                kernel_log: Vec::new(),
            });
            probes.push(record(phase, probe, at, t0_ns, length_ns));
        }
    }
    let phase = |(at, name): (usize, &&str)| Phase {
        name: (*name).into(),
        t0_ns: window_start(at, 0, length_ns),
        t1_ns: window_start(at, 1, length_ns) + length_ns,
        disturbed: at == 1,
    };
    Run {
        schema: model::run::SCHEMA.into(),
        tool_version: "0.1.0".into(),
        command: vec!["stillcore".into(), "assess".into()],
        started_at: "2026-01-01T00:00:00Z".into(),
        complete: true,
        incomplete_reason: None,
        stopped_at: None,
        machine_before: store::MACHINE_BEFORE.into(),
        machine_after: None,
        measured_cpus: Cpus::one(CPU),
        housekeeping_cpus: Cpus::one(0),
        plan: Vec::new(),
        phases: phases.iter().enumerate().map(phase).collect(),
        windows,
        probes,
        stressors: Vec::new(),
        trace: trace.map(|read| TraceRecord {
            from_ns: None,
            file: store::TRACE.into(),
            clock: "mono".into(),
            instance: "stillcore-1".into(),
            buffer_kib: 1024,
            events: EVENTS.iter().map(|event| event.0.to_owned()).collect(),
            absent: Vec::new(),
            cpus: vec![TraceCpu { cpu: CPU, read, ..TraceCpu::default() }],
            sender: None,
            watched: None,
            snapshots: None,
            groups: Vec::new(),
        }),
        losses: Losses::default(),
        observer: ObserverCost::default(),
        dma_latency_us: None,
        idle_states: BTreeMap::default(),
        frequency_change_ns: model::cpu_states::FrequencyChanges::default(),
        seeds: BTreeMap::from([("analysis".to_owned(), 1)]),
        limits: Vec::new(),
    }
}

/// Start of a window: one second between windows.
pub(crate) fn window_start(phase: usize, half: usize, length_ns: i64) -> i64 {
    1_000_000_000 + (phase * 2 + half) as i64 * (length_ns + 1_000_000_000)
}

fn record(phase: &str, probe: ProbeKind, at: usize, t0_ns: i64, length_ns: i64) -> ProbeRecord {
    let noise = probe == ProbeKind::Noise;
    let detail = if noise {
        ProbeDetail::Noise(NoiseDetail {
            threshold_ns: 1_000,
            spin_ns: length_ns as u64,
            slices: vec![Stretch { t0_ns, t1_ns: t0_ns + length_ns }],
            ..NoiseDetail::default()
        })
    } else {
        ProbeDetail::Wakeup(Releases { period_ns: 1_000_000, ..Releases::default() })
    };
    ProbeRecord {
        detail,
        phase: phase.into(),
        pid: TID,
        tid: TID,
        file: store::samples_name(probe.name(), CPU, at),
        t0_ns,
        t1_ns: t0_ns + length_ns,
        counter: "CLOCK_MONOTONIC".into(),
        timer_slack_ns: 50_000,
        ..ProbeRecord::of(probe, CPU, Policy::fifo(80))
    }
}

/// Writes samples `(t_ns, value_ns)` for a probe and puts their number into its record.
pub(crate) fn write_samples(dir: &Path, record: &mut ProbeRecord, samples: &[(i64, i64)]) {
    let path = dir.join(&record.file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let meta = SampleMeta {
        probe: record.probe(),
        cpu: record.cpu,
        thread: 0,
        phase: record.phase.clone(),
        unit: "ns".into(),
        clock: "CLOCK_MONOTONIC".into(),
        counter: record.counter.clone(),
        policy_asked: record.policy_asked.clone(),
        policy_effective: record.policy_effective.clone(),
        period_ns: record.period_ns(),
        threshold_ns: record.noise().map(|noise| noise.threshold_ns),
    };
    let mut writer = SampleWriter::create(&path).unwrap();
    for (seq, &(t_ns, value_ns)) in samples.iter().enumerate() {
        writer.push(Sample { t_ns, value_ns, seq: seq as u64, missed: 0, flags: 0 }).unwrap();
    }
    writer.finish(&meta).unwrap();
    record.samples = samples.len() as u64;
    if let Some(releases) = record.detail.releases_mut() {
        releases.served.released = samples.len() as u64;
    }
}
