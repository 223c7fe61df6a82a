//! The opening of a measured task set: deadlines missed, and the task that came nearest to its own.

use analysis::taskset::MeasuredTask;

use super::{Card, Opening};
use crate::{Document, format};

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let tasks = &document.analysis.taskset;
    let first = tasks.first()?;
    let sum = |of: fn(&MeasuredTask) -> u64| tasks.iter().map(of).fold(0, u64::saturating_add);
    let late = sum(|one| one.figures.late).saturating_add(sum(|one| one.figures.missed));
    let jobs = sum(|one| one.released);
    let nearest = tasks.iter().filter_map(|one| Some((one, used(one)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let sentence = match (late, nearest) {
        (0, Some((task, share))) => format!(
            "All {} jobs on CPU {} met their deadlines; the nearest, of {}, used {} of its own.",
            format::count(jobs),
            first.cpu,
            task.task.name,
            format::share(share)
        ),
        (0, None) => format!("No job of the task set on CPU {} was measured.", first.cpu),
        _ => format!(
            "{} of {} jobs on CPU {} missed their deadline.",
            format::count(late),
            format::count(jobs),
            first.cpu
        ),
    };
    let mut cards = vec![Card::of_one(
        "Deadlines missed",
        format::count(late),
        format!("of {} jobs released", format::count(jobs)),
    )];
    if let Some((task, share)) = nearest {
        let most = task.figures.response.observed_max_ns.map(format::ns).unwrap_or_default();
        cards.push(Card::of_one(
            "Most of a deadline used",
            format::share(share),
            format!("{}: {most} of {}", task.task.name, format::ns(task.task.deadline_ns as i64)),
        ));
    }
    let above = tasks.iter().zip(&document.responses).filter(|(one, bound)| {
        let calculated = bound.map(|ns| ns as i64);
        one.figures.response.observed_max_ns.zip(calculated).is_some_and(|(seen, bound)| seen > bound)
    });
    cards.push(Card::of_one(
        "Tasks above their calculated response time",
        format::count(above.count() as u64),
        format!("of {}; calculated without jitter or overheads", format::count(tasks.len() as u64)),
    ));
    Some(Opening { sentence, cause: None, cards })
}

/// Which share of its deadline the longest response of a task used.
fn used(one: &MeasuredTask) -> Option<f64> {
    let most_ns = one.figures.response.observed_max_ns?;
    (one.task.deadline_ns > 0).then(|| most_ns as f64 / one.task.deadline_ns as f64)
}
