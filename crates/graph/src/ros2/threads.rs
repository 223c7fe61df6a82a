//! Whether the middleware's own threads are still there.
//!
//! RustDDS 0.15.1 ends its event loop and its discovery, without a word to whoever uses it, when their wait for events is interrupted
//! (`rtps/dp_event_loop.rs`, `discovery/discovery.rs`). `epoll_wait` is interrupted whenever a process that was stopped goes on
//! (signal(7), "Interruption of system calls and library functions by stop signals"): after SIGSTOP, a debugger or a suspended machine
//! nothing is sent or received any more, and a link would look full, or idle, for ever.

use std::fs;
use std::time::{Duration, Instant};

/// How the names of its threads begin: one for events, one for discovery.
const NAME: &str = "RustDDS";
const IN_EACH_PARTICIPANT: usize = 2;
/// A thread names itself, some time after it was started.
const NAMED_WITHIN: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(1);

/// The threads of one participant, by id; none where `/proc` does not say.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads(Vec<String>);

impl Threads {
    /// Those of all participants of this process.
    pub(super) fn of_all() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let ids = tasks.filter_map(|task| task.file_name().into_string().ok());
        Self(ids.filter(|id| is_one(id)).collect())
    }

    /// Those of the participant that was made since.
    pub(super) fn since(before: &Self) -> Self {
        let give_up = Instant::now() + NAMED_WITHIN;
        loop {
            let mut new = Self::of_all();
            new.0.retain(|id| !before.0.contains(id));
            if new.0.len() >= IN_EACH_PARTICIPANT || Instant::now() > give_up {
                return new;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether none of them has ended.
    pub(super) fn all_there(&self) -> bool {
        self.0.iter().all(|id| is_one(id))
    }
}

fn is_one(id: &str) -> bool {
    fs::read_to_string(format!("/proc/self/task/{id}/comm")).is_ok_and(|name| name.starts_with(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_ends_is_missed() {
        let before = Threads::of_all();
        let (end, ended) = channel::<()>();
        let wait = move || ended.recv().is_err();
        let thread = std::thread::Builder::new().name(format!("{NAME} of a test")).spawn(wait).unwrap();
        let threads = Threads::since(&before);
        assert_eq!((threads.0.is_empty(), threads.all_there()), (false, true));
        drop(end);
        assert!(thread.join().unwrap());
        // The kernel takes a thread out of the list a moment after it is joined.
        let give_up = Instant::now() + Duration::from_secs(5);
        while threads.all_there() && Instant::now() < give_up {
            std::thread::sleep(LOOK);
        }
        assert!(!threads.all_there());
    }
}
