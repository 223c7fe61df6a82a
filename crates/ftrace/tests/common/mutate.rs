//! Damage to bytes, the same for the same number: cuts, flipped bits, changed lengths, pieces
//! moved, doubled, lost and exchanged.
//!
//! It knows the formats: words that stand where lengths stand get values near the edges, and a
//! dictionary holds what the records of the corpus begin with. What coverage adds, the fuzzer brings
//! (`crates/cli/examples/fuzz`).

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a counter with a mixer, so that every execution
/// has a sequence of its own.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(campaign: u64, execution: u64) -> Self {
        let mut rng = Self(campaign);
        Self(rng.next() ^ execution.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Below `end`; 0 where that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
    }
}

/// The most that pieces may make of a seed.
pub(crate) const LONGEST: usize = 192 << 10;

/// A damaged copy of one of the seeds. `words` are put over places at random.
pub(crate) fn mutate(seeds: &[Vec<u8>], words: &[u16], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    let times = 1 + rng.below(4) + if rng.below(8) == 0 { rng.below(40) } else { 0 };
    for _ in 0..times {
        once(&mut bytes, seeds, words, rng);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn once(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[u16], rng: &mut Rng) {
    let at = rng.below(bytes.len());
    match rng.below(16) {
        0 => bytes.truncate(at),
        1..=4 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        5 => put(bytes, at, &rng.next().to_le_bytes()[..=rng.below(8)]),
        6..=9 => {
            let (value, size) = (edge(bytes.len(), rng), [1, 2, 4, 4, 8][rng.below(5)]);
            // Numbers stand at even places in pages, and anywhere in headers.
            let at = if rng.below(2) == 0 { at & !3 } else { at };
            put(bytes, at, &value.to_le_bytes()[..size]);
        }
        10 | 11 if !words.is_empty() => {
            let word = words[rng.below(words.len())];
            put(bytes, at & !3, &word.to_le_bytes());
        }
        12 => {
            // Something is missing, and everything behind it has moved.
            let end = (at + 1 + rng.below(64)).min(bytes.len());
            bytes.drain(at.min(end)..end);
        }
        13 => {
            let end = (at + 1 + rng.below(256)).min(bytes.len());
            let piece = bytes[at.min(end)..end].to_vec();
            let to = rng.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        14 => {
            let other = &seeds[rng.below(seeds.len())];
            let from = if rng.below(2) == 0 { at.min(other.len()) } else { rng.below(other.len()) };
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from.min(other.len())..]);
        }
        _ => {
            let (from, size) = (rng.below(bytes.len()), 1 + rng.below(512));
            let piece = bytes[from..(from + size).min(bytes.len())].to_vec();
            put(bytes, at, &piece);
        }
    }
}

fn put(bytes: &mut [u8], at: usize, piece: &[u8]) {
    for (place, value) in bytes.iter_mut().skip(at).zip(piece) {
        *place = *value;
    }
}

/// A number at which lengths, offsets and counts go wrong.
fn edge(length: usize, rng: &mut Rng) -> u64 {
    let base = match rng.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << rng.below(64),
        3 => length as u64,
        4 => rng.below(length) as u64,
        5 => 4096,
        6 => i64::MAX as u64,
        _ => u64::from(u32::MAX),
    };
    base.wrapping_add(rng.below(9) as u64).wrapping_sub(4)
}
