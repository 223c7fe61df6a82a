//! The QEMU command line and the kernel command line of a guest. Pure: data in, words out.
//!
//! The guest is as bare as it can be (`-nodefaults`: no network card, no disk, no display), because
//! every device is an interrupt source on the machine whose stillness is measured. What remains is
//! a console, the result channel and, on x86, a second serial port as a second way for the results.
//! On request it also has two network cards on a hub of QEMU's own: what one sends the other
//! receives, and neither reaches the host's network.

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::guest_config::PORT;
use crate::spec::{Accel, Nic, Smp};
use model::lab_cards::ADDRESSES;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Emulation with one host thread for all guest CPUs, which take turns.
///
/// With one thread per CPU, QEMU (7.2.22) may translate guest code while another CPU patches it,
/// and keep the translation of the old bytes: it reads the code first and only then registers it
/// for invalidation on writes. A kernel patches itself whenever a tracepoint or another static key
/// is switched, through a breakpoint instruction (`text_poke_bp`, arch/x86/kernel/alternative.c).
/// The CPU that keeps the breakpoint's translation traps there for ever: `kprobe_int3_handler` sees
/// that memory no longer has a breakpoint, returns, and meets it again. Every CPU runs that code
/// (the tracepoints in the timer interrupt and in softirqs), so all of them end there. In the
/// opposite case, the translation of the unpatched bytes is a tracepoint that stays silent: events
/// are missing from an exact count.
///
/// One thread cannot translate and write at once.
const TCG: &str = "tcg,thread=single";

/// Everything one boot needs to know.
#[derive(Debug, Clone)]
pub struct Boot {
    /// Guest architecture.
    pub arch: Arch,
    /// How instructions run; [`Accel::Auto`] is a choice between two, not yet one of them.
    pub accel: Accel,
    /// Guest CPUs.
    pub smp: Smp,
    /// Guest memory, MiB.
    pub memory_mib: u32,
    /// Two network cards joined to each other.
    pub nic: Option<Nic>,
    /// Kernel image.
    pub kernel: PathBuf,
    /// Initial file system.
    pub initramfs: PathBuf,
    /// Kernel command line.
    pub append: String,
    /// File that the virtio-serial port writes.
    pub port_file: PathBuf,
    /// File that the second serial port writes, where there is one.
    pub serial_file: PathBuf,
}

/// The arguments, the emulator first. The console is on QEMU's stdout.
pub fn command_line(boot: &Boot) -> Result<Vec<OsString>> {
    if boot.arch == Arch::Aarch64 && boot.smp.threads > 1 {
        return Err(Error::Argument {
            what: "smp",
            value: boot.smp.to_string(),
            expected: "one thread a core on aarch64 (its cores have no hardware threads)".into(),
        });
    }
    let mut words: Vec<OsString> = vec![boot.arch.qemu().0.into()];
    let mut add = |list: &[&str]| words.extend(list.iter().map(OsString::from));
    add(&["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot"]);
    add(&["-M", machine(boot.arch), "-cpu", cpu(boot)]);
    add(&["-accel", if boot.accel == Accel::Kvm { "kvm" } else { TCG }]);
    if let Accel::Icount { shift } = boot.accel {
        // No waiting where every CPU is idle.
        add(&["-icount", &format!("shift={shift},sleep=off")]);
    }
    let Smp { cores, threads } = boot.smp;
    add(&["-smp", &format!("{},sockets=1,cores={cores},threads={threads}", boot.smp.cpus())]);
    add(&["-m", &format!("{}M", boot.memory_mib)]);
    // Interrupt characters belong to us, not to QEMU.
    add(&["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
    if boot.arch.second_serial().is_some() {
        add(&["-chardev", &file_chardev("serial", &boot.serial_file), "-serial", "chardev:serial"]);
    }
    add(&["-chardev", &file_chardev("port", &boot.port_file), "-device", "virtio-serial-pci,max_ports=2"]);
    add(&["-device", &format!("virtserialport,chardev=port,name={PORT}")]);
    for (number, address) in ADDRESSES.iter().enumerate().filter(|_| boot.nic.is_some()) {
        let device = boot.nic.map_or("", Nic::device);
        add(&["-netdev", &format!("hubport,id=card{number},hubid=0")]);
        // Nothing is booted from it, and QEMU refuses one whose ROM is not installed.
        add(&["-device", &format!("{device},netdev=card{number},mac={address},romfile=")]);
    }
    add(&["-append", &boot.append]);
    words.extend([
        "-kernel".into(),
        boot.kernel.clone().into(),
        "-initrd".into(),
        boot.initramfs.clone().into(),
    ]);
    Ok(words)
}

const fn machine(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "q35",
        Arch::Aarch64 => "virt",
    }
}

/// Under TCG `-cpu max` has no hardware threads whatever `-smp` says; IvyBridge shows them
/// (measured).
///
/// QEMU 7.2 that counts instructions has ended a guest in a double fault behind CMPXCHG16B, its
/// flags overwritten, after three hours of its time. Kernels do without the instruction where the
/// CPU has none.
fn cpu(boot: &Boot) -> &'static str {
    match (boot.accel == Accel::Kvm, boot.arch) {
        (true, _) => "host",
        (false, Arch::Aarch64) => "cortex-a72",
        (false, Arch::X86_64) if boot.smp.threads > 1 => "IvyBridge",
        (false, Arch::X86_64) if matches!(boot.accel, Accel::Icount { .. }) => "max,-cx16",
        (false, Arch::X86_64) => "max",
    }
}

