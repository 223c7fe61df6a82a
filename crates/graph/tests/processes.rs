//! Links between processes: those that are killed, stopped or slow lose messages, all of them
//! counted.
//!
//! This test is its own harness: the binary starts itself again with `internal …` as the other end,
//! as the command does.

use graph::transport::{
    Balance, BellOrder, Doorbell, EndOrder, Error, Kind, Link, LinkSpec, Parcel, Receiver, Sender, Take,
    WhenFull,
};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use sys::spawn;

/// What another process is to do.
#[derive(Serialize, Deserialize)]
struct Order {
    end: EndOrder,
    bell: Option<BellOrder>,
    descriptors: usize,
    /// Messages to send.
    messages: u64,
}

type Outcome = Result<(), Failed>;
type Test = (&'static str, fn(Kind) -> Outcome);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "internal", role, json] => act(role, &serde_json::from_str(json).expect("an order")),
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

fn trials() -> Vec<Trial> {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.between_processes());
    let tests: [Test; 5] = [
        ("all_arrives", all_arrives),
        ("a_killed_subscriber_is_accounted_for", a_killed_subscriber_is_accounted_for),
        ("a_stopped_subscriber_goes_on", a_stopped_subscriber_goes_on),
        ("a_stopped_publisher_goes_on", a_stopped_publisher_goes_on),
        ("a_killed_publisher_is_accounted_for", a_killed_publisher_is_accounted_for),
    ];
    kinds
        .flat_map(|kind| tests.map(|(name, test)| Trial::test(format!("{name}::{kind}"), move || test(kind))))
        .collect()
}

const BYTES: usize = 2000;
const DEPTH: usize = 6;
/// Until it is killed.
const WITHOUT_END: u64 = u64::MAX;
/// A link on which nothing moves for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

fn payload(number: u64) -> Vec<u8> {
    (0..number as usize % (BYTES + 1)).map(|at| (number as usize * 7 + at / 3) as u8).collect()
}

/// How a process ends whose middleware has ended; all other failures panic.
const MIDDLEWARE_ENDED: u8 = 3;

fn exit_of(error: &Error) -> ExitCode {
    let said = error.to_string();
    assert!(said.contains("RustDDS has ended its threads"), "{said}");
    ExitCode::from(MIDDLEWARE_ENDED)
}

/// The other process.
fn act(role: &str, order: &Order) -> ExitCode {
    let mut parcel = Parcel::inherited(order.descriptors).expect("descriptors");
    if role == "send" {
        let mut sender = Sender::adopt(&order.end, &mut parcel).expect("a sender");
        // Who may be killed before anybody finds it is not waited for.
        if order.messages < WITHOUT_END {
            sender.wait_until_joined().expect("a subscriber");
        }
        for number in 0..order.messages {
            if let Err(error) = sender.send(number as i64, &payload(number)) {
                return exit_of(&error);
            }
            std::thread::yield_now();
        }
        return ExitCode::SUCCESS;
    }
    let bell = Doorbell::adopt(order.bell.as_ref().expect("a bell"), &mut parcel).expect("a bell");
    let mut receiver = Receiver::adopt(&order.end, &mut parcel).expect("a receiver");
    let mut waiter = bell.waiter(&[&receiver]).expect("a waiter");
    let mut next = 0;
    loop {
        let seen = waiter.look();
        let taken = match receiver.take() {
            Ok(taken) => taken,
            Err(error) => return exit_of(&error),
        };
        match taken {
            Take::Message(message) => {
                let number = message.header.sequence;
                if number < next || message.payload != payload(number) {
                    return ExitCode::FAILURE;
                }
                next = number + 1;
            }
            Take::Empty => drop(waiter.wait(seen, None).expect("a wait")),
            Take::Closed => return ExitCode::SUCCESS,
        }
    }
}

enum End {
    Publisher,
    Subscriber,
}

struct Pair {
    link: Link,
    publisher: Child,
    subscriber: Child,
}

impl Pair {
    fn start(kind: Kind, when_full: WhenFull, messages: u64) -> Result<Self, Failed> {
        let bell = Doorbell::new(&[kind])?;
        let spec = LinkSpec { name: kind.to_string(), kind, message_bytes: BYTES, depth: DEPTH, when_full };
        let link = Link::new(&spec, &bell)?;
        let mut parcel = Parcel::default();
        let end = link.sender_order(&mut parcel)?;
        let publisher = begin("send", end, None, &parcel, messages)?;
        let mut parcel = Parcel::default();
        let end = link.receiver_order(&mut parcel)?;
        let bell = bell.order(&mut parcel)?;
        let subscriber = begin("receive", end, Some(bell), &parcel, 0)?;
        Ok(Self { link, publisher, subscriber })
    }

    fn publisher_ends(&mut self) -> Outcome {
        check(self.publisher.wait()?.success(), "the publisher failed")
    }

    fn subscriber_ends(&mut self) -> Outcome {
        check(self.subscriber.wait()?.success(), "the subscriber saw bytes that nobody sent")
    }

    /// Whoever made the link closes it for a publisher that cannot.
    fn kill_publisher(&mut self) -> Outcome {
        self.publisher.kill()?;
        self.publisher.wait()?;
        self.link.close();
        Ok(())
    }

