//! The request for a lab run: plain data, and the parsing of its small textual forms.

use crate::arch::Arch;
use crate::error::{Error, Result};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// One lab run.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Guest architecture.
    pub arch: Arch,
    /// A known name ("6.1-rt") or the path of a kernel image.
    pub kernel: String,
    /// Guest CPUs.
    pub smp: Smp,
    /// Guest memory, MiB; what packages need comes on top.
    pub memory_mib: u32,
    /// Added to the kernel command line, after (so it wins over) what the lab puts there.
    pub append: String,
    /// Two network cards of this model, joined to each other and to nothing else.
    pub nic: Option<Nic>,
    /// Modules (or aliases) to load before the command runs.
    pub modules: Vec<String>,
    /// Debian packages to have in the guest, with what they depend on.
    pub packages: Vec<String>,
    /// The guest's first program: static, of the guest's architecture.
    pub init: PathBuf,
    /// The program that runs the command; the first program itself where there is none.
    pub binary: Option<PathBuf>,
    /// Files and directories to have in the guest.
    pub add: Vec<Addition>,
    /// Emulation or virtualisation.
    pub accel: Accel,
    /// When the guest is killed.
    pub timeout: Duration,
    /// When the command alone is killed in the guest, counted from its start, so that what it made
    /// still comes back. Whatever is given, it is killed when three quarters of `timeout` have
    /// passed since the kernel's start.
    pub limit: Option<Duration>,
    /// Where the results go: a new or empty directory.
    pub out: PathBuf,
    /// The lab's cache directory ([`crate::cache::dir`]).
    pub cache: PathBuf,
    /// Put before the QEMU command line: a program that makes QEMU die when this process is killed.
    /// May be empty.
    pub launcher: Vec<OsString>,
    /// The command: run as it is if it begins with `/`, else given to `binary` as arguments.
    pub command: Vec<String>,
}

/// Default guest memory, MiB.
pub const DEFAULT_MEMORY_MIB: u32 = 1024;

/// Guest CPUs: cores, and hardware threads of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smp {
    /// Cores, in one socket.
    pub cores: u32,
    /// Threads a core: 1 or 2.
    pub threads: u32,
}

impl Smp {
    /// CPUs as the kernel numbers them.
    pub const fn cpus(self) -> u32 {
        self.cores * self.threads
    }
}

impl fmt::Display for Smp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.threads == 1 {
            write!(f, "{}", self.cores)
        } else {
            write!(f, "{}x{}", self.cores, self.threads)
        }
    }
}

impl FromStr for Smp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (cores, threads) = text.split_once('x').unwrap_or((text, "1"));
        match (cores.parse(), threads.parse()) {
            (Ok(cores @ 1..=64), Ok(threads @ 1..=2)) => Ok(Self { cores, threads }),
            _ => Err(Error::Argument {
                what: "smp",
                value: text.into(),
                expected: "cores (1 to 64), or cores and threads as in 4x2".into(),
            }),
        }
    }
}

/// How the guest's instructions are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// Emulated: slow, the same everywhere.
    Tcg,
    /// On the machine's own processor.
    Kvm,
    /// KVM if a guest shows signs of life within ten seconds, else TCG.
    Auto,
    /// Emulated, with one CPU whose clock counts instructions and jumps over idle: it runs ahead of
    /// ours, the farther the idler the guest is, and nothing of the host shows in it.
    Icount {
        /// An instruction takes 2 to the power of this, ns.
        shift: u8,
    },
}

/// 64 ns an instruction: what spins by the clock costs the host little.
const SHIFT: u8 = 6;
/// The emulator takes no more.
const MOST_SHIFT: u8 = 10;

impl Accel {
    /// Its name on the command line, without how long an instruction takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcg => "tcg",
            Self::Kvm => "kvm",
            Self::Auto => "auto",
            Self::Icount { .. } => "icount",
        }
    }
}

impl FromStr for Accel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "tcg" => Ok(Self::Tcg),
            "kvm" => Ok(Self::Kvm),
            "auto" => Ok(Self::Auto),
            "icount" => Ok(Self::Icount { shift: SHIFT }),
            _ => counted(text).ok_or_else(|| Error::Argument {
                what: "accel",
                value: text.into(),
                expected: "tcg, kvm, auto, icount, or icount:NS with a power of two up to 1024".into(),
            }),
        }
    }
}

/// `icount:NS`.
fn counted(text: &str) -> Option<Accel> {
    let ns: u32 = text.strip_prefix("icount:")?.parse().ok()?;
    let shift = u8::try_from(ns.is_power_of_two().then(|| ns.trailing_zeros())?).ok()?;
    (shift <= MOST_SHIFT).then_some(Accel::Icount { shift })
}

/// A model of network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nic {
    /// Intel's 82540EM: one interrupt line, which its driver shares with whoever else is on it.
    E1000,
    /// Paravirtual, with a message-signalled interrupt a queue.
    Virtio,
}

impl Nic {
    /// What QEMU calls it.
    pub const fn device(self) -> &'static str {
        match self {
            Self::E1000 => "e1000",
            Self::Virtio => "virtio-net-pci",
        }
    }

    /// Its driver in the kernel.
    pub const fn module(self) -> &'static str {
        match self {
            Self::E1000 => "e1000",
            Self::Virtio => "virtio_net",
        }
    }
}

impl FromStr for Nic {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "e1000" => Ok(Self::E1000),
            "virtio" => Ok(Self::Virtio),
            _ => Err(Error::Argument { what: "nic", value: text.into(), expected: "e1000 or virtio".into() }),
        }
    }
}

/// A file or directory of the host to have in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// On the host.
    pub host: PathBuf,
    /// In the guest, absolute; where it is a file, its directories are made.
    pub guest: String,
}

impl FromStr for Addition {
    type Err = Error;

    /// `HOST[:GUEST]`; without GUEST the file goes to `/root`, where relative paths of the command
    /// begin.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Argument {
            what: "add",
            value: text.into(),
            expected: "HOST or HOST:GUEST, with GUEST an absolute path without \"..\"".into(),
        };
        if let Some((host, guest)) = text.rsplit_once(':') {
            let plain =
                guest.starts_with('/') && guest.len() > 1 && guest.split('/').all(|part| part != "..");
            return if plain { Ok(Self { host: host.into(), guest: guest.into() }) } else { Err(bad()) };
        }
        let host = PathBuf::from(text);
        let name = host.file_name().and_then(|name| name.to_str()).ok_or_else(bad)?;
        Ok(Self { guest: format!("/root/{name}"), host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smp_forms() {
        for text in ["1", "4", "4x2"] {
            assert_eq!(text.parse::<Smp>().unwrap().to_string(), text);
        }
        assert_eq!("4x2".parse::<Smp>().unwrap().cpus(), 8);
        for text in ["", "0", "4x3", "x2", "4x", "-1", "4x2x2", "65"] {
            assert!(text.parse::<Smp>().is_err(), "{text}");
        }
    }

    #[test]
    fn additions() {
        let add: Addition = "sets/a.toml".parse().unwrap();
        assert_eq!(add, Addition { host: "sets/a.toml".into(), guest: "/root/a.toml".into() });
        let add: Addition = "a:b:/opt/x".parse().unwrap();
        assert_eq!(add, Addition { host: "a:b".into(), guest: "/opt/x".into() });
        for text in ["a:relative", "a:/../etc", "a:/", "..", "/"] {
            assert!(text.parse::<Addition>().is_err(), "{text}");
        }
    }
}
