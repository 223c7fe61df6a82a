//! The answer to one line of `sched analyze`, as text or as JSON. Written straight into the bytes
//! that are printed: with 20,000 sets a second, lists made for the writing alone took longer than
//! the analysis.

use sched::asked::{Question, Unit};
use sched::certificate::Certificate;
use sched::global::GlobalTest;
use sched::global::sched_deadline::FairServer;
use sched::locks::{Locks, Semantics};
use sched::{Ask, Limits, Order, Test, Verdict};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::io::{self, Write as _};

pub(super) const SCHEMA: &str = "stillcore.sched-analyze/1";
const HEAD: [&str; 7] = ["task", "core", "period", "deadline", "cost", "blocking", "response"];
/// The most tasks among which another order is looked for unasked.
const SEARCHED: usize = 200;
/// The last line for which it is: whoever asks about more wants a share, and soon.
pub(super) const LAST_SEARCHED: usize = 100;
/// Tasks that are named where there are more.
const SHOWN: usize = 40;
/// More bytes than this at once are worth a call.
const MANY: usize = 64;

/// What was answered to which line.
pub(super) struct Answered<'a> {
    /// The line's number, from 1.
    pub(super) number: usize,
    pub(super) ask: &'a Ask,
    pub(super) question: &'a Question,
    pub(super) verdict: &'a Verdict,
    /// Whether the answer has a certificate, `null` where the test has found none.
    pub(super) certified: bool,
    pub(super) certificate: Option<&'a Certificate>,
}

/// Values by priority, written in the order of the question.
struct Listed<'a, T> {
    priorities: &'a [usize],
    values: &'a [T],
}

impl<T: Copy + Serialize> Serialize for Listed<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.priorities.iter().filter_map(|&at| self.values.get(at)))
    }
}

/// Times in ns by priority, written in the order and the unit of the question.
struct Times<'a, T> {
    question: &'a Question,
    listed: Listed<'a, T>,
}

impl Serialize for Times<'_, u64> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Listed { priorities, values } = &self.listed;
        let times = priorities.iter().filter_map(|&at| values.get(at));
        serializer.collect_seq(times.map(|&ns| self.question.in_unit(ns)))
    }
}

impl Serialize for Times<'_, Option<u64>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Listed { priorities, values } = &self.listed;
        let times = priorities.iter().filter_map(|&at| values.get(at));
        serializer.collect_seq(times.map(|ns| ns.map(|ns| self.question.in_unit(ns))))
    }
}

/// An answer as JSON, keys in order.
#[derive(Serialize)]
struct Json<'a> {
    arrival: Times<'a, u64>,
    blocking: Times<'a, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<Value>,
    /// Whether they are assumed beside the protocol.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ceilings: bool,
    cores: Listed<'a, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fair_server_us: Option<[u64; 2]>,
    line: usize,
    locks: Option<&'a str>,
    /// An order in which a set holds that does not as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    order_hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overheads: Option<Value>,
    /// The place of each task, 0 the highest, where priorities were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    priorities: Option<&'a [usize]>,
    response_times: Times<'a, Option<u64>>,
    rounds: u64,
    schedulable: Option<bool>,
    schema: &'a str,
    semantics: &'a str,
    spin: Times<'a, u64>,
    test: &'a str,
    undecided: Vec<usize>,
    unit: &'a str,
}

