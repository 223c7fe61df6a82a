//! `net_clients`: a server with 100 clients, each of which requests 64 KiB at a time, 1 Mb/s per
//! client.
//!
//! The network load of the IEEE Access 2020 paper (§V): there the clients are another machine's,
//! and the network card interrupts. Where a lab's guest has two cards joined to each other the
//! clients are at one and the server at the other ([`crate::wire`]); over loopback the same
//! connections, buffers and wake-ups are had without a device. The clients are asked in turn, each
//! at its own moment, and as each has a thread of its own one that waits holds up nobody. Every
//! byte that arrives is compared.

use crate::Error;
use crate::account::Account;
use crate::job::{Done, Job};
use crate::spec::StressorSpec;
use crate::tally::Tally;
use crate::wire::{Traffic, Wire};
use rustix::io::Errno;
use rustix::net::Shutdown;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;
use sys::clock::now_ns;

const CLIENTS: u32 = 100;
const MOST_CLIENTS: u32 = 500;
const ANSWER: usize = 65_536;
/// 1 Mb/s for each of 100 clients.
const ANSWERS_PER_SECOND: f64 = 100.0 * 1e6 / 8.0 / ANSWER as f64;
/// A client that is silent for this long is gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// A client needs a buffer on the heap and next to nothing on its stack.
const STACK: usize = 64 << 10;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "net_clients",
    title: "a server with 100 clients: 64 KiB a request, 1 Mb/s a client",
    class: "net",
    operation: "64 KiB asked for, received and compared",
    privilege: "none; CAP_SYS_ADMIN for a network namespace of its own",
    needs: "CONFIG_INET; CONFIG_NET_NS for the namespace; for device interrupts a guest with two cards (lab run --nic)",
    kernel_paths: &[
        "tcp_sendmsg",
        "net_rx_action",
        "process_backlog",
        "tcp_recvmsg",
        "socket wake-up",
        "tcp timers",
    ],
    witness: "growth of IpExt InOctets in /proc/net/netstat, a lower bound on the host's loopback; with cards their interrupts too",
    cleanup: "none in its own namespace; on the host's loopback connections are reset, none stays in TIME_WAIT",
    danger: "two threads a client; bounded by 500 clients",
    default_rate: Some(ANSWERS_PER_SECOND),
    memory_bytes: 192 << 20,
    processes: 2 * MOST_CLIENTS as u64 + 8,
    peer: Some("--sockmany"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let clients = job.workers.unwrap_or(CLIENTS).clamp(1, MOST_CLIENTS);
    let wire = Wire::lay(job)?;
    let listener = wire.listen().map_err(Error::refused("listen for clients"))?;
    let address = listener.local_addr().map_err(Error::refused("listen for clients"))?;
    let answered = AtomicU64::new(0);
    let (done, before) = std::thread::scope(|scope| {
        let served = thread(scope, || serve(scope, &listener))?;
        let connected = connect_all(clients, address, &wire);
        let asked = connected.and_then(|connected| ask_in_turn(scope, job, &wire, connected, &answered));
        // Wakes the server out of `accept` for good; it then only waits for clients, which have all
        // gone.
        let _ = rustix::net::shutdown(&listener, Shutdown::Both);
        let _ = served.join();
        asked
    })?;
    before.account(done, job, ANSWER as u64)
}

