//! The words of docs/effects.md against its numbers: the numbers come from the stored results, the
//! words beside them are typed.

use crate::repo;

/// What is left of the events with a mechanism: at most this is "worked", less than the second "in
/// part", as the page has it.
const LEFT: [f64; 2] = [0.2, 0.7];

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
fn words(cell: &str) -> Option<(&str, &'static str)> {
    let (word, numbers) = cell.trim().split_once(": ")?;
    let (before, after) = numbers.split_once('→')?;
    let left = number(after)? / number(before)?;
    let deserved = match left {
        left if left <= LEFT[0] => "worked",
        left if left < LEFT[1] => "in part",
        _ => "did not work",
    };
    Some((word, deserved))
}

#[test]
fn every_word_is_what_its_numbers_deserve() {
    let page = std::fs::read_to_string(repo::root().join("docs/effects.md")).unwrap();
    let page = without_markers(&page);
    let cells: Vec<_> =
        page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|')).collect();
    let judged: Vec<_> = cells.iter().filter_map(|cell| Some((*cell, words(cell)?))).collect();
    assert!(judged.len() > 40, "{}", judged.len());
    for (cell, (word, deserved)) in judged {
        assert_eq!(word, deserved, "{cell}");
    }
    assert_eq!(words("worked: 1,592 of 1,597 → 0 of 1,721"), Some(("worked", "worked")));
    assert_eq!(words("worked: 1 → 0.9"), Some(("worked", "did not work")));
}
