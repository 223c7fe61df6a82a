//! `events.txt` of ros2-performance (`performance_metrics/src/events_logger.cpp`), written and
//! read: what was late, too late or lost, in the order in which it was found.

use super::tracker::{Judged, Limits};
use model::Error;
use std::fmt::Write;
use std::path::Path;

/// What happened; the number is the file's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// All have found one another.
    Discovery = 0,
    /// A late message.
    Late = 1,
    /// A message that is too late.
    TooLate = 2,
    /// Lost messages.
    Lost = 3,
    /// A service without a server.
    ServiceUnavailable = 4,
}

const CODES: [Code; 5] = [Code::Discovery, Code::Late, Code::TooLate, Code::Lost, Code::ServiceUnavailable];
const WIDTHS: [usize; 3] = [20, 40, 20];

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Since the start, ms.
    pub time_ms: i64,
    /// `topic->node`.
    pub caller: String,
    /// What happened.
    pub code: Code,
    /// In words.
    pub description: String,
}

/// The events of a message, lost ones before it first. `at_ns` counts from the start.
pub fn of_message(
    at_ns: i64,
    caller: &str,
    number: u64,
    latency_us: u64,
    limits: Limits,
    found: (Judged, i64),
) -> Vec<Event> {
    let event = |code, description| Event {
        time_ms: at_ns / 1_000_000,
        caller: caller.to_owned(),
        code,
        description,
    };
    let mut events = Vec::new();
    match found.1 {
        1 => events.push(event(Code::Lost, format!("msg {} lost.", number - 1))),
        lost if lost > 1 => {
            let (first, last) = (number - lost as u64, number - 1);
            events.push(event(Code::Lost, format!("msgs {first} to {last} lost.")));
        }
        _ => {}
    }
    match found.0 {
        Judged::OnTime => {}
        Judged::Late => {
            events
                .push(event(Code::Late, format!("msg {number} late. {latency_us}us > {}us", limits.late_us)));
        }
        Judged::TooLate => {
            let limit_us = limits.too_late_us;
            events
                .push(event(Code::TooLate, format!("msg {number} too late. {latency_us}us > {limit_us}us")));
        }
    }
    events
}

/// The text of `events.txt`.
pub fn write(events: &[Event]) -> String {
    let [time, caller, code] = WIDTHS;
    let mut text = format!("{:<time$}{:<caller$}{:<code$}Description\n", "Time_ms", "Caller", "Code");
    for event in events {
        let (at, number) = (event.time_ms, event.code as u8);
        let _ = writeln!(text, "{at:<time$}{:<caller$} {number:<code$}{}", event.caller, event.description);
    }
    text
}

/// The events of an `events.txt`.
pub fn read(path: &Path, text: &str) -> Result<Vec<Event>, Error> {
    let rows = text.lines().zip(1..).skip(1).filter(|(line, _)| !line.trim().is_empty());
    rows.map(|(line, number)| {
        let wrong = |what: String, expected: &str| {
            Error::invalid(format!("{}: line {number}", path.display()), what, expected)
        };
        let mut rest = line;
        let mut cell = || {
            let (cell, behind) = rest.trim_start().split_once([' ', ',']).unwrap_or((rest.trim(), ""));
            rest = behind;
            cell
        };
        let (time, caller, code) = (cell(), cell(), cell());
        let time_ms = time.parse().map_err(|_| wrong(format!("time {time:?}"), "milliseconds"))?;
        let known = CODES.into_iter().find(|one| (*one as u8).to_string() == code);
        let code = known.ok_or_else(|| wrong(format!("code {code:?}"), "0 to 4"))?;
        Ok(Event { time_ms, caller: caller.to_owned(), code, description: rest.trim().to_owned() })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tracker::{Bounds, Tracker};
    use super::*;

    #[test]
    fn messages_become_events_and_come_back() {
        let limits = Bounds { tracking: true, ..Bounds::default() }.of(10_000_000);
        let mut tracker = Tracker::default();
        let mut events = Vec::new();
        for (number, latency_us) in [(0, 10), (2, 2_500), (6, 20_000)] {
            let found = tracker.scan(limits, number, 0, latency_us * 1_000);
            events.extend(of_message(7_900_000, "amazon->lyon", number, latency_us as u64, limits, found));
        }
        let descriptions: Vec<_> = events.iter().map(|event| event.description.as_str()).collect();
        assert_eq!(
            descriptions,
            [
                "msg 1 lost.",
                "msg 2 late. 2500us > 2000us",
                "msgs 3 to 5 lost.",
                "msg 6 too late. 20000us > 10000us"
            ]
        );
        assert_eq!(read(Path::new("events.txt"), &write(&events)).unwrap(), events);
        let error = read(Path::new("events.txt"), "Time_ms\nx y 1 z\n").unwrap_err().to_string();
        assert_eq!(error, "events.txt: line 2: time \"x\"; expected milliseconds");
    }
}
