//! Schedulability curves: the share of random sets that a test accepts, over utilization or cores,
//! and what such a sample can support.
//!
//! All curves of a study are evaluated on the same sets (common random numbers), so that they are
//! compared set by set.
//!
//! | file | idea |
//! |---|---|
//! | `proportion` | one share: interval, difference of unrelated samples, sample size |
//! | `paired` | two curves on the same sets |
//! | `ratio` | the same as a ratio of shares |
//! | `area` | a whole curve as one number |
//! | `declared` | a study as its author writes it |
//! | `conclude` | from the verdicts on every set to what is said of a study |

mod area;
pub mod conclude;
pub mod declared;
mod paired;
mod proportion;
mod ratio;
#[cfg(test)]
mod testing;

use crate::analyze::{Refusal, Test, analyze};
use crate::fp_lanes::{Path, are_generated_schedulable};
use crate::generate::{GenerateError, Generator, MAX_RESOURCES};
use crate::locks::{Locks, analyze_with_locks};
use crate::overheads::{Overheads, analyze_with_locks_and_overheads, analyze_with_overheads};
use crate::partition::{Heuristic, partition};
use crate::system::{Access, System, SystemTask};
use crate::task::Task;
use crate::window::Limits;
use std::ops::Range;
use thiserror::Error;

pub use area::{Area, area, area_gain};
pub use paired::{Paired, paired};
pub use proportion::{Proportion, Unrelated, sets_to_distinguish, unrelated, wilson};
pub use ratio::{Ratio, ratio};

/// The normal quantile of 95 % intervals.
pub const Z95: f64 = 1.959_963_984_540_054;

/// What is asked of every set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curve {
    /// The test.
    pub test: Test,
    /// How tasks get a core; none where they have one already, or the test is global.
    pub partition: Option<Heuristic>,
    /// How requests for resources are served; none where there are none.
    pub locks: Option<Locks>,
    /// Release jitter of every task, ns.
    pub jitter_ns: u64,
    /// Whether a delay of a release delays a critical section as much: each is longer by the
    /// jitter, and so is its task for each request.
    pub longer_sections: bool,
    /// Whose resources are made separate; none: all are shared as drawn.
    pub own_locks: Option<OwnLocks>,
    /// What the kernel costs; none: not counted.
    pub overheads: Option<Overheads>,
}

/// Which tasks have every resource they request for themselves: another reading of how requests
/// were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnLocks {
    /// Every task.
    All,
    /// Every task that only reads; writers share.
    Readers,
}

impl Curve {
    /// A test alone.
    pub const fn of(test: Test) -> Self {
        Self {
            test,
            partition: None,
            locks: None,
            jitter_ns: 0,
            longer_sections: false,
            own_locks: None,
            overheads: None,
        }
    }
}

/// Why a curve has no answer.
#[derive(Debug, Error)]
pub enum CurveError {
    /// A set cannot be drawn.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The test does not answer.
    #[error("set {set}: {source}")]
    Refused {
        /// The set.
        set: u64,
        /// Why.
        source: Refusal,
    },
}

/// The verdicts of every curve on the sets `range`: `[curve][set]`. A pure function of its
/// arguments: the unit in which studies are split.
pub fn verdicts(
    generator: &Generator,
    curves: &[Curve],
    range: Range<u64>,
) -> Result<Vec<Vec<bool>>, CurveError> {
    let limits = Limits::default();
    let one_core = generator.spec().cores == 1 && generator.spec().sharing.is_none();
    // What goes through the vector units together, and the rest.
    let quick = |curve: &Curve| {
        one_core && curve.test == Test::FpRta && curve.locks.is_none() && curve.overheads.is_none()
    };
    let jitters: Vec<u64> = curves.iter().filter(|curve| quick(curve)).map(|curve| curve.jitter_ns).collect();
    let mut quickly =
        are_generated_schedulable(generator, range.clone(), &jitters, limits, Path::Widest)?.into_iter();
    let slow = curves.iter().any(|curve| !quick(curve));
    let systems = if slow { range.clone() } else { 0..0 };
    let systems = systems.map(|set| generator.system(set)).collect::<Result<Vec<_>, _>>()?;
    let by_one = |curve: &Curve| {
        let ask = |(set, system): (u64, &System)| {
            ask(system, curve, limits).map_err(|source| CurveError::Refused { set, source })
        };
        range.clone().zip(&systems).map(ask).collect::<Result<Vec<bool>, _>>()
    };
    curves
        .iter()
        .map(|curve| if quick(curve) { Ok(quickly.next().unwrap_or_default()) } else { by_one(curve) })
        .collect()
}

fn ask(system: &System, curve: &Curve, limits: Limits) -> Result<bool, Refusal> {
    let mut system = system.clone();
    if let Some(whose) = curve.own_locks {
        take_apart(&mut system.tasks, whose);
    }
    for task in &mut system.tasks {
        task.task.jitter_ns = curve.jitter_ns;
        if curve.longer_sections {
            for request in &mut task.requests {
                request.length_ns = request.length_ns.saturating_add(curve.jitter_ns);
                let longer = curve.jitter_ns.saturating_mul(request.count);
                task.task.cost_ns = task.task.cost_ns.saturating_add(longer).min(crate::MAX_NS);
            }
        }
    }
    if let Some(heuristic) = curve.partition {
        let tasks: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
        let Some(placed) = partition(&tasks, system.cores, heuristic) else { return Ok(false) };
        for (task, core) in system.tasks.iter_mut().zip(placed) {
            task.core = core;
        }
    }
    let verdict = match (curve.locks, &curve.overheads) {
        (None, None) => analyze(&system, curve.test, limits)?,
        (None, Some(overheads)) => analyze_with_overheads(&system, curve.test, overheads, limits)?,
        (Some(locks), None) => analyze_with_locks(&system, curve.test, locks, limits)?,
        (Some(locks), Some(overheads)) => {
            analyze_with_locks_and_overheads(&system, curve.test, locks, overheads, limits)?
        }
    };
    Ok(verdict.schedulable)
}