/// Begins, and lets one after the other ask, at the job's pace; what the kernel counted before
/// comes with it.
fn ask_in_turn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    job: &mut Job<'_>,
    wire: &Wire,
    connected: Vec<TcpStream>,
    answered: &'scope AtomicU64,
) -> Result<(Done, Traffic), Error> {
    let start = |stream: TcpStream| -> Result<(SyncSender<()>, ScopedJoinHandle<'scope, Tally>), Error> {
        let (go, requests) = sync_channel(1);
        Ok((go, thread(scope, move || ask(stream, &requests, answered))?))
    };
    let (go, threads): (Vec<_>, Vec<_>) =
        connected.into_iter().map(start).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    job.begin()?;
    let before = wire.witness(job)?;
    let t0_ns = now_ns();
    let mut pace = job.pace(1);
    for client in go.iter().cycle() {
        // A client that is still busy with two requests holds the others up: the rate is an upper
        // bound.
        if !pace.proceed(1) || client.send(()).is_err() {
            break;
        }
        job.meter.add(answered.swap(0, Ordering::Relaxed));
    }
    drop(go);
    let mut tally = Tally::default();
    threads.into_iter().filter_map(|thread| thread.join().ok()).for_each(|one| tally.add(&one));
    Ok((Done { tally, t0_ns, t1_ns: now_ns() }, before))
}

fn thread<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    Builder::new().stack_size(STACK).spawn_scoped(scope, body).map_err(Error::refused("start a thread"))
}

fn connect_all(clients: u32, server: SocketAddr, wire: &Wire) -> Result<Vec<TcpStream>, Error> {
    let connected = (0..clients).map(|_| connect(server, wire)).collect::<io::Result<Vec<_>>>();
    connected.map_err(Error::refused("connect a client"))
}

fn connect(server: SocketAddr, wire: &Wire) -> io::Result<TcpStream> {
    let stream = wire.connect(server)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A client: sends one request for each message in `requests`. The first byte of a request is the
/// byte that fills the answer.
fn ask(mut stream: TcpStream, requests: &Receiver<()>, answered: &AtomicU64) -> Tally {
    let mut tally = Tally::default();
    let mut answer = vec![0; ANSWER];
    let mut letter = 0u8;
    while requests.recv().is_ok() {
        letter = letter.wrapping_add(1);
        let outcome = stream.write_all(&[letter]).and_then(|()| stream.read_exact(&mut answer));
        let right = outcome.and_then(|()| {
            if answer.iter().all(|byte| *byte == letter) { Ok(()) } else { Err(Errno::BADMSG.into()) }
        });
        if !tally.count(right) {
            // What arrives after a failure belongs to nobody any more.
            break;
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    tally
}

/// The server: a thread a connection, until the listener is shut down. What goes wrong shows at the
/// client, which counts.
fn serve<'scope>(scope: &'scope Scope<'scope, '_>, listener: &TcpListener) {
    while let Ok((stream, _)) = listener.accept() {
        let _ = thread(scope, move || answer(stream));
    }
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut letter = [0];
    let mut answer = vec![0; ANSWER];
    loop {
        stream.read_exact(&mut letter)?;
        answer.fill(letter[0]);
        stream.write_all(&answer)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client counts of a server that answers with these bytes for a request.
    fn against(answer: impl Fn(u8) -> Vec<u8> + Send) -> Tally {
        let listener = Wire::Loopback.listen().unwrap();
        let stream = connect(listener.local_addr().unwrap(), &Wire::Loopback).unwrap();
        let (go, requests) = sync_channel(3);
        (0..3).for_each(|_| go.send(()).unwrap());
        drop(go);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut letter = [0];
                while stream.read_exact(&mut letter).is_ok() && stream.write_all(&answer(letter[0])).is_ok() {
                }
            });
            ask(stream, &requests, &AtomicU64::new(0))
        })
    }

    #[test]
    fn an_answer_counts_where_every_byte_of_it_is_right() {
        assert_eq!(against(|letter| vec![letter; ANSWER]).ok, 3);
        let mut wrong = vec![1; ANSWER];
        wrong[ANSWER - 1] = 0;
        let tally = against(move |_| wrong.clone());
        assert_eq!((tally.ok, tally.failed["EBADMSG"]), (0, 1));
    }

    #[test]
    fn the_default_rate_is_a_hundred_megabits_a_second() {
        assert!((ANSWERS_PER_SECOND * ANSWER as f64 * 8.0 - 1e8).abs() < 1.0);
    }
}
