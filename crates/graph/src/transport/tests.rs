//! Links of every kind, between threads of one process; `tests/processes.rs` has them between
//! processes.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Two rules for a full link.
const RULES: [WhenFull; 2] = [WhenFull::Refuse, WhenFull::ReplaceOldest];

fn spec(kind: Kind, message_bytes: usize, depth: usize, when_full: WhenFull) -> LinkSpec {
    LinkSpec { name: "test".to_owned(), kind, message_bytes, depth, when_full }
}

/// A link with its bell and both ends; an error where this user cannot have it.
fn open(spec: &LinkSpec) -> Result<(Doorbell, Link, Sender, Receiver), Error> {
    let bell = Doorbell::new(&[spec.kind]).unwrap();
    let link = Link::new(spec, &bell)?;
    let (sender, receiver) = joined(&link);
    Ok((bell, link, sender, receiver))
}

/// Both ends, which know of each other.
fn joined(link: &Link) -> (Sender, Receiver) {
    let (mut sender, mut receiver) = link.pair().unwrap();
    sender.wait_until_joined().unwrap();
    receiver.wait_until_joined().unwrap();
    (sender, receiver)
}

/// The next message: its number, how many were missed before it, and its bytes. Where one is
/// expected, waits for it as long as it may be on its way.
fn take(receiver: &mut Receiver, expected: bool) -> Option<(Header, u64, Vec<u8>)> {
    let give_up_ns = sys::clock::now_ns() + 10_000_000_000;
    loop {
        if let Take::Message(message) = receiver.take().unwrap() {
            return Some((message.header, message.missed, message.payload.to_vec()));
        }
        let on_its_way = expected && receiver.spec().kind.arrives_later();
        if !on_its_way || sys::clock::now_ns() > give_up_ns {
            return None;
        }
        std::thread::yield_now();
    }
}

/// Bytes that say where they belong.
fn payload(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number.wrapping_mul(31) + at as u64 / 7) as u8).collect()
}

fn any_kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

#[test]
fn names_are_distinct_and_read_back() {
    for kind in Kind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
    assert!("mqueue".parse::<Kind>().unwrap_err().contains("mq-pointer"));
    for feature in ["iceoryx2", "ros2"] {
        let said = feature.parse::<Kind>().map_or_else(|said| said, |kind| kind.to_string());
        assert!(said == feature || said.ends_with(&format!("the cargo feature {feature}")), "{said}");
    }
}

#[test]
fn a_message_arrives_with_its_header() {
    for kind in Kind::ALL {
        let (_, link, mut sender, mut receiver) = open(&spec(kind, 100, 4, WhenFull::Refuse)).unwrap();
        assert!(matches!(receiver.take().unwrap(), Take::Empty), "{kind}");
        assert_eq!(sender.send(77, b"hello").unwrap(), Sent::Taken);
        let Some((header, missed, payload)) = take(&mut receiver, true) else {
            panic!("{kind}: nothing came")
        };
        assert_eq!((header.release_ns, header.sequence, missed), (77, 0, 0));
        assert_eq!(payload, b"hello");
        drop(sender);
        assert!(matches!(receiver.take().unwrap(), Take::Closed), "{kind}");
        assert_eq!(link.settle().unwrap(), Balance { sent: 1, received: 1, ..Balance::default() });
    }
}

#[test]
fn what_a_transport_cannot_carry_is_refused_before_anything_starts() {
    let long = spec(Kind::Udp, 65_468, 1, WhenFull::Refuse);
    let said = open(&long).unwrap_err().to_string();
    assert!(said.contains("udp carries at most 65467 bytes"), "{said}");
    assert!(open(&spec(Kind::Udp, 65_467, 1, WhenFull::Refuse)).is_ok());
    for kind in Kind::ALL {
        let said = open(&spec(kind, MOST_BYTES + 1, 1, WhenFull::Refuse)).unwrap_err();
        assert!(matches!(said, Error::TooLong { .. }), "{said}");
        assert!(matches!(open(&spec(kind, 1, 0, WhenFull::Refuse)), Err(Error::Depth { .. })));
    }
    let (_, link, mut sender, _receiver) = open(&spec(Kind::Pipe, 10, 1, WhenFull::Refuse)).unwrap();
    assert!(matches!(sender.send(0, &[0; 11]), Err(Error::TooLong { .. })));
    assert_eq!(link.balance().sent, 0);
}

