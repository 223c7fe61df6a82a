//! The worst event of each kind, with its cause, what is against it, and where to look closer.

use minijinja::{Value, context};

use super::windows::{seconds, style};
use crate::conditions::{Condition, conditions};
use crate::{Document, Verdict, verdicts};

pub(super) fn figures(document: &Document) -> Value {
    context! {
        verdicts => verdicts(document).iter().map(|one| verdict_context(document, one)).collect::<Vec<_>>(),
    }
}

/// A verdict, and where in the run it was.
fn verdict_context(document: &Document, one: &Verdict) -> Value {
    context! {
        what => one.what,
        value_ns => one.value_ns,
        cpu => one.cpu,
        phase => one.phase.as_str(),
        style => style(document, &one.phase),
        at_s => one.t_ns.and_then(|t_ns| seconds(document, t_ns)),
        cause => one.sure_words(),
        commands => one.against.clone(),
        against => one.against_words(),
        look => one.look.clone(),
    }
}

/// The conditions without which the values mean nothing; the section of that name has all.
pub(super) fn brief(document: &Document) -> Vec<Condition> {
    let first = ["measured", "policy", "kernel", "lost"];
    conditions(document).into_iter().filter(|one| first.contains(&one.name)).collect()
}
