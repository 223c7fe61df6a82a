//! The differences between transports in one file: how each takes a message and hands it out.

use super::account::Account;
use super::ring::{Put, Ring, Shared};
use super::spec::{Kind, WhenFull};
use super::{HEADER_BYTES, Header};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use sys::doorbell::Bell;
use sys::mqueue::MessageQueue;
use sys::slots::Slots;
use sys::{clock, datagram, pipes};

/// How long the rest of a partly arrived message may take.
const PATIENCE_NS: i64 = clock::SECOND_NS;

/// Numbers of slots between threads of one process, room for all of them from the beginning.
pub(super) type Numbers = Arc<Mutex<VecDeque<u32>>>;

/// One end of a transport.
#[derive(Debug)]
pub(super) enum Carrier {
    /// Numbers of slots under a lock. Without priority inheritance: between executors of different
    /// priority the lock is held for the length of a push or a pop.
    Queue { slots: Slots, numbers: Numbers, depth: usize },
    /// Numbers of slots in a ring.
    Ring { slots: Slots, ring: Ring<Shared> },
    /// Numbers of slots in a POSIX message queue.
    Pointer { slots: Slots, queue: MessageQueue },
    /// Messages in a POSIX message queue. The sender joins header and payload in `frame`, and reads
    /// the oldest message into `discarded` when it replaces it.
    Mq { queue: MessageQueue, frame: Vec<u8>, discarded: Vec<u8> },
    /// Messages in a pipe, as packets or one behind the other.
    Pipe { file: OwnedFd, packets: bool },
    /// Messages in a socket.
    Socket { file: OwnedFd },
    /// Messages in memory of iceoryx2.
    #[cfg(feature = "iceoryx2")]
    Iceoryx2(super::iceoryx::Port),
    /// Messages on a topic of ROS 2.
    #[cfg(feature = "ros2")]
    Ros2(super::ros2::Port),
}

/// What came of handing a message over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handed {
    /// The link has it.
    Taken,
    /// The link has it, and the oldest is gone.
    Replaced,
    /// The link was full.
    Full,
}

impl Carrier {
    /// The descriptor that becomes readable when a message is there, where the transport has one.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Queue { .. } | Self::Ring { .. } => None,
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx2(_) => None,
            #[cfg(feature = "ros2")]
            Self::Ros2(_) => None,
            Self::Pointer { queue, .. } | Self::Mq { queue, .. } => Some(queue.as_fd()),
            Self::Pipe { file, .. } | Self::Socket { file } => Some(file.as_fd()),
        }
    }

    /// Hands a message over, or reports that there is no room; never waits.
    #[inline]
    pub(super) fn put(&mut self, parts: [&[u8]; 2], rule: WhenFull) -> io::Result<Handed> {
        let replace = rule == WhenFull::ReplaceOldest;
        match self {
            Self::Queue { slots, numbers, depth } => {
                let Some(slot) = slots.fill(parts) else { return Ok(Handed::Full) };
                let mut numbers = numbers.lock().unwrap_or_else(PoisonError::into_inner);
                let oldest = if numbers.len() < *depth {
                    None
                } else if replace {
                    numbers.pop_front()
                } else {
                    drop(numbers);
                    slots.discard(slot);
                    return Ok(Handed::Full);
                };
                numbers.push_back(slot);
                drop(numbers);
                Ok(oldest.map_or(Handed::Taken, |oldest| replaced(slots, oldest)))
            }
            Self::Ring { slots, ring } => {
                let Some(slot) = slots.fill(parts) else { return Ok(Handed::Full) };
                Ok(match ring.put(u64::from(slot), replace) {
                    Put::Taken => Handed::Taken,
                    Put::Instead(oldest) => replaced(slots, oldest as u32),
                    Put::Full => {
                        slots.discard(slot);
                        Handed::Full
                    }
                })
            }
            Self::Pointer { slots, queue } => {
                let Some(slot) = slots.fill(parts) else { return Ok(Handed::Full) };
                let mut oldest = [0u8; POINTER_BYTES];
                let pointer = u64::from(slot).to_ne_bytes();
                let handed = enqueue(queue, &pointer, replace.then_some(&mut oldest[..]))?;
                match handed {
                    Handed::Taken => {}
                    Handed::Replaced => return Ok(replaced(slots, u64::from_ne_bytes(oldest) as u32)),
                    Handed::Full => _ = slots.discard(slot),
                }
                Ok(handed)
            }
            Self::Mq { queue, frame, discarded } => {
                let bytes = parts[0].len() + parts[1].len();
                frame[..parts[0].len()].copy_from_slice(parts[0]);
                frame[parts[0].len()..bytes].copy_from_slice(parts[1]);
                enqueue(queue, &frame[..bytes], replace.then_some(discarded))
            }
            Self::Pipe { file, .. } => {
                let bytes = parts[0].len() + parts[1].len();
                match pipes::write_parts(file, parts) {
                    Ok(written) if written == bytes => Ok(Handed::Taken),
                    // The link's depth leaves room for whole messages; a truncated one would
                    // corrupt all that follow.
                    Ok(_) => Err(io::Error::new(ErrorKind::WriteZero, "the pipe took a part of a message")),
                    Err(error) => full_or(error),
                }
            }
            Self::Socket { file } => match datagram::send_parts(file, parts) {
                Ok(_) => Ok(Handed::Taken),
                // The kernel's memory for sockets is full for the moment, as the link would be.
                Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => Ok(Handed::Full),
                Err(error) => full_or(error),
            },
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx2(port) => Ok(if port.put(parts)? { Handed::Taken } else { Handed::Full }),
            #[cfg(feature = "ros2")]
            Self::Ros2(port) => Ok(if port.put(parts)? { Handed::Taken } else { Handed::Full }),
        }
    }

    /// Takes the oldest message into the frame and returns its length; `None` where there is none.
    #[inline]
    pub(super) fn take(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Queue { slots, numbers, .. } => {
                let number = numbers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                Ok(number.and_then(|slot| slots.take(slot, frame)))
            }
            Self::Ring { slots, ring } => Ok(ring.take().and_then(|slot| slots.take(slot as u32, frame))),
            Self::Pointer { slots, queue } => {
                let mut pointer = [0u8; POINTER_BYTES];
                let got = some_or_empty(queue.receive(&mut pointer))?;
                Ok(got.and_then(|_| slots.take(u64::from_ne_bytes(pointer) as u32, frame)))
            }
            Self::Mq { queue, .. } => some_or_empty(queue.receive(frame)),
            Self::Pipe { file, packets: true } => some_or_empty(pipes::read_some(file, frame)),
            Self::Pipe { file, packets: false } => take_stream(file, frame),
            Self::Socket { file } => some_or_empty(datagram::receive(file, frame)),
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx2(port) => port.take(frame),
            #[cfg(feature = "ros2")]
            Self::Ros2(port) => port.take(frame),
        }
    }

    /// Whether the other end is known to be there.
    pub(super) fn joined(&mut self) -> bool {
        match self {
            #[cfg(feature = "ros2")]
            Self::Ros2(port) => port.joined(),
            _ => true,
        }
    }

    /// Whether the other end is still there, as far as this one knows.
    pub(super) fn heard(&mut self) -> bool {
        match self {
            #[cfg(feature = "ros2")]
            Self::Ros2(port) => port.heard(),
            _ => true,
        }
    }

    /// Why nothing will move on this link any more, where that is known.
    pub(super) fn stuck(&mut self) -> Option<io::Error> {
        match self {
            #[cfg(feature = "ros2")]
            Self::Ros2(port) => port.stuck(),
            _ => None,
        }
    }

    /// Sets up the counting of arrivals, and the bell, where the sender cannot know of them.
    pub(super) fn listen(&mut self, account: Account, bell: Bell) -> io::Result<()> {
        match self {
            #[cfg(feature = "ros2")]
            Self::Ros2(port) => port.listen(account, bell),
            _ => {
                drop((account, bell));
                Err(io::Error::new(ErrorKind::Unsupported, "senders of this transport ring themselves"))
            }
        }
    }

    /// Whether the sender alone keeps the depth, from how far the receiver has come, because the
    /// kernel counts bytes or nothing.
    pub(super) fn uncounted(kind: Kind) -> bool {
        matches!(kind, Kind::Pipe | Kind::Seqpacket | Kind::Udp) || kind.arrives_later()
    }
}

