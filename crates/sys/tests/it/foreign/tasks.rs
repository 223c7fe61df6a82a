//! A thread of a traced program, stopped: its number, and its memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Longest path that is read.
const PATH: usize = 256;
/// The x86-64 ABI leaves 128 bytes below the stack pointer to a function; below them, nothing is.
const RED_ZONE: u64 = 128;
/// How far below the stack pointer text for the kernel is put.
const SCRATCH: u64 = RED_ZONE + 1024;

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) tid: i32,
    /// `pthread_self` of the C libraries.
    pub(crate) thread_pointer: u64,
    stack_pointer: u64,
    memory: File,
}

impl Task {
    pub(crate) fn open(tid: i32, stack_pointer: u64, thread_pointer: u64) -> io::Result<Self> {
        let memory = File::options().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
        Ok(Self { tid, thread_pointer, stack_pointer, memory })
    }

    pub(crate) fn read<const N: usize>(&self, address: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    pub(crate) fn read_u64(&self, address: u64) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.read(address)?))
    }

    pub(crate) fn read_u32(&self, address: u64) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.read(address)?))
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Text up to its zero, or to the end of what can be read: libraries call with an address that
    /// is none to learn whether a call exists.
    pub(crate) fn text(&self, address: u64) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < PATH {
            match self.read::<1>(address + bytes.len() as u64) {
                Ok([byte]) if byte != 0 => bytes.push(byte),
                _ => break,
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Puts bytes where the thread has nothing, for the length of one call.
    pub(crate) fn scratch(&self, bytes: &[u8]) -> io::Result<u64> {
        let address = self.stack_pointer - SCRATCH;
        self.write(address, bytes)?;
        Ok(address)
    }

    /// The thread that an argument names; 0 is the calling one.
    pub(crate) fn id(&self, argument: u64) -> i32 {
        if argument == 0 { self.tid } else { argument as i32 }
    }

    /// That thread, for a recording.
    pub(crate) fn named(&self, argument: u64) -> String {
        let id = self.id(argument);
        if id == self.tid { "self".into() } else { id.to_string() }
    }
}
