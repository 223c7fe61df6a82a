//! A subscriber that a ROS 2 publisher matches.

use super::StampedVector;
use super::names::topic_on_wire;
use super::participant::{Error, Qos, failed, participant};
use mio::{Events, Interest, Poll, Token, Waker};
use rustdds::no_key::DataReader;
use rustdds::{DataReaderStatus, DomainParticipant, StatusEvented, TopicKind};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

const ARRIVED: Token = Token(0);
const ENOUGH: Token = Token(1);

/// A subscriber of [`StampedVector`] on one topic.
pub struct Subscriber {
    reader: Arc<Mutex<DataReader<StampedVector>>>,
    matched: i32,
    listener: Option<Listener>,
    // Last, so that the reader says goodbye while its participant is still there.
    _participant: Arc<DomainParticipant>,
}

impl Subscriber {
    /// A subscriber in this domain (ROS_DOMAIN_ID, 0 to 232) on this ROS 2 topic.
    pub fn new(domain: u16, topic: &str, qos: Qos) -> Result<Self, Error> {
        let participant = participant(domain)?;
        let qos = qos.policies();
        let (name, message) = (topic_on_wire(topic)?, StampedVector::type_on_wire()?);
        let topic = participant
            .create_topic(name, message, &qos, TopicKind::NoKey)
            .map_err(failed("make a DDS topic"))?;
        let subscriber = participant.create_subscriber(&qos).map_err(failed("make a DDS subscriber"))?;
        let reader =
            subscriber.create_datareader_no_key_cdr(&topic, None).map_err(failed("make a DDS reader"))?;
        let reader = Arc::new(Mutex::new(reader));
        Ok(Self { reader, matched: 0, listener: None, _participant: participant })
    }

    /// Publishers that match now.
    pub fn matched(&mut self) -> i32 {
        while let Some(status) = locked(&self.reader).try_recv_status() {
            if let DataReaderStatus::SubscriptionMatched { current, .. } = status {
                self.matched = current.count();
            }
        }
        self.matched
    }

    /// The oldest message that nobody has taken.
    pub fn take(&mut self) -> Result<Option<StampedVector>, Error> {
        let sample = locked(&self.reader).take_next_sample().map_err(failed("take a message"))?;
        Ok(sample.map(rustdds::no_key::DataSample::into_value))
    }

    /// Has a thread of its own call this whenever something may have arrived: what there is has to be taken until nothing is left.
    pub fn on_arrival(&mut self, call: impl Fn() + Send + 'static) -> io::Result<()> {
        self.listener = Some(Listener::start(&self.reader, call)?);
        Ok(())
    }
}

fn locked<T>(reader: &Mutex<T>) -> MutexGuard<'_, T> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that waits for arrivals until it is dropped.
struct Listener {
    enough: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    fn start(
        reader: &Mutex<DataReader<StampedVector>>,
        call: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let mut poll = Poll::new()?;
        poll.registry().register(&mut *locked(reader), ARRIVED, Interest::READABLE)?;
        let enough = Waker::new(poll.registry(), ENOUGH)?;
        let thread = std::thread::Builder::new().name("ros2-arrivals".to_owned()).spawn(move || {
            let mut events = Events::with_capacity(4);
            loop {
                match poll.poll(&mut events, None) {
                    Err(error) if error.kind() != ErrorKind::Interrupted => return,
                    _ => {}
                }
                if events.iter().any(|event| event.token() == ENOUGH) {
                    return;
                }
                call();
            }
        })?;
        Ok(Self { enough, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // A thread that cannot be woken is left where it is; the process ends it.
        if self.enough.wake().is_ok() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}
