//! What ran during the largest samples: the ones that the trace was kept around.

use minijinja::{Value, context};

use super::windows::seconds;
use crate::Document;
use crate::explained::{account, largest, rest_ns, row, snapshots, steps};
use analysis::snapshots::ExplainedSample;

/// Samples that the page shows.
const SHOWN: usize = 40;
/// Rows of each.
const ROWS: usize = 8;

pub(super) fn figures(document: &Document) -> Value {
    let Some((record, section)) = snapshots(document) else { return Value::from(()) };
    let samples = largest(section);
    let left_out = samples.len().saturating_sub(SHOWN);
    context! {
        over_ns => record.over_ns,
        keep => record.keep,
        before_ns => record.before_ns,
        after_ns => record.after_ns,
        account => account(record, section, document.run.stopped_at.is_some()),
        samples => samples.into_iter().take(SHOWN).map(|one| shown(document, one)).collect::<Vec<_>>(),
        left_out => left_out,
    }
}

fn shown(document: &Document, one: &ExplainedSample) -> Value {
    let rows = one.rows.iter().take(ROWS).map(|ran| {
        context! {
            what => row(ran),
            ns => ran.net_ns,
            share => ran.net_ns as f64 / one.sample.value_ns.max(1) as f64,
        }
    });
    context! {
        cpu => one.sample.cpu,
        thread => one.sample.thread,
        at_s => seconds(document, one.sample.t_ns),
        t_ns => one.sample.t_ns,
        value_ns => one.sample.value_ns,
        whole => one.sample.whole,
        path => one.path.is_some(),
        rows => rows.collect::<Vec<_>>(),
        more => one.rows.len().saturating_sub(ROWS),
        steps => steps(one).into_iter().map(|(ns, what)| context! { what => what, ns => ns,
            share => ns as f64 / one.sample.value_ns.max(1) as f64 }).collect::<Vec<_>>(),
        rest_ns => rest_ns(one),
        rest_share => rest_ns(one) as f64 / one.sample.value_ns.max(1) as f64,
    }
}
