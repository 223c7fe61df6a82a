//! Damage to texts, word by word: a flipped byte in a JSON or TOML file is nearly always a syntax
//! error, and nothing behind the parser is reached.

use super::common::mutate::Rng;
use std::ops::Range;

/// Replacements of a word: edges of numbers, paths that lead outside, nested syntax.
const WORDS: [&str; 54] = [
    "0",
    "1",
    "-1",
    "255",
    "256",
    "1023",
    "1024",
    "1025",
    "65536",
    "99999",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-1e-320",
    "0.1",
    "nan",
    "inf",
    "0x10",
    "null",
    "true",
    "false",
    "\"\"",
    "''",
    "\"-\"",
    "[]",
    "{}",
    "[[[[[[[[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "-",
    "/",
    "..",
    "../../x",
    "/etc/shadow",
    "\"/etc/shadow\"",
    "/dev/zero",
    "0-4095",
    "2,3",
    "3-2",
    "\\u0000",
    "\\ud800",
    "\u{202e}",
    "\u{1b}]0;",
    "é",
    "9999999999999999999999999999999999999999",
    "\n",
];

/// A damaged copy of one of the seeds.
pub(crate) fn mutate(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    let times = 1 + if rng.below(2) == 0 { rng.below(4) } else { 0 };
    for _ in 0..times {
        let places = words(&bytes);
        if places.is_empty() {
            break;
        }
        once(&mut bytes, &places, seeds, rng);
    }
    bytes.truncate(super::common::mutate::LONGEST);
    bytes
}

fn once(bytes: &mut Vec<u8>, places: &[Range<usize>], seeds: &[Vec<u8>], rng: &mut Rng) {
    let is_number = |place: &&Range<usize>| bytes[(*place).clone()].iter().all(u8::is_ascii_digit);
    let numbers: Vec<_> = places.iter().filter(is_number).collect();
    // Most of a text is keys and brackets, so numbers are chosen half of the time.
    let place = match numbers.len() {
        0 => places[rng.below(places.len())].clone(),
        count if rng.below(2) == 0 => numbers[rng.below(count)].clone(),
        _ => places[rng.below(places.len())].clone(),
    };
    let other = places[rng.below(places.len())].clone();
    if is_number(&&place) && rng.below(3) > 0 {
        return put(bytes, place, number(rng).into_bytes());
    }
    match rng.below(9) {
        0..=2 => put(bytes, place, WORDS[rng.below(WORDS.len())].as_bytes().to_vec()),
        3 => put(bytes, place, Vec::new()),
        4 => {
            let word = bytes[other].to_vec();
            put(bytes, place, word);
        }
        5 => {
            let seed = &seeds[rng.below(seeds.len())];
            let theirs = words(seed);
            if !theirs.is_empty() {
                put(bytes, place, seed[theirs[rng.below(theirs.len())].clone()].to_vec());
            }
        }
        6 => {
            // A digit more, or one less.
            let mut word = bytes[place.clone()].to_vec();
            let at = rng.below(word.len());
            if rng.below(2) == 0 {
                word.insert(at, b'0' + rng.below(10) as u8);
            } else {
                word.remove(at);
            }
            put(bytes, place, word);
        }
        7 => {
            // A piece of it twice, or many times.
            let (from, to) = (place.start.min(other.start), place.end.max(other.end));
            let piece = bytes[from..to.min(from + 400)].to_vec();
            let times = 1 + if rng.below(8) == 0 { rng.below(200) } else { 0 };
            put(bytes, to..to, piece.repeat(times));
        }
        _ => put(bytes, place.start.min(other.start)..place.start.max(other.start), Vec::new()),
    }
}

/// A small number, one at an edge, or any.
fn number(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => rng.below(4).to_string(),
        1 => rng.below(100).to_string(),
        2 => rng.below(1 << 30).to_string(),
        3 => (1u64 << rng.below(64)).wrapping_sub(rng.below(2) as u64).to_string(),
        4 => (rng.next() >> rng.below(64)).to_string(),
        _ => WORDS[rng.below(16)].to_owned(),
    }
}

fn put(bytes: &mut Vec<u8>, place: Range<usize>, word: Vec<u8>) {
    bytes.splice(place, word);
}

/// Where the words are: runs of letters and digits, of blanks, and each other character by itself.
fn words(bytes: &[u8]) -> Vec<Range<usize>> {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' | b'.' | b'-' => 0,
        byte if byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80 => 1,
        b' ' | b'\t' => 2,
        byte => 3 + u32::from(byte),
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match found.last_mut() {
            Some(last) if kind(*byte) < 3 && kind(bytes[last.start]) == kind(*byte) => last.end = at + 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}