#[test]
fn an_executor_that_never_sleeps_cannot_wait_for_descriptors() {
    assert!(matches!(Doorbell::new(&[Kind::ShmPoll, Kind::Mq]), Err(Error::NotPolled { kind: Kind::Mq })));
    let bell = Doorbell::new(&[Kind::ShmFutex]).unwrap();
    assert!(Link::new(&spec(Kind::Pipe, 8, 1, WhenFull::Refuse), &bell).is_err());
}

#[test]
fn a_queue_stays_in_its_process_and_descriptors_are_taken_once() {
    let (_, link, _sender, _receiver) = open(&spec(Kind::Queue, 8, 1, WhenFull::Refuse)).unwrap();
    let mut parcel = Parcel::default();
    assert!(matches!(link.sender_order(&mut parcel), Err(Error::OneProcess { .. })));
    let order = link.pair_order(&mut parcel).unwrap();
    let mut parcel = parcel.arrived();
    order.adopt_pair(&mut parcel).unwrap();
    assert!(matches!(order.adopt_pair(&mut parcel), Err(Error::Missing { .. })));
}

#[test]
fn one_executor_hears_all_its_receivers_and_its_time() {
    let kinds: Vec<_> = Kind::ALL.into_iter().filter(|kind| *kind != Kind::ShmPoll).collect();
    let bell = Doorbell::new(&kinds).unwrap();
    let links: Vec<_> =
        kinds.iter().map(|kind| Link::new(&spec(*kind, 8, 2, WhenFull::Refuse), &bell).unwrap()).collect();
    let (mut senders, mut receivers): (Vec<_>, Vec<_>) = links.iter().map(joined).unzip();
    let mut waiter = bell.waiter(&receivers.iter().collect::<Vec<_>>()).unwrap();
    for (sender, number) in senders.iter_mut().zip(0u64..) {
        let mut seen = waiter.look();
        let sent = std::thread::scope(|scope| {
            let sending = scope.spawn(|| sender.send(0, &number.to_le_bytes()).unwrap());
            loop {
                if let Take::Message(message) = receivers[number as usize].take().unwrap() {
                    assert_eq!(message.payload, number.to_le_bytes());
                    break;
                }
                waiter.wait(seen, None).unwrap();
                seen = waiter.look();
            }
            sending.join().unwrap()
        });
        assert_eq!(sent, Sent::Taken);
    }
    let until_ns = sys::clock::now_ns() + 2_000_000;
    while waiter.wait(waiter.look(), Some(until_ns)).unwrap() == Woken::Rung {}
    assert!(sys::clock::now_ns() >= until_ns);
}

