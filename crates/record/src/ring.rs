//! One CPU's ring buffer as a flight recorder: nobody reads it until something has happened, then
//! what lies around that is kept.
//!
//! Reading takes events out, so that each taking begins where the last one ended. A page of events
//! says when it begins, not when it ends: it is kept if it begins before the end of what is wanted,
//! and the next one behind the beginning.

use super::instance::Instance;
use super::unwritten::native_endian;
use ftrace::{Endian, Formats, PageHeader, PageLayout, Walker};
use model::run::TraceCpu;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use sys::Error;

/// One CPU's buffer.
pub(super) struct Ring {
    pub(super) cpu: u32,
    instance: Instance,
    from: File,
    from_path: PathBuf,
    /// Events that were overwritten when it was last emptied.
    overrun: u64,
}

/// What one taking gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Taken {
    /// When its first page begins, where events before that were overwritten.
    pub(super) reaches_to_ns: Option<i64>,
    /// Pages stored.
    pub(super) pages: u64,
    /// Events in them.
    pub(super) events: u64,
    /// Events in pages that were not wanted.
    pub(super) discarded: u64,
    /// Whether some of these lie before what is stored.
    pub(super) cut: bool,
}

/// How pages of this kernel are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    pub(super) layout: PageLayout,
    pub(super) endian: Endian,
}

impl Ring {
    /// Opens the buffer of a CPU. Reads never block: that would have the kernel wake the reader
    /// from the traced CPU.
    pub(super) fn open(instance: &Instance, cpu: u32) -> Result<Self, Error> {
        let from_path = instance.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let from = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&from_path);
        let from = from.map_err(|source| Error::os("open", from_path.display(), source))?;
        Ok(Self { cpu, instance: instance.clone(), from, from_path, overrun: 0 })
    }

    /// The kernel's account.
    pub(super) fn account(&self) -> Result<TraceCpu, Error> {
        self.instance.account(self.cpu)
    }

    /// Empties the buffer, recording being off; pages with events from `wanted[0]` to `wanted[1]`
    /// go to a new file at `to_path`.
    pub(super) fn take(&mut self, pages: Pages, wanted: [i64; 2], to_path: &Path) -> Result<Taken, Error> {
        let writing = |source| Error::os("write", to_path.display(), source);
        let mut to = File::create(to_path).map_err(writing)?;
        let overrun = self.account()?.overrun;
        let overwritten = overrun > std::mem::replace(&mut self.overrun, overrun);
        let mut taken = Taken::default();
        let size = pages.layout.page_size();
        let (mut page, mut held) = (vec![0; size], vec![0; size]);
        let mut waits: Option<PageHeader> = None;
        loop {
            let next = self.next(pages, &mut page)?;
            let next_ns = next.map_or(i64::MAX, begins_ns);
            if let Some(header) = waits {
                let events = pages.events(&held, &header);
                if begins_ns(header) <= wanted[1] && next_ns > wanted[0] {
                    to.write_all(&held).map_err(writing)?;
                    taken.pages += 1;
                    taken.events += events;
                } else {
                    taken.discarded += events;
                    taken.cut |= taken.pages == 0;
                }
            }
            let Some(header) = next else { return Ok(taken) };
            if waits.is_none() && overwritten {
                taken.reaches_to_ns = Some(begins_ns(header));
            }
            std::mem::swap(&mut page, &mut held);
            waits = Some(header);
        }
    }

    /// The next page, filled with zeros where the kernel gave less than a whole one.
    fn next(&mut self, pages: Pages, page: &mut [u8]) -> Result<Option<PageHeader>, Error> {
        let failed = |source| Error::os("read", self.from_path.display(), source);
        loop {
            match self.from.read(page) {
                Ok(0) => return Ok(None),
                Ok(bytes) => page[bytes..].fill(0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            }
            return pages.header(page, &self.from_path).map(Some);
        }
    }
}

/// When a page begins, ns.
pub(super) fn begins_ns(header: PageHeader) -> i64 {
    i64::try_from(header.timestamp).unwrap_or(i64::MAX)
}

impl Pages {
    /// As this machine's kernel writes events of these formats.
    pub(super) fn of(formats: &Formats) -> Self {
        Self { layout: *formats.page(), endian: native_endian() }
    }

    /// The header of a page that came from there.
    pub(super) fn header(self, page: &[u8], from: &Path) -> Result<PageHeader, Error> {
        let header = self.layout.header(page, self.endian);
        header.map_err(|fault| Error::os("read", from.display(), std::io::Error::other(fault)))
    }

    /// Events of a page. One that the kernel has written wrong ends where it is wrong; the accounts
    /// do not balance then.
    pub(super) fn events(self, page: &[u8], header: &PageHeader) -> u64 {
        let mut walker = Walker::new(&self.layout, header, self.endian);
        std::iter::from_fn(|| walker.next_record(page).ok().flatten()).count() as u64
    }

    /// Adds the pages at `part` to `to`; `behind_a_gap`: events before them are missing, and the
    /// first page is to say so.
    pub(super) fn append(self, part: &Path, behind_a_gap: bool, to: &mut File) -> Result<(), Error> {
        let mut bytes = std::fs::read(part).map_err(|source| Error::os("read", part.display(), source))?;
        if let (true, Some(first)) = (behind_a_gap, bytes.get_mut(..self.layout.page_size())) {
            self.layout.mark_missed(first, self.endian);
        }
        to.write_all(&bytes).map_err(|source| Error::os("write", "pages of the trace", source))
    }
}