/// What a message queue carries for the software bus: a pointer on a machine of 64 bits.
pub(super) const POINTER_BYTES: usize = 8;
/// ENOBUFS.
const NO_BUFFERS: i32 = 105;

fn replaced(slots: &Slots, oldest: u32) -> Handed {
    slots.discard(oldest);
    Handed::Replaced
}

fn full_or(error: io::Error) -> io::Result<Handed> {
    if error.kind() == ErrorKind::WouldBlock { Ok(Handed::Full) } else { Err(error) }
}

fn some_or_empty(taken: io::Result<usize>) -> io::Result<Option<usize>> {
    match taken {
        // A pipe or a socket whose other end is gone: nothing can come any more, and the account
        // says so.
        Ok(0) => Ok(None),
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends; if the queue is full and `oldest` is given, first takes the oldest message out into it.
fn enqueue(queue: &MessageQueue, message: &[u8], oldest: Option<&mut [u8]>) -> io::Result<Handed> {
    let Err(error) = queue.send(message) else { return Ok(Handed::Taken) };
    let (ErrorKind::WouldBlock, Some(oldest)) = (error.kind(), oldest) else { return full_or(error) };
    let back = some_or_empty(queue.receive(oldest))?;
    match queue.send(message) {
        Ok(()) if back.is_some() => Ok(Handed::Replaced),
        // The receiver has taken it meanwhile.
        Ok(()) => Ok(Handed::Taken),
        Err(error) => Err(error),
    }
}

/// A message that is a header and then as many bytes as that says.
fn take_stream(file: &OwnedFd, frame: &mut [u8]) -> io::Result<Option<usize>> {
    let Some(begun) = some_or_empty(pipes::read_some(file, &mut frame[..HEADER_BYTES]))? else {
        return Ok(None);
    };
    read_rest(file, &mut frame[begun..HEADER_BYTES])?;
    let bytes = Header::from_bytes(frame).map_or(u64::MAX, |header| header.bytes);
    let end = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(HEADER_BYTES);
    let Some(payload) = frame.get_mut(HEADER_BYTES..end) else {
        return Err(io::Error::new(ErrorKind::InvalidData, "a header that says more than the link carries"));
    };
    read_rest(file, payload)?;
    Ok(Some(end))
}

/// The kernel writes a message under the pipe's lock: once begun it is complete, unless the writer
/// was killed in between.
fn read_rest(file: &OwnedFd, mut rest: &mut [u8]) -> io::Result<()> {
    let mut give_up = None;
    while !rest.is_empty() {
        if let Some(bytes) = some_or_empty(pipes::read_some(file, rest))? {
            rest = &mut rest[bytes..];
            continue;
        }
        let now = clock::now_ns();
        if now > *give_up.get_or_insert(now + PATIENCE_NS) {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the rest of a message never came"));
        }
        std::thread::yield_now();
    }
    Ok(())
}
