//! A made-up run for tests and the demo: two measured CPUs of a four-CPU machine that nobody has isolated.
//!
//! Samples are drawn from a fixed generator and summed up here, so that counts, quantiles and histograms agree with each other as
//! those of a real run do.

use analysis::shape::{
    ClassCount, Comparison, CountNs, CrossCheck, Distribution, Exceedance, LabelCount, LossSection, Overlap,
    Quantile, Stolen, TraceAccount, Verdict, WindowEvents,
};
use analysis::{Analysis, shape};
use model::events::{EventCatalogue, Remedy};
use model::machine::{
    Clocksource, CpuTopology, Kernel, Limits, Machine, MachineState, Snapshot, Topology, Tracing,
};
use model::run::{Losses, ObserverCost, Phase, ProbeRecord, Run, TraceCpu, TraceRecord, Window};
use model::sample::{Policy, ProbeKind};
use model::stressor::{StressorRecord, StressorState, Witness};
use model::{Cpus, EventClass, Finding, FindingState};
use report::Document;
use std::collections::BTreeMap;

const SECOND: i64 = 1_000_000_000;
/// Start of the run on CLOCK_MONOTONIC.
const T0: i64 = 86_400 * SECOND;
/// Length of a window.
const WINDOW: i64 = 10 * SECOND;
const PHASES: [&str; 3] = ["idle-before", "disturbed", "idle-after"];

/// A run with something of everything: interference, settings to change, a missed release.
pub(crate) fn document() -> Document {
    wide(&[2, 3])
}

/// The same for any measured CPUs; the housekeeping CPUs are 0 and 1.
pub(crate) fn wide(cpus: &[u32]) -> Document {
    let analysis = analysis(cpus);
    conclude(run(cpus, &analysis), findings(cpus), analysis)
}

/// A run in which nothing came and nothing is left to set.
pub(crate) fn still() -> Document {
    let base = document();
    let mut analysis = base.analysis;
    for window in &mut analysis.events {
        for class in window.classes.iter_mut().filter(|row| row.class != EventClass::SelfCaused) {
            *class = class_count(class.class, class.observable, 0, 0, 0, window.duration_ns, &[]);
        }
        window.by_event.clear();
    }
    for window in &mut analysis.distributions {
        let phase = PHASES.iter().position(|phase| *phase == window.phase).unwrap_or(0);
        *window = distribution(window.probe, phase, window.cpu, false);
        if let Some(stolen) = &mut window.stolen {
            stolen.unexplained = Some(CountNs::default());
        }
        window.missed = 0;
    }
    analysis.overlaps.clear();
    analysis.comparisons.retain(|comparison| comparison.verdict == Verdict::CannotTell);
    let mut findings = base.findings;
    for finding in findings.iter_mut().filter(|f| f.state != FindingState::NotApplicable) {
        finding.state = FindingState::Ok;
        finding.remedy = None;
    }
    let mut run = base.run;
    run.losses = Losses::default();
    analysis.losses.totals = Losses::default();
    conclude(run, findings, analysis)
}

fn conclude(run: Run, findings: Vec<Finding>, analysis: Analysis) -> Document {
    Document::conclude("run", run, machine(), findings, analysis, &catalogue())
}

/// A small catalogue of remedies, so that tests do not change with the real one.
pub(crate) fn catalogue() -> EventCatalogue {
    let remedy = |ids: &[&str], why: Option<&str>| Remedy {
        remedies: ids.iter().map(ToString::to_string).collect(),
        why_none: why.map(Into::into),
    };
    let classes = [
        (EventClass::IpiResched, remedy(&["isolcpus"], None)),
        (EventClass::IpiCall, remedy(&["nohz_full", "workqueue-cpumask"], None)),
        (EventClass::TimerTick, remedy(&["nohz_full"], None)),
        (EventClass::Irq, remedy(&["irq-affinity"], None)),
        (EventClass::Softirq, remedy(&["rcu_nocbs", "nohz_full"], None)),
        (EventClass::Work, remedy(&["workqueue-cpumask"], None)),
        (EventClass::Switch, remedy(&["isolcpus", "workqueue-cpumask"], None)),
        (
            EventClass::Tlb,
            remedy(&[], Some("a TLB shootdown reaches every CPU that runs a thread of the process")),
        ),
        (
            EventClass::Unexplained,
            remedy(&[], Some("no recorded event explains the time: firmware or the hypervisor")),
        ),
    ];
    EventCatalogue { events: Vec::new(), classes: BTreeMap::from(classes) }
}

