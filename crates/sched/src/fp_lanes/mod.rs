//! Yes or no for fixed priorities, many sets at a time, for schedulability studies. Same verdict as
//! [`crate::is_schedulable`].
//!
//! Sixteen sets go side by side through the vector units: `lanes` has the data and the bounds,
//! `iterate` the windows. The instructions are chosen at run time; the arithmetic, and so the
//! verdict, is the same with any. Sets that do not fit a lane (D > T, times above 2^50 ns, windows
//! of many rounds) are decided one by one.

mod iterate;
mod lanes;

use crate::fp_quick::is_schedulable;
use crate::generate::columns::Columns;
use crate::generate::{GenerateError, Generator};
use crate::task::TaskSet;
use crate::window::Limits;
use iterate::{Fate, decide};
use lanes::Lanes;
use pulp::{Arch, Simd, WithSimd};
use std::ops::Range;

/// Sets side by side.
const LANES: usize = 16;

/// Which instructions to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Path {
    /// The widest that this machine has.
    #[default]
    Widest,
    /// Those that every machine of this architecture has.
    Portable,
}

impl Path {
    fn arch(self) -> Arch {
        match self {
            Self::Widest => Arch::new(),
            Self::Portable => Arch::Scalar,
        }
    }

    /// The instructions in words, as found on this machine.
    pub fn name(self) -> &'static str {
        match self.arch() {
            #[cfg(target_arch = "x86_64")]
            Arch::V4(_) => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(_) => "NEON",
            _ => "baseline",
        }
    }
}

/// One verdict per set. A set that reaches the cap on rounds counts as not schedulable.
pub fn are_schedulable(sets: &[TaskSet], limits: Limits, path: Path) -> Vec<bool> {
    let levels = sets.iter().map(|set| set.tasks().len()).max().unwrap_or(0);
    let mut verdicts = Vec::with_capacity(sets.len());
    path.arch().dispatch(Given { sets, lanes: Lanes::new(levels), limits, verdicts: &mut verdicts });
    verdicts
}

/// The verdicts of sets `range` of a generator, as many as there are jitters at a time:
/// `[jitter][set]`. Each jitter, ns, applies to every task, in place of
/// [`crate::generate::Spec::jitter_ns`]; all use the same sets.
pub fn are_generated_schedulable(
    generator: &Generator,
    range: Range<u64>,
    jitters_ns: &[u64],
    limits: Limits,
    path: Path,
) -> Result<Vec<Vec<bool>>, GenerateError> {
    if generator.in_lanes() && jitters_ns.iter().all(|jitter| *jitter <= lanes::LARGEST) {
        let mut verdicts = vec![Vec::with_capacity((range.end - range.start) as usize); jitters_ns.len()];
        path.arch().dispatch(Drawn { generator, range, jitters_ns, limits, verdicts: &mut verdicts })?;
        return Ok(verdicts);
    }
    let sets = range.map(|set| generator.set(set)).collect::<Result<Vec<_>, _>>()?;
    let at = |jitter: &u64| {
        let own = generator.spec().jitter_ns;
        let add = |(set, drawn): (usize, &TaskSet)| {
            let tasks = drawn.tasks().iter();
            let with = tasks.map(|task| crate::Task { jitter_ns: task.jitter_ns - own + jitter, ..*task });
            TaskSet::new(with.collect()).map_err(|source| GenerateError::Task { set: set as u64, source })
        };
        let sets = sets.iter().enumerate().map(add).collect::<Result<Vec<_>, _>>()?;
        Ok(are_schedulable(&sets, limits, path))
    };
    jitters_ns.iter().map(at).collect()
}

struct Given<'a> {
    sets: &'a [TaskSet],
    lanes: Lanes<LANES>,
    limits: Limits,
    verdicts: &'a mut Vec<bool>,
}

impl WithSimd for Given<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        for sets in self.sets.chunks(LANES) {
            let mut filled = [false; LANES];
            for (l, set) in sets.iter().enumerate() {
                filled[l] = self.lanes.put(l, set);
            }
            let fates = decide::<LANES, false>(&mut self.lanes, &filled);
            let verdict = |(set, fate): (&TaskSet, &Fate)| match fate {
                Fate::Meets => true,
                Fate::Misses => false,
                Fate::Apart => is_schedulable(set, self.limits),
            };
            self.verdicts.extend(sets.iter().zip(&fates).map(verdict));
        }
    }
}

struct Drawn<'a> {
    generator: &'a Generator,
    range: Range<u64>,
    jitters_ns: &'a [u64],
    limits: Limits,
    verdicts: &'a mut [Vec<bool>],
}

impl WithSimd for Drawn<'_> {
    type Output = Result<(), GenerateError>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let tasks = self.generator.spec().tasks;
        let mut columns = Columns::new(tasks);
        let mut lanes = Lanes::<LANES>::new(tasks);
        let mut first = self.range.start;
        while first < self.range.end {
            let width = (self.range.end - first).min(LANES as u64) as usize;
            self.generator.draw_lanes(first, &mut columns);
            lanes.take(&columns);
            let filled = std::array::from_fn(|l| l < width);
            for (jitter_ns, verdicts) in self.jitters_ns.iter().zip(self.verdicts.iter_mut()) {
                lanes.set_jitter(*jitter_ns as f64);
                let fates = decide::<LANES, true>(&mut lanes, &filled);
                for (l, fate) in fates.iter().enumerate().take(width) {
                    verdicts.push(match fate {
                        Fate::Meets => true,
                        Fate::Misses => false,
                        Fate::Apart => alone(self.generator, first + l as u64, *jitter_ns, self.limits)?,
                    });
                }
            }
            first += width as u64;
        }
        Ok(())
    }
}

/// A generated set that does not go into a lane.
fn alone(generator: &Generator, set: u64, jitter_ns: u64, limits: Limits) -> Result<bool, GenerateError> {
    let drawn = generator.set(set)?;
    let tasks = drawn.tasks().iter().map(|task| crate::Task { jitter_ns, ..*task }).collect();
    let set = TaskSet::new(tasks).map_err(|source| GenerateError::Task { set, source })?;
    Ok(is_schedulable(&set, limits))
}
