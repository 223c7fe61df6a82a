//! When two texts are the same value, and what to write to have a value back.
//!
//! Kernels print values in other spellings than they take: masks padded with zeros, lists folded
//! into ranges, a choice with the word in force in brackets, `default (cache_shard)` for what is
//! written as `default`. A text does not say whether it is a list or a mask, but its shape does
//! where that matters: a mask of several words has eight digits in each but the first (Linux
//! `lib/bitmap-str.c`), which no CPU number has.

use machine::bracketed;
use model::Cpus;

/// How the kernel marks a partition that it does not uphold.
const INVALID: &str = " invalid";

/// What a file's text says, in a spelling that can be written back.
pub fn writable(text: &str) -> String {
    let text = text.trim();
    if let Some(word) = bracketed(text) {
        return word.to_owned();
    }
    match text.split_once(" (") {
        // A partition that the kernel holds invalid is none.
        Some((value, _)) if value.ends_with(INVALID) => text.to_owned(),
        Some((value, rest)) if rest.ends_with(')') && !value.is_empty() => value.to_owned(),
        _ if text == "(null)" => String::new(),
        _ => text.to_owned(),
    }
}

/// The text to write to restore a value that was read: an invalid partition was once requested by
/// its kind alone.
pub fn asked(text: &str) -> &str {
    text.split_once(INVALID).filter(|(_, why)| why.starts_with(" (")).map_or(text, |(kind, _)| kind)
}

/// Whether two texts of the same file are the same value: word by word, numbers and sets of CPUs in
/// whatever spelling.
pub fn same(one: &str, other: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| same_word(one, other))
}

fn same_word(one: &str, other: &str) -> bool {
    use Shape::{List, Mask, Plain};
    let parse: fn(&str) -> Option<Cpus> = match (shape(one), shape(other)) {
        (List, List | Plain) | (Plain, List) => |text| Cpus::parse_list(text).ok(),
        // One number without commas: two of them are the same list just when they are the same
        // mask.
        (Mask | Plain, Mask | Plain) => |text| Cpus::parse_hex(text).ok(),
        (List, Mask) | (Mask, List) => |_| None,
    };
    one == other || matches!((parse(one), parse(other)), (Some(one), Some(other)) if one == other)
}

/// How a word may be meant.
enum Shape {
    /// With ranges or commas.
    List,
    /// Of several words of 32 bits.
    Mask,
    /// Neither: a number, a set of one spelling or the other, a name.
    Plain,
}

fn shape(word: &str) -> Shape {
    let full = |digits: &str| digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word.split_once(',') {
        Some((_, rest)) if rest.split(',').all(full) => Shape::Mask,
        Some(_) => Shape::List,
        None if word.contains('-') => Shape::List,
        None => Shape::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_value_are_the_same() {
        for (one, other) in [
            ("3", "00000003"),
            ("0-1", "0,1"),
            ("f", "0000000f"),
            (" 1\n", "1"),
            ("-1", "-1"),
            ("0", "00000000,00000000"),
            ("3", "00000000,00000003"),
            ("5", "5-5"),
            ("4 4 1 7", "4\t4\t1\t7"),
            ("", " "),
        ] {
            assert!(same(one, other) && same(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("3", "c"),
            ("0-1", "0-2"),
            ("", "0"),
            ("isolated", "member"),
            ("1", "-1"),
            ("3", "0,1"),
            ("4 4 1 7", "4 4 1"),
            // CPU 32 and CPU 0: as lists they would be the same.
            ("00000001,00000000", "00000000,00000001"),
            ("isolated", "isolated invalid (Cpu list in cpuset.cpus not exclusive)"),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} {other}");
        }
    }

    #[test]
    fn what_cannot_be_written_back_is_spelled_as_it_can() {
        for (text, written) in [
            ("always [madvise] never", "madvise"),
            ("default (cache_shard)", "default"),
            ("  (null)", ""),
            ("0-3\n", "0-3"),
            ("n/a", "n/a"),
        ] {
            assert_eq!(writable(text), written);
        }
        let invalid = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
        assert_eq!(writable(invalid), invalid, "what is invalid is not isolated");
        assert_eq!(
            (asked(invalid), asked("isolated"), asked("an invalid word")),
            ("isolated", "isolated", "an invalid word")
        );
    }

    fn sets() -> impl Strategy<Value = Cpus> {
        let cpus = prop_oneof![0u32..8, 0u32..70, 0u32..8000];
        proptest::collection::btree_set(cpus, 0..12).prop_map(Cpus)
    }

    /// A list as single numbers, in any order.
    fn singles(cpus: &Cpus, order: &[usize]) -> String {
        let mut names: Vec<_> = cpus.iter().map(|cpu| cpu.to_string()).collect();
        let all = names.len();
        for (at, to) in order.iter().enumerate().take(all) {
            names.swap(at, to % all);
        }
        names.join(",")
    }

    /// A mask as the kernel prints it on a machine of more CPUs.
    fn padded(cpus: &Cpus, words: usize) -> String {
        let hex = cpus.to_hex();
        let (first, rest) =
            hex.split_once(',').map_or((hex.as_str(), None), |(first, rest)| (first, Some(rest)));
        let zeros = std::iter::repeat_n("00000000".to_owned(), words);
        zeros.chain([format!("{first:0>8}")]).chain(rest.map(str::to_owned)).collect::<Vec<_>>().join(",")
    }

    proptest! {
        #[test]
        fn sets_are_compared_as_sets(one in sets(), other in sets(), order in proptest::collection::vec(0usize..12, 12), words in 0usize..4) {
            prop_assert_eq!(same(&one.to_string(), &singles(&other, &order)), one == other);
            prop_assert!(same(&one.to_string(), &singles(&one, &order)));
            prop_assert_eq!(same(&one.to_hex(), &padded(&other, words)), one == other);
            prop_assert!(same(&one.to_hex(), &padded(&one, words)) && same(&padded(&one, words), &one.to_hex().to_uppercase()));
        }

        #[test]
        fn words_are_compared_one_by_one(words in proptest::collection::vec("[a-z]{1,8}|-?[0-9]{1,5}|[0-9]-[0-9]", 1..6), at in 0usize..6, blank in "[ \t]{1,3}") {
            let (text, spaced) = (words.join(" "), words.join(&blank));
            prop_assert!(same(&text, &spaced));
            let at = at % words.len();
            let mut changed = words.clone();
            changed[at].push('x');
            prop_assert!(!same(&text, &changed.join(&blank)));
            changed.remove(at);
            prop_assert!(!same(&text, &changed.join(&blank)));
        }

        #[test]
        fn any_text_is_the_same_as_itself(text in ".{0,40}") {
            prop_assert!(same(&text, &text));
            let once = writable(&text);
            prop_assert!(once.len() <= text.len());
        }
    }
}
