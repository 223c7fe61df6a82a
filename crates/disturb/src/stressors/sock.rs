//! `sock`: short TCP connections over loopback. Connect, send 20 × 4 KiB, one byte back, close.
//!
//! Client and server are two threads. Exercises the network receive softirq, per-CPU backlogs,
//! socket memory accounting, timers of the protocol and wake-ups across CPUs. With privilege it has
//! a network namespace of its own, which takes every connection with it when it goes. Without, it
//! uses the host's loopback and closes with a reset, because each ordinary close would leave a
//! connection in TIME_WAIT there for a minute.

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::{self, Counter, proc_dir};
use crate::{Error, namespaces};
use rustix::net::Shutdown;
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const CHUNK: usize = 4096;
const CHUNKS: usize = 20;
/// A loopback peer that is silent for this long is gone.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "sock",
    title: "sockets: loopback TCP connections of 20 x 4 KiB",
    class: "net",
    operation: "a connection made, 80 KiB sent and confirmed, closed",
    privilege: "none; CAP_SYS_ADMIN for a network namespace of its own",
    needs: "CONFIG_INET; CONFIG_NET_NS for the namespace",
    kernel_paths: &[
        "tcp_v4_connect",
        "net_rx_action",
        "process_backlog",
        "socket wake-up",
        "tcp timers",
        "cleanup_net work",
    ],
    witness: "growth of Tcp PassiveOpens in /proc/net/snmp; a lower bound on the host's loopback, exact in its own namespace",
    cleanup: "none in its own namespace; on the host's loopback connections are reset, none stays in TIME_WAIT",
    danger: "ports run out; bounded by one connection at a time",
    default_rate: Some(500.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let private = namespaces::own_or_host_network(job)?;
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::refused("listen on loopback"))?;
    let address = listener.local_addr().map_err(Error::refused("listen on loopback"))?;
    let before = job.begin_counting(Counter::read("/proc/net/snmp Tcp PassiveOpens", || {
        witness::passive_opens(proc_dir())
    })?)?;
    let done = std::thread::scope(|scope| {
        scope.spawn(|| serve(&listener));
        let done = job.repeat(|| converse(address, private));
        // Wakes the server out of `accept` for good.
        let _ = rustix::net::shutdown(&listener, Shutdown::Both);
        done
    });
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// The client's side of one connection.
fn converse(address: SocketAddr, private: bool) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    be_patient(&stream)?;
    if !private {
        set_socket_linger(&stream, Some(Duration::ZERO))?;
    }
    for _ in 0..CHUNKS {
        stream.write_all(&[0x5a; CHUNK])?;
    }
    stream.read_exact(&mut [0])
}

/// The server: one connection after the other, until the listener is shut down. What goes wrong
/// shows at the client, which counts.
fn serve(listener: &TcpListener) {
    while let Ok((stream, _)) = listener.accept() {
        let _ = answer(stream);
    }
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    be_patient(&stream)?;
    let mut chunk = [0; CHUNK];
    for _ in 0..CHUNKS {
        stream.read_exact(&mut chunk)?;
    }
    stream.write_all(&[1])?;
    // The client closes first: it is the one that a reset or TIME_WAIT is meant for.
    stream.read(&mut chunk).map(|_| ())
}

fn be_patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_confirmed_by_the_server_whichever_way_it_closes() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener));
            converse(address, true).unwrap();
            converse(address, false).unwrap();
            rustix::net::shutdown(&listener, Shutdown::Both).unwrap();
        });
    }

    #[test]
    fn a_server_that_hangs_up_early_is_a_failure() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(listener.accept().unwrap()));
            assert!(converse(address, true).is_err());
        });
    }
}
