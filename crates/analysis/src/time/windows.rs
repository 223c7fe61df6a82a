//! A window in parts of equal length: median, 99th percentile and maximum of each. What changes and
//! drifts are looked for in.

use super::shape::{Change, PartStatistics, Windows};
use stats::nearest_rank;
use stats::runs::median;
use stats::time::change::splits;

/// Length of a part where that gives parts and samples enough, ns.
const LENGTH_NS: i64 = 1_000_000_000;
/// Parts at the most: permutations cost their square.
const MOST: i64 = 400;
/// Parts at the least.
const LEAST: i64 = 20;
/// Samples of a part on average, at least.
const SAMPLES: i64 = 20;
type Figure = fn(&PartStatistics) -> i64;
/// The statistics: name, seed of its permutations, value.
const FIGURES: [(&str, u64, Figure); 3] = [
    ("median", 2, |part| part.median_ns),
    ("p99", 3, |part| part.p99_ns),
    ("observed maximum", 4, |part| part.max_ns),
];

/// The parts; none where there is not enough for twenty. Samples are (start, value), by time.
pub(crate) fn windows(samples: &[(i64, i64)], [t0_ns, t1_ns]: [i64; 2]) -> Option<Windows> {
    let span = t1_ns.saturating_sub(t0_ns);
    let bearable = (samples.len() as i64 / SAMPLES).min(MOST);
    let wanted = (span / LENGTH_NS).max(2 * LEAST);
    let parts = wanted.min(bearable);
    if parts < LEAST || span < parts {
        return None;
    }
    let length_ns = span / parts;
    let part = |t_ns: i64| (t_ns.saturating_sub(t0_ns).max(0) / length_ns).min(parts - 1);
    let rows = samples.chunk_by(|a, b| part(a.0) == part(b.0)).map(|inside| {
        let mut values: Vec<i64> = inside.iter().map(|one| one.1).collect();
        values.sort_unstable();
        let at = |parts: u64| values[nearest_rank(values.len(), parts).max(1) - 1];
        PartStatistics {
            t_ns: t0_ns + part(inside[0].0) * length_ns,
            samples: values.len() as i64,
            median_ns: at(50_000),
            p99_ns: at(99_000),
            max_ns: at(100_000),
        }
    });
    Some(Windows { length_ns, rows: rows.collect() })
}

/// Where the statistics of the parts change for good.
pub(crate) fn changes(windows: &Windows, seed: u64) -> Vec<Change> {
    let mut found = Vec::new();
    for (name, own_seed, figure) in FIGURES {
        let values: Vec<f64> = windows.rows.iter().map(|part| figure(part) as f64).collect();
        let splits = splits(&values, seed ^ own_seed);
        let edges: Vec<usize> =
            std::iter::once(0).chain(splits.iter().map(|split| split.at)).chain([values.len()]).collect();
        let level = |edge: &[usize]| median(&mut values[edge[0]..edge[1]].to_vec()).unwrap_or(0.0) as i64;
        let levels: Vec<i64> = edges.windows(2).map(level).collect();
        found.extend(splits.iter().zip(levels.windows(2)).map(|(split, levels)| Change {
            figure: name.to_owned(),
            t_ns: windows.rows[split.at].t_ns,
            before_ns: levels[0],
            after_ns: levels[1],
            p_value: split.p_value,
            block: split.block,
        }));
    }
    found.sort_by_key(|change| change.t_ns);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::noise::normal;
    use stats::resample::generator;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_step_of_the_medians_is_reported_with_both_levels() {
        let mut random = generator(1, 0);
        let samples: Vec<(i64, i64)> = (0..60_000)
            .map(|k| (k * MS, if k < 40_000 { 5_000 } else { 5_600 } + (300.0 * normal(&mut random)) as i64))
            .collect();
        let windows = windows(&samples, [0, 60_000 * MS]).unwrap();
        assert_eq!((windows.rows.len(), windows.length_ns), (60, 1_000 * MS));
        assert_eq!(windows.rows.iter().map(|row| row.samples).sum::<i64>(), 60_000);
        let changes = changes(&windows, 1);
        let first = changes.iter().find(|change| change.figure == "median").unwrap();
        assert_eq!(first.t_ns, 40_000 * MS);
        assert!((first.before_ns - 5_000).abs() < 20 && (first.after_ns - 5_600).abs() < 20, "{first:?}");
    }

    #[test]
    fn too_few_samples_have_no_parts() {
        let samples: Vec<(i64, i64)> = (0..300).map(|k| (k * MS, 1)).collect();
        assert_eq!(windows(&samples, [0, 300 * MS]), None);
        assert_eq!(windows(&[], [0, 0]), None);
        assert_eq!(windows(&samples, [5, 5]), None);
    }
}
