//! A link as its maker holds it: shared memory with the account, whatever the transport needs, and
//! the bell of the executor it ends at.
//!
//! The maker keeps both ends open, so a killed peer loses nothing: the link's contents stay, and
//! are read at the end.

use super::account::{self, Account, Balance};
use super::carrier::{Carrier, Numbers};
use super::doorbell::{self, BellOrder, Doorbell};
use super::making::{Ends, Made, make};
use super::ring::{Ring, Shared};
use super::spec::{Facts, Kind, LinkSpec, MOST_BYTES, MOST_DEPTH};
pub(super) use super::{Error, HEADER_BYTES, Parcel, Receiver, Sender};
use crate::transport::end::End;
pub(super) use crate::transport::making::{in_packets, refused};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use sys::doorbell::Bell;
use sys::memory::{Mapping, shared_file};
use sys::mqueue::MessageQueue;
use sys::slots::Slots;

/// Slots beyond the depth: one that is being filled, one that is being read.
const IN_HANDS: usize = 2;

/// A link, both ends of it.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    facts: Facts,
    memory: OwnedFd,
    account: Account,
    ends: Ends,
    bell: Bell,
    /// What a queue of this process carries.
    numbers: Numbers,
    /// Where ends find each other that do so by a name.
    meeting: String,
}

/// How another process takes up an end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOrder {
    spec: LinkSpec,
    facts: Facts,
    memory: usize,
    /// The sender's descriptor and the receiver's, those that this order is for.
    files: [Option<usize>; 2],
    bell: Option<BellOrder>,
    meeting: String,
}

/// Which ends.
#[derive(Clone, Copy)]
struct Which {
    sender: bool,
    receiver: bool,
}

impl Link {
    /// Makes a link that ends at an executor with this bell. What the machine does not allow this
    /// user is refused here, or reported in the facts.
    pub fn new(spec: &LinkSpec, bell: &Doorbell) -> Result<Self, Error> {
        check(spec)?;
        doorbell::waits_for(bell.manner(), spec.kind)?;
        let Made { ends, facts } = make(spec)?;
        let memory = shared_file("stillcore-link", memory_bytes(spec, facts.depth))
            .map_err(refused(spec, "share memory"))?;
        let account = Account::new(map(spec, &facts, &memory)?);
        let numbers = Arc::new(Mutex::new(VecDeque::with_capacity(facts.depth + IN_HANDS)));
        Ok(Self {
            spec: spec.clone(),
            facts,
            memory,
            account,
            ends,
            bell: bell.copy()?,
            numbers,
            meeting: meeting(),
        })
    }

    /// What was asked.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// What it became.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Both ends, for threads of this process.
    pub fn pair(&self) -> Result<(Sender, Receiver), Error> {
        let mut parcel = Parcel::default();
        let order = self.order(Which { sender: true, receiver: true }, &mut parcel)?;
        order.pair(&mut parcel.arrived(), &self.numbers)
    }

    /// How another process takes up the publisher's end.
    pub fn sender_order(&self, parcel: &mut Parcel) -> Result<EndOrder, Error> {
        self.between_processes()?;
        self.order(Which { sender: true, receiver: false }, parcel)
    }

    /// How another process takes up the subscriber's end.
    pub fn receiver_order(&self, parcel: &mut Parcel) -> Result<EndOrder, Error> {
        self.between_processes()?;
        self.order(Which { sender: false, receiver: true }, parcel)
    }

    /// How another process takes up both ends, by [`EndOrder::adopt_pair`].
    pub fn pair_order(&self, parcel: &mut Parcel) -> Result<EndOrder, Error> {
        self.order(Which { sender: true, receiver: true }, parcel)
    }

    /// Closes the link for a sender that could not do so itself.
    pub fn close(&self) {
        self.account.close();
        self.bell.ring();
    }

    /// How the account stands; while an end is alive, a message may be on its way between two
    /// counters.
    pub fn balance(&self) -> Balance {
        self.account.balance()
    }

    /// When both ends are gone: reads what is left in the link, and returns where every message
    /// went. A process must itself leave what its queue still held ([`Receiver::leave`]); otherwise
    /// that has vanished.
    pub fn settle(&self) -> Result<Balance, Error> {
        if !self.spec.kind.ends_with_receiver() {
            let (_, mut receiver) = self.pair()?;
            receiver.leave()?;
        }
        Ok(self.account.balance())
    }

