//! Reads a question as programs write it, in one pass without intermediate steps: known keys once
//! each, integers in range, `unit`, `cores` and `policy` before `tasks`. Anything else is `None`
//! here, and [`crate::question::read`] reads it again the slow way, which accepts more and explains
//! what it refuses. Both must agree on every line that this accepts.
//!
//! Grammar: RFC 8259; of strings and numbers only those without escapes, signs, fractions and
//! exponents.

use crate::asked::{Question, Unit};
use crate::equals::equals;
use crate::question_rules::{Policy, too_long};
use crate::system::{Access, MAX_CORES, Request, System, SystemTask};
use crate::task::{MAX_NS, MAX_TASKS, Task};
use std::ops::Range;

/// Bytes of a short task: how many tasks are expected of a line.
const SHORT_TASK: usize = 32;
/// The most requests of one job for one resource.
const MAX_COUNT: u64 = 1 << 32;
const MAX_RANK: u64 = u32::MAX as u64;

/// The question, or none where the line has anything unusual.
pub(crate) fn read(line: &[u8]) -> Option<Question> {
    let mut cursor = Cursor { rest: line };
    let (mut unit, mut cores, mut policy, mut tasks) = (None, None, None, None);
    cursor.object(|cursor, key| {
        match key {
            b"unit" if tasks.is_none() && unit.is_none() => {
                unit = Some(match cursor.word()? {
                    b"ns" => Unit::Ns,
                    b"us" => Unit::Us,
                    b"ms" => Unit::Ms,
                    _ => return None,
                });
            }
            b"cores" if tasks.is_none() => {
                cores.replace(cursor.integer(1, u64::from(MAX_CORES))?).is_none().then_some(())?;
            }
            b"policy" if tasks.is_none() && policy.is_none() => {
                policy = Some(if cursor.word()? == b"linux" { Policy::Linux } else { return None });
            }
            b"tasks" if tasks.is_none() => {
                let policy = policy.unwrap_or_default();
                let scale = Scale { policy, ..Scale::of(unit.unwrap_or_default(), cores.unwrap_or(1)) };
                tasks = Some(read_tasks(cursor, scale)?);
            }
            _ => return None,
        }
        Some(())
    })?;
    cursor.skip_space();
    cursor.rest.is_empty().then_some(())?;
    let Tasks { by_priority: tasks, places, placed, equals } = tasks?;
    let cores = cores.unwrap_or(1) as u32;
    let system = System { cores, tasks };
    Some(Question { unit: unit.unwrap_or_default(), system, places, placed, equals })
}

/// What numbers of a line mean, and their limits.
#[derive(Clone, Copy)]
struct Scale {
    unit_ns: u64,
    /// The longest time, in the unit.
    most: u64,
    last_core: u64,
    policy: Policy,
}

impl Scale {
    fn of(unit: Unit, cores: u64) -> Self {
        Self { unit_ns: unit.ns(), most: MAX_NS / unit.ns(), last_core: cores - 1, policy: Policy::Ranks }
    }
}

struct Tasks {
    /// Highest priority first.
    by_priority: Vec<SystemTask>,
    /// For each task its place in the line.
    places: Vec<usize>,
    /// Whether any task names its core.
    placed: bool,
    /// Those of equal priority.
    equals: Vec<Range<usize>>,
}

fn read_tasks(cursor: &mut Cursor<'_>, scale: Scale) -> Option<Tasks> {
    let expected = (cursor.rest.len() / SHORT_TASK).min(MAX_TASKS);
    let mut tasks: Vec<SystemTask> = Vec::with_capacity(expected);
    let (mut ranks, mut placed): (Vec<u64>, bool) = (Vec::new(), false);
    cursor.list(|cursor| {
        let before = tasks.len();
        tasks.push(Task::implicit(0, 0).into());
        let Beside { rank, core } = read_task(cursor, scale, tasks.last_mut()?)?;
        placed |= core;
        // A priority for every task or for none.
        (rank.is_some() || ranks.is_empty()).then_some(())?;
        (rank.is_some() || scale.policy == Policy::Ranks).then_some(())?;
        if let Some(rank) = rank {
            (ranks.len() == before).then_some(())?;
            ranks.push(rank);
        }
        (tasks.len() <= MAX_TASKS).then_some(())
    })?;
    let mut places: Vec<usize> = (0..tasks.len()).collect();
    if !ranks.is_empty() {
        places.sort_by_key(|&place| ranks[place]);
        tasks = places.iter().map(|&place| tasks[place].clone()).collect();
        ranks.sort_unstable();
    }
    Some(Tasks { by_priority: tasks, places, placed, equals: equals(&ranks) })
}

