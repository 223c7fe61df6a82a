//! Whether a load leaves the machine alive.

use model::load::Load;
use model::{Cpus, Error};
use std::collections::BTreeMap;

/// Where the kernel limits real-time threads no further, this load leaves as much as the kernel
/// does by default.
const DEFAULT_SHARE: f64 = 0.95;
/// What computing with utilizations may be off by.
const ROUNDING: f64 = 1e-9;

/// What real-time threads may take of each CPU: `sched_rt_runtime_us` of `sched_rt_period_us`, and
/// no more than 95 %.
pub fn real_time_share(runtime_us: Option<i64>, period_us: Option<i64>) -> f64 {
    match (runtime_us, period_us) {
        (Some(runtime), Some(period)) if runtime >= 0 && period > 0 => {
            (runtime as f64 / period as f64).min(DEFAULT_SHARE)
        }
        _ => DEFAULT_SHARE,
    }
}

/// Refuses a load whose real-time threads take more than this share of a CPU, or that has CPUs
/// which are not there.
pub fn admit(load: &Load, share: f64, online: &Cpus) -> Result<(), Error> {
    let (mut by_cpu, mut sum): (BTreeMap<u32, f64>, f64) = (BTreeMap::new(), 0.0);
    for (thread, takes) in load.threads.iter().zip(load.utilizations()) {
        if let Some(cpus) = &thread.cpus
            && let Some(cpu) = cpus.iter().find(|cpu| !online.contains(*cpu))
        {
            let expected = format!("CPUs of {online}; --cpus plays it on others");
            return Err(Error::invalid(&thread.name, format!("CPU {cpu} is not there"), expected));
        }
        // The kernel itself admits those under SCHED_DEADLINE.
        if !["SCHED_FIFO", "SCHED_RR"].contains(&thread.policy.name.as_str()) {
            continue;
        }
        sum += takes;
        if let Some(cpu) =
            thread.cpus.as_ref().filter(|cpus| cpus.len() == 1).and_then(|one| one.iter().next())
        {
            *by_cpu.entry(cpu).or_default() += takes;
        }
    }
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let refuse = |what: String, takes: f64, most: f64| {
        let what = format!("its real-time threads take {} of {what}", percent(takes));
        let expected = format!("at most {}, what real-time throttling leaves them", percent(most));
        Err(Error::invalid("the load", what, expected))
    };
    if let Some((cpu, takes)) = by_cpu.into_iter().find(|(_, takes)| *takes > share + ROUNDING) {
        return refuse(format!("CPU {cpu}"), takes, share);
    }
    let most = share * online.len() as f64;
    if sum > most + ROUNDING {
        return refuse(format!("{} CPUs", online.len()), sum, most);
    }
    Ok(())
}
