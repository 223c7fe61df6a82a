//! Stretches with interrupts or preemption off: one table, the longest first.

use super::windows::style;
use crate::{Document, off};
use attribution::attribute::section::SourceText;
use minijinja::{Value, context};

pub(super) fn figures(document: &Document) -> Value {
    let (run, sections) = (&document.run, &document.analysis.off);
    let (longest, more) = off::longest(sections);
    let rows = longest.into_iter().map(|(section, row)| {
        context! {
            style => style(document, &section.phase),
            cells => off::row(run, section, row),
            who => row.by.as_ref().map(SourceText::name),
            frames => row.by.as_ref().map(SourceText::functions).unwrap_or_default(),
        }
    });
    context! {
        nothing => off::nothing(run, sections),
        head => off::HEAD,
        rows => rows.collect::<Vec<_>>(),
        more => more,
        meaning => off::meaning(sections),
        silent => off::not_called(run, sections),
        refused => off::refused(run),
        cost => off::cost(run, sections),
    }
}