    /// Waits until the account says so.
    fn until(&self, reached: impl Fn(&Balance) -> bool) -> Outcome {
        let begun = Instant::now();
        while !reached(&self.link.balance()) {
            check(begun.elapsed() < PATIENCE, self.link.balance())?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Waits until the account shows it, or until a stopped end has ended because its middleware
    /// did not survive that; it may not stay silent. Returns whether it gave up.
    fn gives_up(&mut self, end: End, reached: impl Fn(&Balance) -> bool) -> Result<bool, Failed> {
        let begun = Instant::now();
        while !reached(&self.link.balance()) {
            let process = match end {
                End::Publisher => &mut self.publisher,
                End::Subscriber => &mut self.subscriber,
            };
            if let Some(status) = process.try_wait()? {
                let said = status.code() == Some(i32::from(MIDDLEWARE_ENDED));
                check(said && self.link.spec().kind.arrives_later(), status)?;
                return Ok(true);
            }
            check(begun.elapsed() < PATIENCE, self.link.balance())?;
            std::thread::yield_now();
        }
        Ok(false)
    }

    /// Every sent message is accounted for; at most this many died with a killed process.
    fn settled(&self, died_in_hands: u64) -> Result<Balance, Failed> {
        let balance = self.link.settle()?;
        check(balance.received + balance.lost() == balance.sent, balance)?;
        check(balance.vanished <= died_in_hands && balance.missed <= balance.lost(), balance)?;
        Ok(balance)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for child in [&mut self.publisher, &mut self.subscriber] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn begin(
    role: &str,
    end: EndOrder,
    bell: Option<BellOrder>,
    parcel: &Parcel,
    messages: u64,
) -> Result<Child, Failed> {
    let order = Order { end, bell, descriptors: parcel.descriptors().len(), messages };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["internal", role, &serde_json::to_string(&order)?]).stdin(Stdio::null());
    spawn::die_with_parent(&mut command);
    spawn::share_all(&mut command, parcel.descriptors());
    Ok(command.spawn()?)
}

fn check(holds: bool, what: impl std::fmt::Debug) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what:?}").into()) }
}

/// Messages that a killed publisher's process may still have held.
fn on_the_way(kind: Kind) -> u64 {
    if kind.arrives_later() { DEPTH as u64 } else { 0 }
}

fn all_arrives(kind: Kind) -> Outcome {
    for rule in [WhenFull::Refuse, WhenFull::ReplaceOldest] {
        let mut pair = Pair::start(kind, rule, 5000)?;
        pair.publisher_ends()?;
        pair.subscriber_ends()?;
        let balance = pair.settled(0)?;
        check((balance.sent, balance.left) == (5000, 0) && balance.received > 0, balance)?;
    }
    Ok(())
}

/// Killed at another moment each time; the publisher does not notice.
fn a_killed_subscriber_is_accounted_for(kind: Kind) -> Outcome {
    for (received, rule) in [(0, WhenFull::Refuse), (1, WhenFull::ReplaceOldest), (400, WhenFull::Refuse)] {
        let mut pair = Pair::start(kind, rule, WITHOUT_END)?;
        pair.until(|balance| balance.received >= received)?;
        pair.subscriber.kill()?;
        pair.subscriber.wait()?;
        let before = pair.link.balance();
        pair.until(|balance| balance.sent > before.sent + 1000)?;
        pair.kill_publisher()?;
        let waiting = if kind.ends_with_receiver() { 0 } else { DEPTH as u64 };
        let balance = pair.settled(2 + DEPTH as u64 - waiting)?;
        check(balance.received == before.received && balance.left <= waiting, balance)?;
        check(balance.left + 1 >= waiting, balance)?;
    }
    Ok(())
}

fn a_stopped_subscriber_goes_on(kind: Kind) -> Outcome {
    let mut pair = Pair::start(kind, WhenFull::Refuse, WITHOUT_END)?;
    let subscriber = Pid::from_child(&pair.subscriber);
    pair.until(|balance| balance.received > 0)?;
    kill_process(subscriber, Signal::STOP)?;
    let stopped = pair.link.balance();
    pair.until(|balance| balance.refused > stopped.refused + 100)?;
    kill_process(subscriber, Signal::CONT)?;
    if pair.gives_up(End::Subscriber, |balance| balance.received > stopped.received + 100)? {
        pair.kill_publisher()?;
        return pair.settled(DEPTH as u64).map(drop);
    }
    pair.kill_publisher()?;
    pair.subscriber_ends()?;
    let balance = pair.settled(1 + on_the_way(kind))?;
    check(balance.left <= on_the_way(kind) && balance.missed >= 100, balance)
}

fn a_stopped_publisher_goes_on(kind: Kind) -> Outcome {
    let mut pair = Pair::start(kind, WhenFull::Refuse, WITHOUT_END)?;
    let publisher = Pid::from_child(&pair.publisher);
    pair.until(|balance| balance.received > 0)?;
    kill_process(publisher, Signal::STOP)?;
    let stopped = pair.link.balance();
    std::thread::sleep(Duration::from_millis(50));
    kill_process(publisher, Signal::CONT)?;
    // More than were on their way when it was stopped.
    if pair.gives_up(End::Publisher, |balance| balance.received > stopped.received + 100)? {
        pair.link.close();
    } else {
        pair.kill_publisher()?;
    }
    pair.subscriber_ends()?;
    pair.settled(1 + on_the_way(kind)).map(drop)
}

fn a_killed_publisher_is_accounted_for(kind: Kind) -> Outcome {
    for received in [0, 100] {
        let mut pair = Pair::start(kind, WhenFull::ReplaceOldest, WITHOUT_END)?;
        pair.until(|balance| balance.received >= received)?;
        pair.kill_publisher()?;
        pair.subscriber_ends()?;
        // Its own message, and one that it had taken out for it and not counted yet.
        let balance = pair.settled(2 + on_the_way(kind))?;
        check(balance.received >= received && balance.left <= on_the_way(kind), balance)?;
    }
    Ok(())
}
