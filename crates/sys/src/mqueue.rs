//! POSIX message queues without a name: `mq_open(3)`, `mq_send(3)`, `mq_receive(3)` by their system
//! calls.
//!
//! The kernel wants a name to make a queue; it is taken away at once, and the queue lives as long
//! as its descriptor (`mq_overview(7)`). glibc keeps these functions in a library of its own until
//! 2.34, and strips the slash that the system call refuses: hence raw calls, the same in the static
//! binary. Times are never waited for here: `mq_timedreceive` counts in CLOCK_REALTIME, which is
//! set.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::CString;
use std::io;

/// Names tried before giving up on finding one that is free.
const TRIES: u32 = 100;

/// `struct mq_attr` of the kernel (`include/uapi/linux/mqueue.h`).
#[repr(C)]
struct Attributes {
    flags: libc::c_long,
    max_messages: libc::c_long,
    message_bytes: libc::c_long,
    present: libc::c_long,
    reserved: [libc::c_long; 4],
}

/// A queue that nobody can find by name; copies of its descriptor are the same queue.
#[derive(Debug)]
pub struct MessageQueue {
    file: OwnedFd,
}

impl MessageQueue {
    /// Makes a queue of `depth` messages of at most `message_bytes`, both ways, whose calls never
    /// block.
    ///
    /// EINVAL above `fs.mqueue.msg_max` or `fs.mqueue.msgsize_max` without CAP_SYS_RESOURCE (with
    /// it: 65536 and 16 MiB); EMFILE where RLIMIT_MSGQUEUE leaves no room for one more; EACCES or
    /// ENOSYS on kernels without queues.
    pub fn create(depth: usize, message_bytes: usize) -> io::Result<Self> {
        let attributes = Attributes {
            flags: 0,
            max_messages: depth as libc::c_long,
            message_bytes: message_bytes as libc::c_long,
            present: 0,
            reserved: [0; 4],
        };
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let mut salt = super::clock::now_ns();
        for _ in 0..TRIES {
            salt += 1;
            let name = CString::new(format!("stillcore-{}-{salt}", std::process::id()))?;
            // SAFETY: name and attributes are valid for reading during the call.
            let made = unsafe {
                libc::syscall(libc::SYS_mq_open, name.as_ptr(), flags, 0o600, &raw const attributes)
            };
            if made < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::AlreadyExists {
                    continue;
                }
                return Err(error);
            }
            // SAFETY: the call above made this descriptor for us.
            let file = unsafe { OwnedFd::from_raw_fd(made as i32) };
            // SAFETY: the name is valid for reading during the call.
            if unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            return Ok(Self { file });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The queue behind a descriptor.
    pub fn adopt(file: OwnedFd) -> Self {
        Self { file }
    }

    /// Puts a message at the end. EAGAIN where the queue is full, EMSGSIZE where the message is
    /// longer than the queue takes.
    #[inline]
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let (file, none) = (self.file.as_raw_fd(), std::ptr::null::<libc::timespec>());
        // SAFETY: the message is valid for reading over its length; no time is given.
        let result =
            unsafe { libc::syscall(libc::SYS_mq_timedsend, file, message.as_ptr(), message.len(), 0, none) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes the oldest message and says how long it is. EAGAIN where the queue is empty; EMSGSIZE
    /// where the buffer is shorter than the longest message that the queue takes.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (file, none) = (self.file.as_raw_fd(), std::ptr::null_mut::<libc::c_uint>());
        let no_time = std::ptr::null::<libc::timespec>();
        // SAFETY: the buffer is valid for writing over its length; neither priority nor time is
        // given.
        let length = unsafe {
            libc::syscall(libc::SYS_mq_timedreceive, file, buffer.as_mut_ptr(), buffer.len(), none, no_time)
        };
        usize::try_from(length).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for MessageQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl From<MessageQueue> for OwnedFd {
    fn from(queue: MessageQueue) -> Self {
        queue.file
    }
}

/// Lets this process and its children fill queues without bound, where it may. The queues of one
/// user are counted together.
pub fn lift_limit() {
    let unbounded = Rlimit { current: None, maximum: None };
    if setrlimit(Resource::Msgqueue, unbounded).is_err() {
        let maximum = getrlimit(Resource::Msgqueue).maximum;
        let _ = setrlimit(Resource::Msgqueue, Rlimit { current: maximum, maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_and_a_full_queue_says_so() {
        let queue = MessageQueue::create(3, 16).unwrap();
        for number in 0..3u8 {
            queue.send(&[number; 5]).unwrap();
        }
        assert_eq!(queue.send(&[9]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut buffer = [0u8; 16];
        for number in 0..3u8 {
            assert_eq!(queue.receive(&mut buffer).unwrap(), 5);
            assert_eq!(buffer[..5], [number; 5]);
        }
        assert_eq!(queue.receive(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_message_of_no_bytes_is_one_and_a_long_one_is_refused() {
        let queue = MessageQueue::create(1, 8).unwrap();
        queue.send(&[]).unwrap();
        assert_eq!(queue.receive(&mut [0u8; 8]).unwrap(), 0);
        assert_eq!(queue.send(&[0; 9]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }

    #[test]
    fn no_name_stays() {
        let queue = MessageQueue::create(1, 8).unwrap();
        let own = format!("stillcore-{}-", std::process::id());
        if let Ok(names) = std::fs::read_dir("/dev/mqueue") {
            let left: Vec<_> =
                names.flatten().filter(|name| name.file_name().to_string_lossy().starts_with(&own)).collect();
            assert!(left.is_empty(), "{left:?}");
        }
        drop(queue);
    }
}
