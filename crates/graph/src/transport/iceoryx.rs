//! Eclipse iceoryx2: a service of its own for each link, with a buffer of the link's depth for its
//! subscriber.
//!
//! The middleware makes, finds and removes its shared memory itself, by names; what a killed
//! process leaves behind is removed by the next node made on the machine. A subscriber's buffer
//! ends with it, so a killed subscriber loses its contents. The middleware's own ways of waking
//! (listeners, wait sets) are not used: a receiver is woken like those of the ring in shared
//! memory.

use crate::transport::end::End;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::ipc_threadsafe::Service;
use iceoryx2::prelude::{BackpressureStrategy, LogLevel, NodeBuilder, set_log_level};
use std::fmt::Display;
use std::io;

/// Ends of each kind that a service has room for: those of a link.
const ENDS: usize = 1;

/// One end of a service.
#[derive(Debug)]
pub(super) enum Port {
    /// The publisher's; `frame` is where header and payload come together.
    Publisher { port: Publisher<Service, [u8], ()>, frame: Vec<u8> },
    /// The subscriber's.
    Subscriber(Subscriber<Service, [u8], ()>),
}

impl Port {
    /// Opens one end of a service of this name, or makes the service where the other end has not.
    pub(super) fn open(service: &str, end: End, depth: usize, frame_bytes: usize) -> io::Result<Self> {
        // It prints to standard error that it was given no settings file.
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new().create::<Service>().map_err(io::Error::other)?;
        let name = service.try_into().map_err(said)?;
        let service = node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .history_size(0)
            .max_publishers(ENDS)
            .max_subscribers(ENDS)
            .subscriber_max_buffer_size(depth)
            .open_or_create()
            .map_err(said)?;
        Ok(match end {
            End::Sender => {
                let port = service
                    .publisher_builder()
                    .initial_max_slice_len(frame_bytes)
                    .backpressure_strategy(BackpressureStrategy::DiscardData)
                    .create()
                    .map_err(said)?;
                Self::Publisher { port, frame: vec![1; frame_bytes] }
            }
            End::Receiver => Self::Subscriber(service.subscriber_builder().create().map_err(said)?),
        })
    }

    /// Hands a message over; false where the subscriber's buffer was full, or there was none.
    #[inline]
    pub(super) fn put(&mut self, parts: [&[u8]; 2]) -> io::Result<bool> {
        let Self::Publisher { port, frame } = self else { return Err(other_end()) };
        let bytes = parts[0].len() + parts[1].len();
        frame[..parts[0].len()].copy_from_slice(parts[0]);
        frame[parts[0].len()..bytes].copy_from_slice(parts[1]);
        let sample = port.loan_slice_uninit(bytes).map_err(said)?;
        Ok(sample.write_from_slice(&frame[..bytes]).send().map_err(said)? > 0)
    }

    /// Takes the oldest message into the frame and returns its length; `None` where there is none.
    #[inline]
    pub(super) fn take(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        let Self::Subscriber(port) = self else { return Err(other_end()) };
        let Some(sample) = port.receive().map_err(said)? else { return Ok(None) };
        let message = sample.payload();
        let Some(place) = frame.get_mut(..message.len()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message longer than the link carries"));
        };
        place.copy_from_slice(message);
        Ok(Some(message.len()))
    }
}

/// What the middleware said.
fn said(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

fn other_end() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the other end of the link does that")
}
