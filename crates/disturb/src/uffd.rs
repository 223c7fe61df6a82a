//! A page whose faults another thread resolves: userfaultfd(2), ioctl_userfaultfd(2).
//!
//! Numbers and structures: Linux `include/uapi/linux/userfaultfd.h`.

use super::Error;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::{Errno, read};
use rustix::mm::{MapFlags, ProtFlags, UserfaultfdFlags, mmap_anonymous, munmap, userfaultfd};
use rustix::param::page_size;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::c_void;
use std::io;
use std::thread::{Builder, JoinHandle};

/// `UFFD_USER_MODE_ONLY`: faults of user space alone, which needs no privilege (Linux 5.11).
const USER_MODE_ONLY: UserfaultfdFlags = UserfaultfdFlags::from_bits_retain(1);
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_COPY: u64 = 0xc028_aa03;
const REGISTER_MODE_MISSING: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
/// `struct uffd_msg`.
const MESSAGE: usize = 32;

/// The page, for the thread that touches it.
pub(super) struct Faults(*mut c_void);

/// The other side: where the kernel says that the page is touched.
pub(super) struct Resolver {
    faults: OwnedFd,
    page: usize,
}

impl Faults {
    /// Absent where this kernel or user may not.
    pub(super) fn prepare() -> Result<(Self, Resolver), Error> {
        let descriptor = descriptor()?;
        let refused = |action| Error::refused::<io::Error>(action);
        let mut api = [UFFD_API, 0, 0];
        control(&descriptor, UFFDIO_API, &mut api).map_err(refused("agree on the userfaultfd API"))?;
        // SAFETY: a fresh private mapping overlaps nothing.
        let page = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            mmap_anonymous(std::ptr::null_mut(), page_size(), protection, MapFlags::PRIVATE)
        };
        let page = Self(page.map_err(Error::refused("map a page"))?);
        let address = page.0.addr();
        let mut range = [address as u64, page_size() as u64, REGISTER_MODE_MISSING, 0];
        control(&descriptor, UFFDIO_REGISTER, &mut range).map_err(refused("register a page"))?;
        Ok((page, Resolver { faults: descriptor, page: address }))
    }

    /// Touches the page while it is missing and throws it away: it must hold the number of the
    /// fault.
    pub(super) fn touch(&self, number: u64) -> io::Result<()> {
        // SAFETY: the page is this struct's own, and begins with a word; the read returns once the
        // page is there.
        let found = unsafe { self.0.cast::<u64>().read_volatile() };
        // SAFETY: as above; nobody holds a reference into it.
        if unsafe { libc::madvise(self.0, page_size(), libc::MADV_DONTNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
        if found == number { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        // SAFETY: the page is this struct's own.
        let _ = unsafe { munmap(self.0, page_size()) };
    }
}

fn descriptor() -> Result<OwnedFd, Error> {
    let open = |flags| {
        // SAFETY: nobody's memory is registered with it yet.
        unsafe { userfaultfd(UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK | flags) }
    };
    // Older kernels do not know the flag, and may allow it all the same.
    let opened = match open(USER_MODE_ONLY) {
        Err(Errno::INVAL) => open(UserfaultfdFlags::empty()),
        other => other,
    };
    opened.map_err(|error| match error {
        Errno::NOSYS => Error::absent("this kernel has no userfaultfd (CONFIG_USERFAULTFD)"),
        Errno::PERM => Error::absent("userfaultfd is not allowed here (vm.unprivileged_userfaultfd)"),
        _ => Error::refused("open a userfaultfd")(error),
    })
}

fn control<const WORDS: usize>(to: &OwnedFd, request: u64, words: &mut [u64; WORDS]) -> io::Result<()> {
    // SAFETY: each request reads and writes a structure of as many words, which its number tells.
    match unsafe { libc::ioctl(to.as_raw_fd(), request as _, words.as_mut_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The thread that provides pages.
pub(super) struct Handler {
    thread: JoinHandle<u64>,
    /// Its end is that of the thread.
    word: OwnedFd,
}

impl Handler {
    pub(super) fn start(resolver: Resolver) -> io::Result<Self> {
        let (end, word) = pipe_with(PipeFlags::CLOEXEC)?;
        let thread = Builder::new().stack_size(64 << 10).spawn(move || resolver.serve(&end))?;
        Ok(Self { thread, word })
    }

    /// Ends it, and says how many messages it has read.
    pub(super) fn end(self) -> u64 {
        drop(self.word);
        self.thread.join().unwrap_or(0)
    }
}

impl Resolver {
    /// Provides a page for each message until nobody wants any. Whatever fails ends it: with the
    /// descriptor the kernel forgets the page, wakes whoever waits for it, and lets them find
    /// zeros.
    fn serve(self, end: &OwnedFd) -> u64 {
        let mut read = 0;
        while let Ok(true) = self.next(end) {
            read += 1;
            if self.provide(read).is_err() {
                break;
            }
        }
        read
    }

    /// Waits for the next message about the page; false at the end.
    fn next(&self, end: &OwnedFd) -> io::Result<bool> {
        loop {
            let mut waited = [PollFd::new(&self.faults, PollFlags::IN), PollFd::new(end, PollFlags::empty())];
            match poll(&mut waited, None) {
                Ok(_) if !waited[1].revents().is_empty() => return Ok(false),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut message = [0; MESSAGE];
            match read(&self.faults, &mut message) {
                Ok(MESSAGE) if is_about(&message, self.page) => return Ok(true),
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives the page, with this number in its first word, to whoever waits for it.
    fn provide(&self, number: u64) -> io::Result<()> {
        let mut page = vec![0u64; page_size() / 8];
        page[0] = number;
        let [to, from] = [self.page, page.as_ptr().addr()].map(|address| address as u64);
        control(&self.faults, UFFDIO_COPY, &mut [to, from, page_size() as u64, 0, 0])
    }
}

/// Whether a message is about a fault in the page: the event is its first byte, the address its
/// third word.
fn is_about(message: &[u8; MESSAGE], page: usize) -> bool {
    let address = message[16..24].try_into().map(u64::from_ne_bytes).unwrap_or_default();
    message[0] == EVENT_PAGEFAULT && address as usize & !(page_size() - 1) == page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_touch_is_a_message_and_a_page_of_the_other_thread() {
        let Ok((faults, resolver)) = Faults::prepare() else {
            println!("skipped: no userfaultfd here");
            return;
        };
        let handler = Handler::start(resolver).unwrap();
        faults.touch(1).unwrap();
        faults.touch(2).unwrap();
        assert!(faults.touch(2).is_err(), "the third page has another number");
        assert_eq!(handler.end(), 3);
        assert!(faults.touch(4).is_err(), "the page is an ordinary one afterwards");
    }

    #[test]
    fn a_message_is_known_by_its_event_and_address() {
        let mut message = [0; MESSAGE];
        message[0] = EVENT_PAGEFAULT;
        message[16..24].copy_from_slice(&0x7000_0008_u64.to_ne_bytes());
        assert!(is_about(&message, 0x7000_0000) && !is_about(&message, 0x7001_0000));
        message[0] = 0x13;
        assert!(!is_about(&message, 0x7000_0000));
    }
}
