//! `kvm_create`: virtual machines made and thrown away, as each start of one makes it: the machine,
//! a slot of memory, a virtual CPU. Nothing runs in it.
//!
//! The first one of a host switches virtualisation on, on every CPU by an interrupt, and the last
//! one's end switches it off again (virt/kvm/kvm_main.c: `hardware_enable_all`, `on_each_cpu`;
//! since 6.12 `kvm.enable_virt_at_load` does it once). The first and the last flip static keys, too
//! (`preempt_notifier_inc`: text patched, every CPU interrupted), and each waits for SRCU grace
//! periods. Where another machine runs all the time, only these waits are left.

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, ledger};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::io;

const DEVICE: &str = "/dev/kvm";
/// `include/uapi/linux/kvm.h`.
const KVM_GET_API_VERSION: u64 = 0xae00;
const KVM_CREATE_VM: u64 = 0xae01;
const KVM_CREATE_VCPU: u64 = 0xae41;
const KVM_SET_USER_MEMORY_REGION: u64 = 0x4020_ae46;
const API_VERSION: i32 = 12;
const BYTES: usize = 64 << 10;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "kvm_create",
    title: "virtual machines made and thrown away: a slot of memory, a virtual CPU",
    class: "broadcast",
    operation: "a virtual machine made with 64 KiB and a virtual CPU, and closed",
    privilege: "none where /dev/kvm may be opened",
    needs: "KVM and a processor that it supports",
    kernel_paths: &[
        "kvm_create_vm",
        "hardware_enable_all",
        "on_each_cpu",
        "preempt_notifier_inc",
        "mmu_notifier_register",
        "synchronize_srcu_expedited",
        "kvm_destroy_vm",
    ],
    witness: "growth of /sys/kernel/uevent_seqnum, machine-wide: KVM reports each machine made and each closed; a lower bound",
    cleanup: "none: machines go with their descriptors",
    danger: "kernel memory; bounded by one machine at a time",
    default_rate: Some(10.0),
    modules: &["kvm", "kvm-intel", "kvm-amd"],
    memory_bytes: 128 << 20,
    peer: Some("--kvm"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let kvm = device()?;
    let memory = memory().map_err(Error::refused("map memory"))?;
    once(&kvm, memory)
        .map_err(|error| Error::absent(format!("KVM makes no virtual machine here: {error}")))?;
    let before = job.begin_counting(ledger::uevents()?)?;
    let done = job.repeat(|| once(&kvm, memory));
    let witness = before.grown(2 * done.tally.ok)?;
    Ok(done.account(job, witness))
}

fn device() -> Result<OwnedFd, Error> {
    let device =
        open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => {
                Error::absent(format!("there is no {DEVICE}: no KVM, or no processor for it"))
            }
            Errno::ACCESS | Errno::PERM => Error::absent(format!("{DEVICE} may not be opened")),
            _ => Error::io("open", DEVICE.as_ref(), error.into()),
        })?;
    match ask(&device, KVM_GET_API_VERSION, 0) {
        Ok(API_VERSION) => Ok(device),
        _ => Err(Error::absent(format!("{DEVICE} has another interface than version {API_VERSION}"))),
    }
}

/// Memory for the machine; it goes with the process.
fn memory() -> io::Result<u64> {
    // SAFETY: a fresh private mapping overlaps nothing.
    let start = unsafe {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        mmap_anonymous(std::ptr::null_mut(), BYTES, protection, MapFlags::PRIVATE)?
    };
    Ok(start.expose_provenance() as u64)
}

/// One operation. Descriptors are closed in the order in which locals end: the virtual CPU first.
fn once(kvm: &OwnedFd, memory: u64) -> io::Result<()> {
    let machine = descriptor(ask(kvm, KVM_CREATE_VM, 0)?);
    // `struct kvm_userspace_memory_region`: slot 0 without flags, from address 0 of the machine on.
    let slot = [0, 0, BYTES as u64, memory];
    ask(&machine, KVM_SET_USER_MEMORY_REGION, slot.as_ptr().addr())?;
    let _processor = descriptor(ask(&machine, KVM_CREATE_VCPU, 0)?);
    Ok(())
}

fn ask(of: &OwnedFd, request: u64, argument: usize) -> io::Result<i32> {
    // SAFETY: the argument is a number, or the address of a structure that the request only reads
    // and that lives until the call returns.
    match unsafe { libc::ioctl(of.as_raw_fd(), request as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

/// The owner of a descriptor that the kernel has just made.
fn descriptor(number: i32) -> OwnedFd {
    // SAFETY: nobody else knows the number.
    unsafe { OwnedFd::from_raw_fd(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_made_or_the_reason_is_told() {
        match device() {
            Ok(kvm) => {
                let refused = ask(&kvm, KVM_SET_USER_MEMORY_REGION, 0).unwrap_err();
                assert!(refused.raw_os_error().is_some(), "a device is no machine: {refused}");
            }
            Err(error) => assert!(matches!(error, Error::Absent { .. }), "{error}"),
        }
    }
}