/// In a QEMU option a comma is written twice.
fn file_chardev(id: &str, path: &Path) -> String {
    format!("file,id={id},path={}", path.display().to_string().replace(',', ",,"))
}

/// The kernel command line: console, isolation, and whatever the user adds.
///
/// A user's word replaces the lab's word of the same key, because the kernel does not always take
/// the last one: of two different `isolcpus=` it drops the second. A key with nothing after it
/// (`nohz_full=`) is given to no kernel; it only removes ours.
pub fn kernel_command_line(arch: Arch, smp: Smp, append: &str) -> String {
    let mut words = vec![format!("console={}", arch.console())];
    if let Some((isolated, housekeeping)) = partition(smp.cpus()) {
        words.extend([
            format!("isolcpus=managed_irq,domain,{isolated}"),
            format!("nohz_full={isolated}"),
            format!("rcu_nocbs={isolated}"),
            format!("irqaffinity={housekeeping}"),
        ]);
    }
    // Panic ends the guest at once (with -no-reboot), instead of the host waiting for its time to
    // pass.
    words.extend(["quiet".into(), "panic=-1".into()]);
    let mut added = Vec::new();
    for word in append.split_whitespace() {
        // A second console is there only on request: the kernel prints on all of them.
        let replaced = words.iter().position(|own| key_of(own) == key_of(word) && key_of(word) != "console");
        if let Some(at) = replaced {
            words.remove(at);
        }
        if !word.ends_with('=') || key_of(word) == "console" {
            added.push(word.to_owned());
        }
    }
    words.extend(added);
    words.join(" ")
}

