//! `icache_flush`: code that is written and run at once, as compilers do that translate while a
//! program runs.
//!
//! The code is written through one mapping and run through another of the same file in memory, so
//! that no page is writable and executable. x86 notices and begins its pipeline anew (Intel SDM
//! volume 3, "Self-Modifying Code"); elsewhere the program says so: arm64 cleans the data cache and
//! tells the instruction caches of all CPUs (`ic ivau`, broadcast within the inner shareable
//! domain). No kernel is called, and none counts it: the answer of the code proves that what ran is
//! what was written last.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;
use std::ffi::c_void;
use std::io;

/// Rewritings of one operation.
const ROUNDS: u16 = 100;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "icache_flush",
    title: "self-modifying code: a function written and called, again and again",
    class: "mem",
    operation: "a function written anew and called, 100 times, each answer compared",
    needs: "x86 or arm64; executable memory (no vm.memfd_noexec of 2, no SELinux execmem)",
    kernel_paths: &["none: pipelines on x86, instruction caches of all CPUs on arm64"],
    witness: "answers of the code, each of which is the number written last: 100 an operation, exact",
    cleanup: "none: the mappings go with the process",
    danger: "its own CPU is slow; bounded by the rate",
    default_rate: Some(500.0),
    peer: Some("--icache"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let code = Code::new()?;
    job.begin()?;
    let (mut number, mut seen) = (0u16, 0);
    let done = job.repeat(|| {
        for _ in 0..ROUNDS {
            number = number.wrapping_add(1);
            code.write(number);
            if code.call() != u32::from(number) {
                return Err(Errno::BADMSG.into());
            }
            seen += 1;
        }
        Ok(())
    });
    let name = "answers of the code that was written last".to_owned();
    let witness = Witness { name, expected: done.tally.ok * u64::from(ROUNDS), seen };
    Ok(done.account(job, witness))
}

/// A function in memory: one mapping to write it, one to call it.
struct Code {
    written: *mut c_void,
    called: *mut c_void,
}

impl Code {
    fn new() -> Result<Self, Error> {
        if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
            return Err(Error::absent("no code of this architecture is known here"));
        }
        let map = || -> io::Result<Self> {
            // Since 6.3 a file in memory is executable only where that was asked for; before, the
            // flag is not known.
            let flags = MemfdFlags::CLOEXEC;
            let file = match memfd_create("stillcore", flags | MemfdFlags::EXEC) {
                Err(Errno::INVAL) => memfd_create("stillcore", flags)?,
                other => other?,
            };
            ftruncate(&file, page_size() as u64)?;
            let one = |protection| {
                // SAFETY: a fresh mapping at an address of the kernel's choosing overlaps nothing.
                unsafe { mmap(std::ptr::null_mut(), page_size(), protection, MapFlags::SHARED, &file, 0) }
            };
            let written = one(ProtFlags::READ | ProtFlags::WRITE)?;
            let called = one(ProtFlags::READ | ProtFlags::EXEC)?;
            Ok(Self { written, called })
        };
        map().map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                Error::absent("memory may not be executed here (vm.memfd_noexec, SELinux)")
            }
            _ => Error::refused("map code")(error),
        })
    }

    /// Writes a function that returns this number.
    #[cfg(target_arch = "x86_64")]
    fn write(&self, number: u16) {
        // mov eax, imm32; ret
        let [low, high] = number.to_le_bytes();
        let code = [0xb8, low, high, 0, 0, 0xc3];
        // SAFETY: the page is this struct's own and longer than the code.
        unsafe { self.written.cast::<[u8; 6]>().write_volatile(code) };
    }

    #[cfg(target_arch = "aarch64")]
    fn write(&self, number: u16) {
        // movz w0, #imm16; ret
        let code = [0x5280_0000_u32 | u32::from(number) << 5, 0xd65f_03c0];
        // SAFETY: the page is this struct's own and longer than the code. The caches hear of it in
        // the order of the architecture's manual (Arm ARM, B2.4.4): data cleaned, instructions
        // invalidated, pipeline begun anew.
        unsafe {
            self.written.cast::<[u32; 2]>().write_volatile(code);
            std::arch::asm!(
                "dc cvau, {written}", "dsb ish", "ic ivau, {called}", "dsb ish", "isb",
                written = in(reg) self.written, called = in(reg) self.called, options(nostack)
            );
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn write(&self, _: u16) {}

    fn call(&self) -> u32 {
        // SAFETY: the mapping begins with the function that `write` has written, which takes
        // nothing, returns a word, and touches no other register.
        unsafe {
            let function: extern "C" fn() -> u32 = std::mem::transmute(self.called);
            function()
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: both mappings are this struct's own.
        let _ = unsafe { (munmap(self.written, page_size()), munmap(self.called, page_size())) };
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_is_what_was_written_last() {
        match Code::new() {
            Ok(code) => {
                for number in [0, 1, 0x1234, u16::MAX, 0] {
                    code.write(number);
                    assert_eq!(code.call(), u32::from(number));
                }
            }
            Err(error) => assert!(matches!(error, Error::Absent { .. }), "{error}"),
        }
    }
}