/// Renumbers the requests of these tasks so that each has a resource of its own. A task requests a
/// drawn resource once.
fn take_apart(tasks: &mut [SystemTask], whose: OwnLocks) {
    let requests = tasks.iter_mut().flat_map(|task| &mut task.requests);
    let own = requests.filter(|request| whose == OwnLocks::All || request.access == Access::Read);
    for (number, request) in own.enumerate() {
        request.resource = MAX_RESOURCES + number as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Sharing, Spec};

    #[test]
    fn parts_are_the_whole_and_more_jitter_loses_sets() {
        let generator = Generator::new(Spec { utilization: 0.82, ..Spec::default() }, 3).unwrap();
        let curve = |test, jitter_ns| Curve { jitter_ns, ..Curve::of(test) };
        let curves = [curve(Test::FpRta, 0), curve(Test::EdfQpa, 104_000), curve(Test::FpRta, 4_000_000)];
        let whole = verdicts(&generator, &curves, 0..300).unwrap();
        let (left, right) =
            (verdicts(&generator, &curves, 0..97).unwrap(), verdicts(&generator, &curves, 97..300).unwrap());
        for curve in 0..3 {
            assert_eq!(whole[curve], [left[curve].clone(), right[curve].clone()].concat());
        }
        let count = |curve: usize| whole[curve].iter().filter(|one| **one).count();
        assert!(
            count(1) > count(0) && count(0) > count(2) && count(2) > 0,
            "{} {} {}",
            count(1),
            count(0),
            count(2)
        );
        assert!(whole[0].iter().zip(&whole[2]).all(|(early, late)| *early || !*late));
    }

    #[test]
    fn partitioned_cores() {
        let spec = Spec {
            tasks: 12,
            utilization: 3.0,
            cores: 4,
            utilizations: crate::generate::Utilizations::RandFixedSum,
            ..Spec::default()
        };
        let generator = Generator::new(spec, 3).unwrap();
        let curve = |name| Curve { partition: Heuristic::by_name(name), ..Curve::of(Test::FpRta) };
        let found = verdicts(&generator, &[curve("wfd"), curve("ffd"), curve("none")], 0..200).unwrap();
        let count = |curve: usize| found[curve].iter().filter(|one| **one).count();
        // First fit fills cores, worst fit spreads; all on one core is an overload.
        assert!(count(0) > count(1), "{} {}", count(0), count(1));
        assert_eq!(count(2), 0);
    }

    #[test]
    fn readers_alone_are_taken_apart() {
        let sharing =
            Sharing { resources: 2, probability: 1.0, requests: 1, length_ns: [1_000; 2], readers: 0.5 };
        let spec = Spec { tasks: 30, sharing: Some(sharing), ..Spec::default() };
        let mut system = Generator::new(spec, 1).unwrap().system(0).unwrap();
        take_apart(&mut system.tasks, OwnLocks::Readers);
        let of = |access| {
            let requests = system.tasks.iter().flat_map(|task| &task.requests);
            let mut resources: Vec<u32> =
                requests.filter(|one| one.access == access).map(|one| one.resource).collect();
            let all = resources.len();
            resources.sort_unstable();
            resources.dedup();
            (all, resources.len())
        };
        let (reads, own) = of(Access::Read);
        assert_eq!((reads, of(Access::Write)), (own, (60 - reads, 2)));
        assert!((10..50).contains(&reads), "{reads}");
    }

    #[test]
    fn longer_sections_lose_sets_and_win_none() {
        let sharing =
            Sharing { resources: 1, probability: 1.0, requests: 1, length_ns: [100_000; 2], readers: 0.5 };
        let spec = Spec {
            tasks: 10,
            utilization: 0.6,
            cores: 4,
            per_core: true,
            sharing: Some(sharing),
            ..Spec::default()
        };
        let generator = Generator::new(spec, 3).unwrap();
        let locks = Some(crate::locks::Protocol::FifoNp.into());
        let curve =
            |longer_sections| Curve { locks, jitter_ns: 104_000, longer_sections, ..Curve::of(Test::FpRta) };
        let found = verdicts(&generator, &[curve(false), curve(true)], 0..40).unwrap();
        assert!(found[0].iter().zip(&found[1]).all(|(plain, longer)| *plain || !*longer));
        let count = |curve: usize| found[curve].iter().filter(|one| **one).count();
        assert!(count(0) > count(1), "{} {}", count(0), count(1));
        let without = verdicts(&generator, &[Curve::of(Test::FpRta)], 0..1).unwrap_err().to_string();
        assert!(without.starts_with("set 0: fp-rta knows nothing of requests"), "{without}");
    }
}
