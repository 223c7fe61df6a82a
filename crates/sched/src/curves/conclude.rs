//! Evaluates verdicts: shares with intervals, areas, and pairs of curves, set by set and beside
//! what was published.

use super::declared::{Claim, Declared, Published};
use super::{
    Area, Curve, Paired, Proportion, Ratio, Unrelated, area, area_gain, paired, ratio, sets_to_distinguish,
    unrelated, wilson,
};
use crate::fp_lanes::Path;
use crate::overheads::Overheads;
use serde::Serialize;

/// The answer of `sched study`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Concluded {
    /// What the answer calls itself.
    schema: &'static str,
    /// The study.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What all sets follow from.
    pub seed: u64,
    /// Sets a point.
    pub sets: u64,
    /// Instructions that fixed-priority tests of one core used.
    pub vector_path: &'static str,
    /// What runs along the chart, in words.
    pub axis: String,
    /// Its points.
    pub values: Vec<f64>,
    /// In the order of the declaration.
    pub curves: Vec<CurveResult>,
    /// Every two of them.
    pub pairs: Vec<Pair>,
    /// Source of the published results.
    pub published: Option<Published>,
    /// Published statements about two curves, beside what is found here.
    pub claims: Vec<Claimed>,
    /// What the reader must know of measured jitters.
    pub conditions: Vec<String>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurveResult {
    /// Its name.
    pub name: String,
    /// The test.
    pub test: &'static str,
    /// How tasks got a core.
    pub partition: Option<String>,
    /// The locking protocol.
    pub locks: Option<String>,
    /// Whether resources of one core are held at their ceiling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ceilings: bool,
    /// Whether critical sections are longer by the jitter.
    pub longer_sections: bool,
    /// Who has each resource for itself.
    pub own_locks: Option<String>,
    /// What the kernel costs.
    pub overheads: Option<Overheads>,
    /// Curves of one group are set beside one another in text.
    pub group: Option<String>,
    /// Release jitter of every task.
    pub jitter_ns: u64,
    /// One a point.
    pub points: Vec<Proportion>,
    /// Percent.
    pub published: Option<Vec<f64>>,
    /// The whole curve as one number.
    pub area: Area,
}

/// A published statement, and the same two curves here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claimed {
    /// The statement.
    #[serde(flatten)]
    pub claim: Claim,
    /// Where on the axis it is compared; none if both accept a set at no point.
    pub x: Option<f64>,
    /// Second over first share there.
    pub found: Option<Ratio>,
    /// Second less first share there.
    pub paired: Option<Paired>,
}

/// Two curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Name of the curve that is subtracted: `gain` is `second` less `first`.
    pub first: String,
    /// The other.
    pub second: String,
    /// Whether they belong to one group.
    pub grouped: bool,
    /// Second less first.
    pub gain: Area,
    /// One a point.
    pub points: Vec<PairPoint>,
}

/// Two curves at one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairPoint {
    /// The point of the axis.
    pub x: f64,
    /// The two, set by set.
    pub paired: Paired,
    /// Sets per curve that unrelated samples would need to show this difference.
    pub unrelated_sets_needed: Option<u64>,
    /// The published shares, which are unrelated samples: second less first.
    pub published: Option<Unrelated>,
}

/// Draws the conclusions from `verdicts[curve][point][set]`.
pub fn conclude(
    declared: &Declared,
    curves: &[Curve],
    verdicts: &[Vec<Vec<bool>>],
    conditions: Vec<String>,
) -> Concluded {
    let axis = &declared.axis.values;
    let share =
        |point: &Vec<bool>| wilson(point.iter().filter(|one| **one).count() as u64, point.len() as u64);
    let results =
        declared.curves.iter().zip(curves).zip(verdicts).map(|((curve, asked), points)| CurveResult {
            name: curve.name.clone(),
            test: asked.test.name(),
            partition: curve.partition.clone(),
            locks: curve.locks.clone(),
            ceilings: curve.ceilings,
            longer_sections: curve.longer_sections,
            own_locks: curve.own_locks.clone(),
            overheads: curve.overheads,
            group: curve.group.clone(),
            jitter_ns: asked.jitter_ns,
            points: points.iter().map(share).collect(),
            published: curve.published.clone(),
            area: area(axis, points),
        });
    let results: Vec<CurveResult> = results.collect();
    let pairs =
        (0..results.len()).flat_map(|first| (first + 1..results.len()).map(move |second| [first, second]));
    let pair = |[first, second]: [usize; 2]| {
        let point = |at: usize| {
            let (one, other) = (&results[first], &results[second]);
            let said = one.published.as_ref().zip(other.published.as_ref()).zip(declared.published.as_ref());
            PairPoint {
                x: axis[at],
                paired: paired(&verdicts[first][at], &verdicts[second][at]),
                unrelated_sets_needed: sets_to_distinguish(one.points[at].share, other.points[at].share),
                published: said
                    .map(|((one, other), of)| unrelated(other[at] / 100.0, one[at] / 100.0, of.sets)),
            }
        };
        Pair {
            first: results[first].name.clone(),
            second: results[second].name.clone(),
            grouped: results[first].group == results[second].group,
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
        curves: results,
        pairs,
        published: declared.published.clone(),
        claims: declared.claims.iter().map(|claim| beside(declared, claim, verdicts)).collect(),
        conditions,
    }
}

/// Sets a claim beside the result: at its point, or where the ratio is largest.
fn beside(declared: &Declared, claim: &Claim, verdicts: &[Vec<Vec<bool>>]) -> Claimed {
    let axis = &declared.axis.values;
    let curve = |name: &str| declared.curves.iter().position(|curve| curve.name == name);
    let Some([first, second]) = curve(&claim.first)
        .zip(curve(&claim.second))
        .map(|(first, second)| [&verdicts[first], &verdicts[second]])
    else {
        return Claimed { claim: claim.clone(), x: None, found: None, paired: None };
    };
    let ratio_at = |at: &usize| ratio(&first[*at], &second[*at]);
    let largest = || {
        let known = (0..axis.len()).filter_map(|at| Some((at, ratio_at(&at)?.ratio)));
        known.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at)
    };
    let at = match claim.at {
        Some(_) => axis.iter().position(|value| Some(*value) == claim.at),
        None => largest(),
    };
    Claimed {
        claim: claim.clone(),
        x: at.map(|at| axis[at]),
        found: at.as_ref().and_then(ratio_at),
        paired: at.map(|at| paired(&first[at], &second[at])),
    }
}
