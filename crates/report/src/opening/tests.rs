//! What must hold for every opening.

use super::*;
use crate::fixture;
use model::sample::ProbeKind;

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

/// The run was cut off before it could count anything.
fn cut_off(document: &mut Document) {
    document.run.complete = false;
    document.run.incomplete_reason = Some(model::run::CUT_OFF.to_owned());
}

#[test]
fn a_run_that_was_cut_off_has_no_count_of_what_it_missed() {
    for verb in ["periodic", "graph", "taskset"] {
        let mut document = fixture::measurement(verb);
        cut_off(&mut document);
        assert!(!document.run.has_ended());
        let opening = opening(&document);
        let counts = ["missed", "lost"].map(|word| opening.cards.iter().find(|one| one.what.ends_with(word)));
        let value = &counts.into_iter().flatten().next().unwrap().value;
        let (Value::Known(text) | Value::Needs(text)) = value;
        assert!(text.starts_with("not known") || text.starts_with("at least"), "{verb}: {text}");
        let claims = ["All ", " of 0 "].iter().any(|word| opening.sentence.contains(word));
        assert!(!claims, "{verb}: {}", opening.sentence);
    }
}

#[test]
fn jobs_that_were_lost_are_not_said_to_have_met_their_deadlines() {
    let mut document = fixture::measurement("taskset");
    for task in &mut document.analysis.taskset {
        (task.figures.late, task.figures.missed, task.ring_lost) = (0, 0, Some(0));
    }
    assert!(opening(&document).sentence.starts_with("All "));
    for lost in [Some(3), None] {
        document.analysis.taskset[0].ring_lost = lost;
        assert!(opening(&document).sentence.contains("measured jobs"), "{}", opening(&document).sentence);
    }
}

#[test]
fn the_share_in_the_sentence_is_of_the_cpu_that_it_names() {
    let mut document = fixture::wide(&[2, 3]);
    document.analysis.distributions.retain(|one| one.probe == ProbeKind::Noise);
    for window in &mut document.analysis.distributions {
        let (max_ns, share) = if window.cpu == 2 { (9_000_000, 0.01) } else { (1_000, 0.5) };
        window.observed_max_ns = Some(max_ns);
        window.corrected_max_ns = None;
        if let Some(stolen) = &mut window.stolen {
            stolen.share = share;
        }
    }
    let sentence = opening(&document).sentence;
    assert!(sentence.starts_with("CPU 2 ") && sentence.contains("1.00 %"), "{sentence}");
}

#[test]
fn no_message_is_called_punctual_that_nothing_classified() {
    let mut document = fixture::measurement("graph");
    for edge in &mut document.analysis.graph.as_mut().unwrap().edges {
        (edge.irobot.late, edge.irobot.too_late) = (0, 0);
    }
    assert!(opening(&document).cards.iter().all(|card| card.what != "Messages late"));
}

#[test]
fn nothing_is_proposed_against_a_cause_that_is_not_shown() {
    for document in all() {
        if let Some(cause) = opening(&document).cause {
            assert!(cause.known != Known::Unknown || cause.against.is_none(), "{cause:?}");
        }
    }
}
