//! What ran, as small numbers: functions, interrupt names and task names, each text kept once; and sets of CPUs likewise.

use crate::hash::FastMap;
use model::Cpus;
use model::cpus::MAX_CPU;

/// A text of [`Labels`].
pub type LabelId = u32;

/// The texts seen so far.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    texts: Vec<String>,
    ids: FastMap<Box<[u8]>, LabelId>,
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

    /// The same, sooner where it is `guess`'s.
    #[inline]
    pub fn id_of_bytes_near(&mut self, text: &[u8], guess: LabelId) -> LabelId {
        let right = self.texts.get(guess as usize).is_some_and(|known| known.as_bytes() == text);
        if right { guess } else { self.id_of_bytes(text) }
    }

    fn add(&mut self, text: &[u8]) -> LabelId {
        let id = self.texts.len() as LabelId;
        self.texts.push(String::from_utf8_lossy(text).into_owned());
        self.ids.insert(text.into(), id);
        id
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
    ids: FastMap<Box<[u8]>, u32>,
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
    fn a_text_has_one_number() {
        let mut labels = Labels::default();
        let (a, b) = (labels.id("kworker/1:1"), labels.id("eth0"));
        assert_eq!((labels.id_of_bytes(b"kworker/1:1"), labels.text(b)), (a, "eth0"));
        let odd = labels.id_of_bytes(b"\xff");
        assert_eq!((labels.text(odd), labels.text(99)), ("\u{fffd}", ""));
    }
}