/// A linear congruential generator (Knuth's MMIX constants), uniform in [0, 1).
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

/// `(t_ns, value_ns)` of one window: 1 kHz wake-ups, or the gaps of a busy loop; `loaded` brings more and longer ones.
fn samples(probe: ProbeKind, phase: usize, cpu: u32, loaded: bool) -> Vec<(i64, i64)> {
    let mut draw = Draw(u64::from(cpu) * 101 + phase as u64 * 7 + u64::from(probe == ProbeKind::Noise));
    let start = window_start(probe, phase);
    let n = if probe == ProbeKind::Wakeup {
        10_000
    } else if loaded {
        3_900
    } else {
        2_510
    };
    let value = |draw: &mut Draw| {
        let (base, mean) = if probe == ProbeKind::Wakeup { (2_900.0, 600.0) } else { (1_150.0, 420.0) };
        let load = if loaded { 1.6 } else { 1.0 };
        let body = base + draw.exponential(mean * load);
        let spike = draw.uniform() < if loaded { 0.012 } else { 0.000_6 };
        (body + if spike { draw.exponential(if loaded { 14_000.0 } else { 4_000.0 }) } else { 0.0 }) as i64
    };
    (0..n).map(|k| (start + k * (WINDOW / n), value(&mut draw))).collect()
}

fn window_start(probe: ProbeKind, phase: usize) -> i64 {
    T0 + SECOND + (2 * phase as i64 + i64::from(probe == ProbeKind::Noise)) * (WINDOW + SECOND / 4)
}

fn distribution(probe: ProbeKind, phase: usize, cpu: u32, loaded: bool) -> Distribution {
    let samples = samples(probe, phase, cpu, loaded);
    let mut values: Vec<i64> = samples.iter().map(|sample| sample.1).collect();
    values.sort_unstable();
    let n = values.len();
    let quantiles: Vec<Quantile> = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.999_99]
        .iter()
        .map(|&p| {
            let rank = (p * n as f64).ceil() as usize;
            Quantile { p, value_ns: (n - rank >= 10).then(|| values[rank - 1]) }
        })
        .collect();
    let worst = samples.iter().copied().max_by_key(|sample| sample.1);
    let wakeup = probe == ProbeKind::Wakeup;
    let total_ns: i64 = values.iter().sum();
    Distribution {
        phase: PHASES[phase].into(),
        probe,
        cpu,
        policy: fifo(),
        n: n as u64,
        excluded: u64::from(wakeup) * 51,
        missed: u64::from(wakeup && phase == 1 && cpu == 3),
        ring_lost: 0,
        duration_ns: WINDOW as u64,
        early: 0,
        min_ns: values.first().copied(),
        observed_max_ns: worst.map(|sample| sample.1),
        observed_max_at_ns: worst.map(|sample| sample.0),
        corrected_quantiles: if wakeup { quantiles.clone() } else { Vec::new() },
        quantiles,
        corrected_max_ns: worst.filter(|_| wakeup).map(|sample| sample.1),
        exceedances: [10_000, 20_000, 50_000, 100_000].iter().map(|&t| exceedance(&values, t)).collect(),
        stolen: (!wakeup).then(|| Stolen {
            total_ns: total_ns as u64,
            share: total_ns as f64 / WINDOW as f64,
            threshold_ns: 500,
            unexplained: Some(CountNs { count: 4 + phase as u64, ns: 9_000 + 2_000 * phase as u64 }),
        }),
        histogram: histogram(&values),
        timeline: timeline(&samples, window_start(probe, phase)),
    }
}

fn exceedance(values: &[i64], threshold_ns: i64) -> Exceedance {
    let count = values.iter().filter(|&&value| value >= threshold_ns).count();
    let share = |count: f64| count / values.len() as f64;
    let upper = if count == 0 { 3.0 } else { count as f64 + 1.645 * (count as f64 + 1.0).sqrt() + 1.0 };
    Exceedance { threshold_ns, count: count as u64, share: share(count as f64), upper_share: share(upper) }
}

/// Twenty buckets a decade; `values` ascending.
fn histogram(values: &[i64]) -> Vec<[i64; 3]> {
    let edge = |k: i32| 10f64.powf(f64::from(k) / 20.0).round() as i64;
    let buckets = (0..160).map(|k| [edge(k), edge(k + 1)]);
    let counted = buckets.map(|[low, high]| {
        let below = |edge: i64| values.partition_point(|&value| value < edge);
        [low, high, (below(high) - below(low)) as i64]
    });
    counted.filter(|bucket| bucket[2] > 0).collect()
}

