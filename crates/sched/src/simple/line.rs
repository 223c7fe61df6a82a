//! Reads a simple set from a line of JSON in one pass, without allocating: known keys once each,
//! integers in range, `unit` and `cores` before `tasks`, one core. Anything else is `None` here,
//! and is read again by [`crate::question::read`]. Both must agree on every line that this accepts.
//!
//! Grammar: RFC 8259; of strings and numbers only those without escapes, signs, fractions and
//! exponents.

use super::SimpleSet;
use crate::asked::Unit;
use crate::task::{MAX_NS, MAX_TASKS, Task};

const PERIOD: u32 = 1;
const COST: u32 = 1 << 1;
const DEADLINE: u32 = 1 << 2;
const JITTER: u32 = 1 << 3;
const BLOCKING: u32 = 1 << 4;
const CORE: u32 = 1 << 5;
const PRIORITY: u32 = 1 << 6;

const UNIT: u32 = 1;
const CORES: u32 = 1 << 1;
const TASKS: u32 = 1 << 2;

/// The highest number of a rank.
const MAX_RANK: u64 = u32::MAX as u64;

pub(super) fn read(line: &[u8], set: &mut SimpleSet) -> Option<()> {
    set.tasks.clear();
    set.unit = Unit::Ns;
    set.placed = false;
    let mut cursor = Cursor { line, at: 0 };
    let mut seen = 0;
    cursor.expect(b'{')?;
    loop {
        cursor.expect(b'"')?;
        let key = if cursor.skip(b"tasks\"") {
            cursor.expect(b':')?;
            read_tasks(&mut cursor, set)?;
            TASKS
        } else if cursor.skip(b"unit\"") {
            cursor.expect(b':')?;
            set.unit = cursor.unit()?;
            UNIT
        } else if cursor.skip(b"cores\"") {
            cursor.expect(b':')?;
            cursor.integer(1, 1)?;
            CORES
        } else {
            return None;
        };
        // The tasks are the last.
        (seen & (key | TASKS) == 0).then_some(())?;
        seen |= key;
        match cursor.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    cursor.skip_space();
    (seen & TASKS > 0 && cursor.at == line.len()).then_some(())
}

fn read_tasks(cursor: &mut Cursor<'_>, set: &mut SimpleSet) -> Option<()> {
    cursor.expect(b'[')?;
    cursor.skip_space();
    if cursor.skip(b"]") {
        return Some(());
    }
    let unit_ns = set.unit.ns();
    let most = MAX_NS / unit_ns;
    let mut last_rank = None;
    loop {
        let mut task = Task { period_ns: 0, deadline_ns: 0, cost_ns: 0, jitter_ns: 0, blocking_ns: 0 };
        let mut rank = None;
        let seen = read_task(cursor, most, &mut task, &mut rank)?;
        (seen & (PERIOD | COST) == PERIOD | COST).then_some(())?;
        if seen & DEADLINE == 0 {
            task.deadline_ns = task.period_ns;
        }
        // A priority for every task or for none; in ascending order they are those of the list.
        match (last_rank, rank) {
            (None, _) if set.tasks.is_empty() => {}
            (None, None) => {}
            (Some(last), Some(rank)) if last < rank => {}
            _ => return None,
        }
        last_rank = rank;
        set.placed |= seen & CORE > 0;
        if unit_ns > 1 {
            task.period_ns *= unit_ns;
            task.deadline_ns *= unit_ns;
            task.cost_ns *= unit_ns;
            task.jitter_ns *= unit_ns;
            task.blocking_ns *= unit_ns;
        }
        set.tasks.push(task);
        match cursor.next()? {
            b',' if set.tasks.len() < MAX_TASKS => {}
            b']' => return Some(()),
            _ => return None,
        }
    }
}

/// Reads a task in the unit of the line; which keys it has.
#[inline]
fn read_task(cursor: &mut Cursor<'_>, most: u64, task: &mut Task, rank: &mut Option<u64>) -> Option<u32> {
    let mut seen = 0;
    cursor.expect(b'{')?;
    loop {
        cursor.expect(b'"')?;
        let (value, key, least) = if cursor.skip(b"cost\"") {
            (&mut task.cost_ns, COST, 1)
        } else if cursor.skip(b"period\"") {
            (&mut task.period_ns, PERIOD, 1)
        } else if cursor.skip(b"deadline\"") {
            (&mut task.deadline_ns, DEADLINE, 1)
        } else if cursor.skip(b"jitter\"") {
            (&mut task.jitter_ns, JITTER, 0)
        } else if cursor.skip(b"blocking\"") {
            (&mut task.blocking_ns, BLOCKING, 0)
        } else if cursor.skip(b"priority\"") {
            (&mut *rank.insert(0), PRIORITY, 0)
        } else if cursor.skip(b"core\"") {
            cursor.expect(b':')?;
            cursor.integer(0, 0)?;
            (seen & CORE == 0).then_some(())?;
            seen |= CORE;
            match cursor.next()? {
                b',' => continue,
                b'}' => return Some(seen),
                _ => return None,
            }
        } else {
            return None;
        };
        (seen & key == 0).then_some(())?;
        seen |= key;
        cursor.expect(b':')?;
        *value = cursor.integer(least, if key == PRIORITY { MAX_RANK } else { most })?;
        match cursor.next()? {
            b',' => {}
            b'}' => return Some(seen),
            _ => return None,
        }
    }
}

/// How far a line is read.
struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn skip_space(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next byte that is not space.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let mut byte = *self.line.get(self.at)?;
        if byte <= b' ' {
            self.skip_space();
            byte = *self.line.get(self.at)?;
        }
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Passes over these bytes if they come next.
    #[inline]
    fn skip<const N: usize>(&mut self, bytes: &[u8; N]) -> bool {
        let is_next = self.line.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) == Some(bytes);
        self.at += if is_next { N } else { 0 };
        is_next
    }

    fn unit(&mut self) -> Option<Unit> {
        self.expect(b'"')?;
        [(b"ns\"", Unit::Ns), (b"us\"", Unit::Us), (b"ms\"", Unit::Ms)]
            .into_iter()
            .find_map(|(name, unit)| self.skip(name).then_some(unit))
    }

    #[inline]
    fn integer(&mut self, least: u64, most: u64) -> Option<u64> {
        if *self.line.get(self.at)? <= b' ' {
            self.skip_space();
        }
        let start = self.at;
        let mut value = 0;
        loop {
            let Some(eight) = self.line.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) else {
                // The end of the line is near.
                while let Some(digit @ 0..=9) = self.line.get(self.at).map(|byte| byte.wrapping_sub(b'0')) {
                    value = u64::wrapping_add(u64::wrapping_mul(value, 10), u64::from(digit));
                    self.at += 1;
                }
                break;
            };
            let (digits, some) = leading_digits(u64::from_le_bytes(*eight));
            value = u64::wrapping_add(u64::wrapping_mul(value, POWERS[digits]), some);
            self.at += digits;
            if digits < 8 {
                break;
            }
        }
        let digits = self.at - start;
        // 18 digits cannot overflow; a number does not begin with 0 unless it is 0.
        let is_plain = (1..=18).contains(&digits) && (digits == 1 || self.line[start] != b'0');
        (is_plain && least <= value && value <= most).then_some(value)
    }
}

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// How many of eight characters, the first in the lowest byte, are digits before any other, and
/// their value. All eight at once: pairs of digits are added up to pairs of pairs, and so on.
#[inline]
fn leading_digits(eight: u64) -> (usize, u64) {
    const ALL: u64 = 0x0101_0101_0101_0101;
    let values = eight ^ (ALL * 0x30);
    // A byte above 9 gets its highest bit. A carry reaches only bytes behind the first such one.
    let others = (values.wrapping_add(ALL * 0x76) | values) & (ALL * 0x80);
    let digits = (others.trailing_zeros() / 8) as usize;
    if digits == 0 {
        return (0, 0);
    }
    // Digits go to the end, zeros before them.
    let values = values << (64 - 8 * digits);
    let pairs = (values.wrapping_mul(10).wrapping_add(values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (digits, (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::judge;
    use proptest::prelude::*;

    const LINES: [&str; 5] = [
        r#"{"unit":"us","cores":1,"tasks":[{"cost":3,"period":123456789,"core":0},{"period":20,"cost":1,"deadline":9}]}"#,
        r#"{ "tasks" : [ {"cost":3 , "period":10,"priority":4},{"priority":7,"period":20,"cost":1,"jitter":2}]} "#,
        r#"{"unit":"ms","tasks":[{"cost":3,"period":9007199254,"blocking":0,"jitter":12345678}]}"#,
        r#"{"cores":1,"unit":"ns","tasks":[{"period":9007199254740991,"cost":1},{"cost":1000000007,"period":20}]}"#,
        r#"{"tasks":[]}"#,
    ];

    fn read(line: &[u8]) -> Option<SimpleSet> {
        let mut set = SimpleSet { tasks: vec![Task::implicit(1, 1)], unit: Unit::Ms, placed: true };
        set.read(line).then_some(set)
    }

    #[test]
    fn usual_lines_are_read_here_and_alike() {
        for line in LINES {
            let question = read(line.as_bytes()).map(|set| set.question());
            assert_eq!(question, Some(judge(line.as_bytes()).unwrap()), "{line}");
        }
    }

    #[test]
    fn what_is_more_than_a_simple_set_is_left_to_others() {
        for line in [
            r#"{"tasks":[{"period":10,"cost":1,"priority":4},{"period":10,"cost":1,"priority":4}]}"#,
            r#"{"tasks":[{"period":10,"cost":1},{"period":10,"cost":1,"priority":4}]}"#,
            r#"{"tasks":[{"period":10,"cost":1,"priority":4},{"period":10,"cost":1}]}"#,
            r#"{"cores":2,"tasks":[{"period":10,"cost":1}]}"#,
            r#"{"tasks":[{"period":10,"cost":1,"core":0,"core":0}]}"#,
            r#"{"tasks":[{"period":10,"cost":1,"suspension":0}]}"#,
            r#"{"tasks":[{"period":10,"cost":1}],"unit":"ns"}"#,
            r#"{"tasks":[{"period":10}]}"#,
            r#"{"tasks":[{"period":010,"cost":1}]}"#,
            r#"{"tasks":[{"period":1000000000000000000000,"cost":1}]}"#,
            r#"{"unit":"us","tasks":[{"period":9007199254741,"cost":1}]}"#,
            r#"{"cores":1}"#,
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn digits_are_counted_up_to_any_other_character() {
        for (text, expected) in
            [("1234567,", (7, 1_234_567)), ("98765432", (8, 98_765_432)), ("7}]}\n   ", (1, 7))]
        {
            let eight = text.as_bytes().first_chunk::<8>().unwrap();
            assert_eq!(leading_digits(u64::from_le_bytes(*eight)), expected, "{text}");
        }
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            let eight = [b'4', b'2', byte, b'9', byte, 0xff, b'0', b'1'];
            assert_eq!(leading_digits(u64::from_le_bytes(eight)), (2, 42), "{byte}");
            assert_eq!(leading_digits(u64::from_le_bytes([byte; 8])), (0, 0), "{byte}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// A line with a byte changed, taken out or put in is read alike, or left to others.
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
            if let Some(set) = read(&line) {
                prop_assert_eq!(judge(&line), Ok(set.question()));
            }
        }

        #[test]
        fn numbers_of_every_length(value in 0u64..=u64::MAX, digits in 1u32..21, after in "[],} a]{0,9}") {
            let value = value % 10u64.saturating_pow(digits);
            let text = format!("{value}{after}");
            let mut cursor = Cursor { line: text.as_bytes(), at: 0 };
            let expected = (value < 10u64.pow(18)).then_some(value);
            prop_assert_eq!(cursor.integer(0, u64::MAX), expected);
        }
    }
}
