//! How late a wake-up could have come, a window or thread a row.

use attribution::attribute::bound::shape::WakeBound;
use attribution::attribute::path_section::PathSection;
use attribution::attribute::thread_paths::ThreadPaths;
use minijinja::{Value, context};

use super::windows::style;
use crate::{Document, bound};

/// Rows: those with the latest bound.
const ROWS: usize = 12;

/// Windows of probes.
pub(super) fn of_windows<'d>(
    document: &Document,
    windows: impl Iterator<Item = &'d PathSection>,
) -> Vec<Value> {
    latest(
        windows,
        |window| window.bound.as_ref(),
        |window, bound| {
            let style = style(document, &window.phase);
            row(context! { phase => window.phase.as_str(), style => style }, window.cpu, bound)
        },
    )
}

/// Threads of a watched program.
pub(super) fn of_threads(threads: &[ThreadPaths]) -> Vec<Value> {
    latest(
        threads.iter(),
        |one| one.path.bound.as_ref(),
        |one, bound| row(context! { thread => format!("{}[{}]", one.comm, one.tid) }, one.path.cpu, bound),
    )
}

/// The latest first, and last what is not known.
fn latest<'d, T: 'd>(
    all: impl Iterator<Item = &'d T>,
    bound: impl Fn(&'d T) -> Option<&'d WakeBound>,
    row: impl Fn(&'d T, &'d WakeBound) -> Value,
) -> Vec<Value> {
    let mut all: Vec<(&T, &WakeBound)> = all.filter_map(|one| Some((one, bound(one)?))).collect();
    all.sort_by_key(|(_, bound)| std::cmp::Reverse(bound.ns));
    all.into_iter().take(ROWS).map(|(one, bound)| row(one, bound)).collect()
}

fn row(who: Value, cpu: u32, bound: &WakeBound) -> Value {
    let pieces = bound::pieces(bound).into_iter();
    context! {
        who => who, cpu => cpu,
        ns => bound.ns,
        seen_ns => bound.seen_ns,
        withheld => bound.withheld.clone(),
        pieces => pieces.map(|(ns, what)| context! { ns => ns, what => what }).collect::<Vec<_>>(),
        limits => bound::limits(bound),
    }
}
