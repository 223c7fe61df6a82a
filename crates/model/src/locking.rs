//! Probes on the functions of a C library by which a program locks and unlocks: every locking is
//! recorded then, not only those that had to wait.
//!
//! POSIX.1-2024, `pthread_mutex_lock`, `pthread_cond_wait`: waiting for a condition releases the
//! mutex, and returns with it taken, also where the time was over.

use crate::events::{EventSpec, Side};

/// A thread asks for a lock.
pub const ASK: &str = "stillcore:lock_ask";
/// The function returns that it asked with.
pub const RETURN: &str = "stillcore:lock_return";
/// A thread releases a lock.
pub const RELEASE: &str = "stillcore:lock_release";
/// A thread waits for a condition: it releases a lock, and asks for it again.
pub const WAIT: &str = "stillcore:lock_wait";
/// A thread signals a condition.
pub const SIGNAL: &str = "stillcore:lock_signal";

/// The functions, with the events at their entry.
pub const FUNCTIONS: [(&str, &str); 10] = [
    ("pthread_mutex_lock", ASK),
    ("pthread_mutex_trylock", ASK),
    ("pthread_mutex_timedlock", ASK),
    ("pthread_mutex_clocklock", ASK),
    ("pthread_mutex_unlock", RELEASE),
    ("pthread_cond_wait", WAIT),
    ("pthread_cond_timedwait", WAIT),
    ("pthread_cond_clockwait", WAIT),
    ("pthread_cond_signal", SIGNAL),
    ("pthread_cond_broadcast", SIGNAL),
];

/// Where in a mutex of the GNU C library its kind is (`__kind`; sysdeps/nptl/bits/struct_mutex.h,
/// x86-64 and arm64 alike).
const KIND: u32 = 16;

/// How a mutex of the GNU C library treats priorities, by its kind (nptl/pthreadP.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MutexKind {
    /// `PTHREAD_PRIO_INHERIT`.
    pub inherits: bool,
    /// `PTHREAD_PRIO_PROTECT`.
    pub protects: bool,
    /// `PTHREAD_PROCESS_SHARED`.
    pub shared: bool,
}

impl MutexKind {
    /// Of the word; `None` where no mutex has such a kind.
    pub fn of(word: u32) -> Option<Self> {
        let is = |bit: u32| word & bit != 0;
        let known = 3 | 16 | 32 | 64 | 128 | 256 | 512;
        (word & !known == 0).then_some(Self { inherits: is(32), protects: is(64), shared: is(128) })
    }
}

/// Registers of the first and the second argument of a function of user space.
const ARGUMENTS: [&str; 2] = if cfg!(target_arch = "x86_64") { ["%di", "%si"] } else { ["%x0", "%x1"] };

/// The probes. `places`: function of [`FUNCTIONS`], file, and offset of its code in the file.
pub fn probes(places: &[(&str, String, u64)]) -> Vec<EventSpec> {
    let at = |(_, file, offset): &(&str, String, u64)| format!("{file}:{offset:#x}");
    let event = |name: &str, returns: bool, is_it: &dyn Fn(&str) -> bool, what: &str| {
        let of = |function: &str| FUNCTIONS.iter().any(|(one, event)| *one == function && is_it(event));
        let ours = places.iter().filter(|(function, ..)| of(function));
        let uprobes: Vec<String> = ours.map(|place| format!("{} {what}", at(place))).collect();
        let on = vec![Side::Watched];
        EventSpec { on, uprobes, returns, ..EventSpec::link(name.to_owned()) }
    };
    let [first, second] = ARGUMENTS;
    let lock = |register: &str| format!("lock={register}:x64 kind=+{KIND}({register}):u32");
    let all = [
        event(ASK, false, &|event| event == ASK, &lock(first)),
        event(WAIT, false, &|event| event == WAIT, &format!("{} condition={first}:x64", lock(second))),
        event(RELEASE, false, &|event| event == RELEASE, &format!("lock={first}:x64")),
        event(SIGNAL, false, &|event| event == SIGNAL, &format!("condition={first}:x64")),
        event(RETURN, true, &|event| ![RELEASE, SIGNAL].contains(&event), "result=$retval:s32"),
    ];
    all.into_iter().filter(|event| !event.uprobes.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_the_functions_that_it_is_for() {
        let place = |function: &'static str, offset| (function, "/lib/libc.so.6".to_owned(), offset);
        let places = [
            place("pthread_mutex_lock", 0x10),
            place("pthread_mutex_unlock", 0x20),
            place("pthread_cond_wait", 0x30),
            place("pthread_cond_signal", 0x40),
        ];
        let probes = probes(&places);
        let of = |name: &str| probes.iter().find(|event| event.name == name).unwrap();
        let [first, second] = ARGUMENTS;
        assert_eq!(of(ASK).uprobes, [format!("/lib/libc.so.6:0x10 lock={first}:x64 kind=+16({first}):u32")]);
        let wait =
            format!("/lib/libc.so.6:0x30 lock={second}:x64 kind=+16({second}):u32 condition={first}:x64");
        assert_eq!(of(WAIT).uprobes, [wait]);
        assert_eq!(of(SIGNAL).uprobes, [format!("/lib/libc.so.6:0x40 condition={first}:x64")]);
        assert_eq!(of(RELEASE).uprobes.len(), 1);
        assert!(of(RETURN).returns && of(RETURN).uprobes.len() == 2, "of the lock and of the condition");
        assert_eq!(super::probes(&places[1..2]).len(), 1, "what has no function has no event");
    }

    #[test]
    fn the_kind_of_a_mutex_shows_its_protocol() {
        let of = |word| MutexKind::of(word).map(|kind| (kind.inherits, kind.protects, kind.shared));
        assert_eq!(of(0), Some((false, false, false)));
        // Recursive, robust, inheriting; then shared.
        assert_eq!(of(1 | 16 | 32), Some((true, false, false)));
        assert_eq!((of(64), of(128)), (Some((false, true, false)), Some((false, false, true))));
        assert_eq!(of(0x1234_5678), None);
    }
}
