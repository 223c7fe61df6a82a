//! What a loop does that waits for another CPU: it says so.
//!
//! On x86-64 the hint is PAUSE. On arm64 [`std::hint::spin_loop`] is ISB, which delays the loop but tells nobody that it waits; YIELD does
//! (Arm ARM, C6.2). A CPU that has nothing to yield to goes on at once; an emulator that runs its CPUs in turns (QEMU's
//! `tcg,thread=single`) takes the next one, and would give this one its whole turn otherwise, a tenth of a second for each look.

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
