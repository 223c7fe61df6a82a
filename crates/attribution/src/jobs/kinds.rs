//! The jobs of one thread for every kind of sleep that may separate them.

use super::follow::Activation;
use super::kind::Kind;
use super::separate::{Job, Separator};
use super::sums::JobSums;
use infer::bucket::Buckets;

/// Kinds of sleep that are kept of a thread.
const MOST: usize = 12;

/// The kinds of sleep of one thread. Memory: constant.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub(super) all: Vec<(Separator, JobSums)>,
    /// Activations after sleeps of further kinds.
    pub(super) unkept: u64,
    pub(super) demand: Buckets,
    /// A release came before the one that it should follow.
    pub(super) disorder: bool,
}

impl Kinds {
    /// Takes the next activation. `sink` gets each job that ended before it, of each kind.
    pub(super) fn add(&mut self, activation: &Activation, mut sink: impl FnMut(Kind, &Job)) {
        self.demand.add(activation.release.window.latest_ns, activation.executed_ns);
        if let Some(kind) = activation.kind
            && !self.all.iter().any(|(separator, _)| separator.kind == kind)
        {
            if self.all.len() < MOST {
                self.all.push((Separator::new(kind), JobSums::default()));
            } else {
                self.unkept += 1;
            }
        }
        for (separator, sums) in &mut self.all {
            if let Some(job) = separator.add(activation) {
                self.disorder |= sums.add(&job).is_err();
                sink(separator.kind, &job);
            }
        }
    }
}
