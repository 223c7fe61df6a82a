//! Which edges of the program's control flow have been taken since the last look.
//!
//! The compiler's coverage pass gives every edge a byte that becomes 1 when it is taken (Clang,
//! SanitizerCoverage, "inline-bool-flag"); `xtask/jobs.toml` has the flags, which the stable
//! compiler passes on. A program that was built without them has no edges.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static EDGES: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// What the pass calls before `main`, once for each object file, always with the same range.
// SAFETY: The name is the one that the pass expects, and nothing else defines it.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_bool_flag_init(start: *mut u8, stop: *mut u8) {
    let length = (stop as usize).saturating_sub(start as usize);
    // SAFETY: The linker made one section of these bytes; it lives as long as the process. Code of
    // the pass stores whole bytes into it without ordering, and reading eight of them at once as an
    // atomic word sees each before or after its store.
    let bytes = unsafe { std::slice::from_raw_parts(start, length) };
    // SAFETY: Every pattern of bits is a word. Fewer than eight bytes at each end are left out.
    let (_, words, _) = unsafe { bytes.align_to::<AtomicU64>() };
    EDGES.get_or_init(|| words);
}

fn all() -> &'static [AtomicU64] {
    EDGES.get().copied().unwrap_or_default()
}

/// Edges that one reader has reached.
pub(crate) struct Seen(Vec<AtomicU64>);

impl Seen {
    /// None so far.
    pub(crate) fn none() -> Self {
        all().iter().for_each(|edges| edges.store(0, Ordering::Relaxed));
        Self(all().iter().map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether there are new ones. With several threads those of another's execution count for
    /// whichever looks first.
    pub(crate) fn look(&self) -> bool {
        let mut is_new = false;
        for (now, seen) in all().iter().zip(&self.0) {
            let taken = now.load(Ordering::Relaxed);
            if taken != seen.load(Ordering::Relaxed) {
                is_new |= taken & !seen.fetch_or(taken, Ordering::Relaxed) != 0;
            }
        }
        is_new
    }

    /// How many have been seen.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|seen| u64::from(seen.load(Ordering::Relaxed).count_ones())).sum()
    }

    /// How many the program has.
    pub(crate) fn total() -> usize {
        all().len() * 8
    }
}
