//! From verdicts to what is said of them: shares with intervals, areas, and pairs of curves, set by set and beside what was published.

use super::declared::{Declared, Published};
use report::svg::Shares;
use sched::Path;
use sched::curves::{
    Area, Curve, Paired, Proportion, Unrelated, area, area_gain, paired, sets_to_tell_apart, unrelated,
    wilson,
};
use serde::Serialize;

/// The answer of `sched study`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Concluded {
    schema: &'static str,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) seed: u64,
    pub(super) sets: u64,
    /// Instructions that fixed-priority tests of one core used.
    pub(super) vector_path: &'static str,
    pub(super) axis: String,
    pub(super) values: Vec<f64>,
    pub(super) curves: Vec<Told>,
    pub(super) pairs: Vec<Pair>,
    pub(super) published: Option<Published>,
    pub(super) conditions: Vec<String>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Told {
    pub(super) name: String,
    pub(super) test: &'static str,
    pub(super) partition: Option<String>,
    pub(super) locks: Option<String>,
    pub(super) longer_sections: bool,
    pub(super) jitter_ns: u64,
    /// One a point.
    pub(super) points: Vec<Proportion>,
    /// Percent.
    pub(super) published: Option<Vec<f64>>,
    pub(super) area: Area,
}

/// Two curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Pair {
    pub(super) first: String,
    pub(super) second: String,
    /// Second less first.
    pub(super) gain: Area,
    /// One a point.
    pub(super) points: Vec<PairPoint>,
}

/// Two curves at one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PairPoint {
    pub(super) x: f64,
    pub(super) paired: Paired,
    /// Sets a curve for unrelated samples to show the difference found here.
    pub(super) unrelated_sets_needed: Option<u64>,
    /// The published shares, as the unrelated samples that they are: second less first.
    pub(super) published: Option<Unrelated>,
}

/// Draws the conclusions from `verdicts[curve][point][set]`.
pub(super) fn conclude(
    declared: &Declared,
    curves: &[Curve],
    verdicts: &[Vec<Vec<bool>>],
    conditions: Vec<String>,
) -> Concluded {
    let axis = &declared.axis.values;
    let share =
        |point: &Vec<bool>| wilson(point.iter().filter(|one| **one).count() as u64, point.len() as u64);
    let told = declared.curves.iter().zip(curves).zip(verdicts).map(|((curve, asked), points)| Told {
        name: curve.name.clone(),
        test: asked.test.name(),
        partition: curve.partition.clone(),
        locks: curve.locks.clone(),
        longer_sections: curve.longer_sections,
        jitter_ns: asked.jitter_ns,
        points: points.iter().map(share).collect(),
        published: curve.published.clone(),
        area: area(axis, points),
    });
    let told: Vec<Told> = told.collect();
    let pairs = (0..told.len()).flat_map(|first| (first + 1..told.len()).map(move |second| [first, second]));
    let pair = |[first, second]: [usize; 2]| {
        let point = |at: usize| {
            let (one, other) = (&told[first], &told[second]);
            let said = one.published.as_ref().zip(other.published.as_ref()).zip(declared.published.as_ref());
            PairPoint {
                x: axis[at],
                paired: paired(&verdicts[first][at], &verdicts[second][at]),
                unrelated_sets_needed: sets_to_tell_apart(one.points[at].share, other.points[at].share),
                published: said
                    .map(|((one, other), of)| unrelated(other[at] / 100.0, one[at] / 100.0, of.sets)),
            }
        };
        Pair {
            first: told[first].name.clone(),
            second: told[second].name.clone(),
            gain: area_gain(axis, &verdicts[first], &verdicts[second]),
            points: (0..axis.len()).map(point).collect(),
        }
    };
    let pairs = pairs.map(pair).collect();
    Concluded {
        schema: "stillcore.sched-study/1",
        name: declared.name.clone(),
        title: declared.title.clone(),
        seed: declared.seed,
        sets: declared.sets,
        vector_path: Path::Widest.name(),
        axis: declared.axis.of.words().to_owned(),
        values: axis.clone(),
        curves: told,
        pairs,
        published: declared.published.clone(),
        conditions,
    }
}

impl Concluded {
    /// The chart's curves.
    pub(super) fn chart(&self) -> Vec<Shares> {
        let curve = |(style, told): (usize, &Told)| {
            let point = |(x, one): (&f64, &Proportion)| [*x, one.share, one.interval[0], one.interval[1]];
            let said = told.published.iter().flatten();
            Shares {
                label: told.name.clone(),
                style: style % 6,
                points: self.values.iter().zip(&told.points).map(point).collect(),
                published: self.values.iter().zip(said).map(|(x, percent)| [*x, percent / 100.0]).collect(),
            }
        };
        self.curves.iter().enumerate().map(curve).collect()
    }
}
