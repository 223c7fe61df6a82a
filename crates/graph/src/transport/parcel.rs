//! Descriptors on their way from the process that makes links to the processes that use them.

use super::Error;
use std::io;
use std::os::fd::OwnedFd;
use sys::spawn;

/// Descriptors in the order in which they are handed over. Orders say which of them are theirs.
#[derive(Debug, Default)]
pub struct Parcel {
    given: Vec<OwnedFd>,
    taken: Vec<Option<OwnedFd>>,
}

impl Parcel {
    /// In the child: what the parent has shared by [`spawn::share_all`], to be called once.
    pub fn inherited(count: usize) -> io::Result<Self> {
        Ok(Self::of(spawn::inherited(count)?))
    }

    /// A parcel as it arrives, of these descriptors.
    pub fn of(descriptors: Vec<OwnedFd>) -> Self {
        Self { given: Vec::new(), taken: descriptors.into_iter().map(Some).collect() }
    }

    /// In the parent: what is to be shared with the child.
    pub fn descriptors(&self) -> &[OwnedFd] {
        &self.given
    }

    /// The same parcel as if it had arrived in this very process.
    pub(crate) fn arrived(self) -> Self {
        Self::of(self.given)
    }

    /// Puts a descriptor in; its number for [`Parcel::take`].
    pub fn put(&mut self, descriptor: OwnedFd) -> usize {
        self.given.push(descriptor);
        self.given.len() - 1
    }

    /// Takes a descriptor out.
    pub fn take(&mut self, link: &str, index: usize) -> Result<OwnedFd, Error> {
        let found = self.taken.get_mut(index).and_then(Option::take);
        found.ok_or_else(|| Error::Missing { link: link.to_owned(), index })
    }
}
