//! Takes raw pages out of the instance's buffers, from a housekeeping CPU and without waking the measured ones.
//!
//! A blocking read would have the kernel send an irq_work IPI to the traced CPU for every page it fills. This thread polls instead.

use crate::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Every poll of a CPU that had events stores at least one page, so a short interval costs disk, a long one buffer.
const POLL: Duration = Duration::from_millis(200);

/// One CPU's raw pages on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPages {
    /// The CPU.
    pub cpu: u32,
    /// The file.
    pub path: PathBuf,
    /// Pages in it.
    pub pages: u64,
}

/// One CPU's raw pages on their way to disk.
struct Lane {
    cpu: u32,
    from: File,
    from_path: PathBuf,
    to: File,
    to_path: PathBuf,
    pages: u64,
}

/// Pages that are written at once: a write of its own for each costs more than the copy.
const AT_ONCE: usize = 64;

impl Lane {
    /// Takes out what is there. `room`: for several pages of so many bytes.
    fn drain(&mut self, room: &mut [u8], page_bytes: usize) -> Result<(), Error> {
        loop {
            let mut pages = 0;
            for page in room.chunks_exact_mut(page_bytes) {
                if !self.next(page)? {
                    break;
                }
                pages += 1;
            }
            let taken = &room[..pages * page_bytes];
            self.to.write_all(taken).map_err(|e| Error::os("write", self.to_path.display(), e))?;
            self.pages += pages as u64;
            if taken.len() < room.len() {
                return Ok(());
            }
        }
    }

    /// The next page; whether there was one.
    fn next(&mut self, page: &mut [u8]) -> Result<bool, Error> {
        loop {
            match self.from.read(page) {
                Ok(0) => return Ok(false),
                Ok(bytes) => {
                    // The kernel gives whole pages; the rest of a short one holds nothing.
                    page[bytes..].fill(0);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::os("read", self.from_path.display(), error)),
            }
        }
    }
}

/// The thread that reads while windows are open.
pub struct Reader {
    stop: Arc<AtomicBool>,
    /// Taken when it is joined.
    thread: Option<JoinHandle<Result<Vec<RawPages>, Error>>>,
}

impl Reader {
    /// Reads `per_cpu/cpuN/trace_pipe_raw` of the instance into `cpuN.raw` files in `dir`.
    pub fn start(instance: &Path, cpus: &[u32], page_bytes: usize, dir: &Path) -> Result<Self, Error> {
        let mut lanes = cpus.iter().map(|cpu| lane(instance, *cpu, dir)).collect::<Result<Vec<_>, _>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("trace-reader".to_owned()).spawn(move || {
            let mut room = vec![0u8; page_bytes * AT_ONCE];
            loop {
                let last = stopped.load(Ordering::Acquire);
                lanes.iter_mut().try_for_each(|lane| lane.drain(&mut room, page_bytes))?;
                if last {
                    return Ok(lanes
                        .into_iter()
                        .map(|lane| RawPages { cpu: lane.cpu, path: lane.to_path, pages: lane.pages })
                        .collect());
                }
                std::thread::park_timeout(POLL);
            }
        });
        let thread = thread.map_err(|source| Error::os("start", "the trace reader", source))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the reader has given up; its reason comes with [`Reader::finish`].
    pub fn failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Reads what is left, recording being off, and gives each CPU's file.
    pub fn finish(mut self) -> Result<Vec<RawPages>, Error> {
        self.join().unwrap_or_else(|| Err(Error::failed("the trace reader", "its thread panicked")))
    }

    fn join(&mut self) -> Option<Result<Vec<RawPages>, Error>> {
        let thread = self.thread.take()?;
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // An instance cannot be removed while its pages are open.
        let _ = self.join();
    }
}

fn lane(instance: &Path, cpu: u32, dir: &Path) -> Result<Lane, Error> {
    let from_path = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let from = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&from_path);
    let from = from.map_err(|source| Error::os("open", from_path.display(), source))?;
    let to_path = dir.join(format!("cpu{cpu}.raw"));
    let to = File::create(&to_path).map_err(|source| Error::os("create", to_path.display(), source))?;
    Ok(Lane { cpu, from, from_path, to, to_path, pages: 0 })
}
