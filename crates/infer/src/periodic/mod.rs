//! A period, an offset and a jitter that explain every release of a stream.
//!
//! The heuristic of LiME (RTAS 2025), and value by value that of `infer_periodic_model` and its
//! certain-fit and possible-fit variants in `rt-model-inference` 1.0.1: releases come in batches;
//! the first gives candidates for the period, near the one with the least jitter and rounded to
//! ever coarser decimals; later batches widen the jitter of each, add two, and drop what has become
//! much worse. Of the candidates whose jitter is at most a quarter above the least, the roundest
//! period is taken.
//!
//! The reference keeps candidates in sets, whose order decides between equals; here the smaller
//! period goes first.

mod batch;
mod candidates;

use crate::window::{Disorder, Window};
use batch::Release;
use candidates::Candidates;
use serde::{Deserialize, Serialize};

/// Releases in a batch, the one that two of them share included.
const BATCH: usize = 4096;

/// How a model relates to windows of releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It covers each window: wherever in it the release was. For releases whose times are known,
    /// the model of these.
    Certain,
    /// It meets each window: somewhere in it the release may have been.
    Possible,
}

/// Release i, from 0, is in `offset_ns + i · period_ns ..= offset_ns + i · period_ns + jitter_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PeriodicModel {
    /// The interval, ns.
    pub period_ns: i64,
    /// The earliest release, ns of the stream's clock.
    pub offset_ns: i64,
    /// How late releases are at most, ns.
    pub jitter_ns: i64,
}

/// Fits a model to a stream. Memory: a batch, and about 70 candidates.
#[derive(Debug, Clone)]
pub struct Periodic {
    fit: Fit,
    size: usize,
    batch: Vec<Release>,
    candidates: Option<Candidates>,
    next: i64,
    last: Option<Window>,
}

impl Periodic {
    /// In batches of 4,096 releases.
    pub fn new(fit: Fit) -> Self {
        Self::in_batches(fit, BATCH)
    }

    /// In batches of `size` releases, at least 2.
    pub fn in_batches(fit: Fit, size: usize) -> Self {
        Self { fit, size: size.max(2), batch: Vec::new(), candidates: None, next: 0, last: None }
    }

    /// Adds the next release.
    pub fn add(&mut self, window: Window) -> Result<(), Disorder> {
        self.add_at(self.next, window)
    }

    /// Adds a release with its number, above that of the last: others between them were left out.
    pub fn add_at(&mut self, index: i64, window: Window) -> Result<(), Disorder> {
        if self.last.is_some_and(|last| !last.is_before(window)) || index < self.next {
            return Err(Disorder);
        }
        (self.last, self.next) = (Some(window), index + 1);
        self.batch.push(Release::new(index, window));
        if self.batch.len() == self.size {
            self.candidates = Candidates::after(self.candidates.take(), &self.batch, self.fit);
            self.batch.drain(..self.size - 1);
        }
        Ok(())
    }

    /// The model so far; `None` before the second release, and where no period above 0 exists.
    pub fn model(&self) -> Option<PeriodicModel> {
        let only_shared = self.candidates.is_some() && self.batch.len() == 1;
        let candidates = if only_shared {
            self.candidates.clone()
        } else if self.batch.len() >= 2 {
            Candidates::after(self.candidates.clone(), &self.batch, self.fit)
        } else {
            None
        };
        candidates?.best(self.fit)
    }
}

#[cfg(test)]
mod tests;
