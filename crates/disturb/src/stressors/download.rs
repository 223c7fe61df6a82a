//! `download`: a file of 600 MiB downloaded again and again, one loop a CPU, and thrown away.
//!
//! Part of Cerqueira and Brandenburg's I/O-bound load (OSPERT 2013, §3.3): wget from a server in
//! the same network, to /dev/null, one loop for each core, as fast as a 1 Gb/s link carries it.
//! Here each loop has its own server, a thread that sends: over two network cards where a lab's
//! guest has them ([`crate::wire`]), else over loopback, with the receive path, copies and wake-ups
//! and without a device's interrupts. The default rate is that link's, for all loops together.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::wire::Wire;
use crate::workers::repeat_in;
use model::Cpus;
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use sys::sched;

const MIB: usize = 1 << 20;
const FILE_BYTES: u64 = 600 << 20;
/// 1 Gb/s, as MiB per second.
const LINK_MIB_PER_SECOND: f64 = 1e9 / 8.0 / MIB as f64;
const CHUNK: usize = 65_536;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "download",
    title: "downloads to nowhere: 600 MiB at a time, a loop a CPU",
    class: "net",
    operation: "1 MiB received",
    privilege: "none; CAP_SYS_ADMIN for a network namespace of its own",
    needs: "CONFIG_INET; CONFIG_NET_NS for the namespace; for device interrupts a guest with two cards (lab run --nic)",
    kernel_paths: &["tcp_sendmsg", "net_rx_action", "process_backlog", "tcp_recvmsg", "socket wake-up"],
    witness: "growth of IpExt InOctets in /proc/net/netstat, a lower bound on the host's loopback; with cards their interrupts too",
    cleanup: "none in its own namespace; on the host's loopback connections are reset, none stays in TIME_WAIT",
    danger: "takes memory bandwidth; bounded by one connection a CPU",
    default_rate: Some(LINK_MIB_PER_SECOND),
    memory_bytes: 128 << 20,
    processes: 256,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let cpus: Vec<u32> = job.cpus.iter().collect();
    let workers = job.workers.unwrap_or(cpus.len() as u32).clamp(1, SPEC.processes as u32 / 2 - 1);
    let file = job.bytes.unwrap_or(FILE_BYTES).div_ceil(MIB as u64);
    let wire = Wire::lay(job)?;
    job.begin()?;
    let before = wire.witness(job)?;
    let done = repeat_in(job, workers, |number| {
        let cpu = cpus.get(number as usize % cpus.len().max(1)).copied().unwrap_or_default();
        sched::pin(&Cpus::one(cpu)).map_err(Error::refused("run on one CPU"))?;
        let mut download = Download::new(file, &wire).map_err(Error::refused("listen for a client"))?;
        Ok(move || download.next())
    })?;
    before.account(done, job, MIB as u64)
}

/// A client with its server.
struct Download<'a> {
    wire: &'a Wire,
    server: SocketAddr,
    /// Length of the file, MiB.
    file: u64,
    /// The download that is going on, and what is left of it, MiB.
    going: Option<(TcpStream, u64)>,
    buffer: Vec<u8>,
}

impl<'a> Download<'a> {
    /// Starts the server, which ends with the process.
    fn new(file: u64, wire: &'a Wire) -> io::Result<Self> {
        let listener = wire.listen()?;
        let server = listener.local_addr()?;
        std::thread::Builder::new().spawn(move || serve(&listener, file))?;
        Ok(Self { wire, server, file, going: None, buffer: vec![0; CHUNK] })
    }

    /// The next MiB. Each file has to end where it should.
    fn next(&mut self) -> io::Result<()> {
        let (mut stream, left) = match self.going.take() {
            Some(going) => going,
            None => (self.wire.connect(self.server)?, self.file),
        };
        for _ in 0..MIB / CHUNK {
            stream.read_exact(&mut self.buffer)?;
            if self.buffer.first() != Some(&0x5a) || self.buffer.last() != Some(&0x5a) {
                return Err(Errno::BADMSG.into());
            }
        }
        match left {
            0 | 1 if stream.read(&mut self.buffer)? == 0 => {}
            0 | 1 => return Err(Errno::OVERFLOW.into()),
            _ => self.going = Some((stream, left - 1)),
        }
        Ok(())
    }
}

/// The server: the whole file to whoever connects. What goes wrong shows at the client, which
/// counts.
fn serve(listener: &TcpListener, file: u64) {
    while let Ok((stream, _)) = listener.accept() {
        let _ = send(stream, file);
    }
}

fn send(mut stream: TcpStream, file: u64) -> io::Result<()> {
    let chunk = vec![0x5a; CHUNK];
    for _ in 0..file * (MIB / CHUNK) as u64 {
        stream.write_all(&chunk)?;
    }
    // The client closes first: it is the one that a reset or TIME_WAIT is meant for.
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read(&mut [0]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_long_as_it_was_asked_to_be_and_then_comes_the_next() {
        let mut download = Download::new(3, &Wire::Loopback).unwrap();
        for _ in 0..2 {
            for left in [2, 1] {
                download.next().unwrap();
                assert_eq!(download.going.as_ref().map(|(_, left)| *left), Some(left));
            }
            download.next().unwrap();
            assert!(download.going.is_none());
        }
        // The client expects less than the server sends.
        download.file = 2;
        download.next().unwrap();
        assert!(download.next().is_err());
    }
}
