//! A hasher for small keys on the path of every event: multiply and rotate, as in Firefox and rustc ("Fx").
//!
//! It does not defend against chosen keys; those come from the kernel, and the worst they could do is to be slow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with this hasher.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fast>>;

/// The state: one word.
#[derive(Default)]
pub struct Fast(u64);

impl Fast {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Fast {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.add(last ^ (rest.len() as u64) << 56);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.add(number as u64);
        self.add((number >> 64) as u64);
    }

    #[inline]
    fn write_i32(&mut self, number: i32) {
        self.add(u64::from(number.cast_unsigned()));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The low bits choose the bucket, and a product's low bits hang on the low bits of its factors alone.
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    fn hash<T: Hash>(value: T) -> u64 {
        let mut hasher = Fast::default();
        value.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn addresses_and_names_spread_over_the_buckets() {
        let spread = |hashes: Vec<u64>| {
            let mut buckets = vec![0u32; 256];
            hashes.iter().for_each(|hash| buckets[(hash & 255) as usize] += 1);
            *buckets.iter().max().unwrap()
        };
        // 4096 keys in 256 buckets: 16 each on average.
        assert!(spread((0..4096u64).map(|i| hash(0xffff_ffff_8100_0000 + i * 64)).collect()) < 48);
        assert!(spread((0..4096u32).map(|i| hash(format!("kworker/{i}:1").as_bytes())).collect()) < 48);
    }
}
