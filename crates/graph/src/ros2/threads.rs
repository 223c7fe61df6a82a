//! Whether the middleware's own threads are still there.
//!
//! RustDDS 0.15.1 silently ends its event loop and its discovery when their wait for events is
//! interrupted (`rtps/dp_event_loop.rs`, `discovery/discovery.rs`). A thread in `epoll_wait` is
//! interrupted when its process was stopped and continues (signal(7), "Interruption of system calls
//! and library functions by stop signals"). After that nothing is sent or received any more, and a
//! link would look full, or idle, for ever.

use rustix::io::Errno;
use std::fs;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// How the names of its threads begin: one for events, one for discovery.
const NAME: &str = "RustDDS";
const IN_EACH_PARTICIPANT: usize = 2;
/// A thread names itself, some time after it was started.
const NAMED_WITHIN: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(1);

/// The threads of one participant, by id; none where `/proc` does not show them.
#[derive(Debug, Clone, Default)]
pub(super) struct Threads(Vec<String>);

impl Threads {
    /// Those of all participants of this process.
    pub(super) fn of_all() -> Self {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let ids = tasks.filter_map(|task| task.file_name().into_string().ok());
        Self(ids.filter(|id| name_of(id).is_ok_and(|name| is_one(&name))).collect())
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

    /// Whether one of them is known to have ended.
    pub(super) fn ended(&self) -> bool {
        self.0.iter().any(|id| has_ended(name_of(id)))
    }
}

fn name_of(id: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/self/task/{id}/comm"))
}

fn is_one(name: &str) -> bool {
    name.starts_with(NAME)
}

/// Judged by the result of reading its name: a thread that cannot be read may still exist.
fn has_ended(name: io::Result<String>) -> bool {
    match name {
        Ok(name) => !is_one(&name),
        Err(error) => {
            error.kind() == ErrorKind::NotFound || Errno::from_io_error(&error) == Some(Errno::SRCH)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_cannot_be_looked_at_has_not_ended() {
        let failed = |errno: Errno| has_ended(Err(errno.into()));
        assert_eq!([Errno::MFILE, Errno::NOMEM, Errno::ACCESS].map(failed), [false; 3]);
        assert_eq!([Errno::NOENT, Errno::SRCH].map(failed), [true; 2]);
        // The number may be another thread's by now.
        assert!(has_ended(Ok("bash\n".to_owned())) && !has_ended(Ok("RustDDS Partici\n".to_owned())));
    }

    #[test]
    fn a_thread_that_ends_is_missed() {
        let before = Threads::of_all();
        let (end, ended) = channel::<()>();
        let wait = move || ended.recv().is_err();
        let thread = std::thread::Builder::new().name(format!("{NAME} of a test")).spawn(wait).unwrap();
        let threads = Threads::since(&before);
        assert_eq!((threads.0.is_empty(), threads.ended()), (false, false));
        drop(end);
        assert!(thread.join().unwrap());
        // The kernel takes a thread out of the list a moment after it is joined.
        let give_up = Instant::now() + Duration::from_secs(5);
        while !threads.ended() && Instant::now() < give_up {
            std::thread::sleep(LOOK);
        }
        assert!(threads.ended());
    }
}
