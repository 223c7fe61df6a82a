//! The opening of a breach that a monitor has kept: what was late, and by whose doing.

use model::monitor::Explained;

use super::{Card, Cause, Opening};
use crate::{Document, Known, breach, format};

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let found = document.breach.as_ref()?;
    let limit = found.limit_ns.map(|ns| format!("; more than {} is a breach", format::ns(ns as i64)));
    let sentence = format!("{}{}.", breach::what(found), limit.unwrap_or_default());
    let cause = found.explained.as_ref().map(|explained: &Explained| {
        let known = breach::known(explained);
        let against = explained.against.first().filter(|_| known != Known::Unknown).cloned();
        Cause { words: explained.cause.clone(), known, against }
    });
    let times = format::count(found.times);
    let lasted = format::ns(i64::try_from(found.lasted_ns).unwrap_or(i64::MAX));
    let mut cards = Vec::new();
    if let Some(ns) = found.worst.value_ns {
        let value = format::ns(i64::try_from(ns).unwrap_or(i64::MAX));
        cards.push(Card::of_one("Late by", value, found.at.clone()));
    }
    cards.push(Card::of_one("Times late", times, format!("in {lasted}")));
    Some(Opening { sentence, cause, cards })
}
