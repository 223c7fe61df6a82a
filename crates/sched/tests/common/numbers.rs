//! Numbers for drawn sets (splitmix64: Steele, Lea and Flood, OOPSLA 2014).

/// A stream of numbers from a seed (splitmix64), the same on every machine.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        low + (z ^ (z >> 31)) % (high - low + 1)
    }
}