/// As a value, whose keys are in the order of the alphabet.
fn plain(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

impl Answered<'_> {
    /// Appends a line of JSON.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let (verdict, ask, question) = (self.verdict, self.ask, self.question);
        let priorities = &question.priorities();
        let times = |values| Times { question, listed: Listed { priorities, values } };
        let json = Json {
            arrival: times(&verdict.arrival),
            blocking: times(&verdict.blocking),
            certificate: self.certified.then(|| plain(self.certificate)),
            cores: Listed { priorities, values: &verdict.cores },
            fair_server_us: self.fair_server().map(|server| [server.runtime_us, server.period_us]),
            line: self.number,
            ceilings: ask.locks.is_some_and(Locks::adds_ceilings),
            locks: ask.locks.map(|locks| locks.protocol().name()),
            order_hint: self.other_order().map(Order::name),
            overheads: ask.overheads.map(plain),
            priorities: ask.order.map(|_| &priorities[..]),
            response_times: Times {
                question,
                listed: Listed { priorities, values: &verdict.response_times },
            },
            rounds: verdict.rounds,
            schedulable: ask.blocking_only.is_none().then_some(verdict.schedulable),
            schema: SCHEMA,
            semantics: ask.blocking_only.map_or("sound", Semantics::name),
            spin: times(&verdict.spin),
            test: ask.test.name(),
            undecided: self.undecided(),
            unit: question.unit.name(),
        };
        // Plain data with text for keys, into memory: nothing in it can fail.
        let _ = serde_json::to_writer(Pieces(out), &json);
        out.push(b'\n');
    }

    /// The reservation that admission counts beside the tasks.
    fn fair_server(&self) -> Option<FairServer> {
        let admits = matches!(self.ask.test, Test::SchedDeadline | Test::SchedDeadlinePartitioned);
        admits.then_some(self.ask.admission.fair_server)
    }

    fn undecided(&self) -> Vec<usize> {
        let mut places: Vec<usize> =
            self.verdict.undecided.iter().map(|&at| self.question.places[at]).collect();
        places.sort_unstable();
        places
    }

    /// Appends the verdict, and a table of the tasks where any has a response time.
    pub(super) fn write_text(&self, out: &mut Vec<u8>) {
        let locks = self.ask.locks.map_or(String::new(), |locks| {
            let ceilings = if locks.adds_ceilings() { " with ceilings on each core" } else { "" };
            format!(", {}{ceilings}", locks.protocol().name())
        });
        let overheads = self.ask.overheads.map_or("", |_| ", with overheads");
        let server = self.fair_server().map_or(String::new(), |one| match one.runtime_us {
            0 => ", no fair server".to_owned(),
            runtime => format!(", fair servers of {runtime}/{} us", one.period_us),
        });
        let order = self.ask.order.map_or(String::new(), |order| format!(", order {}", order.name()));
        let (number, word, test) = (self.number, self.word(), self.ask.test.name());
        let bounds = self.bounds();
        let _ = writeln!(out, "line {number}: {word} ({test}{order}{locks}{overheads}{server}{bounds})");
        if self.verdict.response_times.iter().any(Option::is_some) {
            write_cells(&self.cells(), self.question.unit, out);
        }
        if self.ask.order.is_some() {
            let places = &self.question.places;
            let shown: Vec<String> = places.iter().take(SHOWN).map(usize::to_string).collect();
            let rest = if places.len() > SHOWN { ", …" } else { "" };
            let _ = writeln!(out, "tasks by priority, highest first: {}{rest}", shown.join(", "));
        } else if let Some(order) = self.other_order() {
            let order = order.name();
            let _ = writeln!(out, "hint: with --order {order} the set is schedulable");
        }
    }

    /// In which order of priorities a set holds that does not as it is.
    fn other_order(&self) -> Option<Order> {
        let many = self.number > LAST_SEARCHED || self.question.system.tasks.len() > SEARCHED;
        if self.verdict.schedulable || many || !self.ask.test.is_by_priority() {
            return None;
        }
        self.ask.other_order(self.question, Limits::default())
    }

    /// What is counted beyond sporadic tasks on whole cores.
    fn bounds(&self) -> String {
        let bounds = || self.question.system.tasks.iter().filter_map(|one| one.bounds.as_deref());
        let kinds = [
            (", arrival curves", bounds().any(|one| !one.intervals_ns.is_empty())),
            (", cost curves", bounds().any(|one| !one.costs_ns.is_empty())),
            (", supply of cores", bounds().any(|one| one.supply.is_some())),
        ];
        kinds.into_iter().filter(|kind| kind.1).map(|kind| kind.0).collect()
    }

    fn word(&self) -> &'static str {
        match (self.ask.test, self.verdict.schedulable, self.verdict.undecided.is_empty()) {
            (Test::Global(GlobalTest::EdfDa), true, _) => "bounded tardiness",
            (Test::SchedDeadline | Test::SchedDeadlinePartitioned, true, _) => "admitted",
            (Test::SchedDeadline | Test::SchedDeadlinePartitioned, false, _) => "not admitted",
            _ if self.ask.blocking_only.is_some() => "blocking alone, no verdict",
            (_, true, _) => "schedulable",
            (_, false, true) => "not schedulable",
            (_, false, false) => "not decided within the cap on rounds, counted as not schedulable",
        }
    }

    /// One row per task, in the order of the question.
    fn cells(&self) -> Cells {
        let (question, verdict) = (self.question, self.verdict);
        let time = |ns| question.in_unit(ns);
        let row = |(place, &at): (usize, &usize)| {
            let task = question.system.tasks.get(at)?;
            let response = verdict.response_times.get(at)?.map(time);
            let blocking = time(*verdict.blocking.get(at)?);
            let times = [task.task.period_ns, task.task.deadline_ns, task.task.cost_ns].map(time);
            let [mut period, deadline, cost] = times.map(Some);
            if task.bounds.as_ref().is_some_and(|one| !one.intervals_ns.is_empty()) {
                period = None;
            }
            let (place, core) = (place as u64, u64::from(task.core));
            Some([Some(place), Some(core), period, deadline, cost, Some(blocking), response])
        };
        question.priorities().iter().enumerate().filter_map(row).collect()
    }
}

