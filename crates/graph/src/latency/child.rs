//! The measured side: `stillcore internal graph-latency ORDER`, with the descriptors of its ends
//! from number 3 on.
//!
//! Everything that can fault, allocate or fail comes before the process reports ready. Between
//! releases it only waits, sends and takes.

use super::{ChildReport, Heard, Order, Plan, READY, Role};
use crate::transport::{Doorbell, EndOrder, Parcel, Receiver, Sender, Take, Waiter};
use journal::enter;
use model::Cpus;
use model::sample::Policy;
use std::io::{self, Write};
use sys::{clock, memory, policy, sched};

/// Executes the order, talking over standard input and output. Only the hidden verb calls it.
pub fn serve(order: &str) -> io::Result<()> {
    let order: Order = serde_json::from_str(order)?;
    let mut parcel = Parcel::inherited(order.descriptors)?;
    let bell = order.bell.as_ref().map(|bell| Doorbell::adopt(bell, &mut parcel)).transpose();
    let bell = bell.map_err(io::Error::other)?;
    let report = match order.role {
        Role::Publisher => {
            let mut sender = Sender::adopt(&order.end, &mut parcel).map_err(io::Error::other)?;
            sender.wait_until_joined().map_err(io::Error::other)?;
            publisher(&order.plan, sender, say_ready)
        }
        Role::Subscriber => {
            let mut receiver = Receiver::adopt(&order.end, &mut parcel).map_err(io::Error::other)?;
            receiver.wait_until_joined().map_err(io::Error::other)?;
            subscriber(&order.plan, receiver, bell.as_ref(), say_ready)
        }
        Role::Both => both(&order.plan, &order.end, &mut parcel, bell.as_ref()),
    }?;
    serde_json::to_writer(io::stdout().lock(), &report)?;
    Ok(())
}

/// Reports ready, and waits for the start time.
fn say_ready() -> io::Result<i64> {
    writeln!(io::stdout(), "{READY}")?;
    let mut word = String::new();
    io::stdin().read_line(&mut word)?;
    word.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the start never came"))
}

/// Runs both ends as two threads of this process: this one subscribes, and starts the publisher.
fn both(
    plan: &Plan,
    end: &EndOrder,
    parcel: &mut Parcel,
    bell: Option<&Doorbell>,
) -> io::Result<ChildReport> {
    let (mut sender, mut receiver) = end.adopt_pair(parcel).map_err(io::Error::other)?;
    sender.wait_until_joined().and_then(|()| receiver.wait_until_joined()).map_err(io::Error::other)?;
    let (prepared, is_prepared) = std::sync::mpsc::channel();
    let (start, starts) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let publishing = scope.spawn(move || {
            publisher(plan, sender, || {
                let _ = prepared.send(());
                starts.recv().map_err(io::Error::other)
            })
        });
        // The subscriber owns the sender that starts the publisher. If the subscriber fails first,
        // the publisher sees the channel close.
        let heard = subscriber(plan, receiver, bell, move || {
            // A publisher that could not prepare itself says why when it is joined.
            let _ = is_prepared.recv();
            let start_ns = say_ready()?;
            let _ = start.send(start_ns);
            Ok(start_ns)
        });
        let published = publishing.join().map_err(|_| io::Error::other("the publisher panicked"))?;
        let (heard, mut report) = (heard?, published?);
        report.heard = heard.heard;
        report.policies.extend(heard.policies);
        report.refused.extend(heard.refused);
        report.cpu_ns.extend(heard.cpu_ns);
        Ok(report)
    })
}

/// Moves onto its CPU, sets its policy and locks and prefaults memory; reports what was refused.
fn prepare(cpu: u32, policy: &Policy) -> io::Result<ChildReport> {
    enter::onto(&Cpus::one(cpu))?;
    let unlocked = memory::lock_on_fault().err().map(|error| format!("memory is not locked: {error}"));
    sched::set_timer_slack(1)?;
    let refused = policy::set_policy(policy).err();
    let refused = refused.map(|error| sched::refusal(policy, &error, true));
    memory::prefault_stack();
    Ok(ChildReport {
        refused: unlocked.into_iter().chain(refused).collect(),
        policies: vec![policy::effective()?],
        ..ChildReport::default()
    })
}

fn publisher(
    plan: &Plan,
    mut sender: Sender,
    ready: impl FnOnce() -> io::Result<i64>,
) -> io::Result<ChildReport> {
    let mut report = prepare(plan.cpus[0], &plan.policies[0])?;
    let payload = vec![0x5a; plan.message_bytes];
    let start_ns = ready()?;
    let before_ns = clock::thread_cpu_ns();
    for number in 0..plan.messages {
        let release_ns = start_ns + number as i64 * plan.period_ns;
        clock::sleep_until(release_ns);
        if sender.is_closed() {
            break;
        }
        sender.send(release_ns, &payload).map_err(io::Error::other)?;
    }
    report.cpu_ns = vec![(clock::thread_cpu_ns() - before_ns) as u64];
    Ok(report)
}

fn subscriber(
    plan: &Plan,
    mut receiver: Receiver,
    bell: Option<&Doorbell>,
    ready: impl FnOnce() -> io::Result<i64>,
) -> io::Result<ChildReport> {
    let bell = bell.ok_or_else(|| io::Error::other("an order without a bell"))?;
    let mut waiter = bell.waiter(&[&receiver]).map_err(io::Error::other)?;
    let mut report = prepare(plan.cpus[1], &plan.policies[1])?;
    let nothing = Heard { sequence: 1, release_ns: 1, sent_ns: 1, taken_ns: 1 };
    let mut heard = vec![nothing; plan.messages as usize];
    heard.clear();
    ready()?;
    let before_ns = clock::thread_cpu_ns();
    listen(&mut receiver, &mut waiter, &mut heard)?;
    report.cpu_ns = vec![(clock::thread_cpu_ns() - before_ns) as u64];
    report.heard = heard;
    Ok(report)
}

/// Takes every message until the link is closed.
fn listen(receiver: &mut Receiver, waiter: &mut Waiter, heard: &mut Vec<Heard>) -> io::Result<()> {
    loop {
        let seen = waiter.look();
        match receiver.take().map_err(io::Error::other)? {
            Take::Message(message) => {
                let taken_ns = clock::now_ns();
                let header = message.header;
                heard.push(Heard {
                    sequence: header.sequence,
                    release_ns: header.release_ns,
                    sent_ns: header.sent_ns,
                    taken_ns,
                });
            }
            Take::Empty => drop(waiter.wait(seen, None)?),
            Take::Closed => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Kind, Link};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_subscriber_that_cannot_be_prepared_ends_the_publisher_too() {
        let plan = Plan {
            kind: Kind::Queue,
            message_bytes: 8,
            depth: 1,
            period_ns: 1_000_000,
            messages: 1,
            warm_up: 0,
            cpus: [0, model::cpus::MAX_CPU],
            policies: [Policy::other(), Policy::other()],
            threads: true,
        };
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let bell = Doorbell::new(&[plan.kind]).unwrap();
            let link = Link::new(&plan.link(), &bell).unwrap();
            let mut parcel = Parcel::default();
            let order = link.pair_order(&mut parcel).unwrap();
            let mut parcel = parcel.arrived();
            let _ = done.send(both(&plan, &order, &mut parcel, Some(&bell)).is_err());
        });
        let failed = is_done.recv_timeout(Duration::from_secs(10));
        assert!(failed.expect("it waits for a start that never comes"));
    }
}
