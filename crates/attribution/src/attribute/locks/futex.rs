//! What a thread waits for in a futex call, by the call's arguments and the words at its address.
//!
//! Sources: futex(2); Linux include/uapi/linux/futex.h. Layouts: glibc 2.31 to 2.41
//! sysdeps/nptl/bits/struct_mutex.h (x86-64 and arm64 alike), nptl/lowlevellock.c (a waiter sets
//! the word to 2 and waits with `FUTEX_WAIT`); musl 1.2 src/thread/pthread_mutex_timedlock.c.

use super::shape::LockKind;
use model::syscalls::Syscall;

/// Bits of the operation that change no meaning here: private, and the clock of the timeout.
const OPTIONS: u64 = 128 | 256;
const FUTEX_WAIT: u64 = 0;
const FUTEX_LOCK_PI: u64 = 6;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_LOCK_PI2: u64 = 13;
/// In a word that holds the owner: others wait (`FUTEX_WAITERS`).
const WAITERS: u32 = 1 << 31;
/// The owner in such a word (`FUTEX_TID_MASK`).
const OWNER: u32 = (1 << 30) - 1;
/// The word of a C library's or Rust's mutex that somebody waits for.
const CONTENDED: u32 = 2;
/// In a read-write lock of glibc: a writer holds it, and others wait (`1 | PTHREAD_RWLOCK_FUTEX_USED`).
const WRITING: u32 = 3;
/// What musl stores for a mutex that does not check its owner (`EBUSY`).
const MUSL_UNCHECKED: u32 = 16;

/// `__kind` of glibc's mutexes, nptl/pthreadP.h: types 0 to 3, robust, inherits, protects,
/// process-shared, elision on and off.
const GLIBC_TYPE: u32 = 3;
const GLIBC_ROBUST: u32 = 16;
const GLIBC_INHERITS: u32 = 32;
const GLIBC_KINDS: u32 = GLIBC_TYPE | GLIBC_ROBUST | GLIBC_INHERITS | 64 | 128 | 256 | 512;
/// More threads than may hold or wait for one mutex (`__nusers`).
const GLIBC_USERS: u32 = 1 << 22;

/// A call in which a thread may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FutexCall {
    /// The address of the word.
    pub(super) word: u64,
    pub(super) kind: LockKind,
    /// The lock's owner, by the word itself.
    pub(super) owner: Option<i32>,
}

impl FutexCall {
    /// By the first three arguments; `None` if the call waits for nothing. `glibc`: whether the
    /// process uses that C library.
    pub(super) fn of(call: &Syscall, [word, second, third]: [u64; 3], glibc: bool) -> Option<Self> {
        let value = |argument: u64| argument as u32;
        match call.name {
            "futex" => match second & !OPTIONS {
                // musl's condition variables wait for the same value by the same operation.
                FUTEX_WAIT => Some(Self::waits(word, value(third), glibc)),
                FUTEX_WAIT_BITSET => Some(Self::waits(word, value(third), false)),
                // The kernel reads the owner from the word; the call does not pass it.
                FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => {
                    Some(Self { word, kind: LockKind::Inheriting, owner: None })
                }
                _ => None,
            },
            "futex_wait" => Some(Self::waits(word, value(second), false)),
            _ => None,
        }
    }

    /// `plain`: by `FUTEX_WAIT` in glibc, whose condition variables and semaphores never wait so
    /// for the value of a contended mutex; what a program does by itself may.
    fn waits(word: u64, value: u32, plain: bool) -> Self {
        let tid = value & OWNER;
        let (kind, owner) = match value {
            _ if value & WAITERS != 0 && tid == MUSL_UNCHECKED => (LockKind::Mutex, None),
            _ if value & WAITERS != 0 && tid != 0 => (LockKind::Owned, i32::try_from(tid).ok()),
            CONTENDED if plain => (LockKind::ByValue, None),
            _ => (LockKind::Unknown, None),
        };
        Self { word, kind, owner }
    }