fn timeline(samples: &[(i64, i64)], start: i64) -> Vec<[i64; 3]> {
    let slot_ns = WINDOW / 400;
    let slots = (0..400).map(|slot| start + slot * slot_ns);
    slots
        .filter_map(|t| {
            let before = |t: i64| samples.partition_point(|sample| sample.0 < t);
            let inside = &samples[before(t)..before(t + slot_ns)];
            let max = inside.iter().map(|sample| sample.1).max()?;
            Some([t, max, inside.len() as i64])
        })
        .collect()
}

fn class_count(
    class: EventClass,
    observable: bool,
    count: u64,
    mean_ns: u64,
    max_ns: u64,
    duration_ns: u64,
    labels: &[(&str, u64)],
) -> ClassCount {
    let seconds = duration_ns as f64 / 1e9;
    let upper = if count == 0 { 3.0 } else { count as f64 + 1.645 * (count as f64).sqrt() + 1.4 };
    let label = |(label, share): &(&str, u64)| LabelCount {
        label: (*label).into(),
        count: count * share / 100,
        net_ns: count * mean_ns * share / 100,
    };
    ClassCount {
        class,
        observable,
        count,
        net_ns: count * mean_ns,
        max_ns: if count == 0 { 0 } else { max_ns },
        per_s: count as f64 / seconds,
        upper_per_s: upper / seconds,
        labels: if count == 0 { Vec::new() } else { labels.iter().map(label).collect() },
    }
}

fn window_events(probe: ProbeKind, phase: usize, cpu: u32) -> WindowEvents {
    let duration_ns = WINDOW as u64;
    let disturbed = u64::from(phase == 1);
    let row = |class| {
        let absent = matches!(class, EventClass::Throttle | EventClass::Unexplained);
        let (count, mean_ns, max_ns, labels): (u64, u64, u64, &[(&str, u64)]) = match class {
            EventClass::IpiCall => {
                (disturbed * 640, 1_900, 9_800, &[("flush_tlb_func", 70), ("do_sync_core", 30)])
            }
            EventClass::IpiResched => (disturbed * 31, 1_200, 4_100, &[]),
            EventClass::TimerTick => (2_500, 1_650, 14_200, &[("tick_nohz_handler", 100)]),
            EventClass::Softirq => {
                (210 + disturbed * 300, 820, 21_000, &[("TIMER", 60), ("RCU", 30), ("SCHED", 10)])
            }
            EventClass::Work => (disturbed * 12, 3_900, 11_000, &[("vmstat_update", 100)]),
            EventClass::Switch => {
                (disturbed * 14, 8_800, 31_400, &[("kworker/3:1", 80), ("<script>alert(1)</script>", 20)])
            }
            EventClass::Irq => (u64::from(phase == 2), 5_400, 5_400, &[("virtio2-req.0", 100)]),
            EventClass::SelfCaused if probe == ProbeKind::Wakeup => {
                (20_100, 1_100, 8_000, &[("probe timer", 50)])
            }
            EventClass::SelfCaused => (200, 900, 3_000, &[("probe timer", 50)]),
            _ => (0, 0, 0, &[]),
        };
        class_count(class, !absent, count, mean_ns, max_ns, duration_ns, labels)
    };
    let classes: Vec<ClassCount> = EventClass::ALL.iter().map(|&class| row(class)).collect();
    let ticks = 2_500;
    WindowEvents {
        phase: PHASES[phase].into(),
        probe,
        cpu,
        duration_ns,
        classes,
        by_event: BTreeMap::from([
            ("irq_vectors:local_timer_entry".to_owned(), ticks),
            ("irq_vectors:local_timer_exit".to_owned(), ticks),
            ("sched:sched_switch".to_owned(), 14 * disturbed),
        ]),
        cross_checks: vec![CrossCheck { row: "LOC".into(), kernel: ticks + 1, traced: ticks, agrees: true }],
    }
}

