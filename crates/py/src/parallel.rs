//! Many sets at once: on separate threads, without the interpreter's lock, interruptible by Ctrl-C.
//!
//! One pool per call: threads that outlive a call would be missing in a process that Python forks.
//! Answers come in the order of the sets whatever thread had which. Of several errors the first
//! set's is reported. So a call is a function of its arguments.

use crate::error::{Answer, Wrong};
use pyo3::prelude::*;
use rayon::prelude::*;

/// Sets between two checks for signals.
const ROUND: usize = 1 << 14;

/// `of` for every number below `n`, in order. `threads`: none for as many as there are CPUs, one
/// for this thread.
pub(crate) fn each<T: Send>(
    py: Python<'_>,
    n: usize,
    threads: Option<usize>,
    of: impl Fn(usize) -> Answer<T> + Sync,
) -> PyResult<Vec<T>> {
    let pool = py.detach(|| pool(threads))?;
    let mut all = Vec::with_capacity(n);
    for start in (0..n).step_by(ROUND) {
        py.check_signals()?;
        let end = (start + ROUND).min(n);
        let answers: Vec<Answer<T>> = py.detach(|| match &pool {
            Some(pool) => pool.install(|| (start..end).into_par_iter().map(&of).collect()),
            None => (start..end).map(&of).collect(),
        });
        for one in answers {
            all.push(one?);
        }
    }
    Ok(all)
}

/// Threads for one call; none for this one alone.
pub(crate) fn pool(threads: Option<usize>) -> Answer<Option<rayon::ThreadPool>> {
    match threads {
        Some(1) => Ok(None),
        Some(0) => Err(Wrong::new("threads", 0, "1 or more, or None for as many as there are CPUs")),
        more => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(more.unwrap_or(0)).build();
            pool.map(Some).map_err(|error| Wrong::sentence(format!("no threads can be started: {error}")))
        }
    }
}
