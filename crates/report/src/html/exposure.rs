//! The page of an exposure study: which operation costs how many events, and folded below a
//! heat-map of stressor by class that is a table, so that it reads aloud, in print and without
//! colour.

use std::fmt::Write;

use super::filters::capitalize_first;
use super::front::{Front, PageNext};
use super::plot::rooms;
use super::{environment, render};
use crate::exposure::{ExposureStudy, at_most, figure, interval, operations, range, source, value, weak};
use crate::opening::exposure::{self as opening, Seen};
use crate::svg::{IntervalAxis, IntervalRow, Room, intervals};
use crate::{Error, format};
use analysis::exposure::{ClassCoefficient, Coefficient, Row, RowState};
use minijinja::{Value, context};
use model::EventClass;

/// Events per operation from which a cell has the next darker step.
pub(super) const STEPS: [f64; 6] = [0.001, 0.01, 0.1, 0.75, 2.5, 7.5];

/// Rows of the plot of the opening.
const DRAWN: usize = 12;

/// The whole page.
pub fn exposure_page(study: &ExposureStudy) -> Result<String, Error> {
    let environment = environment()?;
    let front = render(&environment, "front", context! { x => front(study).values() })?;
    let classes = study.seen();
    let exposure = &study.exposure;
    let of = |state: RowState| exposure.rows.iter().filter(move |row| row.state == state);
    let unseen = EventClass::ALL.iter().filter(|class| {
        let mut rows = exposure.rows.iter().flat_map(|row| &row.classes);
        !classes.contains(class) && rows.any(|one| one.class == **class)
    });
    let why = |row: &Row| context! { name => row.stressor.clone(), reason => row.reason.clone() };
    let values = context! {
        front => Value::from_safe_string(front),
        title => study.title.clone(),
        machine => super::value(&study.machine),
        conditions => study.conditions.clone(),
        verdict => exposure.verdict.clone(),
        controls => super::value(&exposure.controls),
        classes => classes.iter().map(|class| class.name()).collect::<Vec<_>>(),
        unseen => unseen.map(|class| class.name()).collect::<Vec<_>>().join(", "),
        rows => of(RowState::Ok).map(|row| row_context(row, &classes)).collect::<Vec<_>>(),
        voids => of(RowState::Void).map(why).collect::<Vec<_>>(),
        absent => of(RowState::Absent).map(why).collect::<Vec<_>>(),
        steps => STEPS.map(crate::exposure::per_operation),
    };
    render(&environment, "exposure", values)
}

fn front(study: &ExposureStudy) -> Front {
    let exposure = &study.exposure;
    let (word, tone) = match (exposure.void, exposure.unsteady.is_empty()) {
        (true, _) => ("void", "bad"),
        (false, false) => ("some classes left out", "plain"),
        (false, true) => ("controls hold", "good"),
    };
    // Where the controls are as expected, the word says so.
    let is_said = exposure.void || !exposure.unsteady.is_empty();
    let verdict =
        exposure.verdict.iter().filter(|_| is_said).map(|line| format!("{}.", capitalize_first(line)));
    Front {
        word: word.to_owned(),
        tone,
        opening: opening::opening(study),
        lines: verdict.chain(opening::without(&exposure.rows)).collect(),
        warnings: Vec::new(),
        plot: if exposure.void { Value::UNDEFINED } else { plot(study) },
        next: Some(next(study)),
    }
}

/// What removes the dearest class; of a study that says nothing, the study once more.
fn next(study: &ExposureStudy) -> PageNext {
    let (seen, _) = opening::seen(&study.exposure.rows);
    let dearest = seen.first().filter(|_| !study.exposure.void);
    match dearest.and_then(|one| Some((one, one.class()?))) {
        Some((one, class)) => PageNext {
            command: format!("stillcore explain {}", class.name()),
            why: format!(
                "what {} events are and what removes them; {} causes most",
                class.name(),
                one.row.stressor
            ),
        },
        None => PageNext {
            command: format!("stillcore study run {} --out {}-again", study.title, study.title),
            why: "the same study once more, into another directory".to_owned(),
        },
    }
}

/// Events per operation of each class that was seen, most first; a hue is a class.
fn plot(study: &ExposureStudy) -> Value {
    let classes = study.seen();
    let (seen, unseen) = opening::seen(&study.exposure.rows);
    let of = |one: &Seen<'_>| -> Vec<(f64, IntervalRow)> {
        let seen = one.row.classes.iter().filter(|class| class.coefficient.seen);
        let row = |class: &ClassCoefficient| {
            let of = &class.coefficient;
            let hue = classes.iter().position(|known| *known == class.class).unwrap_or_default() % HUES;
            let row = IntervalRow {
                label: format!("{}: {}", one.row.stressor, class.class),
                point: Some(of.per_operation),
                interval: Some([of.low, of.high]),
                class: format!("k{hue}"),
                note: format!("{} ({})", value(of), range(of)),
            };
            (of.per_operation, row)
        };
        seen.map(row).collect()
    };
    let mut rows: Vec<(f64, IntervalRow)> = seen.iter().flat_map(of).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all = rows.len();
    let rows: Vec<IntervalRow> = rows.into_iter().take(DRAWN).map(|(_, row)| row).collect();
    let mut caption =
        "Events per operation on a measured CPU, the idle background subtracted, with 95 % intervals; \
                       a hue is a class of events."
            .to_owned();
    if all > rows.len() {
        let _ = write!(caption, " {} with fewer below.", all - rows.len());
    }
    if let Some(weakest) = unseen.first() {
        let most = at_most(weakest.all.high);
        let _ = write!(
            caption,
            " Not seen: {}, at most {most} each.",
            format::plural(unseen.len() as u64, "operation")
        );
    }
    per_operation(&rows, caption)
}

/// Hues of the style sheet.
pub(super) const HUES: usize = 8;

/// That plot.
pub(super) fn per_operation(rows: &[IntervalRow], caption: String) -> Value {
    let axis = IntervalAxis { name: "events per operation", mark: None };
    let draw = |room| {
        let id = if room == Room::Desk { "xd" } else { "xh" };
        intervals(id, "Events per operation", axis, rows, room)
    };
    rooms(draw, caption)
}

fn row_context(row: &Row, classes: &[EventClass]) -> Value {
    let of = |class: &EventClass| row.classes.iter().find(|one| one.class == *class);
    let cells = classes.iter().map(|class| of(class).map(|one| cell(&one.coefficient))).collect::<Vec<_>>();
    context! {
        name => row.stressor.clone(),
        operations => operations(row),
        all => row.all.as_ref().map(cell),
        cells => cells,
        sources => row.sources.iter().map(source).collect::<Vec<_>>(),
        weak => weak(row),
    }
}

fn cell(one: &Coefficient) -> Value {
    let step = STEPS.iter().filter(|step| one.per_operation >= **step).count();
    context! {
        seen => one.seen,
        step => step,
        text => if one.seen { figure(one) } else { format!("\u{2264}\u{a0}{}", at_most(one.high)) },
        title => format!("{} events, {:.1} by the background; 95 %: {}", one.events, one.background, interval(one)),
    }
}
