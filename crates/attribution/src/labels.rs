//! What ran, as small numbers: functions, interrupt names and task names, each text kept once; and
//! sets of CPUs likewise.

use model::Cpus;
use model::cpus::MAX_CPU;
use rustc_hash::FxHashMap;

/// A text of [`Labels`].
pub type LabelId = u32;

/// The texts seen so far.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    texts: Vec<String>,
    ids: FxHashMap<Box<[u8]>, LabelId>,
    /// Those that were read from a field of [`COMM`] bytes, by these.
    comms: FxHashMap<u128, LabelId>,
}

/// Bytes of the field that holds a task's name, a zero byte behind it (`TASK_COMM_LEN`,
/// include/linux/sched.h).
const COMM: usize = 16;

/// The bytes before the first zero byte.
fn before_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// The same of a task's name, in the order of memory; zero bytes in place of the others.
fn until_zero(comm: [u8; COMM]) -> u128 {
    const ONES: u128 = u128::from_ne_bytes([1; COMM]);
    let word = u128::from_le_bytes(comm);
    // The lowest bit that is set is of the first zero byte.
    let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
    let bits = zeros.trailing_zeros() & !7;
    word & 1u128.checked_shl(bits).map_or(u128::MAX, |above| above.wrapping_sub(1))
}

impl Labels {
    /// The number of a text.
    pub fn id(&mut self, text: &str) -> LabelId {
        self.id_of_bytes(text.as_bytes())
    }

    /// The number of a text as the kernel wrote it; what is not UTF-8 is shown as U+FFFD.
    #[inline]
    pub fn id_of_bytes(&mut self, text: &[u8]) -> LabelId {
        self.ids.get(text).copied().unwrap_or_else(|| self.add(text))
    }

    /// The number of the text in a field, which ends with the field or its first zero byte.
    #[inline]
    pub fn id_of_field(&mut self, field: &[u8]) -> LabelId {
        match <[u8; COMM]>::try_from(field) {
            Ok(comm) => {
                let word = until_zero(comm);
                self.comms.get(&word).copied().unwrap_or_else(|| self.add_comm(word))
            }
            Err(_) => self.id_of_bytes(before_zero(field)),
        }
    }

    #[cold]
    fn add_comm(&mut self, word: u128) -> LabelId {
        let bytes = word.to_le_bytes();
        let id = self.id_of_bytes(before_zero(&bytes));
        self.comms.insert(word, id);
        id
    }

    fn add(&mut self, text: &[u8]) -> LabelId {
        let id = self.texts.len() as LabelId;
        self.texts.push(String::from_utf8_lossy(text).into_owned());
        self.ids.insert(text.into(), id);
        id
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The text of a number; empty for one that was never given.
    pub fn text(&self, id: LabelId) -> &str {
        self.texts.get(id as usize).map_or("", String::as_str)
    }
}

/// The sets of CPUs seen so far: senders use few.
#[derive(Debug, Clone, Default)]
pub struct CpuSets {
    sets: Vec<Cpus>,
    ids: FxHashMap<Box<[u8]>, u32>,
}

impl CpuSets {
    /// The number of a set given as the bytes of a mask, CPU 0 in the lowest bit of the first byte.
    pub fn id(&mut self, mask: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(mask) {
            return id;
        }
        let bits = mask.iter().enumerate().flat_map(|(at, byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at as u32 * 8 + bit)
        });
        let id = self.sets.len() as u32;
        self.sets.push(bits.filter(|cpu| *cpu <= MAX_CPU).collect());
        self.ids.insert(mask.into(), id);
        id
    }

    /// Those of this number and above.
    pub(crate) fn since(&self, first: usize) -> &[Cpus] {
        self.sets.get(first..).unwrap_or_default()
    }

    /// Gives the next numbers to sets that another table has under these.
    pub(crate) fn extend(&mut self, sets: impl Iterator<Item = Cpus>) {
        self.sets.extend(sets);
    }

    /// Whether a CPU is in the set of a number.
    pub fn has(&self, id: u32, cpu: u32) -> bool {
        self.sets.get(id as usize).is_some_and(|set| set.contains(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_a_set_of_cpus() {
        let mut sets = CpuSets::default();
        let (a, b) = (sets.id(&[0b1100, 1]), sets.id(&[1]));
        assert_eq!(sets.id(&[0b1100, 1]), a);
        let in_a: Vec<u32> = (0..20).filter(|cpu| sets.has(a, *cpu)).collect();
        assert_eq!((in_a, sets.has(b, 0), sets.has(99, 0)), (vec![2, 3, 8], true, false));
    }

    #[test]
    fn a_name_ends_with_its_field_or_its_first_zero_byte() {
        let mut labels = Labels::default();
        let ids = ["make", "ksoftirqd/12", "a", "", "sixteen bytes all"]
            .map(|name| labels.id(&name[..name.len().min(16)]));
        let mut of = |field: &[u8]| labels.id_of_field(field);
        // What stands behind the zero byte is left from an earlier, longer name.
        let fields: [&[u8]; 5] = [
            b"make\0oftirqd/12\0",
            b"ksoftirqd/12\0\0\0\x01",
            b"a\0\x01\x01\xff\0\x80\0bcdefgh",
            &[0; 16],
            b"sixteen bytes al",
        ];
        assert_eq!(fields.map(&mut of), ids);
        assert_eq!(fields.map(&mut of), ids);
        assert_eq!([b"make\0x".as_slice(), b"make"].map(of), [ids[0]; 2]);
    }

    #[test]
    fn a_text_has_one_number() {
        let mut labels = Labels::default();
        let (a, b) = (labels.id("kworker/1:1"), labels.id("eth0"));
        assert_eq!((labels.id_of_bytes(b"kworker/1:1"), labels.text(b)), (a, "eth0"));
        let odd = labels.id_of_bytes(b"\xff");
        assert_eq!((labels.text(odd), labels.text(99)), ("\u{fffd}", ""));
    }
}
