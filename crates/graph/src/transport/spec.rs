//! What a link is asked to be, and what it became.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use sys::doorbell::Manner;

/// The longest message of any transport, bytes.
pub const MOST_BYTES: usize = 16 << 20;
/// The most messages that any link keeps.
pub const MOST_DEPTH: usize = 4096;

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A queue under a lock, between threads of one process, as rclcpp's intra-process buffers.
    Queue,
    /// A pool of buffers and a POSIX message queue that carries which one: the software bus of
    /// NASA's cFS (`OS_QueuePut` of a pointer).
    MqPointer,
    /// A pipe; messages of at most 4096 bytes with their header are packets (`O_DIRECT`).
    Pipe,
    /// A POSIX message queue that carries the message.
    Mq,
    /// A pair of unix sockets, SOCK_SEQPACKET.
    Seqpacket,
    /// UDP over the loopback device.
    Udp,
    /// A ring in shared memory; a receiver that sleeps does so on a futex.
    ShmFutex,
    /// The same ring; a receiver sleeps in epoll over an eventfd.
    ShmEventfd,
    /// The same ring; the receiver never sleeps.
    ShmPoll,
    /// Eclipse iceoryx2: shared memory of its own making, a service for each link; a receiver that
    /// sleeps does so on a futex.
    #[cfg(feature = "iceoryx2")]
    Iceoryx2,
    /// DDS with the names and types of ROS 2, over UDP: a topic for each link; a thread listens and
    /// rings for its receiver.
    #[cfg(feature = "ros2")]
    Ros2,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9 + cfg!(feature = "iceoryx2") as usize + cfg!(feature = "ros2") as usize] = [
        Self::Queue,
        Self::MqPointer,
        Self::Pipe,
        Self::Mq,
        Self::Seqpacket,
        Self::Udp,
        Self::ShmFutex,
        Self::ShmEventfd,
        Self::ShmPoll,
        #[cfg(feature = "iceoryx2")]
        Self::Iceoryx2,
        #[cfg(feature = "ros2")]
        Self::Ros2,
    ];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::MqPointer => "mq-pointer",
            Self::Pipe => "pipe",
            Self::Mq => "mq",
            Self::Seqpacket => "seqpacket",
            Self::Udp => "udp",
            Self::ShmFutex => "shm-futex",
            Self::ShmEventfd => "shm-eventfd",
            Self::ShmPoll => "shm-poll",
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx2 => "iceoryx2",
            #[cfg(feature = "ros2")]
            Self::Ros2 => "ros2",
        }
    }

    /// Whether its ends may be in two processes.
    pub fn between_processes(self) -> bool {
        self != Self::Queue
    }

    /// How a receiver of this kind waits when it is alone. A descriptor needs epoll.
    pub fn manner(self) -> Manner {
        match self {
            Self::Queue | Self::ShmFutex => Manner::Futex,
            Self::ShmPoll => Manner::Poll,
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx2 => Manner::Futex,
            #[cfg(feature = "ros2")]
            Self::Ros2 => Manner::Futex,
            Self::MqPointer | Self::Pipe | Self::Mq | Self::Seqpacket | Self::Udp | Self::ShmEventfd => {
                Manner::Epoll
            }
        }
    }

    /// Whether the kernel itself wakes the receiver, through a descriptor.
    pub fn by_descriptor(self) -> bool {
        matches!(self, Self::MqPointer | Self::Pipe | Self::Mq | Self::Seqpacket | Self::Udp)
    }

    /// Whether a sender can take the oldest message out of a full link.
    pub fn replaces(self) -> bool {
        // iceoryx2 can, but does not report it to its sender.
        !matches!(self, Self::Pipe | Self::Seqpacket | Self::Udp) && !self.ends_with_receiver()
    }

    /// Whether waiting messages end with their receiver: a dropped receiver counts them as left,
    /// those of a killed one have vanished. On any other link the maker reads them.
    pub fn ends_with_receiver(self) -> bool {
        match self {
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx2 => true,
            #[cfg(feature = "ros2")]
            Self::Ros2 => true,
            _ => false,
        }
    }

    /// Whether a message that was sent is still on its way, and the ends have to find each other
    /// first.
    pub fn arrives_later(self) -> bool {
        match self {
            #[cfg(feature = "ros2")]
            Self::Ros2 => true,
            _ => false,
        }
    }

    /// Whether messages lie in slots of shared memory.
    pub(super) fn in_slots(self) -> bool {
        matches!(self, Self::Queue | Self::MqPointer | Self::ShmFutex | Self::ShmEventfd | Self::ShmPoll)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            let features = ["iceoryx2", "ros2"];
            let elsewhere = if features.contains(&text) {
                format!(", or a build with the cargo feature {text}")
            } else {
                String::new()
            };
            format!("no transport `{text}`; expected one of {}{elsewhere}", names.join(", "))
        })
    }
}

/// What happens to a message that finds its link full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It is refused; what is in the link stays (DDS: reliable, as far as a publisher that never
    /// waits can be).
    #[default]
    Refuse,
    /// It replaces the oldest (DDS: keep-last). Transports whose sender cannot take out what it
    /// sent refuse instead.
    ReplaceOldest,
}

/// What is asked of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSpec {
    /// Whose link it is, for messages to the user.
    pub name: String,
    /// The transport.
    pub kind: Kind,
    /// The longest payload, bytes.
    pub message_bytes: usize,
    /// Messages that wait to be taken before the link is full.
    pub depth: usize,
    /// What happens then.
    pub when_full: WhenFull,
}

/// What a link became on this machine for this user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The depth in force: that asked, or what the kernel allows.
    pub depth: usize,
    /// The rule in force.
    pub when_full: WhenFull,
    /// A sentence for each difference from the request, with its remedy.
    pub notes: Vec<String>,
}
