//! The answer to a simple set, byte for byte as [`super::answer`] writes it beyond the first lines,
//! where no other order is looked for: a test holds the two against each other. Nothing is
//! allocated, and no number takes more than some instructions.

use super::answer::{Cells, SCHEMA, decimal, write_cells};
use sched::asked::Unit;
use sched::simple::{SimpleSet, SimpleVerdict};

/// What was answered for which set.
pub(super) struct SimpleAnswer<'a> {
    /// The set's number, from 1.
    pub(super) number: usize,
    /// Name of the test.
    pub(super) test: &'static str,
    pub(super) set: &'a SimpleSet,
    pub(super) verdict: SimpleVerdict<'a>,
}

/// Digits of the longest number, and a separator.
const LONGEST: usize = 21;

impl SimpleAnswer<'_> {
    /// Appends a line of JSON.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let (tasks, unit) = (&self.set.tasks, self.set.unit);
        let Self { number, test, verdict, .. } = *self;
        out.reserve(400 + tasks.len() * (2 * LONGEST + 6));
        out.extend_from_slice(b"{\"arrival\":");
        zeros(out, tasks.len());
        out.extend_from_slice(b",\"blocking\":");
        list(out, tasks.iter().map(|task| Some(task.blocking_ns)), unit);
        out.extend_from_slice(b",\"cores\":");
        zeros(out, tasks.len());
        out.extend_from_slice(b",\"line\":");
        append(out, number as u64);
        out.extend_from_slice(b",\"locks\":null,\"response_times\":");
        list(out, verdict.response_times.iter().copied(), unit);
        out.extend_from_slice(b",\"rounds\":");
        append(out, verdict.rounds);
        out.extend_from_slice(b",\"schedulable\":");
        out.extend_from_slice(if verdict.schedulable { b"true" } else { b"false" });
        for piece in [",\"schema\":\"", SCHEMA, "\",\"semantics\":\"sound\",\"spin\":"] {
            out.extend_from_slice(piece.as_bytes());
        }
        zeros(out, tasks.len());
        for piece in [",\"test\":\"", test, "\",\"undecided\":[],\"unit\":\"", unit.name(), "\"}\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    /// Appends the verdict, and a table of the tasks where any has a response time.
    pub(super) fn write_text(&self, cells: &mut Cells, out: &mut Vec<u8>) {
        let Self { number, test, verdict, set } = self;
        out.extend_from_slice(b"line ");
        append(out, *number as u64);
        let word = if verdict.schedulable { ": schedulable (" } else { ": not schedulable (" };
        for piece in [word, test, ")\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
        if verdict.response_times.iter().any(Option::is_some) {
            let unit = set.unit;
            cells.clear();
            let tasks = set.tasks.iter().zip(verdict.response_times).enumerate();
            cells.extend(tasks.map(|(place, (task, response))| {
                let times = [task.period_ns, task.deadline_ns, task.cost_ns, task.blocking_ns];
                let [period, deadline, cost, blocking] = times.map(|ns| Some(unit.of(ns)));
                let response = response.map(|ns| unit.of(ns));
                [Some(place as u64), Some(0), period, deadline, cost, blocking, response]
            }));
            write_cells(cells, unit, out);
        }
    }
}

/// Appends `[0,0,…]`.
fn zeros(out: &mut Vec<u8>, count: usize) {
    out.push(b'[');
    let start = out.len();
    out.extend(std::iter::repeat_n([b'0', b','], count).flatten());
    if out.len() > start {
        out.pop();
    }
    out.push(b']');
}

/// Appends a list of times in the unit, `null` where there is none.
fn list(out: &mut Vec<u8>, times: impl ExactSizeIterator<Item = Option<u64>>, unit: Unit) {
    out.push(b'[');
    let mut at = out.len();
    if times.len() == 0 {
        out.push(b']');
        return;
    }
    // Room for all, filled from the start, and what is left taken off: appending piece by piece
    // checks the room for every piece.
    out.resize(at + times.len() * LONGEST, 0);
    for time in times {
        if let Some(ns) = time {
            at += digits(unit.of(ns), &mut out[at..]);
        } else {
            out[at..at + 4].copy_from_slice(b"null");
            at += 4;
        }
        out[at] = b',';
        at += 1;
    }
    out[at - 1] = b']';
    out.truncate(at);
}

fn append(out: &mut Vec<u8>, number: u64) {
    let at = out.len();
    out.resize(at + LONGEST, 0);
    let length = digits(number, &mut out[at..]);
    out.truncate(at + length);
}

/// Puts the digits of a number at the start of `place`; how many.
#[inline]
fn digits(number: u64, place: &mut [u8]) -> usize {
    if number < 10 {
        place[0] = b'0' + number as u8;
        return 1;
    }
    let length = number.ilog10() as usize + 1;
    decimal(number, &mut place[..length]);
    length
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answered;
    use super::*;
    use sched::simple::SimpleTests;
    use sched::{Ask, Limits, Test, question};

    /// Both ways for a line, which must be simple.
    fn both(line: &str, ask: &Ask, as_json: bool) -> [String; 2] {
        let mut question = question::read(line).unwrap();
        let verdict = ask.answer(&mut question, Limits::default()).unwrap();
        let general = Answered {
            number: 1_234,
            ask,
            question: &question,
            verdict: &verdict,
            certified: false,
            certificate: None,
        };
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let (mut set, mut tests) = (SimpleSet::default(), SimpleTests::default());
        assert!(set.read(line.as_bytes()), "{line}");
        let verdict = tests.answer(ask, &mut set).unwrap();
        let simple = SimpleAnswer { number: 1_234, test: ask.test.name(), set: &set, verdict };
        if as_json {
            general.write_json(&mut one);
            simple.write_json(&mut other);
        } else {
            general.write_text(&mut one);
            simple.write_text(&mut Cells::default(), &mut other);
        }
        [one, other].map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn answers_are_those_of_the_general_way() {
        let tasks = |times: &[(u64, u64, u64)]| {
            let one = |(period, cost, more): &(u64, u64, u64)| {
                format!("{{\"period\":{period},\"cost\":{cost},\"jitter\":{more},\"blocking\":{more}}}")
            };
            times.iter().map(one).collect::<Vec<_>>().join(",")
        };
        for unit in ["ns", "us", "ms"] {
            for times in [
                &[][..],
                &[(10, 3, 0)],
                &[(10, 3, 1), (20, 4, 0), (9_007_199_254, 10, 8)],
                &[(10, 3, 0), (5, 9, 2), (100, 60, 0)],
                &[(100, 30, 0), (10, 3, 0)],
                &[(123_456_789, 12_345, 100); 14],
            ] {
                let line = format!("{{\"unit\":\"{unit}\",\"tasks\":[{}]}}", tasks(times));
                for test in [Test::FpRta, Test::EdfQpa] {
                    for extra_jitter_ns in [0, 1] {
                        let ask = Ask { extra_jitter_ns, ..Ask::of(test) };
                        for as_json in [true, false] {
                            let [general, simple] = both(&line, &ask, as_json);
                            assert_eq!(general, simple, "{line}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let powers = (0..20).map(|power| 10u64.pow(power));
        for number in powers.flat_map(|one| [one - 1, one, one + 1]).chain([0, u64::MAX]) {
            let mut out = b"a".to_vec();
            append(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), format!("a{number}"));
        }
        let mut out = Vec::new();
        list(&mut out, [Some(u64::MAX), None, Some(0)].into_iter(), Unit::Ns);
        zeros(&mut out, 3);
        zeros(&mut out, 0);
        assert_eq!(out, b"[18446744073709551615,null,0][0,0,0][]");
    }
}
