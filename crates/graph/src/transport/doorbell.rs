//! What an executor waits on: one bell for all links that end there.

use super::spec::Kind;
use super::{Error, Parcel, Receiver};
use serde::{Deserialize, Serialize};
use std::io;
use sys::doorbell::{Bell, Manner, Waiter};

/// The bell of an executor.
#[derive(Debug)]
pub struct Doorbell {
    manner: Manner,
    bell: Bell,
}

/// How another process takes a bell up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BellOrder {
    manner: Manner,
    file: usize,
    event: Option<usize>,
}

impl Doorbell {
    /// A bell for receivers of these kinds; with no kinds, for an executor that has only timers. A
    /// kind that never sleeps (shm-poll) makes its executor never sleep, and cannot be combined
    /// with kinds that wake by a descriptor. One descriptor makes the executor wait in epoll.
    pub fn new(kinds: &[Kind]) -> Result<Self, Error> {
        let wants = |manner| kinds.iter().any(|kind| kind.manner() == manner);
        let manner = match (wants(Manner::Poll), wants(Manner::Epoll)) {
            (true, _) => Manner::Poll,
            (false, true) => Manner::Epoll,
            (false, false) => Manner::Futex,
        };
        kinds.iter().try_for_each(|kind| waits_for(manner, *kind))?;
        Ok(Self { manner, bell: Bell::new(manner).map_err(refused("make a doorbell"))? })
    }

    /// How its executor waits.
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// Says that there is something to do.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// How another process can have it, or ring it.
    pub fn order(&self, parcel: &mut Parcel) -> Result<BellOrder, Error> {
        Ok(BellOrder { manner: self.manner, ..BellOrder::of(&self.bell, parcel)? })
    }

    /// Takes up the bell of an order.
    pub fn adopt(order: &BellOrder, parcel: &mut Parcel) -> Result<Self, Error> {
        let bell = order.bell("doorbell", parcel)?;
        Ok(Self { manner: order.manner, bell })
    }

    /// One thread's way to wait for these receivers and for the bell. Each of several threads has
    /// its own; those on a futex are woken one at a time, those in epoll all at once.
    pub fn waiter(&self, receivers: &[&Receiver]) -> Result<Waiter, Error> {
        let files: Vec<_> = receivers.iter().filter_map(|receiver| receiver.file()).collect();
        Waiter::new(self.copy()?, self.manner, &files).map_err(refused("make a waiter"))
    }

    /// The same bell once more, for a link that rings it.
    pub(super) fn copy(&self) -> Result<Bell, Error> {
        copy(&self.bell)
    }
}

/// The same bell once more.
pub(super) fn copy(bell: &Bell) -> Result<Bell, Error> {
    let copied = bell.descriptors().and_then(|(file, event)| Bell::adopt(file, event));
    copied.map_err(refused("copy a doorbell"))
}

impl BellOrder {
    /// How another process rings a bell, whatever way its executor waits.
    pub(super) fn of(bell: &Bell, parcel: &mut Parcel) -> Result<Self, Error> {
        let (file, event) = bell.descriptors().map_err(refused("copy a doorbell"))?;
        let event = event.map(|event| parcel.put(event));
        Ok(Self { manner: Manner::Futex, file: parcel.put(file), event })
    }

    /// The bell itself.
    pub(super) fn bell(&self, link: &str, parcel: &mut Parcel) -> Result<Bell, Error> {
        let file = parcel.take(link, self.file)?;
        let event = self.event.map(|event| parcel.take(link, event)).transpose()?;
        Bell::adopt(file, event).map_err(refused("map a doorbell"))
    }
}

/// Whether an executor that waits this way notices a receiver of this kind.
pub(super) fn waits_for(manner: Manner, kind: Kind) -> Result<(), Error> {
    if kind.by_descriptor() && manner != Manner::Epoll { Err(Error::NotPolled { kind }) } else { Ok(()) }
}

fn refused(action: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Os { link: "doorbell".to_owned(), action, source }
}