    fn between_processes(&self) -> Result<(), Error> {
        if self.spec.kind.between_processes() {
            return Ok(());
        }
        Err(Error::OneProcess { link: self.spec.name.clone(), kind: self.spec.kind })
    }

    fn order(&self, which: Which, parcel: &mut Parcel) -> Result<EndOrder, Error> {
        let copy = |file: &OwnedFd| file.try_clone().map_err(refused(&self.spec, "copy a descriptor"));
        let memory = parcel.put(copy(&self.memory)?);
        let (send, receive) = self.ends.files();
        let send = send.filter(|_| which.sender).map(copy).transpose()?.map(|file| parcel.put(file));
        let receive = receive.filter(|_| which.receiver).map(copy).transpose()?.map(|file| parcel.put(file));
        let rings = which.sender || self.spec.kind.arrives_later();
        let bell = rings.then(|| BellOrder::of(&self.bell, parcel)).transpose()?;
        Ok(EndOrder {
            spec: self.spec.clone(),
            facts: self.facts.clone(),
            memory,
            files: [send, receive],
            bell,
            meeting: self.meeting.clone(),
        })
    }
}

impl EndOrder {
    /// Whose end it is.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// What the link became.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Takes up both ends of a link within this process.
    pub fn adopt_pair(&self, parcel: &mut Parcel) -> Result<(Sender, Receiver), Error> {
        let numbers = Arc::new(Mutex::new(VecDeque::with_capacity(self.facts.depth + IN_HANDS)));
        self.pair(parcel, &numbers)
    }

    fn pair(&self, parcel: &mut Parcel, numbers: &Numbers) -> Result<(Sender, Receiver), Error> {
        let memory = self.map(parcel)?;
        let [send, receive] = self.files;
        let send = self.carrier(End::Sender, &memory, self.file(send, parcel)?, numbers)?;
        let receive = self.carrier(End::Receiver, &memory, self.file(receive, parcel)?, numbers)?;
        let bell = self.bell(parcel)?;
        let receiver = self.receiver(&memory, receive, || doorbell::copy(&bell))?;
        Ok((self.sender(&memory, send, bell), receiver))
    }

    fn map(&self, parcel: &mut Parcel) -> Result<Arc<Mapping>, Error> {
        map(&self.spec, &self.facts, &parcel.take(&self.spec.name, self.memory)?)
    }

    fn file(&self, index: Option<usize>, parcel: &mut Parcel) -> Result<Option<OwnedFd>, Error> {
        index.map(|index| parcel.take(&self.spec.name, index)).transpose()
    }

    fn bell(&self, parcel: &mut Parcel) -> Result<Bell, Error> {
        self.bell.as_ref().ok_or_else(|| self.missing())?.bell(&self.spec.name, parcel)
    }

    fn sender(&self, memory: &Arc<Mapping>, carrier: Carrier, bell: Bell) -> Sender {
        let (spec, facts) = (self.spec.clone(), self.facts.clone());
        Sender { spec, facts, account: Account::new(Arc::clone(memory)), carrier, bell, stamped_ns: 0 }
    }

    fn receiver(
        &self,
        memory: &Arc<Mapping>,
        mut carrier: Carrier,
        bell: impl FnOnce() -> Result<Bell, Error>,
    ) -> Result<Receiver, Error> {
        let account = Account::new(Arc::clone(memory));
        if self.spec.kind.arrives_later() {
            carrier.listen(account.clone(), bell()?).map_err(refused(&self.spec, "listen for arrivals"))?;
        }
        let frame = touched(self.spec.message_bytes + HEADER_BYTES);
        Ok(Receiver { spec: self.spec.clone(), account, carrier, frame })
    }

    fn missing(&self) -> Error {
        Error::Missing { link: self.spec.name.clone(), index: usize::MAX }
    }