/// The cells of the table of tasks, row by row; none where there is no value.
pub(super) type Cells = Vec<[Option<u64>; HEAD.len()]>;

/// Appends the table of the tasks, numbers right-aligned, `-` where there is none.
pub(super) fn write_cells(rows: &Cells, unit: Unit, out: &mut Vec<u8>) {
    // A column is as wide as its largest number.
    let mut largest = [0; HEAD.len()];
    for row in rows {
        for (largest, cell) in largest.iter_mut().zip(row) {
            *largest = cell.unwrap_or(0).max(*largest);
        }
    }
    let mut widths = HEAD.map(str::len);
    for (width, largest) in widths.iter_mut().zip(largest) {
        *width = (*width).max(largest.checked_ilog10().unwrap_or(0) as usize + 1);
    }
    for (at, (head, width)) in HEAD.iter().zip(widths).enumerate() {
        let _ = write!(out, "{:gap$}{head:>width$}", "", gap = gap(at));
    }
    out.push(b'\n');
    for (at, width) in widths.iter().enumerate() {
        // A rule is as wide as its column and the space after it.
        out.extend(std::iter::repeat_n(b' ', at.min(1)));
        out.extend(std::iter::repeat_n(b'-', width + 1));
    }
    out.push(b'\n');
    // With its end.
    let row_length = 1 + widths.iter().enumerate().map(|(at, width)| gap(at) + width).sum::<usize>();
    let mut start = out.len();
    // Spaces for all rows at once, then the digits in their places.
    out.resize(start + rows.len() * row_length, b' ');
    for row in rows {
        let line = &mut out[start..start + row_length];
        let mut end = 0;
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            let cell_start = end + gap(at);
            end = cell_start + width;
            match cell {
                Some(number) => decimal(*number, &mut line[cell_start..end]),
                None => line[end - 1] = b'-',
            }
        }
        line[end] = b'\n';
        start += row_length;
    }
    let unit = unit.name();
    let _ = writeln!(out, "times in {unit}; response from the arrival, release jitter included");
}

/// Space before a column.
fn gap(column: usize) -> usize {
    if column == 0 { 0 } else { 2 }
}

/// Puts the digits of a number at the end of `place`, which has room for them: `write!` takes
/// longer for them than some tests for their verdict.
pub(super) fn decimal(mut number: u64, place: &mut [u8]) {
    let mut end = place.len();
    // Two at a time: half as many divisions, each of which waits for the one before.
    while number >= 100 {
        let pair = (number % 100) as u8;
        number /= 100;
        place[end - 2] = b'0' + pair / 10;
        place[end - 1] = b'0' + pair % 10;
        end -= 2;
    }
    if number >= 10 {
        place[end - 2] = b'0' + number as u8 / 10;
    }
    place[end - 1] = b'0' + number as u8 % 10;
}