/// A sender at full speed, and a receiver that waits: messages arrive whole and in order, and all
/// are accounted for.
#[test]
fn nothing_is_torn_and_nothing_forgotten_between_two_threads() {
    const MESSAGES: u64 = 6_000;
    for (kind, rule) in Kind::ALL.into_iter().flat_map(|kind| RULES.map(|rule| (kind, rule))) {
        let (bell, link, mut sender, mut receiver) = open(&spec(kind, 3000, 3, rule)).unwrap();
        let mut waiter = bell.waiter(&[&receiver]).unwrap();
        let sending = std::thread::spawn(move || {
            for number in 0..MESSAGES {
                sender.send(number as i64, &payload(number, number as usize % 3001)).unwrap();
            }
        });
        let (mut next, mut received, mut missed) = (0, 0, 0);
        loop {
            let seen = waiter.look();
            match receiver.take().unwrap() {
                Take::Message(message) => {
                    let number = message.header.release_ns as u64;
                    assert_eq!(message.header.sequence, number);
                    assert!(number >= next, "{kind}: {number} after {next}");
                    assert_eq!(message.payload, payload(number, number as usize % 3001), "{kind}");
                    assert_eq!(message.missed, number - next, "{kind}");
                    (next, received, missed) = (number + 1, received + 1, missed + message.missed);
                }
                Take::Empty => drop(waiter.wait(seen, None).unwrap()),
                Take::Closed => break,
            }
        }
        sending.join().unwrap();
        let balance = link.settle().unwrap();
        assert_eq!((balance.sent, balance.received), (MESSAGES, received), "{kind}");
        assert_eq!((balance.left, balance.vanished), (0, 0), "{kind}: {balance:?}");
        assert_eq!(balance.received + balance.lost(), MESSAGES, "{kind}");
        assert_eq!(balance.missed, missed);
        let unseen_at_the_end = MESSAGES - next;
        assert_eq!(missed + unseen_at_the_end, balance.lost(), "{kind}: {balance:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Sizes from nothing to 1 MB, each kind in each case; what does not fit is refused by name.
    #[test]
    fn bytes_in_are_bytes_out(
        sizes in proptest::collection::vec(prop_oneof![0usize..5000, 0usize..70_000, 0usize..1_000_001], 1..4),
    ) {
        let most = sizes.iter().copied().max().unwrap_or(0);
        for kind in Kind::ALL {
            let (_, link, mut sender, mut receiver) = match open(&spec(kind, most, 2, WhenFull::Refuse)) {
                Ok(opened) => opened,
                Err(Error::TooLong { most: can, .. }) => {
                    prop_assert!(most > can && !kind.in_slots());
                    continue;
                }
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            for (size, number) in sizes.iter().zip(0..) {
                let sent = payload(number, *size);
                prop_assert_eq!(sender.send(0, &sent).unwrap(), Sent::Taken);
                let Some((_, _, payload)) = take(&mut receiver, true) else { panic!("{kind}: nothing came") };
                prop_assert!(payload == sent, "{}: {} bytes", kind, size);
            }
            prop_assert_eq!(link.settle().unwrap().received, sizes.len() as u64);
        }
    }

    /// Against a queue on paper: what is taken, replaced and refused, in which order, and what is
    /// left.
    #[test]
    fn a_link_is_a_queue_of_its_depth(
        kind in any_kind(),
        replace: bool,
        depth in 1usize..9,
        bytes in prop_oneof![Just(0usize), 1usize..200, 4000usize..8000],
        steps in proptest::collection::vec(any::<bool>(), 0..80),
    ) {
        let rule = if replace { WhenFull::ReplaceOldest } else { WhenFull::Refuse };
        let (_, link, mut sender, mut receiver) = open(&spec(kind, bytes, depth, rule)).unwrap();
        let facts = link.facts().clone();
        prop_assert_eq!(facts.when_full == rule, kind.replaces() || !replace);
        prop_assert_eq!(facts.depth < depth || facts.when_full != rule, !facts.notes.is_empty());
        let mut paper = VecDeque::new();
        let mut expected = Balance::default();
        for sends in steps {
            if sends {
                let number = expected.sent;
                expected.sent += 1;
                let full = paper.len() == facts.depth;
                let should = match (full, facts.when_full) {
                    (false, _) => Sent::Taken,
                    (true, WhenFull::Refuse) => Sent::Full,
                    (true, WhenFull::ReplaceOldest) => Sent::Replaced,
                };
                prop_assert_eq!(sender.send(number as i64, &payload(number, bytes)).unwrap(), should);
                match should {
                    Sent::Taken => {}
                    Sent::Replaced => {
                        paper.pop_front();
                        expected.replaced += 1;
                    }
                    Sent::Full => expected.refused += 1,
                }
                if should != Sent::Full {
                    paper.push_back(number);
                }
            } else {
                match (take(&mut receiver, !paper.is_empty()), paper.pop_front()) {
                    (Some((header, _, got)), Some(number)) => {
                        prop_assert_eq!(header.sequence, number);
                        prop_assert!(got == payload(number, bytes));
                        expected.received += 1;
                    }
                    (None, None) => {}
                    (got, on_paper) => panic!("{kind}: {got:?}, on paper {on_paper:?}"),
                }
            }
        }
        drop((sender, receiver));
        expected.left = paper.len() as u64;
        let balance = link.settle().unwrap();
        prop_assert_eq!(Balance { missed: 0, ..balance }, expected);
        prop_assert_eq!(balance.received + balance.lost(), balance.sent);
    }
}
