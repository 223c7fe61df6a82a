//! Numbers for the tests of intervals: the same at every run.

/// Uniform on [0, 1): Knuth's linear congruential generator of 64 bits (MMIX), its upper 53.
pub(super) fn uniform() -> impl FnMut() -> f64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}
