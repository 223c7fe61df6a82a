//! Releases under a hog: a thread of higher priority takes the CPU for forty periods, again and
//! again. Served and missed releases must add up to those requested; cyclictest moves on to the
//! next release in the future without a count (`timerthread()` of cyclictest.c).

use super::common::process::{rt_tests, stillcore};
use super::common::{Failed, histogram, median, quantile};
use super::{PRIORITY, Plan};
use model::sample::Policy;
use model::{Cpus, Sample};
use result::{Limit, Of, Row, Sink};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::clock::{SECOND_NS, now_ns, sleep_until};
use sys::sched;

const HOG_NS: i64 = 40_000_000;
/// How many there are: one a second, from the first on.
const HOGS: usize = 5;
const SECONDS: u64 = 6;
const PERIOD_NS: i64 = 1_000_000;
const RELEASES: u64 = SECONDS * 1000;

pub(super) fn section(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    rows.note(format!(
        "hog: CPU {}, SCHED_FIFO {PRIORITY}, period 1 ms, {SECONDS} s; a thread of priority {} takes the CPU for {} ms once a second",
        plan.cpu,
        PRIORITY + 10,
        HOG_NS / 1_000_000
    ))?;
    ours(plan, rows)?;
    cyclictest(plan, rows)
}

fn ours(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let arguments = format!(
        "measure wakeup --cpus {} --priority {PRIORITY} --period 1ms --duration {SECONDS}s",
        plan.cpu
    );
    let (answer, hogs) = beside_a_hog(plan.cpu, || stillcore(place.path(), &arguments))?;
    let thread = &answer["threads"][0];
    let number = |name: &str| thread["record"][name].as_u64().unwrap_or(0);
    let (released, served) = (number("released"), number("samples"));
    let (missed, lost) = (number("missed"), number("ring_lost"));
    if served + missed + lost != released {
        return Err(Failed(format!("the accounts do not balance: {}", thread["record"])));
    }
    let count = |what: &str, value: u64| Row::new(format!("hog: {what}"), value as f64, "");
    rows.push(count("releases", released))?;
    rows.push(count("samples", served))?;
    rows.push(count("releases counted as missed", missed))?;
    rows.push(count("samples lost", lost).budget(Of::Value, Limit::AtMost(0.0)))?;
    let file = place.path().join("run").join(thread["record"]["file"].as_str().unwrap_or_default());
    let (_, samples) = model::samples_file::read(&file).map_err(Failed::because)?;
    // Neighbours of this machine take CPUs, too: releases that passed while a hog ran are
    // attributed to the hog.
    let within: Vec<f64> = hogs.iter().map(|hog| swallowed(&samples, *hog) as f64).collect();
    let [least, most] =
        [f64::min, f64::max].map(|pick| within.iter().copied().reduce(pick).unwrap_or(f64::NAN));
    let row = Row::new("hog: releases missed in each hog", median(within.clone()), "");
    rows.push(row.n(within.len() as u64).between(least, most).why("the interval is least to most"))?;
    let at = |list: &str| {
        let listed = thread["figures"][list].as_array().into_iter().flatten();
        listed.filter(|one| one["p"].as_f64() == Some(0.99)).find_map(|one| one["value_ns"].as_i64())
    };
    for (what, list) in [("served", "quantiles"), ("all", "corrected_quantiles")] {
        let value = at(list).map_or(f64::NAN, |ns| ns as f64 / 1e6);
        rows.push(Row::new(format!("hog: p99 of {what} releases"), value, "ms"))?;
    }
    Ok(())
}

/// Releases that passed unserved from the beginning to the end of a hog.
fn swallowed(samples: &[Sample], [from_ns, to_ns]: [i64; 2]) -> usize {
    let releases =
        samples.iter().flat_map(|sample| (1..=i64::from(sample.missed)).map(|k| sample.t_ns - k * PERIOD_NS));
    releases.filter(|t_ns| (from_ns..=to_ns).contains(t_ns)).count()
}

fn cyclictest(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    let options =
        format!("-m -q -p{PRIORITY} -t1 -a{} -i1000 -D{SECONDS} -h100000 --mainaffinity=0", plan.cpu);
    let (ran, hogs) = beside_a_hog(plan.cpu, || rt_tests("cyclictest", &options))?;
    let (bins, overflow) = histogram(&ran.text)?;
    let n = bins.iter().map(|bin| bin.1).sum::<u64>() + overflow;
    let late: u64 = bins.iter().filter(|(us, _)| *us >= 5_000).map(|bin| bin.1).sum::<u64>() + overflow;
    let p99_us = quantile(&bins, overflow, 0.99).unwrap_or(0);
    let count = |what: &str, value: u64| Row::new(format!("hog: cyclictest, {what}"), value as f64, "");
    rows.push(count("samples", n).n(RELEASES))?;
    rows.push(count("releases without a sample or a count", RELEASES.saturating_sub(n)))?;
    rows.push(count("samples of 5 ms and more", late).n(hogs.len() as u64))?;
    rows.push(Row::new("hog: cyclictest, p99", p99_us as f64 / 1e3, "ms"))?;
    Ok(())
}

/// Does `work` while another thread takes the CPU once a second; with when it did, CLOCK_MONOTONIC
/// ns.
fn beside_a_hog<T>(cpu: u32, work: impl FnOnce() -> Result<T, Failed>) -> Result<(T, Vec<[i64; 2]>), Failed> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hog = scope.spawn(|| hog(cpu, &over));
        let result = work();
        over.store(true, Ordering::Relaxed);
        let hogs = hog.join().map_err(|_| Failed::because("the hog died"))??;
        Ok((result?, hogs))
    })
}

/// Begins when the other has had time to start, and hogs as often as fits into its window.
fn hog(cpu: u32, over: &AtomicBool) -> Result<Vec<[i64; 2]>, Failed> {
    sched::pin(&Cpus::one(cpu)).map_err(Failed::because)?;
    sys::policy::set_policy(&Policy::fifo(PRIORITY + 10)).map_err(Failed::because)?;
    let mut hogs = Vec::new();
    sleep_until(now_ns() + SECOND_NS);
    while hogs.len() < HOGS && !over.load(Ordering::Relaxed) {
        let begin_ns = now_ns();
        while now_ns() < begin_ns + HOG_NS {}
        hogs.push([begin_ns, begin_ns + HOG_NS]);
        sleep_until(begin_ns + SECOND_NS);
    }
    Ok(hogs)
}
