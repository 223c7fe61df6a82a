//! When two texts are the same value, and what to write to have a value back.
//!
//! Kernels print values in other spellings than they take: masks padded with zeros, lists folded into ranges, a choice with the word in
//! force in brackets, `default (cache_shard)` for what is written as `default`.

use crate::machine::bracketed;
use model::Cpus;

/// What a file's text says, in a spelling that can be written back.
pub fn writable(text: &str) -> String {
    let text = text.trim();
    if let Some(word) = bracketed(text) {
        return word.to_owned();
    }
    match text.split_once(" (") {
        // An invalid partition is still a partition of that kind.
        Some((value, rest)) if rest.ends_with(')') && !value.is_empty() => {
            value.trim_end_matches(" invalid").to_owned()
        }
        _ if text == "(null)" => String::new(),
        _ => text.to_owned(),
    }
}

/// Whether two texts of the same file are the same value.
pub fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    one == other
        || both(one, other, |text| text.parse::<i64>().ok())
        || both(one, other, |text| Cpus::parse_list(text).ok().filter(|cpus| !cpus.is_empty()))
        || both(one, other, |text| Cpus::parse_hex(text).ok().filter(|cpus| !cpus.is_empty()))
}

fn both<T: PartialEq>(one: &str, other: &str, parse: impl Fn(&str) -> Option<T>) -> bool {
    matches!((parse(one), parse(other)), (Some(one), Some(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_value_are_the_same() {
        for (one, other) in
            [("3", "00000003"), ("0-1", "0,1"), ("f", "0000000f"), (" 1\n", "1"), ("-1", "-1")]
        {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [("3", "c"), ("0-1", "0-2"), ("", "0"), ("isolated", "member"), ("1", "-1")] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_cannot_be_written_back_is_spelled_as_it_can() {
        for (text, written) in [
            ("always [madvise] never", "madvise"),
            ("default (cache_shard)", "default"),
            ("  (null)", ""),
            ("0-3\n", "0-3"),
            ("isolated invalid (Cpu list in cpuset.cpus not exclusive)", "isolated"),
            ("n/a", "n/a"),
        ] {
            assert_eq!(writable(text), written);
        }
    }

    proptest! {
        #[test]
        fn a_list_is_the_same_in_every_spelling(cpus in proptest::collection::btree_set(0u32..64, 1..20)) {
            let cpus = Cpus(cpus);
            let plain = cpus.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
            prop_assert!(same(&cpus.to_string(), &plain));
            let padded = format!("{:0>20}", cpus.to_hex().replace(',', ""));
            prop_assert!(same(&padded, &padded));
        }

        #[test]
        fn any_text_is_the_same_as_itself(text in ".{0,40}") {
            prop_assert!(same(&text, &text));
            let once = writable(&text);
            prop_assert!(once.len() <= text.len());
        }
    }
}
