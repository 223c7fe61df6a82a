//! The words of docs/effects.md against its numbers: the numbers come from the stored results, the
//! words beside them are typed.

use crate::repo;
use result::effect::Effect;

/// Where the tables of typed commands begin: their counts are whole events, and few are too few.
const TYPED: &str = "<!-- result:lab-guides";

/// A page without its markers.
fn without_markers(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once("-->").map(|(_, rest)| rest)).collect::<String>()
}

/// A count, or one of so many, as a number.
fn number(text: &str) -> Option<f64> {
    let one = |word: &str| word.replace(',', "").parse::<f64>().ok();
    match text.trim().split_once(" of ") {
        _ if text.trim() == "none" => Some(0.0),
        Some((part, whole)) => Some(one(part)? / one(whole)?),
        None => one(text.trim()),
    }
}

/// The word that a cell has and the one that its numbers deserve; none where it has no numbers.
fn words(cell: &str, typed: bool) -> Option<(&str, &'static str)> {
    let (before, after) = cell.trim().split_once('→')?;
    let (words, before) = before.rsplit_once(": ")?;
    // The answer of the shell goes before it.
    let word = words.rsplit("; ").next()?;
    let effect = if typed {
        Effect::of_counts(before.trim().parse().ok()?, after.trim().parse().ok()?)
    } else {
        Effect::of_share(number(after)? / number(before)?)
    };
    Some((word, effect.word()))
}

/// Cells of the tables of a part of the page.
fn cells(part: &str) -> Vec<String> {
    let lines = part.lines().filter(|line| line.starts_with('|'));
    lines.flat_map(|line| line.replace("\\|", "").split('|').map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn every_word_is_what_its_numbers_deserve() {
    let page = std::fs::read_to_string(repo::root().join("docs/effects.md")).unwrap();
    let (earlier, typed) = page.split_once(TYPED).unwrap();
    for (part, typed, at_least) in [(earlier, false, 40), (typed, true, 30)] {
        let cells = cells(&without_markers(part));
        let judged: Vec<_> = cells.iter().filter_map(|cell| Some((cell, words(cell, typed)?))).collect();
        assert!(judged.len() > at_least, "{}", judged.len());
        for (cell, (word, deserved)) in judged {
            assert_eq!(word, deserved, "{cell}");
        }
    }
}

#[test]
fn a_planted_wrong_word_is_found() {
    assert_eq!(words("worked: 1,592 of 1,597 → 0 of 1,721", false), Some(("worked", "worked")));
    assert_eq!(words("worked: 1 → 0.9", false), Some(("worked", "did not work")));
    let refused = "25 refused (Invalid argument); worked: 12 → 12";
    assert_eq!(words(refused, true), Some(("worked", "did not work")));
    assert_eq!(words("worked: 0 → 100", true), Some(("worked", "the opposite")));
    assert_eq!(words("worked: 2 → 0", true), Some(("worked", "too few to say")));
    assert_eq!(words("accepted; not countable here: no such link", true), None);
}

/// Each row of Table III is typed, or on a boot line.
#[test]
fn no_row_of_table_iii_is_left_out() {
    let page = std::fs::read_to_string(repo::root().join("docs/effects.md")).unwrap();
    let mut rows = std::collections::BTreeSet::new();
    for cell in cells(&page) {
        let of = cell.trim().strip_prefix("T3 ").map(str::to_owned);
        for word in of.iter().flat_map(|of| of.split(", ")).take_while(|word| !word.starts_with('R')) {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let Ok(first) = first.parse::<u32>() else { continue };
            rows.extend(first..=last.parse().unwrap());
        }
    }
    assert_eq!(rows, (1..=25).collect());
}
