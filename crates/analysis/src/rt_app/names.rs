//! The load while its file is read, and the names in it.

use super::place::Place;
use model::Error;
use model::load::{Load, MOST_STEPS};
use std::collections::BTreeMap;

/// The load so far, and where each name of it is.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) load: Load,
    pub(super) default_policy: String,
    /// The channels that `resume` of a task sends to: one for each of its instances that suspends.
    pub(super) suspends: BTreeMap<String, Vec<usize>>,
    semaphores: BTreeMap<String, usize>,
    /// Who uses a timer whose name does not begin with "unique".
    pub(super) timers: BTreeMap<String, String>,
    steps: usize,
}

impl Reading {
    pub(super) fn channel(&mut self, name: &str) -> usize {
        self.load.channels.push(name.to_owned());
        self.load.channels.len() - 1
    }

    pub(super) fn semaphore(&mut self, name: &str) -> usize {
        if let Some(known) = self.semaphores.get(name) {
            return *known;
        }
        let channel = self.channel(name);
        self.semaphores.insert(name.to_owned(), channel);
        channel
    }

    pub(super) fn lock(&mut self, name: &str) -> usize {
        let known = self.load.locks.iter().position(|one| one == name);
        known.unwrap_or_else(|| {
            self.load.locks.push(name.to_owned());
            self.load.locks.len() - 1
        })
    }

    pub(super) fn barrier(&mut self, name: &str) -> usize {
        let known = self.load.barriers.iter().position(|(one, _)| one == name);
        known.unwrap_or_else(|| {
            self.load.barriers.push((name.to_owned(), 0));
            self.load.barriers.len() - 1
        })
    }

    /// Counts a step of all threads together.
    pub(super) fn count_step(&mut self, place: &Place<'_>) -> Result<(), Error> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(
                place.refuse("too many events", format!("at most {MOST_STEPS}, all threads together"))
            );
        }
        Ok(())
    }
}
