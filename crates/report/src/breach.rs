//! What a monitor has kept, in words: one line everywhere.

use model::monitor::{Breach, BreachKind, Explained, Fate};

use crate::{Known, format};

/// What was late: `control[7] (cron.service) ran 8.200 ms after its wake-up on CPU 2`.
pub fn what(breach: &Breach) -> String {
    let worst = &breach.worst;
    let value = worst.value_ns.map(|ns| format!(" {}", format::ns(ns as i64))).unwrap_or_default();
    let cpu = worst.cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
    let tid = worst.tid.map(|tid| format!("[{tid}]")).unwrap_or_default();
    let group = breach.group.as_ref().map(|group| format!(" ({group})")).unwrap_or_default();
    let who = format!("{}{tid}{group}", worst.comm);
    match worst.kind {
        BreachKind::Wakeup => format!("{who} ran{value} after its wake-up{cpu}"),
        BreachKind::Preempted => format!("{who} was kept from running for{value}{cpu}"),
        BreachKind::Interference => format!("{} ran for{value}{cpu}", worst.comm),
        BreachKind::Reported => format!("{who} reported{value}{cpu}"),
    }
}

/// How its cause is known.
pub fn known(explained: &Explained) -> Known {
    let known = [Known::Exact, Known::ByOrder, Known::Inferred];
    let is = |one: &Known| serde_json::to_value(one).is_ok_and(|name| name == explained.confidence.as_str());
    known.into_iter().find(is).unwrap_or(Known::Unknown)
}

/// Its cause, and how that is known.
pub fn cause(explained: &Explained) -> String {
    match known(explained) {
        Known::Unknown => explained.cause.clone(),
        sure => format!("{} ({})", explained.cause, sure.words()),
    }
}

/// A breach in one line: its name, what was late, and why or what became of it.
pub fn line(breach: &Breach) -> String {
    let why = match (&breach.explained, breach.fate) {
        (Some(explained), _) => cause(explained),
        (None, Fate::Kept) => "not explained yet".to_owned(),
        (None, fate) => format!("{} ({})", fate.name(), fate.why().unwrap_or_default()),
    };
    format!("{}  {}: {why}", breach.id, what(breach))
}
