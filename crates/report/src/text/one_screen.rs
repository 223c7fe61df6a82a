//! The answer of an assessment on one screen of a terminal: the sentence, its cause, three numbers,
//! what costs most, where the rest is, and the next command last.

use super::layout::{Page, Paint};
use super::prose;
use crate::json::paths;
use crate::opening::{Card, Opening, Value};
use crate::{Document, Known, Status, heading};

/// Pieces of advice on the screen.
const ADVICE: usize = 3;

pub(super) fn answer(page: &mut Page, document: &Document) {
    prose::title(page, document);
    let opening = crate::opening(document);
    outcome(page, document, &opening);
    page.blank();
    for card in &opening.cards {
        number(page, card);
    }
    advice(page, document);
    let paths = paths(document);
    page.blank();
    page.item("report  ", paths.get("report").map_or("", String::as_str));
    page.item("all     ", &format!("stillcore report {}", document.dir));
    prose::next(page, document);
}

fn outcome(page: &mut Page, document: &Document, opening: &Opening) {
    let (paint, word) = match document.outcome.status {
        Status::Pass => (Paint::Green, "pass: "),
        Status::Finding => (Paint::Red, "finding: "),
        Status::Measured => (Paint::Bold, "measured: "),
    };
    page.painted(paint, word, &opening.sentence);
    if let Some(cause) = &opening.cause {
        let known = match cause.known {
            Known::Unknown => String::new(),
            known => format!(" ({})", known.words()),
        };
        page.item("  cause    ", &format!("{}{known}", cause.words));
        if let Some(command) = &cause.against {
            page.item("  fix      ", command);
        }
    }
    if !heading::is_measurement(&document.run) {
        page.item("  because  ", &document.outcome.reasons.join("; "));
    }
}

fn number(page: &mut Page, card: &Card) {
    let (Value::Known(value) | Value::Needs(value)) = &card.value;
    let note = if card.note.is_empty() { String::new() } else { format!("  ({})", card.note) };
    page.item("  ", &format!("{}: {value}{note}", card.what));
    let phase =
        |one: &crate::PhaseValue| format!("{} {}", one.phase, one.value.as_deref().unwrap_or("not known"));
    if !card.phases.is_empty() {
        page.item("    ", &card.phases.iter().map(phase).collect::<Vec<_>>().join(", "));
    }
}

fn advice(page: &mut Page, document: &Document) {
    if document.advice.is_empty() {
        return;
    }
    page.heading("WHAT IS WRONG, in order of cost");
    for (at, advice) in document.advice.iter().take(ADVICE).enumerate() {
        page.item(&format!("  {}. ", at + 1), &advice.what);
    }
    let rest = document.advice.len().saturating_sub(ADVICE);
    if rest > 0 {
        page.item("  ", &format!("... {rest} more in the report"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::TextOptions;

    fn of(document: &Document, width: u16) -> String {
        let mut page = Page::new(TextOptions { color: false, width });
        answer(&mut page, document);
        page.finish()
    }

    #[test]
    fn an_assessment_fits_a_screen_and_ends_in_the_next_command() {
        for document in [fixture::document(), fixture::still(), fixture::wide(&[7])] {
            let text = of(&document, 100);
            assert!(text.lines().count() <= 40, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            let last: Vec<&str> = text.lines().rev().take(5).collect();
            assert!(last.iter().any(|line| line.trim() == document.next.command), "{text}");
            assert!(text.contains("run/report.html") && text.contains("stillcore report run"), "{text}");
        }
    }

    #[test]
    fn the_page_and_the_screen_say_the_same() {
        let document = fixture::document();
        let (text, page) = (of(&document, 120), crate::html::page(&document).unwrap());
        let sentence = crate::opening(&document).sentence;
        assert!(text.contains(&sentence), "{text}");
        let page = page.replace('\u{a0}', " ").replace('\u{b5}', "u");
        assert!(page.contains(&sentence), "{sentence}");
    }
}
