//! The opening of a measured task set: deadlines missed, and the task that came nearest to its own.

use analysis::taskset::MeasuredTask;

use super::{Card, Opening};
use crate::{Document, format};

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let tasks = &document.analysis.taskset;
    let first = tasks.first()?;
    let sum = |of: fn(&MeasuredTask) -> u64| tasks.iter().map(of).fold(0, u64::saturating_add);
    let late = sum(|one| one.figures.late).saturating_add(sum(|one| one.figures.missed));
    let (jobs, measured) = (sum(|one| one.released), sum(|one| one.figures.jobs));
    let nearest = tasks.iter().filter_map(|one| Some((one, used(one)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let is_whole = document.run.has_ended() && tasks.iter().all(|one| one.ring_lost == Some(0));
    let sentence = match (late, nearest) {
        (0, Some((task, share))) => format!(
            "{} met their deadlines; the nearest, of {}, used {} of its own.",
            if is_whole {
                format!("All {} jobs on CPU {}", format::count(measured), first.cpu)
            } else {
                format!("The {} measured jobs on CPU {}, not all,", format::count(measured), first.cpu)
            },
            task.task.name,
            format::share(share)
        ),
        (0, None) => format!("No job of the task set on CPU {} was measured.", first.cpu),
        _ => format!(
            "{}{} of {} jobs on CPU {} missed their deadline.",
            if is_whole { "" } else { "At least " },
            format::count(late),
            format::count(jobs),
            first.cpu
        ),
    };
    let note = format!("of {} jobs released", format::count(jobs));
    let mut cards = vec![if is_whole {
        Card::of_one("Deadlines missed", format::count(late), note)
    } else {
        Card::of_one("Deadlines missed", format!("at least {}", format::count(late)), note)
    }];
    if let Some((task, share)) = nearest {
        let most = task.figures.response.observed_max_ns.map(format::ns).unwrap_or_default();
        cards.push(Card::of_one(
            "Most of a deadline used",
            format::share(share),
            format!("{}: {most} of {}", task.task.name, format::ns(task.task.deadline_ns as i64)),
        ));
    }
    let calculated: Vec<(&MeasuredTask, i64)> = tasks
        .iter()
        .zip(&document.responses)
        .filter_map(|(one, bound)| Some((one, i64::try_from((*bound)?).ok()?)))
        .collect();
    let what = "Tasks above their calculated response time";
    let above = calculated
        .iter()
        .filter(|(one, ns)| one.figures.response.observed_max_ns.is_some_and(|seen| seen > *ns));
    cards.push(if calculated.is_empty() {
        Card::needing(what, "none could be calculated")
    } else {
        let note =
            format!("of {} calculated, without jitter or overheads", format::count(calculated.len() as u64));
        Card::of_one(what, format::count(above.count() as u64), note)
    });
    Some(Opening { sentence, cause: None, cards })
}

/// Which share of its deadline the longest response of a task used.
fn used(one: &MeasuredTask) -> Option<f64> {
    let most_ns = one.figures.response.observed_max_ns?;
    (one.task.deadline_ns > 0).then(|| most_ns as f64 / one.task.deadline_ns as f64)
}
