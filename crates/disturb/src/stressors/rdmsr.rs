//! `rdmsr`: a register of each measured CPU is read from elsewhere, as tools for power and
//! frequency do (turbostat, node exporters).
//!
//! `/dev/cpu/N/msr` (drivers, arch/x86/kernel/msr.c: `rdmsr_safe_on_cpu`) has CPU N interrupted to
//! read its own register: one function call each. Only TSC_AUX is read (Intel SDM volume 4,
//! C000_0103H), in which Linux keeps the CPU's own number: the answer proves who gave it. Nothing
//! is ever written.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use model::Cpus;
use model::stressor::Witness;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const TSC_AUX: u64 = 0xc000_0103;
/// The CPU's number; above it is the node's (arch/x86/include/asm/segment.h: VDSO_CPUNODE_BITS).
const CPU_BITS: u64 = 0xfff;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "rdmsr",
    title: "a register of each measured CPU read from elsewhere",
    class: "broadcast",
    operation: "TSC_AUX of one measured CPU read",
    privilege: "root",
    needs: "the msr module; a measured CPU; an x86 CPU with RDTSCP",
    kernel_paths: &["msr_read", "rdmsr_safe_on_cpu", "smp_call_function_single_async", "__rdmsr_safe_on_cpu"],
    witness: "the CPU's own number in the register: every answer comes from the CPU that was asked",
    danger: "an interrupt of a measured CPU each; reading only, one register without effects, bounded by the rate",
    default_rate: Some(200.0),
    modules: &["msr"],
    aimed: true,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if job.measured.is_empty() {
        return Err(Error::absent("no CPU is measured"));
    }
    let registers = open_all(&job.measured)?;
    for (cpu, file) in &registers {
        read(*cpu, file)
            .map_err(|error| Error::absent(format!("CPU {cpu} does not report its TSC_AUX: {error}")))?;
    }
    job.begin()?;
    let mut next = registers.iter().cycle();
    let mut proven = 0;
    let done = job.repeat(|| {
        let (cpu, file) = next.next().ok_or(Errno::NODEV)?;
        proven += u64::from(read(*cpu, file)? == *cpu);
        Ok(())
    });
    let name = "TSC_AUX answers with the number of the CPU asked".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen: proven };
    Ok(done.account(job, witness))
}

fn open_all(cpus: &Cpus) -> Result<Vec<(u32, File)>, Error> {
    let open = |cpu: u32| {
        let path = format!("/dev/cpu/{cpu}/msr");
        let opened = File::open(&path);
        opened.map(|file| (cpu, file)).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => {
                Error::absent(format!("there is no {path} (module msr)"))
            }
            _ => Error::io("read", path.as_ref(), error),
        })
    };
    cpus.iter().map(open).collect()
}

/// The number that the register holds; an error where it holds that of another CPU.
fn read(cpu: u32, file: &File) -> io::Result<u32> {
    let mut value = [0; 8];
    file.read_exact_at(&mut value, TSC_AUX)?;
    let found = (u64::from_le_bytes(value) & CPU_BITS) as u32;
    if found == cpu { Ok(found) } else { Err(Errno::BADMSG.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};

    #[test]
    fn the_number_below_the_node_must_be_that_of_the_cpu() {
        let mut file = tempfile::tempfile().unwrap();
        file.seek(SeekFrom::Start(TSC_AUX)).unwrap();
        file.write_all(&((3u64 << 12) + 17).to_le_bytes()).unwrap();
        assert_eq!(read(17, &file).unwrap(), 17);
        assert!(read(3, &file).is_err());
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_absent() {
        let error = open_all(&Cpus::one(model::cpus::MAX_CPU)).unwrap_err();
        assert!(matches!(error, Error::Absent { .. }), "{error}");
    }
}