    fn carrier(
        &self,
        end: End,
        memory: &Arc<Mapping>,
        file: Option<OwnedFd>,
        numbers: &Numbers,
    ) -> Result<Carrier, Error> {
        let (spec, depth) = (&self.spec, self.facts.depth);
        let frame_bytes = spec.message_bytes + HEADER_BYTES;
        let slots = || Slots::new(Arc::clone(memory), slots_offset(depth), depth + IN_HANDS, frame_bytes);
        let file = || file.ok_or_else(|| self.missing());
        Ok(match spec.kind {
            Kind::Queue => Carrier::Queue { slots: slots(), numbers: Arc::clone(numbers), depth },
            Kind::ShmFutex | Kind::ShmEventfd | Kind::ShmPoll => {
                let ring = Ring::new(Shared::new(Arc::clone(memory), account::BYTES, depth), depth);
                Carrier::Ring { slots: slots(), ring }
            }
            Kind::MqPointer => Carrier::Pointer { slots: slots(), queue: MessageQueue::adopt(file()?) },
            Kind::Mq => {
                // A receiver has its own frame.
                let bytes = if end == End::Sender { frame_bytes } else { 0 };
                let queue = MessageQueue::adopt(file()?);
                Carrier::Mq { queue, frame: touched(bytes), discarded: touched(bytes) }
            }
            Kind::Pipe => Carrier::Pipe { file: file()?, packets: in_packets(spec) },
            Kind::Seqpacket | Kind::Udp => Carrier::Socket { file: file()? },
            #[cfg(feature = "iceoryx2")]
            Kind::Iceoryx2 => {
                let port = super::iceoryx::Port::open(&self.meeting, end, depth, frame_bytes);
                Carrier::Iceoryx2(port.map_err(refused(spec, "open a service of iceoryx2"))?)
            }
            #[cfg(feature = "ros2")]
            Kind::Ros2 => {
                let port = super::ros2::Port::open(&self.meeting, end, depth);
                Carrier::Ros2(port.map_err(refused(spec, "open a topic of ROS 2"))?)
            }
        })
    }
}

impl Sender {
    /// Takes up the publisher's end of an order.
    pub fn adopt(order: &EndOrder, parcel: &mut Parcel) -> Result<Self, Error> {
        let memory = order.map(parcel)?;
        let file = order.file(order.files[0], parcel)?;
        let carrier = order.carrier(End::Sender, &memory, file, &Numbers::default())?;
        Ok(order.sender(&memory, carrier, order.bell(parcel)?))
    }
}

impl Receiver {
    /// Takes up the subscriber's end of an order.
    pub fn adopt(order: &EndOrder, parcel: &mut Parcel) -> Result<Self, Error> {
        let memory = order.map(parcel)?;
        let file = order.file(order.files[1], parcel)?;
        let carrier = order.carrier(End::Receiver, &memory, file, &Numbers::default())?;
        order.receiver(&memory, carrier, || order.bell(parcel))
    }
}

/// A name unique among the links of this machine, made of words that ROS 2 allows in topic names.
fn meeting() -> String {
    static LINKS: AtomicU64 = AtomicU64::new(0);
    format!("stillcore/link_{}_{}", std::process::id(), LINKS.fetch_add(1, Ordering::Relaxed))
}

fn check(spec: &LinkSpec) -> Result<(), Error> {
    if !(1..=MOST_DEPTH).contains(&spec.depth) {
        return Err(Error::Depth { link: spec.name.clone(), depth: spec.depth });
    }
    if spec.message_bytes > MOST_BYTES {
        let remedy = "send it in parts".to_owned();
        let (bytes, most) = (spec.message_bytes, MOST_BYTES);
        return Err(Error::TooLong { link: spec.name.clone(), kind: spec.kind, bytes, most, remedy });
    }
    Ok(())
}

/// Right after the rest, on a cache line of its own: a short message touches one page, not two.
fn slots_offset(depth: usize) -> usize {
    (account::BYTES + Shared::bytes(depth)).next_multiple_of(128)
}

fn memory_bytes(spec: &LinkSpec, depth: usize) -> usize {
    let slots = Slots::bytes(depth + IN_HANDS, spec.message_bytes + HEADER_BYTES);
    slots_offset(depth) + if spec.kind.in_slots() { slots } else { 0 }
}

fn map(spec: &LinkSpec, facts: &Facts, memory: &OwnedFd) -> Result<Arc<Mapping>, Error> {
    let mapping = Mapping::new(memory, memory_bytes(spec, facts.depth));
    Ok(Arc::new(mapping.map_err(refused(spec, "map shared memory"))?))
}

/// Memory already allocated: zeroes would be pages not yet provided by the kernel.
fn touched(bytes: usize) -> Vec<u8> {
    vec![1; bytes]
}
