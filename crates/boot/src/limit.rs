//! How long a command line may be. The kernel cuts a longer one without a word, in the middle of a
//! list if need be.
//!
//! `COMMAND_LINE_SIZE` with its closing zero: Linux `arch/x86/include/asm/setup.h`,
//! `arch/*/include/uapi/asm/setup.h`; where an architecture has none of its own,
//! `include/uapi/asm-generic/setup.h`.

use super::target::Kernel;

/// Architecture as `uname -m` has it, and the size. On s390 what the loader takes
/// (`ARCH_COMMAND_LINE_SIZE`).
const SIZES: [(&str, usize); 14] = [
    ("x86_64", 2048),
    ("i686", 2048),
    ("i586", 2048),
    ("aarch64", 2048),
    ("armv6l", 1024),
    ("armv7l", 1024),
    ("armv8l", 1024),
    ("riscv64", 1024),
    ("ppc64le", 2048),
    ("ppc64", 2048),
    ("loongarch64", 4096),
    ("mips", 4096),
    ("mips64", 4096),
    ("s390x", 896),
];

/// The size of architectures that name none.
const GENERIC: usize = 512;

/// The longest line in bytes that the kernel takes whole.
pub(crate) fn longest(kernel: &Kernel) -> usize {
    let option = || kernel.config.as_ref()?.get("CONFIG_COMMAND_LINE_SIZE")?.parse().ok();
    let known = || SIZES.iter().find(|(arch, _)| *arch == kernel.arch).map(|(_, size)| *size);
    // A machine that does not name its architecture is held against the size that most have.
    let size = option().or_else(known).unwrap_or(if kernel.arch.is_empty() { 2048 } else { GENERIC });
    size.saturating_sub(1)
}
