//! The page of an exposure study: a heat-map of stressor by class that is a table, so that it reads
//! aloud, in print and without colour.

use super::{environment, render};
use crate::Error;
use crate::exposure::{ExposureStudy, at_most, figure, interval, operations, source, weak};
use analysis::exposure::{Coefficient, Row, RowState};
use minijinja::{Value, context};
use model::EventClass;

/// Events per operation from which a cell has the next darker step.
pub(super) const STEPS: [f64; 6] = [0.001, 0.01, 0.1, 0.75, 2.5, 7.5];

/// The whole page.
pub fn exposure_page(study: &ExposureStudy) -> Result<String, Error> {
    let classes = study.seen();
    let exposure = &study.exposure;
    let of = |state: RowState| exposure.rows.iter().filter(move |row| row.state == state);
    let unseen = EventClass::ALL.iter().filter(|class| {
        let mut rows = exposure.rows.iter().flat_map(|row| &row.classes);
        !classes.contains(class) && rows.any(|one| one.class == **class)
    });
    let why = |row: &Row| context! { name => row.stressor.clone(), reason => row.reason.clone() };
    let values = context! {
        title => study.title.clone(),
        machine => super::value(&study.machine),
        conditions => study.conditions.clone(),
        void => exposure.void,
        unsteady => !exposure.unsteady.is_empty(),
        verdict => exposure.verdict.clone(),
        controls => super::value(&exposure.controls),
        classes => classes.iter().map(|class| class.name()).collect::<Vec<_>>(),
        unseen => unseen.map(|class| class.name()).collect::<Vec<_>>().join(", "),
        rows => of(RowState::Ok).map(|row| row_context(row, &classes)).collect::<Vec<_>>(),
        voids => of(RowState::Void).map(why).collect::<Vec<_>>(),
        absent => of(RowState::Absent).map(why).collect::<Vec<_>>(),
        steps => STEPS.map(crate::exposure::per_operation),
    };
    render(&environment()?, "exposure", values)
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
