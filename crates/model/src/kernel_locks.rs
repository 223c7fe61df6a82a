//! Who owns a lock of the kernel that a task waits for: an event probe beside
//! `lock:contention_begin` reads the owner out of the lock's memory, without code of its own in the
//! kernel.
//!
//! Linux Documentation/trace/eventprobes.rst (since 5.15); include/trace/events/lock.h (since
//! 5.19). The owner is a pointer to its task, with flags in the lowest bits: kernel/locking/mutex.h
//! (`MUTEX_FLAG_WAITERS`, `_HANDOFF`, `_PICKUP`), rwsem.c (`RWSEM_READER_OWNED`,
//! `RWSEM_NONSPINNABLE`), rtmutex_common.h (`RT_MUTEX_HAS_WAITERS`).

use crate::events::{EventSpec, Side};
use std::fmt::Write;

/// The kernel's event of a lock that is there.
pub const CONTENTION_END: &str = "lock:contention_end";

/// The event.
pub const OWNER: &str = "stillcore:lock_owner";

/// The lock of a process's memory, and the event's field with its place in that.
pub const MMAP_LOCK: &str = "mmap_lock";
/// The field with the place of the rt-mutex in it, if there is one.
pub const MMAP_RT_MUTEX: &str = "mmap_rt_mutex";

/// Where the kernel has what in memory, bytes; `None`: it has no such member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// `task_struct.pid`.
    pub pid: u32,
    /// `mutex.owner`.
    pub mutex: Option<u32>,
    /// `rw_semaphore.owner`.
    pub rwsem: Option<u32>,
    /// `rt_mutex_base.owner`.
    pub rt_mutex: Option<u32>,
    /// `owner` of the `rtmutex` in an `rwbase_rt`: PREEMPT_RT's semaphores and read-write locks.
    pub rwbase: Option<u32>,
    /// The memory of a process, and its lock.
    pub memory: Option<Memory>,
}

/// Where the lock of a process's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// `task_struct.mm`.
    pub of_task: u32,
    /// `mm_struct.mmap_lock`.
    pub lock: u32,
    /// The `rtmutex` in that, by which its writers wait for one another on PREEMPT_RT.
    pub rt_mutex: Option<u32>,
}

/// A kind of lock whose owner stands in its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnedKind {
    /// `struct mutex`.
    Mutex,
    /// `struct rw_semaphore`.
    RwSemaphore,
    /// `struct rt_mutex_base`: on PREEMPT_RT also a mutex and a spinlock.
    RtMutex,
    /// `struct rwbase_rt`.
    RwBase,
}

/// Bits of the event's `flags` (include/trace/events/lock.h).
const SPIN: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 4;
const RT: u64 = 8;
const MUTEX: u64 = 32;

impl OwnedKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mutex, Self::RwSemaphore, Self::RtMutex, Self::RwBase];

    /// By the event's `flags`. `None`: a lock without an owner, such as a spinlock or a semaphore.
    pub fn of_flags(flags: u64) -> Option<Self> {
        Some(match flags {
            MUTEX => Self::Mutex,
            // It spins for as long as the owner runs.
            _ if flags == MUTEX | SPIN => Self::Mutex,
            READ | WRITE => Self::RwSemaphore,
            RT => Self::RtMutex,
            _ if flags == RT | READ || flags == RT | WRITE => Self::RwBase,
            _ => return None,
        })
    }

    /// The event's field with the owner's word. `FIELDk` is the number of the task behind it, for
    /// each `k` of [`Self::flags`]; `FIELD_again` the word once more: where it has changed
    /// meanwhile, the numbers mean nothing.
    pub fn field(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::RwSemaphore => "rwsem",
            Self::RtMutex => "rt",
            Self::RwBase => "rwbase",
        }
    }

    /// The flags with which the owner may still lead to the memory of its process, `FIELD_mmK`: by
    /// that a semaphore shows to be the lock of that memory, `mmap_lock`.
    pub fn memory_flags(self) -> std::ops::Range<u64> {
        match self {
            Self::Mutex => 0..0,
            Self::RwSemaphore => 0..4,
            Self::RtMutex | Self::RwBase => 0..2,
        }
    }

    /// The flags that may stand in the owner's lowest bits while it names a task.
    pub fn flags(self) -> std::ops::Range<u64> {
        match self {
            Self::Mutex => 0..8,
            // With a flag it is the last reader, who may have gone.
            Self::RwSemaphore => 0..1,
            Self::RtMutex | Self::RwBase => 0..2,
        }
    }

    fn offset(self, offsets: &Offsets) -> Option<u32> {
        match self {
            Self::Mutex => offsets.mutex,
            Self::RwSemaphore => offsets.rwsem,
            Self::RtMutex => offsets.rt_mutex,
            Self::RwBase => offsets.rwbase,
        }
    }
}

