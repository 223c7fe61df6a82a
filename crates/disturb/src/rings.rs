//! Queues of the kernel for asynchronous input and output, used once each: made, given one request,
//! asked what it completed, and freed.
//!
//! `io_uring_setup(2)`, `io_uring_enter(2)`, `io_setup(2)`, `io_submit(2)`; layouts of
//! `include/uapi/linux/io_uring.h` and `fs/aio.c`. In both the kernel writes what it has completed
//! into memory that it shares: a count that the caller's loop cannot make up.

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

const ENTRIES: u32 = 8;
/// Where the submission ring is mapped from; since Linux 5.4 it holds the completion ring too
/// (IORING_FEAT_SINGLE_MMAP).
const OFF_SQ_RING: u64 = 0;
const OFF_SQES: u64 = 0x1000_0000;
const FEAT_SINGLE_MMAP: u32 = 1;
const ENTER_GETEVENTS: u32 = 1;
const SQE_BYTES: usize = 64;
const CQE_BYTES: usize = 16;
const AIO_MAGIC: u32 = 0xa10a_10a1;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    /// head, tail, ring_mask, ring_entries, flags, dropped, array, reserved, and an address.
    sq: [u32; 10],
    /// head, tail, ring_mask, ring_entries, overflow, cqes, flags, reserved, and an address.
    cq: [u32; 10],
}

/// Makes an io_uring, has it do nothing once, and closes it; returns how many requests the kernel
/// says are complete.
pub(super) fn uring_once() -> io::Result<u64> {
    let mut params = Params::default();
    // SAFETY: the kernel reads and writes one `io_uring_params`, whose layout `Params` has; the
    // descriptor is owned at once.
    let ring = unsafe {
        match libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut params) {
            number if number < 0 => return Err(io::Error::last_os_error()),
            number => OwnedFd::from_raw_fd(number as i32),
        }
    };
    if params.features & FEAT_SINGLE_MMAP == 0 {
        return Err(Errno::NOSYS.into());
    }
    let sq_bytes = params.sq[6] as usize + params.sq_entries as usize * 4;
    let cq_bytes = params.cq[5] as usize + params.cq_entries as usize * CQE_BYTES;
    let rings = Shared::map(&ring, sq_bytes.max(cq_bytes), OFF_SQ_RING)?;
    // A request of zeros is IORING_OP_NOP, so that the entries need only be there.
    let _requests = Shared::map(&ring, params.sq_entries as usize * SQE_BYTES, OFF_SQES)?;
    // The first place of the submission ring names request 0: it is all zeros already.
    rings.word(params.sq[1])?.store(1, Ordering::Release);
    // SAFETY: no memory but the shared rings is touched.
    let submitted = unsafe {
        libc::syscall(
            libc::SYS_io_uring_enter,
            ring.as_raw_fd(),
            1u32,
            1u32,
            ENTER_GETEVENTS,
            std::ptr::null::<libc::c_void>(),
            0usize,
        )
    };
    match submitted {
        1 => Ok(u64::from(rings.word(params.cq[1])?.load(Ordering::Acquire))),
        number if number < 0 => Err(io::Error::last_os_error()),
        _ => Err(Errno::AGAIN.into()),
    }
}

/// Memory that is shared with the kernel.
struct Shared {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Shared {
    fn map(ring: &OwnedFd, bytes: usize, offset: u64) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new shared mapping at an address of the kernel's choosing overlaps nothing.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, ring, offset)? };
        Ok(Self { start, bytes })
    }

    /// A word at an offset that the kernel has returned.
    fn word(&self, offset: u32) -> io::Result<&AtomicU32> {
        let offset = offset as usize;
        if !offset.is_multiple_of(4) || offset + 4 > self.bytes {
            return Err(Errno::FAULT.into());
        }
        // SAFETY: the word is inside the mapping, which lives as long as `self`, and aligned; the
        // kernel, too, uses it atomically.
        Ok(unsafe { &*self.start.cast::<AtomicU32>().add(offset / 4) })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own, and references into it do not outlive it.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// `struct iocb`, `include/uapi/linux/aio_abi.h`; the key and the flags of the request share a word
/// whose order depends on the machine.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// The head of `struct aio_ring` (fs/aio.c): the first page of what an aio context's number points
/// to.
#[repr(C)]
struct AioRing {
    id: u32,
    entries: u32,
    head: u32,
    tail: AtomicU32,
    magic: u32,
}

/// Makes an aio context, has it write a byte, and destroys it; returns how many requests the kernel
/// says are complete. `file`: where to write; one in memory completes at once.
pub(super) fn aio_once(file: &impl AsRawFd) -> io::Result<u64> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the kernel writes one number.
    if unsafe { libc::syscall(libc::SYS_io_setup, ENTRIES, &raw mut context) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let completed = aio_write(context, file);
    // SAFETY: the context was made above; nothing refers to its ring any more.
    if unsafe { libc::syscall(libc::SYS_io_destroy, context) } != 0 {
        return Err(io::Error::last_os_error());
    }
    completed
}

fn aio_write(context: libc::c_ulong, file: &impl AsRawFd) -> io::Result<u64> {
    const WRITE: u16 = 1;
    let byte = [0x5au8];
    let mut request = Request {
        opcode: WRITE,
        file: file.as_raw_fd() as u32,
        buffer: byte.as_ptr() as u64,
        bytes: 1,
        ..Request::default()
    };
    let mut requests = [&raw mut request];
    // SAFETY: one request, whose layout `Request` has. It and its buffer live until the write is
    // complete: `io_destroy` waits for it.
    if unsafe { libc::syscall(libc::SYS_io_submit, context, 1 as libc::c_long, requests.as_mut_ptr()) } != 1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: an aio context is the address of its ring, which is mapped until `io_destroy`.
    let ring = unsafe { &*(context as *const AioRing) };
    if ring.magic != AIO_MAGIC {
        return Err(Errno::PROTO.into());
    }
    Ok(u64::from(ring.tail.load(Ordering::Acquire)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(size_of::<Params>(), 120);
        assert_eq!(size_of::<Request>(), 64);
        assert_eq!(std::mem::offset_of!(AioRing, magic), 16);
    }

    #[test]
    fn each_queue_completes_one_request_where_this_kernel_has_it() {
        let absent = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
        let file = tempfile::tempfile().unwrap();
        for done in [uring_once(), aio_once(&file)] {
            match done {
                Ok(completed) => assert_eq!(completed, 1),
                Err(error) => assert!(absent(&error), "{error}"),
            }
        }
    }
}
