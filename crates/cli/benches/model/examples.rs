//! Programs that exist: what `stillcore model` finds of each thread. Times of a shared machine mean
//! little; periods, counts and what is refused do.

use super::common::Failed;
use super::recorded;
use result::{Row, Sink};
use serde_json::Value;
use std::path::Path;

/// What each is called, and how it is started; `stillcore` is the program under test.
const EXAMPLES: [(&str, &str); 4] = [
    ("cyclictest", "cyclictest -q -t2 -a0,1 -m -p80 -i2000 -d500 -D 5"),
    ("jackd", "jackd -R -P 60 -d dummy -r 48000 -p 256"),
    ("cFS-like", "stillcore graph run cfs-hk -D 5s --cpus 1"),
    ("ROS 2-like", "stillcore graph run small-single -D 5s --cpus 1 --policy fifo --priority 60"),
];
const DURATION: &str = "6s";

pub(super) fn run(stillcore: &str, place: &Path, rows: &mut Sink) -> Result<(), Failed> {
    for (name, command) in EXAMPLES {
        let out = place.join(name.replace(' ', "-"));
        let words = command.split(' ').map(|word| if word == "stillcore" { stillcore } else { word });
        let mut words = words.map(str::to_owned).collect::<Vec<_>>();
        if command.starts_with("stillcore") {
            // Else its own run would stay where the bench was started.
            words.extend(["--out".to_owned(), place.join(format!("{name}-own")).display().to_string()]);
        }
        let model = recorded(stillcore, Some(DURATION), words, &out)?;
        push(name, &model, rows)?;
        std::fs::remove_dir_all(&out)?;
    }
    Ok(())
}

fn push(name: &str, model: &Value, rows: &mut Sink) -> Result<(), Failed> {
    let empty = Vec::new();
    let list = |value: &Value| value.as_array().unwrap_or(&empty).clone();
    let urgent: Vec<Value> = list(&model["threads"])
        .into_iter()
        .filter(|one| one["of_program"] == true && one["prio"].as_i64().is_some_and(|prio| prio < 100))
        .collect();
    let modelled = urgent.iter().filter(|one| one["why"].is_null());
    let row = Row::new(format!("{name}: threads with a model"), modelled.clone().count() as f64, "");
    rows.push(row.n(urgent.len() as u64))?;
    for thread in modelled {
        let release = &thread["release"];
        let (Some(kind), Some(comm), Some(prio), Some(period_ns), Some(n)) = (
            release["kind"].as_str(),
            thread["comm"].as_str(),
            thread["prio"].as_i64(),
            release["period_ns"].as_f64(),
            release["n"].as_u64(),
        ) else {
            return Err(Failed(format!("{name}: a thread without its model: {thread}")));
        };
        let what = format!("{name}: {comm}, priority {}, {kind}: every", 99 - prio);
        rows.push(Row::new(what, period_ns / 1e6, "ms").n(n))?;
    }
    let links = list(&model["chains"]).len();
    rows.push(Row::new(format!("{name}: links from thread to thread"), links as f64, ""))?;
    let checked = &model["checked"];
    let jobs: u64 = list(&checked["threads"]).iter().filter_map(|one| one["jobs"].as_u64()).sum();
    // Where no thread has a bound, nothing was compared.
    if let Some(refuted) = checked["refuted"].as_u64().filter(|_| jobs > 0) {
        rows.push(Row::new(format!("{name}: jobs beyond their bound"), refuted as f64, "").n(jobs))?;
    }
    Ok(())
}
