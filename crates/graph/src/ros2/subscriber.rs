//! A subscriber that a ROS 2 publisher matches.
//!
//! It takes arrivals from the middleware at once: when a publisher leaves, the middleware drops its
//! messages that were not taken.

use super::StampedVector;
use super::participant::{Error, Participant, Qos, failed, participant, stamped};
use mio::{Events, Interest, Poll, Token, Waker};
use rustdds::no_key::{DataReader, DataSample};
use rustdds::{DataReaderStatus, StatusEvented};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const ARRIVED: Token = Token(0);
const STATUS: Token = Token(1);
const ENOUGH: Token = Token(2);

/// Interval of checks of the middleware's threads while nothing arrives.
const CHECK: Duration = Duration::from_millis(500);

/// A subscriber of [`StampedVector`] on one topic.
pub struct Subscriber {
    shared: Arc<Shared>,
    /// Until somebody listens.
    reader: Option<DataReader<StampedVector>>,
    listener: Option<Listener>,
    // Last, so that the reader says goodbye while its participant is still there.
    participant: Arc<Participant>,
}

/// What the listening thread has found out.
#[derive(Default)]
struct Shared {
    messages: Mutex<VecDeque<StampedVector>>,
    matched: AtomicI32,
    /// Why nothing will arrive any more.
    ended: OnceLock<Error>,
}

impl Subscriber {
    /// A subscriber in this domain (ROS_DOMAIN_ID, 0 to 232) on this ROS 2 topic; receives nothing
    /// until it listens.
    pub fn new(domain: u16, topic: &str, qos: Qos) -> Result<Self, Error> {
        let participant = participant(domain)?;
        let qos = qos.policies();
        let topic = stamped(&participant.dds, topic, &qos)?;
        let subscriber = participant.dds.create_subscriber(&qos).map_err(failed("make a DDS subscriber"))?;
        let reader =
            subscriber.create_datareader_no_key_cdr(&topic, None).map_err(failed("make a DDS reader"))?;
        let shared = Arc::new(Shared::default());
        Ok(Self { shared, reader: Some(reader), listener: None, participant })
    }

    /// Listens in a thread of its own, which reports each time how many messages are new, and once
    /// more when none will arrive any more.
    pub fn listen(&mut self, arrived: impl Fn(u64) + Send + 'static) -> io::Result<()> {
        if let Some(reader) = self.reader.take() {
            self.listener = Some(Listener::start(
                reader,
                Arc::clone(&self.shared),
                Arc::clone(&self.participant),
                arrived,
            )?);
        }
        Ok(())
    }

    /// Publishers that match now, as far as it listens.
    pub fn matched(&self) -> i32 {
        self.shared.matched.load(Ordering::Acquire)
    }

    /// The oldest message that was not taken yet; an error where none is left and none will come.
    pub fn take(&mut self) -> Result<Option<StampedVector>, Error> {
        // Before the look: what had arrived until then is found.
        let ended = self.shared.ended.get();
        let message = self.shared.messages.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match (message, ended) {
            (None, Some(error)) => Err(error.clone()),
            (message, _) => Ok(message),
        }
    }

    /// An error where the middleware is known to have ended.
    pub fn check(&self) -> Result<(), Error> {
        self.participant.check()
    }
}

/// A thread that waits for arrivals until it is dropped.
struct Listener {
    enough: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    fn start(
        mut reader: DataReader<StampedVector>,
        shared: Arc<Shared>,
        participant: Arc<Participant>,
        arrived: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let mut poll = Poll::new()?;
        poll.registry().register(&mut reader, ARRIVED, Interest::READABLE)?;
        poll.registry().register(reader.as_status_source_mio1(), STATUS, Interest::READABLE)?;
        let enough = Waker::new(poll.registry(), ENOUGH)?;
        let thread = std::thread::Builder::new().name("ros2-arrivals".to_owned()).spawn(move || {
            let mut events = Events::with_capacity(4);
            loop {
                // Before the first wait: no event reports what came before the registration.
                let new = shared.take_up(&mut reader);
                if new > 0 {
                    arrived(new);
                }
                let waited = poll.poll(&mut events, Some(CHECK));
                let checked = match waited {
                    Err(error) if error.kind() != ErrorKind::Interrupted => {
                        Err(failed("wait for messages")(error))
                    }
                    _ if events.is_empty() => participant.check(),
                    _ => Ok(()),
                };
                if let Err(error) = checked {
                    let last = shared.take_up(&mut reader);
                    let _ = shared.ended.set(error);
                    arrived(last);
                    return;
                }
                if events.iter().any(|event| event.token() == ENOUGH) {
                    return;
                }
            }
        })?;
        Ok(Self { enough, thread: Some(thread) })
    }
}

impl Shared {
    /// Takes everything that the middleware has; returns the number of messages.
    fn take_up(&self, reader: &mut DataReader<StampedVector>) -> u64 {
        while let Some(status) = reader.try_recv_status() {
            if let DataReaderStatus::SubscriptionMatched { current, .. } = status {
                self.matched.store(current.count(), Ordering::Release);
            }
        }
        let mut new = 0;
        // A message that cannot be read is lost; the gap in the numbers shows it.
        while let Ok(Some(sample)) = reader.take_next_sample() {
            let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            messages.push_back(DataSample::into_value(sample));
            new += 1;
        }
        new
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // A thread that cannot be woken keeps running; it ends with the process.
        if self.enough.wake().is_ok() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}
