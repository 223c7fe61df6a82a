//! Every sample on disk: a thread a CPU, up to four, at 10 kHz for a minute. Released, served,
//! missed and lost add up to the unit, and the files hold what was served.

use super::Plan;
use super::common::Failed;
use super::common::process::stillcore;
use result::{Limit, Of, Row, Sink};

const THREADS: u32 = 4;
/// Below the kernel's own real-time threads, because no CPU is left for anything else.
const PRIORITY: u32 = 49;

pub(super) fn section(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    let online = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let cpus = format!("0-{}", online.min(THREADS) - 1);
    rows.note(format!(
        "load: {THREADS} threads on CPUs {cpus}, SCHED_FIFO {PRIORITY}, period 100 us, {} s",
        plan.long
    ))?;
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let arguments = format!(
        "measure wakeup --cpus {cpus} --threads {THREADS} --priority {PRIORITY} --period 100us --duration {}s",
        plan.long
    );
    let answer = stillcore(place.path(), &arguments)?;
    let mut sums = Sums::default();
    for (thread, one) in answer["threads"].as_array().into_iter().flatten().enumerate() {
        let record = &one["record"];
        let number = |name: &str| record[name].as_u64().unwrap_or(0);
        let file = place.path().join("run").join(record["file"].as_str().unwrap_or_default());
        let (_, samples) = model::samples_file::read(&file).map_err(Failed::because)?;
        let (released, served) = (number("released"), number("samples"));
        let (missed, lost) = (number("missed"), number("ring_lost"));
        eprintln!("thread {thread}: {record}");
        if served + missed + lost != released || samples.len() as u64 != served {
            return Err(Failed(format!("the accounts of thread {thread} do not balance: {record}")));
        }
        sums.released += released;
        sums.served += served;
        sums.missed += missed;
        sums.lost += lost;
        sums.bytes += std::fs::metadata(&file).map_err(Failed::because)?.len();
        sums.largest_rss_kib = sums.largest_rss_kib.max(number("rss_kib"));
    }
    let count = |what: &str, value: u64| Row::new(format!("load: {what}"), value as f64, "");
    rows.push(count("releases", sums.released))?;
    rows.push(count("samples served and on disk", sums.served))?;
    rows.push(count("releases missed", sums.missed))?;
    rows.push(count("samples lost", sums.lost).budget(Of::Value, Limit::AtMost(0.0)))?;
    rows.push(Row::new(
        "load: bytes on disk per sample",
        sums.bytes as f64 / sums.served.max(1) as f64,
        "B",
    ))?;
    rows.push(Row::new(
        "load: memory of a measuring process, the largest",
        sums.largest_rss_kib as f64,
        "KiB",
    ))?;
    let drain = answer["observer"]["drain_rss_kib"].as_f64().unwrap_or(f64::NAN);
    rows.push(Row::new("load: memory of the process that stores", drain, "KiB"))?;
    Ok(())
}

/// Over all threads.
#[derive(Default)]
struct Sums {
    released: u64,
    served: u64,
    missed: u64,
    lost: u64,
    bytes: u64,
    largest_rss_kib: u64,
}