fn analysis(cpus: &[u32]) -> Analysis {
    let probes = [ProbeKind::Wakeup, ProbeKind::Noise];
    let windows: Vec<(usize, ProbeKind, u32)> = (0..3)
        .flat_map(|phase| probes.into_iter().map(move |probe| (phase, probe)))
        .flat_map(|(phase, probe)| cpus.iter().map(move |&cpu| (phase, probe, cpu)))
        .collect();
    let account = |&cpu: &u32| {
        let kernel = TraceCpu { cpu, read: 151_204, pages: 1_480, ..TraceCpu::default() };
        TraceAccount { kernel, decoded: 151_204, balanced: true }
    };
    Analysis {
        schema: shape::SCHEMA.into(),
        complete: true,
        losses: LossSection {
            totals: Losses { missed_releases: 1, failed_operations: 12, ..Losses::default() },
            trace: cpus.iter().map(account).collect(),
            reconciled: Some(true),
            statements: vec!["every event the kernel wrote was read and decoded".into()],
        },
        distributions: windows
            .iter()
            .map(|&(phase, probe, cpu)| distribution(probe, phase, cpu, phase == 1))
            .collect(),
        events: windows.iter().map(|&(phase, probe, cpu)| window_events(probe, phase, cpu)).collect(),
        overlaps: overlaps(cpus),
        comparisons: cpus.iter().flat_map(|&cpu| comparisons(cpu)).collect(),
    }
}

fn overlaps(cpus: &[u32]) -> Vec<Overlap> {
    let classes = [
        (EventClass::IpiCall, 212, Some(0.41)),
        (EventClass::TimerTick, 38, Some(0.07)),
        (EventClass::Softirq, 55, Some(0.22)),
    ];
    let row = |cpu: u32, (class, samples, share_of_largest): (EventClass, u64, Option<f64>)| Overlap {
        phase: "disturbed".into(),
        probe: ProbeKind::Wakeup,
        cpu,
        class,
        samples,
        share: samples as f64 / 10_000.0,
        share_of_largest,
    };
    cpus.iter().flat_map(|&cpu| classes.map(|class| row(cpu, class))).collect()
}

fn comparisons(cpu: u32) -> Vec<Comparison> {
    let row = |figure: &str, unit: &str, values: [f64; 3], verdict, sentence: &str| Comparison {
        figure: figure.into(),
        unit: unit.into(),
        cpu,
        idle_before: Some(values[0]),
        disturbed: Some(values[1]),
        idle_after: Some(values[2]),
        versus_before: Some([(values[1] - values[0]) * 0.9, (values[1] - values[0]) * 1.1]),
        versus_after: Some([(values[1] - values[2]) * 0.9, (values[1] - values[2]) * 1.1]),
        verdict,
        sentence: sentence.into(),
    };
    vec![
        row(
            "wakeup p99",
            "ns",
            [6_640.0, 13_900.0, 6_610.0],
            Verdict::Worse,
            "disturbed wakeup p99 was 13.9 us against 6.64 us and 6.61 us idle: told apart",
        ),
        row(
            "wakeup p50",
            "ns",
            [3_310.0, 3_560.0, 3_480.0],
            Verdict::CannotTell,
            "the two idle controls differ by 0.17 us themselves, more than the 0.08 us that disturbing added: this run cannot tell",
        ),
        row(
            "noise share",
            "share",
            [0.000_39, 0.000_72, 0.000_4],
            Verdict::Worse,
            "disturbed noise share was 0.072 % against 0.039 % and 0.040 % idle: told apart",
        ),
        row(
            "noise ipi.call per second",
            "per s",
            [0.0, 64.0, 0.0],
            Verdict::Worse,
            "disturbed ipi.call came 64.0 times a second against 0 and 0 idle: told apart",
        ),
        row(
            "noise timer.tick per second",
            "per s",
            [250.0, 250.0, 250.0],
            Verdict::CannotTell,
            "timer.tick came as often with disturbance as without: this run cannot tell",
        ),
    ]
}

fn fifo() -> Policy {
    Policy { name: "SCHED_FIFO".into(), priority: 95 }
}

