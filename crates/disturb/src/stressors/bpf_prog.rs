//! `bpf_prog`: an eBPF program loaded and released.
//!
//! It is verified and compiled like every program (kernel/bpf/syscall.c: `bpf_prog_load`); its
//! pages go by a work item after a grace period. Like [`bpf_filter`](super::bpf_filter), by the
//! system call that observability agents use.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;

/// `r0 = 0; exit`.
const PROGRAM: [u64; 2] = [0xb7, 0x95];
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const SOCKET_FILTER: u32 = 1;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "bpf_prog",
    title: "an eBPF program of two instructions loaded and let go",
    class: "poke",
    operation: "a program verified, compiled, and closed",
    privilege: "root, CAP_BPF, or kernel.unprivileged_bpf_disabled of 0",
    needs: "CONFIG_BPF_SYSCALL",
    kernel_paths: &[
        "bpf_prog_load",
        "bpf_check",
        "bpf_int_jit_compile",
        "set_memory_ro",
        "call_rcu(bpf_prog_put_rcu)",
    ],
    witness: "growth of the kernel's program numbers, machine-wide: a lower bound",
    danger: "memory for machine code runs out; bounded by one program at a time",
    default_rate: Some(200.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let newest = || load().and_then(|program| id(&program)).map(u64::from);
    newest().map_err(lacking)?;
    // Reading it loads a program.
    let before = Counter::read("number of the newest program", || {
        newest().map_err(Error::refused("number a program"))
    })?
    .start()?;
    job.begin()?;
    let done = job.repeat(|| load().map(drop));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

fn lacking(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::absent("the kernel lets this user load no eBPF program"),
        Some(libc::ENOSYS) => Error::absent("this kernel has no bpf system call"),
        _ => Error::refused("load an eBPF program")(error),
    }
}

/// The head of `union bpf_attr` for `BPF_PROG_LOAD` (include/uapi/linux/bpf.h).
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
}

/// The head of `union bpf_attr` for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct Ask {
    fd: u32,
    length: u32,
    info: u64,
}

fn load() -> io::Result<OwnedFd> {
    let attributes = Load {
        kind: SOCKET_FILTER,
        instructions: PROGRAM.len() as u32,
        program: PROGRAM.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
    };
    let fd = bpf(BPF_PROG_LOAD, &attributes)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// The program's number: the second word of `struct bpf_prog_info`.
fn id(program: &OwnedFd) -> io::Result<u32> {
    let mut info = [0u32; 2];
    let ask = Ask {
        fd: program.as_raw_fd().cast_unsigned(),
        length: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &ask)?;
    // SAFETY: `info` is still borrowed by nobody else; the kernel wrote it behind the compiler's
    // back.
    Ok(unsafe { info.as_ptr().add(1).read_volatile() })
}

fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads the size given of the attributes, and their pointers lead to memory
    // that lives until the call returns.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    if result >= 0 { Ok(result) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_numbered_upwards_where_they_may_be_loaded() {
        match load() {
            Ok(first) => assert!(id(&load().unwrap()).unwrap() > id(&first).unwrap()),
            Err(error) => assert!(!lacking(error).to_string().is_empty()),
        }
    }
}
