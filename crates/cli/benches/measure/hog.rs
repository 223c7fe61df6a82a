//! Releases under a hog: a thread of higher priority takes the CPU for forty periods, again and again. Served and missed releases must
//! be those asked for; cyclictest moves on to the next release in the future without a count (`timerthread()` of cyclictest.c).

use super::common::process::{rt_tests, stillcore};
use super::common::{Failed, histogram, quantile};
use super::{PRIORITY, Plan};
use linux::sys::clock::{SECOND_NS, now_ns, sleep_until};
use linux::sys::sched;
use model::sample::Policy;
use model::{Cpus, Sample};
use std::sync::atomic::{AtomicBool, Ordering};

const HOG_NS: i64 = 40_000_000;
/// How many there are: one a second, from the first on.
const HOGS: usize = 5;
const SECONDS: u64 = 6;
const PERIOD_NS: i64 = 1_000_000;
const RELEASES: u64 = SECONDS * 1000;

pub(super) fn section(plan: &Plan) -> Result<(), Failed> {
    println!(
        "CPU {}, SCHED_FIFO {PRIORITY}, period 1 ms, {SECONDS} s; a hog of {} ms at priority {} once a second",
        plan.cpu,
        HOG_NS / 1_000_000,
        PRIORITY + 10
    );
    ours(plan)?;
    cyclictest(plan)
}

fn ours(plan: &Plan) -> Result<(), Failed> {
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
    println!("stillcore: served {served} + missed {missed} + lost {lost} = {released} released, to the unit");
    let file = place.path().join("run").join(thread["record"]["file"].as_str().unwrap_or_default());
    let (_, samples) = model::samples_file::read(&file).map_err(Failed::because)?;
    // Neighbours of this machine take CPUs, too: what passed while a hog ran is the hog's.
    let within = hogs.iter().map(|hog| swallowed(&samples, *hog)).collect::<Vec<_>>();
    println!("stillcore: missed in each of {} hogs: {within:?}", hogs.len());
    let at = |list: &str| {
        let listed = thread["figures"][list].as_array().into_iter().flatten();
        listed.filter(|one| one["p"].as_f64() == Some(0.99)).find_map(|one| one["value_ns"].as_i64())
    };
    println!(
        "stillcore: p99 of served releases {:.3} ms, of all releases {:.3} ms",
        at("quantiles").unwrap_or(0) as f64 / 1e6,
        at("corrected_quantiles").unwrap_or(0) as f64 / 1e6
    );
    Ok(())
}

/// Releases that passed unserved from the beginning to the end of a hog.
fn swallowed(samples: &[Sample], [from_ns, to_ns]: [i64; 2]) -> usize {
    let releases =
        samples.iter().flat_map(|sample| (1..=i64::from(sample.missed)).map(|k| sample.t_ns - k * PERIOD_NS));
    releases.filter(|t_ns| (from_ns..=to_ns).contains(t_ns)).count()
}

fn cyclictest(plan: &Plan) -> Result<(), Failed> {
    let options =
        format!("-m -q -p{PRIORITY} -t1 -a{} -i1000 -D{SECONDS} -h100000 --mainaffinity=0", plan.cpu);
    let (ran, hogs) = beside_a_hog(plan.cpu, || rt_tests("cyclictest", &options))?;
    let (bins, overflow) = histogram(&ran.text)?;
    let n = bins.iter().map(|bin| bin.1).sum::<u64>() + overflow;
    let late: u64 = bins.iter().filter(|(us, _)| *us >= 5_000).map(|bin| bin.1).sum::<u64>() + overflow;
    let p99_us = quantile(&bins, overflow, 0.99).unwrap_or(0);
    println!(
        "cyclictest: {n} samples of {RELEASES} releases, {} passed without a count; {} hogs, {late} samples of 5 ms and more; p99 {:.3} ms",
        RELEASES.saturating_sub(n),
        hogs.len(),
        p99_us as f64 / 1e3
    );
    Ok(())
}

/// Does `work` while another thread takes the CPU once a second; with when it did, CLOCK_MONOTONIC ns.
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
    sched::set_policy(&Policy::fifo(PRIORITY + 10)).map_err(Failed::because)?;
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
