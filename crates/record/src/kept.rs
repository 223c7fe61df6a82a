//! One CPU's raw pages on disk: all of them, or the last so many.
//!
//! Where only the last are kept, the file is written in a circle. The events of a page that is
//! overwritten are counted, so that the kernel's account still balances; at the end the pages are
//! put into order.

use super::ring::{Pages, begins_ns};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, copy};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use sys::Error;

/// What is on disk in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawPages {
    /// The CPU.
    pub cpu: u32,
    /// The file.
    pub path: PathBuf,
    /// Pages in it.
    pub pages: u64,
    /// Events of pages that gave way to later ones.
    pub discarded: u64,
    /// When the first page begins, where others gave way; CLOCK_MONOTONIC, ns.
    pub reaches_to_ns: Option<i64>,
}

/// The file while it is written.
pub(super) struct KeptPages {
    file: File,
    path: PathBuf,
    pages: Pages,
    /// The most pages in it.
    most: u64,
    written: u64,
    discarded: u64,
}

impl KeptPages {
    /// A new file, of at most so many bytes if any limit is given; but always of one page.
    pub(super) fn create(path: &Path, pages: Pages, most_bytes: Option<u64>) -> Result<Self, Error> {
        let new = File::options().create(true).truncate(true).read(true).write(true).open(path);
        let file = new.map_err(|source| Error::os("create", path.display(), source))?;
        let most = most_bytes.map_or(u64::MAX, |bytes| (bytes / pages.layout.page_size() as u64).max(1));
        Ok(Self { file, path: path.to_owned(), pages, most, written: 0, discarded: 0 })
    }

    /// Adds whole pages.
    pub(super) fn push(&mut self, mut taken: &[u8]) -> Result<(), Error> {
        let size = self.pages.layout.page_size();
        while !taken.is_empty() {
            // Up to the end of the circle at once.
            let at = self.written % self.most;
            let room = usize::try_from((self.most - at).saturating_mul(size as u64)).unwrap_or(usize::MAX);
            let (now, later) = taken.split_at(taken.len().min(room));
            let count = (now.len() / size) as u64;
            if self.written >= self.most {
                self.count_discarded(at, count)?;
            }
            let written = self.file.write_all_at(now, at * size as u64);
            written.map_err(|source| Error::os("write", self.path.display(), source))?;
            self.written += count;
            taken = later;
        }
        Ok(())
    }

    fn count_discarded(&mut self, at: u64, count: u64) -> Result<(), Error> {
        let size = self.pages.layout.page_size();
        let mut page = vec![0; size];
        for number in at..at + count {
            let read = self.file.read_exact_at(&mut page, number * size as u64);
            read.map_err(|source| Error::os("read", self.path.display(), source))?;
            let header = self.pages.header(&page, &self.path)?;
            self.discarded += self.pages.events(&page, &header);
        }
        Ok(())
    }

    /// Ends it.
    pub(super) fn finish(mut self, cpu: u32) -> Result<RawPages, Error> {
        let pages = self.written.min(self.most);
        let reaches_to_ns = if self.written > self.most { Some(self.put_in_order()?) } else { None };
        Ok(RawPages { cpu, path: self.path, pages, discarded: self.discarded, reaches_to_ns })
    }

    /// Returns when the oldest page begins, ns.
    fn put_in_order(&mut self) -> Result<i64, Error> {
        let size = self.pages.layout.page_size() as u64;
        let (oldest, end) = (self.written % self.most * size, self.most * size);
        let mut page = vec![0; size as usize];
        let read = self.file.read_exact_at(&mut page, oldest);
        read.map_err(|source| Error::os("read", self.path.display(), source))?;
        let reaches_to_ns = begins_ns(self.pages.header(&page, &self.path)?);
        if oldest > 0 {
            let ordered = self.path.with_extension("ordered");
            let put = |file: &mut File| -> std::io::Result<()> {
                let mut to = File::create(&ordered)?;
                for [from, until] in [[oldest, end], [0, oldest]] {
                    file.seek(SeekFrom::Start(from))?;
                    copy(&mut file.take(until - from), &mut to)?;
                }
                std::fs::rename(&ordered, &self.path)
            };
            put(&mut self.file).map_err(|source| Error::os("write", self.path.display(), source))?;
        }
        Ok(reaches_to_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftrace::{Endian, PageLayout};
    use proptest::prelude::*;

    const PAGES: fn() -> Pages = || Pages { layout: PageLayout::classic(8), endian: Endian::Little };

    /// A page that begins at a time, with so many events of four bytes.
    fn page(number: u64, events: u64) -> Vec<u8> {
        let mut page = vec![0; PAGES().layout.page_size()];
        page[..8].copy_from_slice(&(1_000 + number).to_le_bytes());
        page[8..16].copy_from_slice(&(events * 8).to_le_bytes());
        // Type and length 1 (a word of data), no time since the one before.
        for event in 0..events as usize {
            page[16 + event * 8..][..4].copy_from_slice(&1u32.to_le_bytes());
        }
        page
    }

    proptest! {
        /// However they come: the last are there in order, and every event is there or counted.
        #[test]
        fn the_last_pages_are_kept_in_order(
            chunks in prop::collection::vec(prop::collection::vec(0u64..5, 0..9), 0..9),
            most in prop::option::of(1u64..8),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("cpu3.raw");
            let size = PAGES().layout.page_size() as u64;
            let mut kept = KeptPages::create(&path, PAGES(), most.map(|pages| pages * size + 7)).unwrap();
            let mut all = Vec::new();
            for chunk in &chunks {
                let mut bytes = Vec::new();
                for events in chunk {
                    bytes.extend(page(all.len() as u64, *events));
                    all.push(*events);
                }
                kept.push(&bytes).unwrap();
            }
            let RawPages { cpu, pages, discarded, reaches_to_ns, .. } = kept.finish(3).unwrap();
            let first = all.len().saturating_sub(most.map_or(usize::MAX, |most| most as usize));
            let expected: Vec<u8> =
                (first..all.len()).flat_map(|number| page(number as u64, all[number])).collect();
            prop_assert_eq!((cpu, pages), (3, (all.len() - first) as u64));
            prop_assert_eq!(discarded, all[..first].iter().sum::<u64>());
            prop_assert_eq!(reaches_to_ns, (first > 0).then_some(1_000 + first as i64));
            prop_assert!(std::fs::read(&path).unwrap() == expected);
            prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }
}
