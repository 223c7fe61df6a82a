//! `iomix`: files written, synced, dropped from the cache and read back, at random places.
//!
//! Table IV of the RTSS 2024 paper takes stress-ng's stressor of this name. A write that is synced
//! goes through write-back, the journal and the block layer to the device and waits for it;
//! dropping the pages (`posix_fadvise(2)`) drains the per-CPU batches of the page cache on every
//! CPU that has one (mm/swap.c, `lru_add_drain_all` where pages were busy), and reading has to go
//! to the device.

use crate::account::Account;
use crate::disk::Disk;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::workers::repeat_in;
use crate::{Error, ledger};
use rustix::fs::{Advice, OFlags, fadvise, fdatasync, fsync};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

/// Bytes of one operation.
const CHUNK: usize = 65_536;
const DEFAULT_BYTES: u64 = 16 << 20;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "iomix",
    title: "files written, synced, dropped from the cache and read back",
    class: "io",
    operation: "64 KiB written at a random place, synced, dropped and read back",
    privilege: "none; CAP_SYS_ADMIN for a file system of its own where the directory is in memory",
    needs: "a directory on a disk whose file system has O_TMPFILE; CONFIG_TASK_IO_ACCOUNTING",
    kernel_paths: &[
        "write-back work",
        "jbd2 commit",
        "block layer completion",
        "device interrupt",
        "lru_add_drain_all",
    ],
    witness: "growth of write_bytes in its own /proc/self/io: exact but for what is still dirty",
    cleanup: "none: the file has no name and goes with its process",
    danger: "wears the disk and delays others' I/O; bounded by the rate and 16 MiB a file",
    default_rate: Some(50.0),
    modules: &["crc32c_generic", "loop", "ext4"],
    peer: Some("--iomix"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let disk = Disk::of(job)?;
    let bytes = job.bytes.unwrap_or(DEFAULT_BYTES).min(disk.room).max(CHUNK as u64);
    let files = (0..job.workers.unwrap_or(1))
        .map(|_| disk.first_file(OFlags::empty()))
        .collect::<Result<Vec<_>, _>>()?;
    let before = job.begin_counting(ledger::own_io("write_bytes")?)?;
    let done = repeat_in(job, files.len() as u32, |number| {
        let file = files[number as usize].try_clone().map_err(Error::refused("share a file"))?;
        let mut mix = Mix::new(file, bytes / files.len() as u64);
        Ok(move || mix.go())
    })?;
    let witness = before.grown(done.tally.ok * CHUNK as u64)?;
    Ok(done.account(job, witness))
}

struct Mix {
    file: File,
    chunks: u64,
    place: u64,
    round: u8,
    written: Vec<u8>,
    read: Vec<u8>,
}

impl Mix {
    fn new(file: File, bytes: u64) -> Self {
        let chunks = (bytes / CHUNK as u64).max(1);
        Self { file, chunks, place: 0, round: 0, written: vec![0; CHUNK], read: vec![0; CHUNK] }
    }

    fn go(&mut self) -> io::Result<()> {
        // Knuth's generator (MMIX); its upper bits are the random ones.
        self.place =
            self.place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (self.place >> 33) % self.chunks * CHUNK as u64;
        self.round = self.round.wrapping_add(1);
        self.written.fill(self.round);
        self.file.write_all_at(&self.written, at)?;
        // The two differ in whether times are written too, and so the journal.
        if self.round.is_multiple_of(2) { fsync(&self.file) } else { fdatasync(&self.file) }?;
        fadvise(&self.file, at, NonZeroU64::new(CHUNK as u64), Advice::DontNeed)?;
        self.file.read_exact_at(&mut self.read, at)?;
        if self.read == self.written { Ok(()) } else { Err(Errno::BADMSG.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_file_is_written_and_nothing_beyond_it() {
        let file = tempfile::tempfile().unwrap();
        let mut mix = Mix::new(file.try_clone().unwrap(), 4 * CHUNK as u64 + 77);
        (0..60).for_each(|_| mix.go().unwrap());
        assert_eq!(file.metadata().unwrap().len(), 4 * CHUNK as u64);
        let written = |chunk: u64| {
            let mut byte = [0];
            file.read_exact_at(&mut byte, chunk * CHUNK as u64).unwrap();
            byte[0] > 0
        };
        assert!((0..4).all(written));
    }
}