fn key_of(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// (isolated, housekeeping) CPU lists: CPUs 2 and 3, or the last CPU of a smaller machine; none of
/// a single one.
pub fn partition(cpus: u32) -> Option<(&'static str, &'static str)> {
    match cpus {
        0 | 1 => None,
        2 => Some(("1", "0")),
        3 => Some(("2", "0-1")),
        _ => Some(("2,3", "0-1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(arch: Arch, smp: &str, accel: Accel) -> Boot {
        Boot {
            arch,
            accel,
            smp: smp.parse().unwrap(),
            memory_mib: 1024,
            nic: None,
            kernel: "/k/vmlinuz".into(),
            initramfs: "/w/initramfs".into(),
            append: "console=x quiet".into(),
            port_file: "/w/a,b/port".into(),
            serial_file: "/w/serial".into(),
        }
    }

    /// The value after an option.
    fn value(words: &[OsString], option: &str) -> String {
        let at = words.iter().position(|word| word == option).unwrap_or_else(|| panic!("no {option}"));
        words[at + 1].to_string_lossy().into_owned()
    }

    #[test]
    fn processors() {
        let cpu = |arch, smp, accel| value(&command_line(&boot(arch, smp, accel)).unwrap(), "-cpu");
        assert_eq!(cpu(Arch::X86_64, "4", Accel::Tcg), "max");
        assert_eq!(cpu(Arch::X86_64, "1", Accel::Icount { shift: 6 }), "max,-cx16");
        assert_eq!(cpu(Arch::X86_64, "4x2", Accel::Tcg), "IvyBridge");
        assert_eq!(cpu(Arch::X86_64, "4x2", Accel::Kvm), "host");
        assert_eq!(cpu(Arch::Aarch64, "4", Accel::Tcg), "cortex-a72");
        assert!(command_line(&boot(Arch::Aarch64, "4x2", Accel::Tcg)).is_err());
    }

    #[test]
    fn instructions_are_counted_only_where_asked_for() {
        let words = |accel| command_line(&boot(Arch::X86_64, "1", accel)).unwrap();
        let icount = |text: &str| words(text.parse().unwrap());
        assert_eq!(value(&icount("icount"), "-icount"), "shift=6,sleep=off");
        assert_eq!(value(&icount("icount:16"), "-icount"), "shift=4,sleep=off");
        for wrong in ["icount:", "icount:3", "icount:2048", "icount:0", "icount:-1"] {
            assert!(wrong.parse::<Accel>().is_err(), "{wrong}");
        }
        assert_eq!(value(&icount("icount"), "-accel"), "tcg,thread=single");
        assert!(!words(Accel::Tcg).iter().any(|word| word == "-icount"));
    }

    #[test]
    fn commas_in_paths_are_doubled_and_words_stay_whole() {
        let words = command_line(&boot(Arch::X86_64, "4", Accel::Tcg)).unwrap();
        assert!(words.iter().any(|word| word == "file,id=port,path=/w/a,,b/port"));
        assert_eq!(value(&words, "-append"), "console=x quiet");
        assert_eq!(value(&words, "-smp"), "4,sockets=1,cores=4,threads=1");
        assert_eq!(words.iter().filter(|word| *word == "-serial").count(), 2);
        let arm = command_line(&boot(Arch::Aarch64, "4", Accel::Tcg)).unwrap();
        assert_eq!(
            arm.iter().filter(|word| *word == "-serial").count(),
            1,
            "QEMU's arm64 board has one UART"
        );
    }

    #[test]
    fn cards_are_on_a_hub_of_their_own_and_only_where_asked_for() {
        let words = |nic| -> Vec<String> {
            let of = Boot { nic, ..boot(Arch::X86_64, "4", Accel::Tcg) };
            let words = command_line(&of).unwrap();
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        assert!(!words(None).iter().any(|word| word == "-netdev" || word.contains("mac=")));
        for (nic, device) in [(Nic::E1000, "e1000"), (Nic::Virtio, "virtio-net-pci")] {
            let words = words(Some(nic));
            let hub: Vec<_> = words.iter().filter(|word| word.starts_with("hubport,")).collect();
            assert_eq!(hub, ["hubport,id=card0,hubid=0", "hubport,id=card1,hubid=0"]);
            let cards = words.iter().filter(|word| word.starts_with(&format!("{device},netdev=card")));
            let addresses: Vec<_> = cards.filter_map(|word| word.split("mac=").nth(1)).collect();
            assert_eq!(addresses, ADDRESSES.map(|address| format!("{address},romfile=")));
            // Any other kind of `-netdev` would be a way out.
            assert_eq!(words.iter().filter(|word| *word == "-netdev").count(), 2);
        }
    }

    #[test]
    fn kernel_arguments() {
        let four = Smp { cores: 4, threads: 1 };
        assert_eq!(
            kernel_command_line(Arch::X86_64, four, " nosmt  mitigations=off"),
            "console=ttyS0 isolcpus=managed_irq,domain,2,3 nohz_full=2,3 rcu_nocbs=2,3 irqaffinity=0-1 quiet panic=-1 nosmt mitigations=off"
        );
        assert_eq!(
            kernel_command_line(
                Arch::X86_64,
                four,
                "isolcpus=3 nohz_full= rcu_nocbs= irqaffinity= kthread_cpus= console=tty0"
            ),
            "console=ttyS0 quiet panic=-1 isolcpus=3 console=tty0"
        );
        let one = Smp { cores: 1, threads: 1 };
        assert_eq!(kernel_command_line(Arch::Aarch64, one, ""), "console=ttyAMA0 quiet panic=-1");
    }

    #[test]
    fn never_every_cpu_is_isolated() {
        for cpus in 2..=16 {
            let (isolated, housekeeping) = partition(cpus).unwrap();
            assert!(!isolated.contains('0') && housekeeping.starts_with('0'));
            assert!(isolated.split(',').all(|cpu| cpu.parse::<u32>().unwrap() < cpus));
        }
    }
}
