//! Every sample on disk: a thread a CPU, up to four, at 10 kHz for a minute. Released, served, missed and lost add up to the unit, and
//! the files hold what was served.

use super::Plan;
use super::common::Failed;
use super::common::process::stillcore;
use super::common::turns::Budget;

const THREADS: u32 = 4;
/// Below the kernel's own real-time threads, because no CPU is left for anything else.
const PRIORITY: u32 = 49;

pub(super) fn section(plan: &Plan) -> Result<(), Failed> {
    let online = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let cpus = format!("0-{}", online.min(THREADS) - 1);
    println!("{THREADS} threads on CPUs {cpus}, SCHED_FIFO {PRIORITY}, period 100 us, {} s", plan.long);
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let arguments = format!(
        "measure wakeup --cpus {cpus} --threads {THREADS} --priority {PRIORITY} --period 100us --duration {}s",
        plan.long
    );
    let answer = stillcore(place.path(), &arguments)?;
    println!(
        "{:<6} {:>10} {:>10} {:>8} {:>6} {:>10} {:>10} {:>7} {:>9}",
        "thread", "released", "served", "missed", "lost", "on disk", "bytes", "faults", "rss KiB"
    );
    let mut lost_in_all = 0;
    for (thread, one) in answer["threads"].as_array().into_iter().flatten().enumerate() {
        let record = &one["record"];
        let number = |name: &str| record[name].as_u64().unwrap_or(0);
        let file = place.path().join("run").join(record["file"].as_str().unwrap_or_default());
        let (_, samples) = model::samples_file::read(&file).map_err(Failed::because)?;
        let bytes = std::fs::metadata(&file).map_err(Failed::because)?.len();
        let (released, served) = (number("released"), number("samples"));
        let (missed, lost) = (number("missed"), number("ring_lost"));
        let faults: u64 =
            record["faults"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64).sum();
        let rss = number("rss_kib");
        println!(
            "{thread:<6} {released:>10} {served:>10} {missed:>8} {lost:>6} {:>10} {bytes:>10} {faults:>7} {rss:>9}",
            samples.len()
        );
        if served + missed + lost != released || samples.len() as u64 != served {
            return Err(Failed(format!("the accounts of thread {thread} do not balance: {record}")));
        }
        lost_in_all += lost;
    }
    println!(
        "served + missed + lost = released, to the unit; lost in all: {lost_in_all}{}",
        Budget::AtMost(0.0).verdict(lost_in_all as f64)
    );
    println!("memory of the process that stores: {} KiB", answer["observer"]["drain_rss_kib"]);
    Ok(())
}
