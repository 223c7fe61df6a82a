//! `pci_config`: the configuration header of each PCI device read, as monitoring and `lspci` do.
//!
//! The kernel reads it with interrupts off and a lock held that all devices share
//! (drivers/pci/access.c: `pci_user_read_config_dword`, `pci_lock`), by ports that are slow
//! (arch/x86/pci/direct.c) or by memory; a device that sleeps is woken first
//! (`pci_config_pm_runtime_get`). In a virtual machine each access may leave to the host.

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, ledger};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

const DEVICES: &str = "/sys/bus/pci/devices";
/// What anybody may read of a device; beyond it some devices take harm (lspci(8), `-xxx`).
const HEADER: usize = 64;
/// A vendor that no device has: nobody has answered.
const NOBODY: [u8; 2] = [0xff, 0xff];

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "pci_config",
    title: "configuration headers of PCI devices read, one device after the other",
    class: "io",
    operation: "64 bytes of a device's configuration read",
    needs: "PCI devices; CONFIG_SYSFS, CONFIG_TASK_IO_ACCOUNTING",
    kernel_paths: &["pci_read_config", "pci_user_read_config_dword", "raw_spin_lock_irq(pci_lock)"],
    witness: "growth of rchar in its own /proc/self/io: 64 bytes an operation, exact",
    danger: "interrupts are off while a device answers; a device that sleeps is woken; bounded by one reader, and to the header",
    default_rate: Some(500.0),
    peer: Some("--pci"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let devices = answering();
    if devices.is_empty() {
        return Err(Error::absent(format!("no PCI device answers in {DEVICES}")));
    }
    let before = job.begin_counting(ledger::own_io("rchar")?)?;
    let mut next = devices.iter().cycle();
    let done = job.repeat(|| read(next.next().ok_or(Errno::NODEV)?));
    let witness = before.grown(done.tally.ok * HEADER as u64)?;
    Ok(done.account(job, witness))
}

/// The devices whose header can be read; one that is switched off answers nothing.
fn answering() -> Vec<PathBuf> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let mut devices: Vec<_> = entries.map(|entry| entry.path().join("config")).collect();
    devices.retain(|device| read(device).is_ok());
    devices.sort();
    devices
}

fn read(device: &PathBuf) -> io::Result<()> {
    let mut header = [0; HEADER];
    File::open(device)?.read_exact(&mut header)?;
    if header[..2] == NOBODY { Err(Errno::NODEV.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_whole_and_of_somebody() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        assert!(read(&file("device", &[0x86; 256])).is_ok());
        assert!(read(&file("nobody", &[0xff; 256])).is_err());
        assert!(read(&file("short", &[0x86; 63])).is_err());
    }
}
