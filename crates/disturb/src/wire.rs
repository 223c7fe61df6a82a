//! What the connections of a stressor run over: two network cards joined to each other where the
//! machine has been given such ([`super::nic_pair`]), else loopback, which raises no device's
//! interrupt; and what the kernel itself counts of the traffic.

use super::job::{Done, Job};
use super::namespaces::own_or_host_network;
use super::nic_pair::{Interrupts, NicPair};
use super::witness::{Growth, Read};
use super::{Error, ledger};
use crate::account::Account;
use rustix::net::sockopt::set_socket_linger;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A peer that is silent for this long is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where both ends of connections are.
pub(super) enum Wire {
    /// On two network cards.
    Cards(NicPair),
    /// On a loopback of its own, which ends with the process.
    OwnLoopback,
    /// On the machine's loopback.
    Loopback,
}

impl Wire {
    /// Cards if there are any, else loopback; the record says which. Absent where the traffic
    /// cannot be witnessed. The process must have one thread and no socket.
    pub(super) fn lay(job: &mut Job<'_>) -> Result<Self, Error> {
        ledger::bytes_in()?;
        if let Some(pair) = NicPair::take()? {
            pair.interrupts(&job.measured)?;
            job.confined_by.push("network namespace".to_owned());
            job.confined_by.push(format!("traffic over {}", pair.names()));
            return Ok(Self::Cards(pair));
        }
        let private = own_or_host_network(job)?;
        job.confined_by.push(NO_CARDS.to_owned());
        Ok(if private { Self::OwnLoopback } else { Self::Loopback })
    }

    /// Listens at the server's end, wherever the clients are.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        match self {
            Self::Cards(pair) => pair.listen(),
            _ => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        }
    }

    /// Connects a client. On the machine's own loopback it closes with a reset, so that no
    /// connection stays behind in TIME_WAIT.
    pub(super) fn connect(&self, server: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        if matches!(self, Self::Loopback) {
            set_socket_linger(&stream, Some(Duration::ZERO))?;
        }
        Ok(stream)
    }

    /// What the kernel counts of the traffic from here on: connecting is over, and operations
    /// begin.
    pub(super) fn witness(&self, job: &Job<'_>) -> Result<Traffic, Error> {
        let interrupts = match self {
            Self::Cards(pair) => Some(pair.interrupts(&job.measured)?),
            _ => None,
        };
        Ok(Traffic { bytes: ledger::bytes_in()?.start()?, interrupts })
    }
}

/// Said in the record where there are no cards.
const NO_CARDS: &str = "not over network cards: loopback, which raises no device interrupts";

/// What the kernel counted before the first operation.
pub(super) struct Traffic {
    bytes: Growth<Read>,
    interrupts: Option<Interrupts>,
}

impl Traffic {
    /// The account of operations that each brought so many bytes to a client. With cards both
    /// counters have to agree, and the interrupts are the ones shown.
    pub(super) fn account(&self, done: Done, job: &Job<'_>, bytes_each: u64) -> Result<Account, Error> {
        let operations = done.tally.ok;
        let bytes = self.bytes.grown(operations * bytes_each)?;
        let Some(interrupts) = &self.interrupts else { return Ok(done.account(job, bytes)) };
        let wrong = (bytes.seen < bytes.expected)
            .then(|| format!("{} grew by {}; expected at least {}", bytes.name, bytes.seen, bytes.expected));
        Ok(Account { wrong, ..done.account(job, interrupts.grown(operations)?) })
    }
}
