//! CPU relax hint (PAUSE, YIELD) for spin loops.
//!
//! On x86-64 the hint is PAUSE. On arm64 [`std::hint::spin_loop`] is ISB, which delays the loop but
//! does not signal that it waits; YIELD does (Arm ARM, C6.2). A CPU that has nothing to yield to
//! continues at once. An emulator that runs its CPUs in turns (QEMU's `tcg,thread=single`) switches
//! to the next CPU; without the hint each poll would take the whole turn, a tenth of a second.

/// Called in each turn of a loop that waits for what another CPU writes.
#[inline(always)]
pub fn relax() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: YIELD is a hint without operands and without effect on the program.
    unsafe {
        core::arch::asm!("yield", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::hint::spin_loop();
}