/// What a line says of a task beside the task.
#[derive(Default)]
struct Beside {
    rank: Option<u64>,
    /// Whether it names the core.
    core: bool,
}

/// Reads a task in its place, where it stays.
fn read_task(cursor: &mut Cursor<'_>, scale: Scale, task: &mut SystemTask) -> Option<Beside> {
    let Scale { unit_ns, most, last_core, policy } = scale;
    let mut beside = Beside::default();
    let mut seen = 0u32;
    cursor.object(|cursor, key| {
        let bit = match key {
            b"period" => {
                task.task.period_ns = cursor.integer(1, most)? * unit_ns;
                PERIOD
            }
            b"cost" => {
                task.task.cost_ns = cursor.integer(1, most)? * unit_ns;
                COST
            }
            b"deadline" => {
                task.task.deadline_ns = cursor.integer(1, most)? * unit_ns;
                DEADLINE
            }
            b"jitter" => {
                task.task.jitter_ns = cursor.integer(0, most)? * unit_ns;
                1 << 3
            }
            b"blocking" => {
                task.task.blocking_ns = cursor.integer(0, most)? * unit_ns;
                1 << 4
            }
            b"suspension" => {
                task.suspension_ns = cursor.integer(0, most)? * unit_ns;
                1 << 5
            }
            b"non_preemptive" => {
                task.non_preemptive_ns = cursor.integer(0, most)? * unit_ns;
                1 << 6
            }
            b"core" => {
                task.core = cursor.integer(0, last_core)? as u32;
                beside.core = true;
                1 << 7
            }
            b"priority" => {
                let (least, most) = policy.priorities();
                beside.rank = Some(policy.rank(cursor.integer(least, most)?));
                1 << 8
            }
            b"lock_priority" => {
                task.lock_priority = Some(cursor.integer(0, MAX_RANK)? as u32);
                1 << 9
            }
            b"response_time" => {
                task.response_time_ns = Some(cursor.integer(0, most)? * unit_ns);
                1 << 10
            }
            b"suspensions" => {
                task.suspensions = cursor.integer(0, MAX_RANK)? as u32;
                1 << 12
            }
            b"requests" => {
                let requests = &mut task.requests;
                cursor.list(|cursor| {
                    requests.push(read_request(cursor, scale)?);
                    Some(())
                })?;
                1 << 11
            }
            _ => return None,
        };
        once(&mut seen, bit)
    })?;
    (seen & (PERIOD | COST) == PERIOD | COST).then_some(())?;
    if seen & DEADLINE == 0 {
        task.task.deadline_ns = task.task.period_ns;
    }
    too_long(task).is_none().then_some(())?;
    Some(beside)
}

const PERIOD: u32 = 1;
const COST: u32 = 1 << 1;
const DEADLINE: u32 = 1 << 2;

/// Marks a key as seen; none if it was.
fn once(seen: &mut u32, bit: u32) -> Option<()> {
    let is_new = *seen & bit == 0;
    *seen |= bit;
    is_new.then_some(())
}

