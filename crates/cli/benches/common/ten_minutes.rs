//! A stored run of ten minutes on four cores, as long as the budget of the report means it: made up
//! from a counted stream of numbers, around what a real run says of its machine. Shared by the
//! bench that times the report and the test of its size.

use model::probe::{ProbeDetail, Releases, Served};
use model::run::{Losses, Phase, ProbeRecord, Run, Window};
use model::sample::{ProbeKind, Sample, SampleMeta};
use model::samples_file::SampleWriter;
use model::{Cpus, store};
use std::collections::BTreeMap;
use std::path::Path;

/// The measured CPUs.
const CPUS: [u32; 4] = [2, 3, 4, 5];
const LENGTH_NS: i64 = 600_000_000_000;

/// Writes it: a wake-up each `period_ns` on each CPU, with a tail, something that comes back every
/// 4 ms, and a change after six minutes.
pub(crate) fn write(from: &Path, dir: &Path, period_ns: i64) -> Result<(), Box<dyn std::error::Error>> {
    let mut run: Run = model::run::stored::read_run(from)?;
    let record =
        run.probes.iter().find(|one| one.probe() == ProbeKind::Wakeup).ok_or("no wake-ups there")?.clone();
    std::fs::create_dir_all(dir.join(store::SAMPLES))?;
    for name in [store::MACHINE_BEFORE, store::MACHINE_AFTER, store::FINDINGS] {
        std::fs::copy(from.join(name), dir.join(name))?;
    }
    let (t0_ns, name) = (record.t0_ns, "idle-before".to_owned());
    run.measured_cpus = Cpus::from_iter(CPUS);
    run.phases = vec![Phase { name: name.clone(), t0_ns, t1_ns: t0_ns + LENGTH_NS, disturbed: false }];
    run.windows = vec![Window {
        t0_ns,
        t1_ns: t0_ns + LENGTH_NS,
        interrupts: BTreeMap::default(),
        softirqs: BTreeMap::default(),
        ..run.windows[0].clone()
    }];
    (run.trace, run.stressors, run.losses) = (None, Vec::new(), Losses::default());
    run.probes = CPUS.iter().map(|&cpu| probe(dir, &record, cpu, period_ns)).collect::<Result<_, _>>()?;
    store::write_json(&dir.join(store::RUN), &run)?;
    Ok(())
}

fn probe(dir: &Path, like: &ProbeRecord, cpu: u32, period_ns: i64) -> Result<ProbeRecord, model::Error> {
    let file = store::samples_name("wakeup", cpu, 0);
    let mut writer = SampleWriter::create(&dir.join(&file))?;
    let mut state = u64::from(cpu) << 32;
    let count = LENGTH_NS / period_ns;
    for number in 0..count {
        let t_ns = like.t0_ns + number * period_ns;
        let mut below = |limit: u64| ((u128::from(next(&mut state)) * u128::from(limit)) >> 64) as i64;
        let (body, tail) = (below(1_500) + below(1_500), below(1_000_000));
        let rare = if tail < 40 { 1_000 * tail } else { 0 };
        let tick = if number * period_ns % 4_000_000 < period_ns { 2_500 } else { 0 };
        let later = if number > count * 6 / 10 { 700 } else { 0 };
        let value_ns = 2_000 + body + rare + tick + later;
        writer.push(Sample { t_ns, value_ns, seq: number as u64, missed: 0, flags: 0 })?;
    }
    writer.finish(&SampleMeta {
        probe: ProbeKind::Wakeup,
        cpu,
        thread: like.thread,
        phase: like.phase.clone(),
        unit: "ns".to_owned(),
        clock: "CLOCK_MONOTONIC".to_owned(),
        counter: like.counter.clone(),
        policy_asked: like.policy_asked.clone(),
        policy_effective: like.policy_effective.clone(),
        period_ns: u64::try_from(period_ns).ok(),
        threshold_ns: None,
    })?;
    let count = count as u64;
    let served = Served { released: count, missed: 0 };
    let releases = Releases { period_ns: period_ns as u64, served, ..Releases::default() };
    Ok(ProbeRecord {
        detail: ProbeDetail::Wakeup(releases),
        cpu,
        file,
        t1_ns: like.t0_ns + LENGTH_NS,
        samples: count,
        ring_lost: 0,
        ..like.clone()
    })
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
