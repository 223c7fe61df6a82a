//! `direct_io`: a file server's disk load without the page cache: files created, written and read
//! in order and at random, and metadata.
//!
//! Part of Cerqueira and Brandenburg's I/O-bound load (OSPERT 2013, §3.3): bonnie++ with direct
//! I/O, in the parts that it has. Each part is eight operations, then comes the next, so that a
//! short run has them all; they are counted apart in the record. With O_DIRECT each operation is a
//! request to the device, an interrupt, and a sleep (`open(2)`).

use crate::account::Account;
use crate::disk::Disk;
use crate::job::{Job, recover};
use crate::spec::StressorSpec;
use crate::tally::Tally;
use crate::{Error, ledger};
use rustix::fs::{Mode, OFlags, fchmod, fsync};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use sys::clock::now_ns;

/// Bytes of one operation: what bonnie++ takes unless told otherwise.
const CHUNK: usize = 8192;
const DEFAULT_BYTES: u64 = 16 << 20;
/// Operations of a part before the next one comes.
const TURN: u64 = 8;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "direct_io",
    title: "direct I/O: create, sequential, random, metadata, as bonnie++ has it",
    class: "io",
    operation: "8 KiB written or read past the page cache, or a file made, or its metadata changed and synced",
    privilege: "none; CAP_SYS_ADMIN for a file system of its own where the directory is in memory",
    needs: "a directory on a disk whose file system has O_TMPFILE and O_DIRECT; CONFIG_TASK_IO_ACCOUNTING",
    kernel_paths: &[
        "direct I/O",
        "block layer completion",
        "device interrupt",
        "jbd2 commit",
        "wake-up of the waiting task",
    ],
    witness: "growth of write_bytes in its own /proc/self/io: what was written of it at least",
    cleanup: "none: the files have no name and go with their process",
    danger: "wears the disk and delays others' I/O; bounded by the rate and 16 MiB",
    default_rate: Some(100.0),
    modules: &["crc32c_generic", "loop", "ext4"],
    peer: Some("--hdd 1 --hdd-opts direct,wr-seq,rd-seq,wr-rnd,rd-rnd"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let disk = Disk::of(job)?;
    let bytes = job.bytes.unwrap_or(DEFAULT_BYTES).min(disk.room);
    let mut bench = Bench::new(&disk, bytes)?;
    let before = job.begin_counting(ledger::own_io("write_bytes")?)?;
    let mut tally = Tally::default();
    let (mut pace, t0_ns) = (job.pace(1), now_ns());
    while pace.proceed(1) {
        let part = bench.part();
        if tally.count(bench.go()) {
            job.meter.add(1);
            *tally.parts.entry(part.name().to_owned()).or_default() += 1;
        } else {
            recover();
        }
    }
    let writes = [Part::SequentialWrite, Part::RandomWrite].map(|part| tally.parts.get(part.name()).copied());
    let written = writes.into_iter().flatten().sum::<u64>() * CHUNK as u64;
    let witness = before.grown(written)?;
    Ok(crate::job::Done { tally, t0_ns, t1_ns: now_ns() }.account(job, witness))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    SequentialWrite,
    SequentialRead,
    RandomWrite,
    RandomRead,
    Create,
    Metadata,
}

impl Part {
    const ALL: [Self; 6] = [
        Self::SequentialWrite,
        Self::SequentialRead,
        Self::RandomWrite,
        Self::RandomRead,
        Self::Create,
        Self::Metadata,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::SequentialWrite => "sequential write",
            Self::SequentialRead => "sequential read",
            Self::RandomWrite => "random write",
            Self::RandomRead => "random read",
            Self::Create => "create",
            Self::Metadata => "metadata",
        }
    }
}

/// Memory as direct I/O wants it: aligned as the largest block of any device here.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

const ALIGNMENT: usize = 4096;

impl Buffer {
    fn new() -> Self {
        let bytes = vec![0; CHUNK + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start }
    }

    fn chunk(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + CHUNK]
    }
}

struct Bench<'a> {
    disk: &'a Disk,
    file: File,
    chunks: u64,
    /// Operations so far.
    number: u64,
    /// Chunks written in order: those that can be read.
    written: u64,
    place: u64,
    buffer: Buffer,
}

impl<'a> Bench<'a> {
    fn new(disk: &'a Disk, bytes: u64) -> Result<Self, Error> {
        let file = disk.first_file(OFlags::DIRECT)?;
        let chunks = (bytes / CHUNK as u64).max(1);
        Ok(Self { disk, file, chunks, number: 0, written: 0, place: 0, buffer: Buffer::new() })
    }

    fn part(&self) -> Part {
        Part::ALL[(self.number / TURN) as usize % Part::ALL.len()]
    }

    fn go(&mut self) -> io::Result<()> {
        let part = self.part();
        self.number += 1;
        // How many operations of this part there were, whatever came in between.
        let turn = self.number / (TURN * Part::ALL.len() as u64) * TURN + self.number % TURN;
        let readable = self.written.min(self.chunks).max(1);
        match part {
            Part::SequentialWrite => {
                self.write(self.written % self.chunks)?;
                self.written += 1;
                Ok(())
            }
            Part::SequentialRead => self.read(turn % readable),
            Part::RandomWrite => {
                let chunk = self.random() % readable;
                self.write(chunk)
            }
            Part::RandomRead => {
                let chunk = self.random() % readable;
                self.read(chunk)
            }
            Part::Create => {
                let file = self.disk.file(OFlags::empty())?;
                file.write_all_at(&[0x5a], 0)?;
                Ok(fsync(&file)?)
            }
            Part::Metadata => self.change_metadata(turn),
        }
    }

    /// Mode, times and length of a file of its own, synced and read back.
    fn change_metadata(&self, turn: u64) -> io::Result<()> {
        let file = self.disk.file(OFlags::empty())?;
        fchmod(&file, Mode::RUSR)?;
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(turn))?;
        file.set_len(4096)?;
        fsync(&file)?;
        let now = file.metadata()?;
        if now.len() == 4096 && now.permissions().readonly() { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }

    fn write(&mut self, chunk: u64) -> io::Result<()> {
        self.buffer.chunk().fill(chunk as u8);
        self.file.write_all_at(self.buffer.chunk(), chunk * CHUNK as u64)
    }

    fn read(&mut self, chunk: u64) -> io::Result<()> {
        self.buffer.chunk().fill(!chunk as u8);
        self.file.read_exact_at(self.buffer.chunk(), chunk * CHUNK as u64)?;
        let right = self.buffer.chunk().iter().all(|byte| *byte == chunk as u8);
        if right { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }

    /// Knuth's generator (MMIX); its upper bits are the random ones.
    fn random(&mut self) -> u64 {
        self.place =
            self.place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.place >> 33
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_turns_and_all_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = Part::ALL.iter().map(|part| part.name()).collect();
        assert_eq!(names.len(), Part::ALL.len());
        let mut buffer = Buffer::new();
        assert_eq!((buffer.chunk().as_ptr() as usize % ALIGNMENT, buffer.chunk().len()), (0, CHUNK));
    }
}
