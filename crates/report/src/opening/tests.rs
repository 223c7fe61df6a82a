//! What must hold for every opening.

use super::*;
use crate::fixture;

fn all() -> Vec<Document> {
    let mut all = vec![fixture::document(), fixture::still(), fixture::wide(&[7])];
    all.extend(fixture::MEASURED.map(fixture::measurement));
    all
}

#[test]
fn an_opening_is_a_sentence_and_at_most_three_numbers() {
    for document in all() {
        let opening = opening(&document);
        assert!(opening.sentence.ends_with('.') && opening.sentence.len() < 140, "{}", opening.sentence);
        assert!((1..=3).contains(&opening.cards.len()), "{opening:?}");
        for card in &opening.cards {
            let (Value::Known(text) | Value::Needs(text)) = &card.value;
            assert!(text.chars().any(char::is_alphanumeric), "{card:?}");
        }
    }
}

#[test]
fn a_quantile_without_samples_says_what_it_needs() {
    let mut document = fixture::document();
    for window in &mut document.analysis.distributions {
        for quantile in window.quantiles.iter_mut().chain(&mut window.corrected_quantiles) {
            quantile.value_ns = None;
        }
    }
    let card = &opening(&document).cards[1];
    assert!(matches!(&card.value, Value::Needs(text) if text.starts_with("needs 10,000")), "{card:?}");
}

#[test]
fn nothing_is_proposed_against_a_cause_that_is_not_shown() {
    for document in all() {
        if let Some(cause) = opening(&document).cause {
            assert!(cause.known != Known::Unknown || cause.against.is_none(), "{cause:?}");
        }
    }
}
