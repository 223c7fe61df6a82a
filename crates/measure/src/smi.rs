//! System management interrupts: firmware that takes the whole CPU without the kernel's knowledge.
//!
//! Intel CPUs count them in MSR_SMI_COUNT (0x34; Intel SDM volume 4), which the kernel offers as
//! `/dev/cpu/N/msr` and as perf's event `msr/smi/`. Either is read by the probe on its own CPU:
//! from another one the kernel would send an IPI there.

use perf_event::events::Dynamic;
use perf_event::{Builder, ReadFormat};
use rustix::fd::{FromRawFd, IntoRawFd, OwnedFd};
use rustix::io::pread;
use std::fs::File;
use std::io;

const MSR_SMI_COUNT: u64 = 0x34;

/// Where SMIs are counted.
#[derive(Debug)]
pub(crate) enum Smi {
    /// The model-specific register.
    Msr(File),
    /// perf's event, of this thread.
    Perf(OwnedFd),
    /// Nowhere, and why.
    Unavailable(String),
}

impl Smi {
    /// The counter of this CPU, for the calling thread, which is pinned there.
    pub(crate) fn open(cpu: u32) -> Self {
        let by_msr = msr(cpu).map(Self::Msr);
        by_msr.unwrap_or_else(|msr| match perf() {
            Ok(counter) => Self::Perf(counter),
            Err(perf) => Self::Unavailable(format!("MSR 0x34: {msr}; perf msr/smi/: {perf}")),
        })
    }

    /// SMIs so far.
    pub(crate) fn read(&self) -> Option<u64> {
        match self {
            Self::Msr(file) => read_msr(file).ok(),
            Self::Perf(counter) => {
                let mut value = [0u8; 8];
                rustix::io::read(counter, &mut value).ok()?;
                Some(u64::from_ne_bytes(value))
            }
            Self::Unavailable(_) => None,
        }
    }

    /// Its name, or why there is none.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Msr(_) => "MSR 0x34".to_owned(),
            Self::Perf(_) => "perf msr/smi/".to_owned(),
            Self::Unavailable(why) => format!("unavailable ({why})"),
        }
    }
}

/// The register's file, once it has been read; a guest's may be there and refuse.
fn msr(cpu: u32) -> Result<File, String> {
    let vendor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !vendor.lines().any(|line| line.starts_with("vendor_id") && line.contains("GenuineIntel")) {
        return Err("only on Intel".to_owned());
    }
    let path = format!("/dev/cpu/{cpu}/msr");
    let file = File::open(&path).map_err(|error| format!("{path}: {}", error.kind()))?;
    read_msr(&file).map_err(|error| format!("{path}: {}", error.kind()))?;
    Ok(file)
}

fn read_msr(file: &File) -> io::Result<u64> {
    let mut value = [0u8; 8];
    let bytes = pread(file, &mut value, MSR_SMI_COUNT)?;
    if bytes == value.len() {
        Ok(u64::from_le_bytes(value))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn perf() -> Result<OwnedFd, String> {
    let mut event = Dynamic::builder("msr").map_err(|error| error.to_string())?;
    event.event("smi").map_err(|_| "no such event".to_owned())?;
    let event = event.build().map_err(|error| error.to_string())?;
    let mut builder = Builder::new(event);
    builder.include_kernel().include_hv().read_format(ReadFormat::empty());
    let mut counter = builder.build().map_err(|error| error.to_string())?;
    counter.enable().map_err(|error| error.to_string())?;
    // SAFETY: the counter gives its descriptor away, so it has one owner.
    Ok(unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_or_says_why_not() {
        let smi = Smi::open(0);
        match &smi {
            Smi::Unavailable(why) => assert!(why.contains("0x34") && why.contains("msr/smi"), "{why}"),
            _ => assert!(smi.read() <= smi.read(), "a counter does not go backwards"),
        }
    }
}
