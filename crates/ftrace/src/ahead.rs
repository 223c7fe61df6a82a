//! A separate thread fills windows before they are needed: reading takes a fifth of a reader's
//! total time, and decompressing more.
//!
//! That pays where a CPU is free for it. Else the data has to come to the reader's CPU from another
//! one, which takes longer than reading it there, the more so where the two share no cache.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle, available_parallelism};

use crate::error::Error;
use crate::fill::Filler;
use crate::region::{NextPage, Region};

/// Less data is read faster than a thread is started.
const LEAST: u64 = 1 << 20;
/// With more CPUs their windows would take too much memory.
const MOST_CPUS: usize = 32;

/// A window of plain data: each is handed over twice, so the fewer the better.
const WINDOW: usize = 1 << 20;
/// All CPUs' windows may take this much, and as much again while the next ones are filled.
const ALL_WINDOWS: usize = 8 << 20;

/// A requested window.
pub(crate) struct Filled {
    pub(crate) filler: Filler,
    pub(crate) window: Vec<u8>,
    /// What [`Filler::fill`] says of it.
    pub(crate) outcome: Result<Option<NextPage>, Error>,
}

/// A requested window comes here.
pub(crate) type Asked = Receiver<Filled>;

/// Who takes in what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// One thread.
    One,
    /// One that keeps another one busy with it.
    Two,
    /// One that wants the beginning only: nothing is read before it is needed.
    Beginning,
}

impl Reader {
    /// How many CPUs there must be for data to be read ahead. Decompressing is worth a CPU that
    /// others use as well.
    fn least_cpus(self, compressed: bool) -> usize {
        match self {
            Self::One => 2,
            Self::Two => 3 - usize::from(compressed),
            Self::Beginning => usize::MAX,
        }
    }
}

struct Job {
    filler: Filler,
    window: Vec<u8>,
    done: SyncSender<Filled>,
}

/// The way to the thread.
#[derive(Clone)]
pub(crate) struct Ahead {
    jobs: Sender<Job>,
    window: usize,
}

impl Ahead {
    /// How large a window of plain data is, bytes.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// Has a window filled.
    pub(crate) fn ask(&self, filler: Filler, window: Vec<u8>) -> Result<Asked, Filler> {
        let (done, asked) = sync_channel(1);
        match self.jobs.send(Job { filler, window, done }) {
            Ok(()) => Ok(asked),
            Err(unsent) => Err(unsent.0.filler),
        }
    }
}

/// The thread, which ends when no [`Ahead`] is left.
pub(crate) struct AheadThread(Option<JoinHandle<()>>);

impl AheadThread {
    /// Starts one where that pays and there is a CPU for it. Drop it after every [`Ahead`].
    pub(crate) fn start(regions: &[(u32, Region)], reader: Reader) -> (Self, Option<Ahead>) {
        let bytes = regions.iter().fold(0u64, |sum, (_, region)| sum.saturating_add(region.size));
        let pays = bytes >= LEAST && regions.len() <= MOST_CPUS;
        let compressed = regions.iter().any(|(_, region)| region.chunks.is_some());
        // Asking costs a few files of the control group, which is too much for every small piece.
        let has_room = || available_parallelism().map_or(1, NonZero::get) >= reader.least_cpus(compressed);
        let (jobs, asked) = channel::<Job>();
        let run = move || {
            for Job { mut filler, mut window, done } in asked {
                let outcome = filler.fill(&mut window);
                // Whoever has asked may be gone.
                drop(done.send(Filled { filler, window, outcome }));
            }
        };
        let thread = if pays && has_room() { Builder::new().spawn(run).ok() } else { None };
        let window = (ALL_WINDOWS / regions.len().max(1)).min(WINDOW);
        let ahead = thread.is_some().then_some(Ahead { jobs, window });
        (Self(thread), ahead)
    }
}

impl Drop for AheadThread {
    fn drop(&mut self) {
        let ended = self.0.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endian::Endian;
    use crate::input::Input;
    use crate::pages::Pages;
    use crate::region::Chunks;
    use proptest::prelude::*;
    use std::path::Path;

    const PAGE: usize = 4096;

    fn region(bytes: Vec<u8>, size: u64, chunks: Option<Chunks>) -> Region {
        Region { input: Input::memory(Path::new("memory"), bytes), offset: 0, size, page_size: PAGE, chunks }
    }

    /// Everything that comes, each page with its bytes.
    fn all(mut pages: Pages) -> Vec<(NextPage, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            let next = pages.next_page().unwrap();
            let bytes = match &next {
                NextPage::Page { range, offset } => {
                    let bytes = pages.window()[range.clone()].to_vec();
                    all.push((NextPage::Page { range: 0..bytes.len(), offset: *offset }, bytes));
                    continue;
                }
                _ => Vec::new(),
            };
            let is_end = next == NextPage::End;
            all.push((next, bytes));
            if is_end {
                return all;
            }
        }
    }

    /// Bytes that differ from page to page.
    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at / PAGE) as u8 ^ at as u8).collect()
    }

    fn ahead() -> (AheadThread, Ahead) {
        let (thread, ahead) = AheadThread::start(&[(0, region(Vec::new(), LEAST, None))], Reader::One);
        (thread, ahead.expect("a machine of two CPUs or more"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn what_is_read_ahead_is_what_is_read_when_it_is_needed(
            len in 0usize..4_200_000,
            beyond in 0u64..9_000,
            cpus in 1usize..4,
        ) {
            if available_parallelism().map_or(1, NonZero::get) == 1 {
                return Ok(());
            }
            let (_thread, ahead) = ahead();
            let size = len as u64 + beyond;
            let plain = all(Pages::new(region(bytes(len), size, None), None));
            prop_assert_eq!(plain.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), len);
            let mut several: Vec<Pages> =
                (0..cpus).map(|_| Pages::new(region(bytes(len), size, None), Some(ahead.clone()))).collect();
            // Each begins before the first is read to its end.
            let firsts: Vec<NextPage> = several.iter_mut().map(|pages| pages.next_page().unwrap()).collect();
            for (pages, first) in several.into_iter().zip(firsts) {
                let skip = usize::from(matches!(first, NextPage::Page { .. }) || len == 0 && beyond > 0);
                prop_assert_eq!(&all(pages)[..], &plain[skip..]);
            }
        }
    }

    #[test]
    fn who_reads_the_beginning_reads_it_alone() {
        let region = region(Vec::new(), LEAST, None);
        assert!(AheadThread::start(&[(0, region)], Reader::Beginning).1.is_none());
        assert_eq!([Reader::One, Reader::Two].map(|reader| reader.least_cpus(false)), [2, 3]);
        assert_eq!([Reader::One, Reader::Two].map(|reader| reader.least_cpus(true)), [2, 2]);
    }

    #[test]
    fn a_chunk_that_is_broken_ends_the_data_of_its_cpu_the_same_way() {
        if available_parallelism().map_or(1, NonZero::get) == 1 {
            return;
        }
        let chunks = |lanes| Some(Chunks::new(crate::compress::Codec::Zstd, Endian::Little, lanes));
        let mut packed = 3u32.to_le_bytes().to_vec();
        packed.extend([8u32, 4096].map(u32::to_le_bytes).as_flattened());
        packed.extend([7; 8]);
        let (_thread, ahead) = ahead();
        let of = |ahead| all(Pages::new(region(packed.clone(), packed.len() as u64, chunks(1)), ahead));
        let plain = of(None);
        assert!(matches!(plain[0].0, NextPage::BadChunk { .. }), "{plain:?}");
        assert_eq!(of(Some(ahead)), plain);
    }
}