    /// With the words at its address, the first of which is its own, as they were when the call
    /// began. `is_thread`: whether a thread of this number has been seen.
    pub(super) fn with_words(self, words: [u32; 5], is_thread: impl Fn(i32) -> bool) -> Self {
        let [word, _, owner, users, kind] = words;
        let thread = |number: u32| i32::try_from(number).ok().filter(|tid| *tid > 0 && is_thread(*tid));
        if self.kind == LockKind::Inheriting {
            return Self { owner: thread(word & OWNER), ..self };
        }
        let is_kind = kind & !GLIBC_KINDS == 0 && (1..GLIBC_USERS).contains(&users);
        // The call was not seen: the memory alone shows what it is.
        if self.kind == LockKind::Unknown && is_kind && word & WAITERS != 0 {
            let of_word = match kind & (GLIBC_INHERITS | GLIBC_ROBUST) {
                0 => None,
                bits if bits & GLIBC_INHERITS != 0 => Some(LockKind::Inheriting),
                _ => Some(LockKind::Owned),
            };
            if let Some((kind, owner)) = of_word.zip(thread(word & OWNER)) {
                return Self { kind, owner: Some(owner), ..self };
            }
        }
        if let Some(writer) = self.writer(words).and_then(thread) {
            return Self { kind: LockKind::ReadWrite, owner: Some(writer), ..self };
        }
        let is_glibc = word == CONTENDED && is_kind;
        match thread(owner).filter(|_| is_glibc) {
            Some(owner) => Self { kind: LockKind::GlibcMutex, owner: Some(owner), ..self },
            // Programs have futexes of their own, whose value may be any.
            None if self.kind == LockKind::ByValue => Self { kind: LockKind::Unknown, ..self },
            None => self,
        }
    }

    /// The writer that holds the read-write lock of glibc, if the words are one that a writer holds
    /// (`struct __pthread_rwlock_arch_t`): the word of the phase or of the writers, both 3 while a
    /// writer holds it and others wait, two zeros, and the writer.
    fn writer(self, words: [u32; 5]) -> Option<u32> {
        match words {
            _ if self.kind != LockKind::Unknown => None,
            [WRITING, 0 | 1 | WRITING, 0, 0, writer] | [WRITING, 0, 0, writer, _] => Some(writer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::syscalls::by_number;

    fn futex(operation: u64, value: u64) -> Option<FutexCall> {
        FutexCall::of(by_number("x86_64", 202).unwrap(), [0xf00, operation, value], true)
    }

    fn kind_and_owner(operation: u64, value: u64) -> (LockKind, Option<i32>) {
        futex(operation, value).map(|call| (call.kind, call.owner)).unwrap()
    }

    #[test]
    fn arguments_tell_locks_from_other_waits() {
        assert_eq!(kind_and_owner(128, 2), (LockKind::ByValue, None));
        // Condition variables and semaphores.
        assert_eq!(kind_and_owner(128, 0), (LockKind::Unknown, None));
        assert_eq!(kind_and_owner(128 | 256 | 9, 2), (LockKind::Unknown, None));
        // Robust mutexes of glibc, and those of musl that know their owner.
        assert_eq!(kind_and_owner(0, 0x8000_04d2), (LockKind::Owned, Some(1234)));
        assert_eq!(kind_and_owner(128, 0x8000_0010), (LockKind::Mutex, None));
        assert_eq!(kind_and_owner(6 | 128, 0), (LockKind::Inheriting, None));
        assert_eq!((futex(1 | 128, 1), futex(7, 0), futex(3, 1)), (None, None, None));
        let wait = FutexCall::of(by_number("x86_64", 455).unwrap(), [0xf00, 0x8000_04d2, 0], true);
        assert_eq!(wait.and_then(|call| call.owner), Some(1234));
        let musl = FutexCall::of(by_number("x86_64", 202).unwrap(), [0xf00, 128, 2], false);
        assert_eq!(musl.map(|call| call.kind), Some(LockKind::Unknown));
    }

    #[test]
    fn the_owner_beside_the_word_is_read_where_the_words_are_a_mutex() {
        let threads = |tid| [77, 78].contains(&tid);
        let with = |operation, value, words| futex(operation, value).unwrap().with_words(words, threads);
        let mutex = with(128, 2, [2, 0, 77, 1, 0]);
        assert_eq!((mutex.kind, mutex.owner), (LockKind::GlibcMutex, Some(77)));
        // A timed lock waits by another operation.
        assert_eq!(with(128 | 9, 2, [2, 1, 78, 1, 1]).owner, Some(78));
        assert_eq!(with(128 | 6, 0, [0x8000_004d, 0, 0, 1, 32]).owner, Some(77));
        // The phase, and the writers, of a read-write lock.
        for words in [[3, 1, 0, 0, 77], [3, 0, 0, 77, 0]] {
            let lock = with(128 | 9, 3, words);
            assert_eq!((lock.kind, lock.owner), (LockKind::ReadWrite, Some(77)), "{words:?}");
        }
        assert_eq!(with(128 | 9, 3, [3, 1, 0, 0, 5]).owner, None);
        // No thread, no kind of mutex, nobody who uses it, another word.
        for words in [[2, 0, 5, 1, 0], [2, 0, 77, 1, 7 << 20], [2, 0, 77, 0, 0], [1, 0, 77, 1, 0]] {
            let other = with(128, 2, words);
            assert_eq!((other.kind, other.owner), (LockKind::Unknown, None), "{words:?}");
        }
    }
}
