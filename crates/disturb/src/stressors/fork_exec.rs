//! `fork_exec`: processes that become another program. Fork, exec of a program of some 140 bytes,
//! wait, in up to two small processes.
//!
//! Exec tears down one address space and sets up another (fs/exec.c: `begin_new_exec`,
//! `exec_mmap`), and forgets threads, signals and timers. The program is made here and kept in a
//! memfd, so that neither a file nor the size of this one is measured: an ELF header (System V
//! gABI, chapter 4) and the call `exit(42)`, a code that nothing else here ends with.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::offspring::fork_and_wait;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use crate::workers::repeat_in;
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

const MAX_WORKERS: usize = 2;
/// What the program ends with.
const CODE: i32 = 42;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "fork_exec",
    title: "fork and exec of a tiny static program, in up to two small processes",
    class: "sched",
    operation: "a process made, turned into the program, ended and waited for",
    needs: "memfd_create and execveat; room for 4 processes; x86-64 or arm64",
    kernel_paths: &[
        "kernel_clone",
        "begin_new_exec",
        "exec_mmap",
        "load_elf_binary",
        "do_exit",
        "call_rcu",
        "load balancing",
    ],
    witness: "growth of `processes` in /proc/stat, machine-wide: a lower bound; the exit code is one that only the program has",
    cleanup: "none: every process ends with its supervisor, and the program with the last descriptor of it",
    danger: "process ids run out; bounded by one process at a time a worker, and pids.max",
    default_rate: Some(300.0),
    peer: Some("--exec"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let workers = job.workers.unwrap_or_else(|| job.cpus.len().clamp(1, MAX_WORKERS) as u32);
    let text = program().ok_or_else(|| Error::absent("no program is known for this architecture"))?;
    let refused =
        |error: io::Error| Error::absent(format!("no program may be run from memory here: {error}"));
    let file = in_memory(&text).map_err(refused)?;
    fork_exec(&file).map_err(refused)?;
    let before = job.begin_counting(Counter::forks()?)?;
    let done = repeat_in(job, workers, |_| Ok(|| fork_exec(&file)))?;
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// One operation. A child that could not become the program leaves with the errno; the program's
/// own code is the success.
fn fork_exec(program: &OwnedFd) -> io::Result<()> {
    match fork_and_wait(|| exec(program)) {
        Err(error) if error.raw_os_error() == Some(CODE) => Ok(()),
        // Nothing but a program that is not ours can end with 0.
        Ok(()) => Err(Errno::CHILD.into()),
        refused => refused,
    }
}

/// Becomes the program; returns only where the kernel refuses.
fn exec(program: &OwnedFd) -> io::Result<()> {
    let none: [*const libc::c_char; 1] = [std::ptr::null()];
    let name = [c"still".as_ptr(), std::ptr::null()];
    // SAFETY: both lists end with a null pointer and their texts with a null byte; all live beyond
    // the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            name.as_ptr(),
            none.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    Err(io::Error::last_os_error())
}

/// A descriptor for reading only: what is open for writing cannot be run (ETXTBSY).
fn in_memory(program: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("still", MemfdFlags::CLOEXEC)?);
    file.write_all(program)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// An ELF file of one segment that calls `exit(42)`.
fn program() -> Option<Vec<u8>> {
    const HEADERS: u64 = 64 + 56;
    const LOAD_AT: u64 = 0x40_0000;
    let (machine, code): (u16, Vec<u8>) = if cfg!(target_arch = "x86_64") {
        // mov edi, 42; mov eax, 60 (exit); syscall
        (62, vec![0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05])
    } else if cfg!(target_arch = "aarch64") {
        // mov x0, #42; mov x8, #93 (exit); svc #0
        (183, [0xd280_0540u32, 0xd280_0ba8, 0xd400_0001].iter().flat_map(|word| word.to_le_bytes()).collect())
    } else {
        return None;
    };
    let size = HEADERS + code.len() as u64;
    // Magic; 64 bits, little-endian, version 1.
    let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let half = |elf: &mut Vec<u8>, values: &[u16]| {
        values.iter().for_each(|value| elf.extend(value.to_le_bytes()));
    };
    let words = |elf: &mut Vec<u8>, values: &[u32]| {
        values.iter().for_each(|value| elf.extend(value.to_le_bytes()));
    };
    let longs = |elf: &mut Vec<u8>, values: &[u64]| {
        values.iter().for_each(|value| elf.extend(value.to_le_bytes()));
    };
    // Type (executable), machine; version; entry, program headers, section headers; flags; sizes
    // and numbers of headers.
    half(&mut elf, &[2, machine]);
    words(&mut elf, &[1]);
    longs(&mut elf, &[LOAD_AT + HEADERS, 64, 0]);
    words(&mut elf, &[0]);
    half(&mut elf, &[64, 56, 1, 0, 0, 0]);
    // One segment: load, readable and executable; offset, addresses, sizes, alignment of the
    // largest page.
    words(&mut elf, &[1, 5]);
    longs(&mut elf, &[0, LOAD_AT, LOAD_AT, size, size, 0x1_0000]);
    elf.extend(code);
    Some(elf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_runs_and_only_it_counts() {
        let file = in_memory(&program().unwrap()).unwrap();
        fork_exec(&file).unwrap();
        let broken = in_memory(b"not a program").unwrap();
        assert_eq!(fork_exec(&broken).unwrap_err().raw_os_error(), Some(libc::ENOEXEC));
    }
}
