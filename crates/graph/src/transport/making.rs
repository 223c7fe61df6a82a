//! What each transport needs from the kernel, and how much of the request the kernel grants this
//! user.
//!
//! All limits are lifted for one object where the user may (CAP_SYS_RESOURCE for pipes and queues,
//! CAP_NET_ADMIN for sockets), never for the machine: nothing has to be restored. Where the user
//! may not, the link is less deep than requested and says so. A message that does not fit at all is
//! refused.

use super::HEADER_BYTES;
use super::carrier::POINTER_BYTES;
use super::error::Error;
use super::spec::{Facts, Kind, LinkSpec, WhenFull};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use sys::datagram::{self, Side, UDP_MOST};
use sys::mqueue::{self, MessageQueue};
use sys::pipes;

/// What the kernel keeps with each message of a socket, at most: its description, headers, and the
/// rounding up of its memory to a power of two (`alloc_skb_with_frags`, `kmalloc`).
const SOCKET_OVERHEAD: usize = 4096;

/// The descriptors of a link.
#[derive(Debug)]
pub(super) enum Ends {
    /// Memory is enough.
    Memory,
    /// One descriptor is both ends.
    Queue(OwnedFd),
    /// The sender's and the receiver's.
    Two(OwnedFd, OwnedFd),
}

impl Ends {
    /// The sender's and the receiver's descriptor.
    pub(super) fn files(&self) -> (Option<&OwnedFd>, Option<&OwnedFd>) {
        match self {
            Self::Memory => (None, None),
            Self::Queue(file) => (Some(file), Some(file)),
            Self::Two(send, receive) => (Some(send), Some(receive)),
        }
    }
}

/// A link's descriptors, and what it became.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) ends: Ends,
    pub(super) facts: Facts,
}

/// Makes what the transport needs.
pub(super) fn make(spec: &LinkSpec) -> Result<Made, Error> {
    let mut made = match spec.kind {
        Kind::Queue | Kind::ShmFutex | Kind::ShmEventfd | Kind::ShmPoll => Ok(got(spec, Ends::Memory)),
        Kind::MqPointer => queue(spec, POINTER_BYTES),
        Kind::Mq => queue(spec, spec.message_bytes + HEADER_BYTES),
        Kind::Pipe => pipe(spec),
        Kind::Seqpacket | Kind::Udp => socket(spec),
        #[cfg(feature = "iceoryx2")]
        Kind::Iceoryx2 => Ok(got(spec, Ends::Memory)),
        #[cfg(feature = "ros2")]
        Kind::Ros2 => Ok(got(spec, Ends::Memory)),
    }?;
    if spec.when_full == WhenFull::ReplaceOldest && !spec.kind.replaces() {
        made.facts.when_full = WhenFull::Refuse;
        made.facts.notes.push(format!(
            "link {}: a sender cannot take back what is in a {}; a full link refuses new messages instead",
            spec.name, spec.kind
        ));
    }
    Ok(made)
}

fn got(spec: &LinkSpec, ends: Ends) -> Made {
    Made { ends, facts: Facts { depth: spec.depth, when_full: spec.when_full, notes: Vec::new() } }
}

/// A link of the depth that there is room for.
fn of_depth(spec: &LinkSpec, ends: Ends, depth: usize, remedy: &str) -> Made {
    let mut made = got(spec, ends);
    if depth < spec.depth {
        made.facts.depth = depth;
        made.facts.notes.push(format!(
            "link {}: the {} holds {depth} messages of {} bytes, not {}; {remedy}",
            spec.name, spec.kind, spec.message_bytes, spec.depth
        ));
    }
    made
}

fn too_long(spec: &LinkSpec, most: usize, remedy: String) -> Error {
    let (link, kind, bytes) = (spec.name.clone(), spec.kind, spec.message_bytes);
    Error::TooLong { link, kind, bytes, most: most.saturating_sub(HEADER_BYTES), remedy }
}

/// A number under /proc/sys.
fn setting(name: &str) -> Option<usize> {
    fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?.trim().parse().ok()
}

fn queue(spec: &LinkSpec, bytes: usize) -> Result<Made, Error> {
    mqueue::lift_limit();
    let made = MessageQueue::create(spec.depth, bytes);
    match made {
        Ok(queue) => return Ok(got(spec, Ends::Queue(queue.into()))),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {}
        Err(error) if error.raw_os_error() == Some(TOO_MANY) => return fewer(spec, bytes, spec.depth),
        Err(error) => return Err(refused(spec, "make a message queue")(error)),
    }
    let longest = setting("fs.mqueue.msgsize_max").unwrap_or(8192);
    if bytes > longest {
        let remedy =
            format!("with CAP_SYS_RESOURCE, or after sysctl fs.mqueue.msgsize_max={bytes}, it carries that");
        return Err(too_long(spec, longest, remedy));
    }
    fewer(spec, bytes, spec.depth.min(setting("fs.mqueue.msg_max").unwrap_or(10)))
}

