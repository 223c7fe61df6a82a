//! What a stressor's loop counts: operations that succeeded, and those that failed by errno name.
//!
//! A disturbance that fails fast looks busy and disturbs nothing, so successes are counted, never
//! iterations.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// Operations of one loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) ok: u64,
    pub(super) failed: BTreeMap<String, u64>,
    /// Of those that succeeded, how many were of which part; empty where a stressor has no parts.
    #[serde(default)]
    pub(super) parts: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts one operation by how it ended, and returns whether it succeeded.
    pub(super) fn count<T, E: Into<io::Error>>(&mut self, outcome: Result<T, E>) -> bool {
        match outcome {
            Ok(_) => self.ok += 1,
            Err(error) => {
                self.fail(&error.into());
                return false;
            }
        }
        true
    }

    /// Counts one failed operation.
    pub(super) fn fail(&mut self, error: &io::Error) {
        let name = error.raw_os_error().map_or_else(|| error.kind().to_string(), errno_name);
        *self.failed.entry(name).or_default() += 1;
    }

    /// The operations of both.
    pub(super) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        let add = |to: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>| {
            from.iter().for_each(|(name, count)| *to.entry(name.clone()).or_default() += count);
        };
        add(&mut self.failed, &other.failed);
        add(&mut self.parts, &other.parts);
    }
}

/// The symbolic name of an errno, such as `EAGAIN`; the number where a stressor was never expected
/// to meet it.
pub(super) fn errno_name(errno: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::EBADF, "EBADF"),
        (libc::ECHILD, "ECHILD"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::ENODEV, "ENODEV"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENFILE, "ENFILE"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EPIPE, "EPIPE"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EBADMSG, "EBADMSG"),
        (libc::EOVERFLOW, "EOVERFLOW"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::ENETDOWN, "ENETDOWN"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ECONNABORTED, "ECONNABORTED"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ENOBUFS, "ENOBUFS"),
        (libc::ENOTCONN, "ENOTCONN"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
    ];
    let known = NAMES.iter().find(|(number, _)| *number == errno);
    known.map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn failures_are_counted_by_name() {
        let mut tally = Tally::default();
        assert!(tally.count(Ok::<_, io::Error>(())));
        assert!(!tally.count::<(), _>(Err(rustix::io::Errno::AGAIN)));
        assert!(!tally.count::<(), _>(Err(io::Error::from_raw_os_error(libc::EAGAIN))));
        assert!(!tally.count::<(), _>(Err(io::Error::from_raw_os_error(9999))));
        assert_eq!((tally.ok, tally.failed["EAGAIN"], tally.failed["errno 9999"]), (1, 2, 1));
    }

    proptest! {
        #[test]
        fn adding_loses_nothing(left in any::<[u16; 3]>(), right in any::<[u16; 3]>()) {
            let make = |[ok, again, nomem]: [u16; 3]| {
                let named = [("EAGAIN", again), ("ENOMEM", nomem)];
                let failed = named.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.into(), u64::from(n)));
                let parts = [("read".to_owned(), u64::from(ok))].into();
                Tally { ok: u64::from(ok), failed: failed.collect(), parts }
            };
            let mut sum = make(left);
            sum.add(&make(right));
            let all = |tally: &Tally| tally.ok + tally.failed.values().sum::<u64>();
            prop_assert_eq!(all(&sum), all(&make(left)) + all(&make(right)));
            prop_assert_eq!(sum.parts["read"], sum.ok);
        }
    }
}
