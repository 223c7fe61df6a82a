//! The audit: first what isolation wants otherwise, then, folded, everything else.

use minijinja::{Value, context};
use model::{Finding, FindingState};

use super::value;
use crate::Document;
use crate::outcome::is_settable;

/// In the order in which the folded ones are counted.
const STATES: [FindingState; 6] = [
    FindingState::Ok,
    FindingState::Fixable,
    FindingState::Boot,
    FindingState::Immovable,
    FindingState::NotApplicable,
    FindingState::Unknown,
];

/// The findings that differ from what isolation wants, those that can be set now first, and all
/// others.
pub(super) fn figures(document: &Document) -> Value {
    let (mut deltas, rest): (Vec<&Finding>, Vec<&Finding>) =
        document.findings.iter().partition(|finding| is_settable(finding));
    deltas.sort_by_key(|finding| finding.state != FindingState::Fixable);
    let count = |state: FindingState| rest.iter().filter(|finding| finding.state == state).count();
    let counts = STATES.iter().map(|state| (state.name(), count(*state))).filter(|(_, n)| *n > 0);
    let counts: Vec<Value> = counts.map(|(state, n)| context! { state => state, n => n }).collect();
    context! { deltas => value(&deltas), rest => value(&rest), counts => counts }
}