/// Bytes that are appended piece by piece, most of them a few at a time: a call of musl's `memcpy`
/// for each takes longer than all else.
struct Pieces<'a>(&'a mut Vec<u8>);

impl io::Write for Pieces<'_> {
    #[inline]
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len();
        if length > MANY {
            self.0.extend_from_slice(bytes);
            return Ok(length);
        }
        // Copies of a length that the compiler knows are no calls.
        while let Some((eight, rest)) = bytes.split_first_chunk::<8>() {
            self.0.extend_from_slice(eight);
            bytes = rest;
        }
        if let Some((four, rest)) = bytes.split_first_chunk::<4>() {
            self.0.extend_from_slice(four);
            bytes = rest;
        }
        if let Some((two, rest)) = bytes.split_first_chunk::<2>() {
            self.0.extend_from_slice(two);
            bytes = rest;
        }
        if let [one] = bytes {
            self.0.push(*one);
        }
        Ok(length)
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::table::table;
    use sched::{Limits, Order, question};

    fn text(line: &str) -> String {
        text_of(line, &Ask::of(Test::FpRta))
    }

    fn text_of(line: &str, ask: &Ask) -> String {
        let mut question = question::read(line).unwrap();
        let verdict = ask.answer(&mut question, Limits::default()).unwrap();
        let (question, verdict) = (&question, &verdict);
        let mut out = Vec::new();
        Answered { number: 1, ask, question, verdict, certified: false, certificate: None }
            .write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_is_that_of_the_other_verbs() {
        // Priorities against the order given, a task that is late, numbers wider than their
        // headings.
        let line = r#"{"unit":"us","cores":12,"tasks":[
            {"period":123456789012,"cost":7,"priority":9,"core":11,"blocking":3},
            {"period":10,"cost":9,"priority":1},{"period":20,"cost":9,"priority":2}]}"#;
        let rows = [
            ["0", "11", "123456789012", "123456789012", "7", "3", "10"],
            ["1", "0", "10", "10", "9", "0", "9"],
            ["2", "0", "20", "20", "9", "0", "-"],
        ];
        let rows = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(
            text(line),
            "line 1: not schedulable (fp-rta)\n".to_owned()
                + &table(&HEAD, rows)
                + "times in us; response from the arrival, release jitter included\n"
        );
    }

    #[test]
    fn a_set_that_holds_with_other_priorities_says_so_and_they_are_shown() {
        let line = r#"{"tasks":[{"period":100,"cost":30},{"period":10,"cost":3}]}"#;
        let late = text(line);
        assert!(late.ends_with("hint: with --order dm the set is schedulable\n"), "{late}");
        let given = text_of(line, &Ask { order: Some(Order::DeadlineMonotonic), ..Ask::of(Test::FpRta) });
        assert!(given.starts_with("line 1: schedulable (fp-rta, order dm)\n"), "{given}");
        assert!(given.ends_with("tasks by priority, highest first: 1, 0\n"), "{given}");
        let never = text(r#"{"tasks":[{"period":10,"cost":6},{"period":10,"cost":6}]}"#);
        assert!(!never.contains("--order"), "{never}");
    }

    #[test]
    fn numbers_are_written_as_by_the_standard_library() {
        for number in [0, 7, 10, 99, 12_345, u64::MAX] {
            let mut place = [b' '; 22];
            decimal(number, &mut place);
            assert_eq!(place, format!("{number:>22}").as_bytes());
        }
    }

    #[test]
    fn pieces_of_every_length_are_appended_whole() {
        let bytes: Vec<u8> = (0..=2 * MANY as u8).collect();
        for length in 0..bytes.len() {
            let mut out = b"before".to_vec();
            Pieces(&mut out).write_all(&bytes[..length]).unwrap();
            assert_eq!(out, [b"before", &bytes[..length]].concat());
        }
    }
}
