//! Takes raw pages out of the instance's buffers, from a housekeeping CPU and without waking the
//! measured ones.
//!
//! A blocking read would have the kernel send an irq_work IPI to the traced CPU for every page it
//! fills. This thread polls instead.

use super::kept::{KeptPages, RawPages};
use super::live::{Keep, Tap};
use super::ring::Pages;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::{Error, clock};

/// The longest wait between two polls, and the shortest. Every poll of a CPU that had events stores
/// at least one page, so a short wait costs disk; in a long one a buffer may fill.
const POLL: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(10)];
/// Polled twice as often from this share of a buffer on, and half as often below the second: what
/// is read at once may grow fourfold, as in a storm that begins, before anything is lost.
const FULL: [f64; 2] = [1.0 / 4.0, 1.0 / 16.0];

/// How long to wait until the next poll.
struct Pace(Duration);

impl Pace {
    /// Nothing is known yet of how fast buffers fill.
    fn new() -> Self {
        Self(POLL[1])
    }

    /// The next wait, `share` of a buffer having been in the fullest one.
    fn next(&mut self, share: f64) -> Duration {
        let wanted = match share {
            share if share > FULL[0] => self.0 / 2,
            share if share < FULL[1] => self.0 * 2,
            _ => self.0,
        };
        self.0 = wanted.clamp(POLL[1], POLL[0]);
        self.0
    }
}

/// One CPU's raw pages on their way to disk.
struct Lane {
    cpu: u32,
    from: File,
    from_path: PathBuf,
    /// None where the pages are not kept.
    to: Option<KeptPages>,
}

/// Pages that are written at once: a write of its own for each costs more than the copy.
const AT_ONCE: usize = 64;
/// Pages that are handed on at once where none is written.
const HANDED_ON: usize = 8;

impl Lane {
    /// Takes out what is there; how many pages that were. `room`: for several of so many bytes.
    fn drain(&mut self, room: &mut [u8], page_bytes: usize, tap: Option<&Tap>) -> Result<u64, Error> {
        let mut all = 0;
        loop {
            let mut pages = 0;
            for page in room.chunks_exact_mut(page_bytes) {
                if !self.next(page)? {
                    break;
                }
                pages += 1;
            }
            let taken = &room[..pages * page_bytes];
            if let Some(to) = &mut self.to {
                to.push(taken)?;
            }
            tap.into_iter().for_each(|tap| tap.put(self.cpu, taken));
            all += pages as u64;
            if taken.len() < room.len() {
                return Ok(all);
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

/// Where pages go.
pub(crate) struct Sinks<'a> {
    /// Directory for files.
    pub dir: &'a Path,
    /// How many of them.
    pub keep: Keep,
    /// Who looks on.
    pub tap: Option<Arc<Tap>>,
}

/// The thread that reads while windows are open.
pub(crate) struct Reader {
    stop: Arc<AtomicBool>,
    /// Taken when it is joined.
    thread: Option<JoinHandle<Result<Vec<RawPages>, Error>>>,
}

impl Reader {
    /// Reads `per_cpu/cpuN/trace_pipe_raw` of the instance into `cpuN.raw` files in `dir`, into a
    /// tap, or into both. Each buffer holds `buffer_kib`.
    pub(crate) fn start(
        instance: &Path,
        cpus: &[u32],
        buffer_kib: u64,
        pages: Pages,
        Sinks { dir, keep, tap }: Sinks<'_>,
    ) -> Result<Self, Error> {
        let page_bytes = pages.layout.page_size();
        let most_bytes = keep.most_bytes().map(|bytes| bytes / cpus.len().max(1) as u64);
        let to = |cpu: &u32| {
            let path = dir.join(format!("cpu{cpu}.raw"));
            keep.in_file().then(|| KeptPages::create(&path, pages, most_bytes)).transpose()
        };
        let lane = |cpu: &u32| lane(instance, *cpu, to(cpu)?);
        let mut lanes = cpus.iter().map(lane).collect::<Result<Vec<_>, _>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("trace-reader".to_owned()).spawn(move || {
            let mut room = vec![0u8; page_bytes * if keep.in_file() { AT_ONCE } else { HANDED_ON }];
            let held = (buffer_kib * 1024).div_ceil(page_bytes as u64).max(1);
            let mut pace = Pace::new();
            loop {
                let last = stopped.load(Ordering::Acquire);
                let (mut most, began_ns) = (0, clock::now_ns());
                for lane in &mut lanes {
                    most = most.max(lane.drain(&mut room, page_bytes, tap.as_deref())?);
                }
                tap.iter().for_each(|tap| tap.reached(began_ns));
                if last {
                    let kept = lanes.into_iter().filter_map(|lane| Some((lane.cpu, lane.to?)));
                    return kept.map(|(cpu, to)| to.finish(cpu)).collect();
                }
                std::thread::park_timeout(pace.next(most as f64 / held as f64));
            }
        });
        let thread = thread.map_err(|source| Error::os("start", "the trace reader", source))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the reader has given up; its reason comes with [`Reader::finish`].
    pub(crate) fn failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Reads what is left, recording being off, and gives each CPU's file.
    pub(crate) fn finish(mut self) -> Result<Vec<RawPages>, Error> {
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

fn lane(instance: &Path, cpu: u32, to: Option<KeptPages>) -> Result<Lane, Error> {
    let from_path = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let from = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&from_path);
    let from = from.map_err(|source| Error::os("open", from_path.display(), source))?;
    Ok(Lane { cpu, from, from_path, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a buffer that fills in so many milliseconds, polled for a second: waits, and
    /// whether one of them was too long.
    fn polled(pace: &mut Pace, fills_in_ms: f64) -> (usize, bool) {
        let (mut waits, mut lost, mut share, mut left_ms) = (0, false, 0.0, 1_000.0);
        while left_ms > 0.0 {
            let wait_ms = pace.next(share).as_secs_f64() * 1e3;
            share = wait_ms / fills_in_ms;
            lost |= share > 1.0;
            left_ms -= wait_ms;
            waits += 1;
        }
        (waits, lost)
    }

    #[test]
    fn a_buffer_that_fills_fast_is_read_often_and_a_calm_one_seldom() {
        let mut pace = Pace::new();
        // From the beginning on, whatever the load.
        assert!(!polled(&mut pace, 60.0).1);
        // As calm as a machine under test is: five polls a second, once that is known.
        polled(&mut pace, 100_000.0);
        assert_eq!(polled(&mut pace, 100_000.0), (5, false));
        // Four times as fast as would just be in time: nothing is lost; faster, it is once.
        assert!(!polled(&mut pace, 250.0).1);
        polled(&mut pace, 60.0);
        let (polls, lost) = polled(&mut pace, 60.0);
        assert!((60..=100).contains(&polls) && !lost, "{polls}");
    }
}