/// EMFILE.
const TOO_MANY: i32 = 24;

/// As deep a queue as this user's limits allow.
fn fewer(spec: &LinkSpec, bytes: usize, most: usize) -> Result<Made, Error> {
    let remedy = "it takes CAP_SYS_RESOURCE, or a larger fs.mqueue.msg_max and RLIMIT_MSGQUEUE (ulimit -q)";
    let mut depth = most;
    loop {
        match MessageQueue::create(depth, bytes) {
            Ok(queue) => return Ok(of_depth(spec, Ends::Queue(queue.into()), depth, remedy)),
            Err(error) if error.raw_os_error() == Some(TOO_MANY) && depth > 1 => depth /= 2,
            Err(error) => return Err(refused(spec, "make a message queue")(error)),
        }
    }
}

/// Space of a message in a pipe: a packet takes a page; a longer message begins and ends within
/// one.
pub(super) fn pipe_page_bytes(spec: &LinkSpec) -> usize {
    let frame = spec.message_bytes + HEADER_BYTES;
    if in_packets(spec) { pipes::PAGE } else { (frame.div_ceil(pipes::PAGE) + 1) * pipes::PAGE }
}

fn pipe(spec: &LinkSpec) -> Result<Made, Error> {
    let packets = in_packets(spec);
    let (receive, send) = pipes::pipe(packets).map_err(refused(spec, "make a pipe"))?;
    let each = pipe_page_bytes(spec);
    let wide = pipes::widen(&send, spec.depth * each).map_err(refused(spec, "widen a pipe"))?;
    if wide < each {
        let remedy = format!(
            "with CAP_SYS_RESOURCE, or after sysctl fs.pipe-max-size={}, it carries that",
            each.next_power_of_two()
        );
        return Err(too_long(spec, (wide / pipes::PAGE).saturating_sub(1) * pipes::PAGE, remedy));
    }
    let remedy = "it takes CAP_SYS_RESOURCE, or a larger fs.pipe-max-size";
    Ok(of_depth(spec, Ends::Two(send, receive), spec.depth.min(wide / each), remedy))
}

/// What a message takes of a socket's buffer, at most.
pub(super) fn socket_bytes(frame: usize) -> usize {
    2 * frame + SOCKET_OVERHEAD
}

fn socket(spec: &LinkSpec) -> Result<Made, Error> {
    let frame = spec.message_bytes + HEADER_BYTES;
    let each = socket_bytes(frame);
    let (made, sides, limits) = match spec.kind {
        Kind::Udp if frame > UDP_MOST => {
            return Err(too_long(
                spec,
                UDP_MOST,
                "a datagram is no longer; take another transport".to_owned(),
            ));
        }
        Kind::Udp => (datagram::udp(), [Side::Receive, Side::Send], "net.core.rmem_max and wmem_max"),
        _ => (datagram::seqpacket(), [Side::Send, Side::Send], "net.core.wmem_max"),
    };
    let (send, receive) =
        made.map_err(refused(spec, "make a pair of sockets (is the loopback device up?)"))?;
    let mut room = usize::MAX;
    for side in sides {
        let end = if side == Side::Send { &send } else { &receive };
        let wanted = if side == Side::Send && spec.kind == Kind::Udp { each } else { spec.depth * each };
        let wide = datagram::widen(end, side, wanted).map_err(refused(spec, "widen a socket"))?;
        if wide < each {
            let remedy = format!("with CAP_NET_ADMIN, or after raising {limits} to {each}, it carries that");
            return Err(too_long(spec, wide.saturating_sub(SOCKET_OVERHEAD) / 2, remedy));
        }
        if !(side == Side::Send && spec.kind == Kind::Udp) {
            room = wide;
        }
    }
    let remedy = format!("it takes CAP_NET_ADMIN, or a larger {limits}");
    Ok(of_depth(spec, Ends::Two(send, receive), spec.depth.min(room / each), &remedy))
}

/// Whether messages of a pipe are packets.
pub(super) fn in_packets(spec: &LinkSpec) -> bool {
    spec.message_bytes + HEADER_BYTES <= sys::pipes::PAGE
}

pub(super) fn refused(spec: &LinkSpec, action: &'static str) -> impl Fn(io::Error) -> Error {
    let link = spec.name.clone();
    move |source| Error::Os { link: link.clone(), action, source }
}