/// The event of a kernel with these offsets; `None` where no kind of lock shows its owner.
///
/// A probe cannot mask bits. So that the flags do not matter, the task's number is read once for
/// each value of them, from that many bytes further down.
pub fn probe(offsets: &Offsets) -> Option<EventSpec> {
    let mut text = "lock.contention_begin lock=$lock_addr flags=$flags".to_owned();
    let mut any = false;
    for kind in OwnedKind::ALL {
        let Some(at) = kind.offset(offsets) else { continue };
        any = true;
        let field = kind.field();
        let _ = write!(text, " {field}=+{at}($lock_addr):x64");
        for flags in kind.flags() {
            let pid = i64::from(offsets.pid) - flags as i64;
            let _ = write!(text, " {field}{flags}={pid:+}(+{at}($lock_addr)):s32");
        }
        if let Some(memory) = offsets.memory {
            for flags in kind.memory_flags() {
                let memory = i64::from(memory.of_task) - flags as i64;
                let _ = write!(text, " {field}_mm{flags}={memory:+}(+{at}($lock_addr)):x64");
            }
        }
        let _ = write!(text, " {field}_again=+{at}($lock_addr):x64");
    }
    if let Some(Memory { lock, rt_mutex, .. }) = offsets.memory {
        let _ = write!(text, " {MMAP_LOCK}=\\{lock}:u32 {MMAP_RT_MUTEX}=\\{}:u32", rt_mutex.unwrap_or(lock));
    }
    let with_owner = (0..64).filter(|flags| OwnedKind::of_flags(*flags).is_some());
    let filter: Vec<String> = with_owner.map(|flags| format!("flags == {flags}")).collect();
    any.then(|| EventSpec {
        on: vec![Side::Watched],
        eprobe: Some(text),
        filter: Some(filter.join(" || ")),
        ..EventSpec::link(OWNER.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFSETS: Offsets = Offsets {
        pid: 1400,
        mutex: Some(0),
        rwsem: Some(8),
        rt_mutex: None,
        rwbase: None,
        memory: Some(Memory { of_task: 1200, lock: 120, rt_mutex: None }),
    };

    #[test]
    fn each_value_of_the_flags_has_the_number_of_the_task_behind_it() {
        let event = probe(&OFFSETS).unwrap();
        let text = event.eprobe.unwrap();
        let wanted = [
            "lock.contention_begin lock=$lock_addr flags=$flags mutex=+0($lock_addr):x64 ",
            " mutex0=+1400(+0($lock_addr)):s32 ",
            " mutex7=+1393(+0($lock_addr)):s32 ",
            " rwsem=+8($lock_addr):x64 rwsem0=+1400(+8($lock_addr)):s32 rwsem_mm0=+1200(+8($lock_addr)):x64 ",
            " rwsem_mm3=+1197(+8($lock_addr)):x64 rwsem_again=+8($lock_addr):x64 mmap_lock=\\120:u32 mmap_rt_mutex=\\120:u32",
        ];
        for part in wanted {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !text.contains(" rt=") && !text.contains("rwbase"),
            "a kernel without PREEMPT_RT has none: {text}"
        );
        assert_eq!(
            event.filter.as_deref(),
            Some(
                "flags == 2 || flags == 4 || flags == 8 || flags == 10 || flags == 12 || flags == 32 || flags == 33"
            )
        );
        assert_eq!(probe(&Offsets { mutex: None, rwsem: None, ..OFFSETS }), None);
    }

    #[test]
    fn locks_without_an_owner_are_left_out() {
        // Spinlocks, read-write spinlocks, per-CPU semaphores, semaphores.
        for flags in [1, 3, 5, 16, 18, 20, 0, 40] {
            assert_eq!(OwnedKind::of_flags(flags), None, "{flags}");
        }
        assert_eq!(OwnedKind::of_flags(33), Some(OwnedKind::Mutex));
    }
}
