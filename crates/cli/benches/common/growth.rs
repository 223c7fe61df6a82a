//! What processes of a long run take on: slopes of their memory and descriptors.

use super::Failed;
use result::{Limit, Of, Row, Sink};
use stats::time::trend::trend;
use std::collections::BTreeMap;

/// At the beginning buffers are filled and libraries find their size: not yet looked at.
const WARM_UP: f64 = 0.1;
/// A process that came and went, as those of fork storms do, has no growth of its own.
const THERE: f64 = 0.8;
/// Growth that a machine bears for weeks.
const MEMORY_KIB_PER_HOUR: f64 = 256.0;
const DESCRIPTORS_PER_HOUR: f64 = 0.5;

/// The resources of one process, at (ns of the boot).
#[derive(Default)]
struct Taken {
    part: String,
    memory_kib: Vec<(i64, f64)>,
    descriptors: Vec<(i64, f64)>,
}

/// Rows of how much memory and how many descriptors each process took on, from notes. A line of
/// these: seconds of the boot, process, resident KiB, private KiB, threads, descriptors, its part.
/// Notes behind the last one of the part `until` are left out: its work is over then, and the cost
/// of conclusions is not limited.
pub(crate) fn growth(notes: &str, until: &str, rows: &mut Sink) -> Result<(), Failed> {
    let mut processes: BTreeMap<u32, Taken> = BTreeMap::new();
    let mut times = Vec::new();
    for line in notes.lines() {
        // One that ended meanwhile has fewer words.
        let words: Vec<&str> = line.split(' ').collect();
        let [now, pid, rss, _, _, descriptors, part @ ..] = &words[..] else { continue };
        let (Ok(now), Ok(pid), Ok(rss), Ok(descriptors)) =
            (now.parse::<f64>(), pid.parse(), rss.parse(), descriptors.parse())
        else {
            continue;
        };
        let at = (now * 1e9) as i64;
        if times.last() != Some(&at) {
            times.push(at);
        }
        let taken = processes.entry(pid).or_default();
        taken.part = part.join(" ");
        taken.memory_kib.push((at, rss));
        taken.descriptors.push((at, descriptors));
    }
    let measured = |taken: &&Taken| taken.part == until;
    let last = processes.values().filter(measured).filter_map(|taken| Some(taken.memory_kib.last()?.0)).max();
    let (Some(first), Some(last)) = (times.first(), last) else {
        return Err(Failed(format!("no {until} was noted")));
    };
    let from = first + ((last - first) as f64 * WARM_UP) as i64;
    let inside = from..=last;
    let noted = times.iter().filter(|at| inside.contains(at)).count();
    rows.note(format!("{noted} notes in {:.0} s", (last - from) as f64 / 1e9))?;
    let mut parts: BTreeMap<&str, u32> = BTreeMap::new();
    for taken in processes.values() {
        // Some stressors work in several processes.
        let number = parts.entry(&taken.part).and_modify(|number| *number += 1).or_insert(1);
        let part = if *number > 1 { format!("{} ({number})", taken.part) } else { taken.part.clone() };
        for (what, unit, values, most) in [
            ("memory", "KiB", &taken.memory_kib, MEMORY_KIB_PER_HOUR),
            ("descriptors", "", &taken.descriptors, DESCRIPTORS_PER_HOUR),
        ] {
            let values: Vec<(i64, f64)> =
                values.iter().copied().filter(|(at, _)| inside.contains(at)).collect();
            if (values.len() as f64) < THERE * noted as f64 {
                continue;
            }
            let most_there = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
            let name = format!("{part}: {what}, growth");
            let row = match trend(&values) {
                // That function has ns for values.
                Some(trend) => {
                    let [low, high] = trend.interval_us_per_hour.map(|bound| bound * 1e3);
                    Row::new(name, trend.us_per_hour * 1e3, format!("{unit} per h").trim()).between(low, high)
                }
                None => Row::absent(name, "too few notes"),
            };
            let row = row.n(values.len() as u64).budget(Of::Value, Limit::AtMost(most));
            rows.push(row.why(format!("at most {most_there} {unit}").trim_end()))?;
        }
    }
    Ok(())
}
