//! The two guest architectures and what differs between them.

use crate::error::{Error, Result};
use object::elf;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A guest architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// A PC (`-M q35`).
    X86_64,
    /// QEMU's own board (`-M virt`).
    Aarch64,
}

impl Arch {
    /// The architecture this program was built for, where the lab has guests of it.
    pub fn host() -> Option<Self> {
        std::env::consts::ARCH.parse().ok()
    }

    /// Debian's name.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The emulator, and the Debian package that carries it.
    pub const fn qemu(self) -> (&'static str, &'static str) {
        match self {
            Self::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Self::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// The kernel's name of the first serial port.
    pub const fn console(self) -> &'static str {
        match self {
            Self::X86_64 => "ttyS0",
            Self::Aarch64 => "ttyAMA0",
        }
    }

    /// A second serial port for the results; QEMU's arm64 board has only one.
    pub const fn second_serial(self) -> Option<&'static str> {
        match self {
            Self::X86_64 => Some("/dev/ttyS1"),
            Self::Aarch64 => None,
        }
    }

    /// `e_machine` of its programs.
    pub(crate) const fn elf_machine(self) -> elf::Machine {
        match self {
            Self::X86_64 => elf::EM_X86_64,
            Self::Aarch64 => elf::EM_AARCH64,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        })
    }
}

impl FromStr for Arch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "x86_64" | "amd64" => Ok(Self::X86_64),
            "aarch64" | "arm64" => Ok(Self::Aarch64),
            _ => Err(Error::Argument {
                what: "architecture",
                value: text.into(),
                expected: "x86_64 or aarch64".into(),
            }),
        }
    }
}