fn run(cpus: &[u32], analysis: &Analysis) -> Run {
    let phase = |(index, name): (usize, &&str)| Phase {
        name: (*name).to_owned(),
        t0_ns: window_start(ProbeKind::Wakeup, index) - SECOND / 8,
        t1_ns: window_start(ProbeKind::Noise, index) + WINDOW + SECOND / 16,
        disturbed: index == 1,
    };
    let first = cpus.first().copied().unwrap_or(0);
    let windows = analysis.distributions.iter().filter(|d| d.cpu == first).map(|d| {
        let t0_ns = d.timeline.first().map_or(T0, |slot| slot[0]);
        Window {
            phase: d.phase.clone(),
            probe: d.probe,
            t0_ns,
            t1_ns: t0_ns + WINDOW,
            interrupts: BTreeMap::from([("LOC".to_owned(), cpus.iter().map(|&cpu| (cpu, 2_501)).collect())]),
            softirqs: BTreeMap::new(),
            steal_ns: BTreeMap::new(),
        }
    });
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    Run {
        schema: model::run::SCHEMA.into(),
        tool_version: "0.1.0".into(),
        command: words("stillcore assess --cpus 2-3"),
        started_at: "2026-03-01T09:30:00Z".into(),
        complete: true,
        incomplete_reason: None,
        machine_before: "machine-before.json".into(),
        machine_after: Some("machine-after.json".into()),
        measured_cpus: cpus.iter().copied().collect(),
        housekeeping_cpus: [0, 1].into_iter().collect(),
        plan: Vec::new(),
        phases: PHASES.iter().enumerate().map(phase).collect(),
        windows: windows.collect(),
        probes: analysis.distributions.iter().map(probe).collect(),
        stressors: stressors(),
        trace: Some(TraceRecord {
            file: "trace.dat".into(),
            clock: "mono".into(),
            instance: "stillcore-4711".into(),
            buffer_kib: 8_192,
            events: words("irq_vectors:local_timer_entry irq_vectors:local_timer_exit sched:sched_switch"),
            absent: words("csd:csd_function_entry"),
            cpus: analysis.losses.trace.iter().map(|account| account.kernel).collect(),
        }),
        losses: analysis.losses.totals,
        observer: ObserverCost {
            clock_read_ns: Some(23.7),
            counter_read_ns: Some(9.8),
            trace_event_ns: Some(182.0),
            wakeup_sample_ns: Some(4_120.0),
            noise_turn_ns: Some(11.2),
            drain_rss_kib: Some(14_208),
        },
        seeds: BTreeMap::from([("analysis".to_owned(), 7)]),
        limits: vec!["the machine is a guest (KVM): the host can take CPU time that no event shows".into()],
    }
}

fn probe(window: &Distribution) -> ProbeRecord {
    let wakeup = window.probe == ProbeKind::Wakeup;
    let t0_ns = window.timeline.first().map_or(T0, |slot| slot[0]);
    let k = PHASES.iter().position(|phase| *phase == window.phase).unwrap_or(0);
    ProbeRecord {
        probe: window.probe,
        phase: window.phase.clone(),
        cpu: window.cpu,
        pid: 4_720,
        tid: 4_721,
        file: model::store::samples_name(window.probe.name(), window.cpu, k),
        t0_ns,
        t1_ns: t0_ns + WINDOW,
        counter: if wakeup { "CLOCK_MONOTONIC" } else { "tsc" }.into(),
        policy_asked: fifo(),
        policy_effective: fifo(),
        period_ns: wakeup.then_some(1_000_000),
        threshold_ns: (!wakeup).then_some(500),
        samples: window.n + window.excluded,
        released: if wakeup { window.n + window.excluded + window.missed } else { 0 },
        missed: window.missed,
        ring_lost: 0,
        iterations: if wakeup { 0 } else { 880_000_000 },
        spin_ns: if wakeup { 0 } else { WINDOW as u64 },
        slices: if wakeup { Vec::new() } else { vec![[t0_ns, t0_ns + WINDOW]] },
        faults: [0, 0],
        switches: [10_051, 0],
        cpu_time_ns: 41_000_000,
        rss_kib: 3_412,
        clock_error_ns: (!wakeup).then_some(84),
    }
}

fn stressors() -> Vec<StressorRecord> {
    let t0_ns = window_start(ProbeKind::Wakeup, 1);
    let record = |name: &str, ops_ok, failed: &[(&str, u64)], witness: &str| StressorRecord {
        name: name.into(),
        cpus: [0, 1].into_iter().collect(),
        ops_ok,
        ops_failed: failed.iter().map(|(errno, n)| ((*errno).to_owned(), *n)).collect(),
        t0_ns,
        t1_ns: t0_ns + 2 * WINDOW,
        witness: Witness { name: witness.into(), expected: ops_ok, seen: ops_ok + 19 },
        state: StressorState::Ok,
        reason: None,
        confined_by: vec!["cgroup".into(), "affinity".into()],
    };
    vec![
        record("u_fork", 18_211, &[("EAGAIN", 12)], "/proc/stat processes"),
        record("u_thread", 96_400, &[], "/proc/stat processes"),
        record("u_pi", 4_000, &[], "CPU time, ms"),
    ]
}

