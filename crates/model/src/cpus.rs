//! A set of CPUs, and the kernel's two spellings of it.
//!
//! The kernel takes some masks as lists (`0-1,4`) and others as hex words (`00000003`), and many a
//! value is valid in both with different meanings. Code therefore passes [`Cpus`] and names the
//! spelling only where a file is read or written. Formats: Linux
//! `Documentation/admin-guide/kernel-parameters.rst` (cpu lists), `lib/bitmap-str.c` (both).

use crate::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest CPU number that a list or mask may name; Linux's NR_CPUS maximum is 8192.
pub const MAX_CPU: u32 = 8191;

/// An ordered set of CPU numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpus(pub BTreeSet<u32>);

impl Cpus {
    /// The set of the one CPU.
    pub fn one(cpu: u32) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many CPUs the set has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs of `self` that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// The CPUs that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs that are in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// Whether every CPU of `self` is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Reads the list spelling: numbers, ranges and strided ranges (`0-9:2/4`), separated by
    /// commas; empty text is the empty set.
    pub fn parse_list(text: &str) -> Result<Self, Error> {
        let mut set = BTreeSet::new();
        for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            parse_range(part, &mut set).ok_or_else(|| {
                let expected = format!("CPU numbers and ranges up to {MAX_CPU}, such as 2,4-7 or 0-9:1/2");
                Error::invalid("CPU list", format!("{part:?} in {text:?}"), expected)
            })?;
        }
        Ok(Self(set))
    }

    /// Reads the hex spelling: 32-bit words, most significant first, separated by commas, without
    /// `0x`.
    pub fn parse_hex(text: &str) -> Result<Self, Error> {
        let bad = || {
            Error::invalid("CPU mask", format!("{:?}", text.trim()), "hex words without 0x, such as 00000003")
        };
        let mut set = BTreeSet::new();
        for (word_index, word) in text.trim().rsplit(',').enumerate() {
            let bits = u32::from_str_radix(word, 16).map_err(|_| bad())?;
            if word.starts_with('+') || word_index as u32 > MAX_CPU / 32 {
                return Err(bad());
            }
            set.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| word_index as u32 * 32 + bit));
        }
        Ok(Self(set))
    }

    /// Writes the hex spelling that every kernel file of masks accepts: no `0x`, no more words than
    /// needed.
    pub fn to_hex(&self) -> String {
        let words = self.0.last().map_or(1, |last| last / 32 + 1);
        let word = |index: u32| {
            self.iter().filter(|cpu| cpu / 32 == index).fold(0u32, |bits, cpu| bits | 1 << (cpu % 32))
        };
        let (top, rest) = (words - 1, (0..words - 1).rev());
        rest.fold(format!("{:x}", word(top)), |text, index| format!("{text},{:08x}", word(index)))
    }
}

fn parse_range(part: &str, set: &mut BTreeSet<u32>) -> Option<()> {
    let (range, stride) = part.split_once(':').map_or((part, None), |(range, stride)| (range, Some(stride)));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (u32, u32) = (number(first)?, number(last)?);
    if first > last || last > MAX_CPU {
        return None;
    }
    let (used, group) = match stride.map(|stride| stride.split_once('/')) {
        None => (1, 1),
        Some(Some((used, group))) => (number(used)?, number(group)?),
        Some(None) => return None,
    };
    if used == 0 || group == 0 || used > group {
        return None;
    }
    set.extend((first..=last).filter(|cpu| (cpu - first) % group < used));
    Some(())
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Cpus {
    /// The list spelling; a range has at least three CPUs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| last.checked_add(1) == Some(*next)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                1 => write!(f, "{separator}{first},{last}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl FromStr for Cpus {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse_list(text)
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_list(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> Vec<u32> {
        Cpus::parse_list(text).unwrap().iter().collect()
    }

    #[test]
    fn lists_are_read_as_the_kernel_reads_them() {
        assert_eq!(list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(list("0-9:2/4"), [0, 1, 4, 5, 8, 9]);
        assert_eq!(list(" 2\n"), [2]);
        assert_eq!(list("0-1,"), [0, 1]);
        assert_eq!(list(""), Vec::<u32>::new());
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        for text in ["0x3", "all", "1-0", "-1", "1-", "0-9:3/2", "0-9:0/2", "0-9:1", "9999", "+1", "1 2"] {
            assert!(Cpus::parse_list(text).is_err(), "{text}");
        }
        for text in ["0x3", "0-1", "", "g", "1,,2", "123456789"] {
            assert!(Cpus::parse_hex(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hex_words_are_most_significant_first() {
        assert_eq!(Cpus::parse_hex("00000001,00000003").unwrap().iter().collect::<Vec<_>>(), [0, 1, 32]);
        assert_eq!(Cpus::from_iter([0, 1, 32]).to_hex(), "1,00000003");
        assert_eq!(Cpus::default().to_hex(), "0");
    }

    proptest! {
        #[test]
        fn both_spellings_round_trip(cpus in proptest::collection::btree_set(0..=MAX_CPU, 0..40)) {
            let cpus = Cpus(cpus);
            prop_assert_eq!(&Cpus::parse_list(&cpus.to_string()).unwrap(), &cpus);
            prop_assert_eq!(&Cpus::parse_hex(&cpus.to_hex()).unwrap(), &cpus);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Cpus::parse_list(&text);
            let _ = Cpus::parse_hex(&text);
        }
    }
}