fn read_request(cursor: &mut Cursor<'_>, scale: Scale) -> Option<Request> {
    const RESOURCE: u32 = 1;
    const LENGTH: u32 = 1 << 1;
    let mut request = Request { resource: 0, count: 1, length_ns: 0, access: Access::Write };
    let mut seen = 0u32;
    cursor.object(|cursor, key| {
        let bit = match key {
            b"resource" => {
                request.resource = cursor.integer(0, MAX_RANK)? as u32;
                RESOURCE
            }
            b"length" => {
                request.length_ns = cursor.integer(0, scale.most)? * scale.unit_ns;
                LENGTH
            }
            b"count" => {
                request.count = cursor.integer(0, MAX_COUNT)?;
                1 << 2
            }
            b"access" => {
                request.access = match cursor.word()? {
                    b"write" => Access::Write,
                    b"read" => Access::Read,
                    _ => return None,
                };
                1 << 3
            }
            _ => return None,
        };
        once(&mut seen, bit)
    })?;
    (seen & (RESOURCE | LENGTH) == RESOURCE | LENGTH).then_some(request)
}

/// The part of a line that is not read yet.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// The next byte that is not space.
    fn next(&mut self) -> Option<u8> {
        self.skip_space();
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// A string as it stands. One with an escape equals no word that is known.
    fn word(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let end = self.rest.iter().position(|&byte| byte == b'"')?;
        let word = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(word)
    }

    fn integer(&mut self, least: u64, most: u64) -> Option<u64> {
        self.skip_space();
        let mut value = 0u64;
        let mut digits = 0;
        while let Some(digit @ 0..=9) = self.rest.get(digits).map(|byte| byte.wrapping_sub(b'0')) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        // 18 digits cannot overflow; a number does not begin with 0 unless it is 0.
        let is_plain = (1..=18).contains(&digits) && (digits == 1 || self.rest[0] != b'0');
        self.rest = &self.rest[digits..];
        (is_plain && least <= value && value <= most).then_some(value)
    }

    /// `{"key":value,…}` with one key at least.
    fn object(&mut self, mut value: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let key = self.word()?;
            self.expect(b':')?;
            value(self, key)?;
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// `[value,…]`.
    fn list(&mut self, mut value: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        self.skip_space();
        if let [b']', rest @ ..] = self.rest {
            self.rest = rest;
            return Some(());
        }
        loop {
            value(self)?;
            match self.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::judge;
    use proptest::prelude::*;

    /// Every key at least once, and a few lines that only the slow way knows.
    const LINES: [&str; 6] = [
        r#"{"unit":"us","cores":2,"tasks":[{"cost":3,"period":10,"core":1},{"period":20,"cost":1,"deadline":9}]}"#,
        r#"{ "tasks" : [ {"cost":3 , "period":10,"priority":4},{"priority":1,"period":20,"cost":1,"jitter":2}]} "#,
        r#"{"unit":"ms","tasks":[{"cost":3,"period":9007199254,"blocking":0,"suspension":1,"non_preemptive":2,"response_time":7}]}"#,
        r#"{"cores":4,"tasks":[{"period":7,"cost":1,"lock_priority":3,"requests":[{"resource":0,"length":1,"count":2,"access":"read"},{"resource":1,"length":0,"access":"write"}]}]}"#,
        r#"{"policy":"linux","tasks":[{"priority":9,"cost":3,"period":10},{"cost":1,"period":9,"priority":12,"non_preemptive":1}]}"#,
        r#"{"tasks":[],"unit":"ns"}"#,
    ];

    #[test]
    fn usual_lines_are_read_here_and_alike() {
        for line in &LINES[..5] {
            assert_eq!(read(line.as_bytes()), Some(judge(line.as_bytes()).unwrap()), "{line}");
        }
        assert_eq!(read(LINES[5].as_bytes()), None);
    }

    proptest! {
        /// A line with a byte changed, taken out or put in is read alike, or left to the slow way.
        #[test]
        fn nothing_is_accepted_that_is_wrong(
            line in 0..LINES.len(),
            at in any::<prop::sample::Index>(),
            with in prop::sample::select(b" \t\n\x0c0123459-.eE\"\\{}[],:nulacp\xff".to_vec()),
            how in 0..3,
        ) {
            let mut line = LINES[line].as_bytes().to_vec();
            let at = at.index(line.len());
            match how {
                0 => line[at] = with,
                1 => drop(line.remove(at)),
                _ => line.insert(at, with),
            }
            if let Some(question) = read(&line) {
                prop_assert_eq!(judge(&line), Ok(question));
            }
        }
    }
}