fn findings(cpus: &[u32]) -> Vec<Finding> {
    use FindingState::{Boot, Fixable, NotApplicable, Ok, Unknown};
    let finding = |id: &str,
                   title: &str,
                   state,
                   want: &str,
                   have: Option<&str>,
                   reason: &str,
                   removes: &[EventClass],
                   remedy: Option<&str>| {
        Finding {
            id: id.into(),
            title: title.into(),
            cpus: cpus.iter().copied().collect(),
            state,
            want: want.into(),
            have: have.map(Into::into),
            effective: None,
            reason: reason.into(),
            removes: removes.to_vec(),
            remedy: remedy.map(Into::into),
        }
    };
    vec![
        finding(
            "nohz_full",
            "Full dynticks",
            Boot,
            "2-3",
            Some(""),
            "the tick is not stopped on CPUs 2-3",
            &[EventClass::TimerTick],
            Some("nohz_full=2-3"),
        ),
        finding(
            "isolcpus",
            "Isolation from the scheduler",
            Boot,
            "2-3",
            Some(""),
            "no CPU is isolated",
            &[EventClass::Switch, EventClass::Migrate],
            Some("isolcpus=managed_irq,domain,2-3"),
        ),
        finding(
            "workqueue-cpumask",
            "Unbound workqueues",
            Fixable,
            "3",
            Some("f"),
            "unbound work items may run on CPUs 2-3",
            &[EventClass::Work],
            Some("echo 3 > /sys/devices/virtual/workqueue/cpumask"),
        ),
        finding(
            "irq-affinity",
            "IRQ affinity",
            Ok,
            "0-1",
            Some("0-1"),
            "no IRQ may run on CPUs 2-3",
            &[EventClass::Irq],
            None,
        ),
        finding(
            "ksm-run",
            "Kernel same-page merging",
            Fixable,
            "0",
            Some("1"),
            "ksmd may run",
            &[],
            Some("echo 0 > /sys/kernel/mm/ksm/run"),
        ),
        finding(
            "transparent_hugepage",
            "Transparent huge pages",
            NotApplicable,
            "never",
            None,
            "this kernel was built without them",
            &[],
            None,
        ),
        finding(
            "rcu_nocbs",
            "RCU callback offloading",
            Unknown,
            "2-3",
            None,
            "the build options could not be read",
            &[EventClass::Softirq],
            None,
        ),
    ]
}

fn machine() -> Snapshot {
    let cpu = |cpu: u32| CpuTopology {
        cpu,
        siblings: Cpus::one(cpu),
        core: Some(i64::from(cpu)),
        package: Some(0),
        node: Some(0),
        llc: (0..4).collect(),
        max_khz: None,
        governor: None,
    };
    Snapshot {
        schema: model::machine::SCHEMA.into(),
        machine: Machine {
            kernel: Kernel {
                release: "6.1.0-28-rt-amd64".into(),
                version: "#1 SMP PREEMPT_RT Debian 6.1.119-1".into(),
                arch: "x86_64".into(),
                realtime: true,
                preempt: Some("rt".into()),
                config_source: Some("/boot/config-6.1.0-28-rt-amd64".into()),
                config: BTreeMap::from([("CONFIG_NO_HZ_FULL".to_owned(), "y".to_owned())]),
                tainted: Some(0),
            },
            cmdline: "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet \"<b>\"".into(),
            cpu_model: Some("Intel(R) Xeon(R) Processor @ 2.10GHz".into()),
            memory_kib: Some(16_384_000),
            hypervisor: Some("KVM".into()),
            topology: Topology {
                online: (0..4).collect(),
                present: (0..4).collect(),
                isolated: Cpus::default(),
                nohz_full: Cpus::default(),
                smt_active: Some(false),
                cpus: (0..4).map(cpu).collect(),
            },
            clocksource: Clocksource {
                current: Some("tsc".into()),
                available: vec!["tsc".into(), "kvm-clock".into()],
            },
            limits: Limits {
                euid: 0,
                rtprio: Some(0),
                memlock_bytes: None,
                fifo_allowed: Some(true),
                rt_runtime_us: Some(950_000),
                rt_period_us: Some(1_000_000),
                fair_server_runtime_ns: BTreeMap::new(),
            },
            tracing: Tracing {
                tracefs: true,
                mounted_at: None,
                lockdown: None,
                tracers: vec!["function".into(), "nop".into()],
            },
        },
        state: MachineState::default(),
    }
}
