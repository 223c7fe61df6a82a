//! The text of tracefs' `trace` and `trace_pipe`, as people paste it: counted, not decoded.
//!
//! A line is "task-pid [cpu] flags time: event: fields"; the function tracer has "function
//! <-caller" in the place of the event, which is counted as `function`, the name of its binary
//! record. A hole is "CPU:n [LOST m EVENTS]" or "CPU:n [LOST EVENTS]". The head of `trace` says how
//! many events were written and how many of these are left, over all CPUs together. Source:
//! kernel/trace/trace.c (`print_trace_line`, `print_event_info`), kernel/trace/trace_output.c
//! (`trace_print_context`).

use std::io::{BufRead, Read};
use std::path::Path;

use crate::counts::Counts;
use crate::error::Error;

/// A line of more bytes is no line of a trace.
const LONGEST: usize = 64 << 10;

/// Whether a file that begins with these bytes is such a text.
pub fn is_text_trace(start: &[u8]) -> bool {
    start.starts_with(b"# tracer:")
        || std::str::from_utf8(start).is_ok_and(|text| {
            // trace_pipe has no head.
            text.lines().next().is_some_and(|line| event(line).is_some() || lost(line).is_some())
        })
}

impl Counts {
    /// Counts a text to its end. Lines of other forms (comments, the continued fields of an event)
    /// count nothing; a text without any event and without the head of `trace` is refused. `path`
    /// is for messages.
    pub fn of_text(path: &Path, mut text: impl BufRead) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: path.to_owned(), action: "read", source };
        let (mut counts, mut line, mut offset, mut known) = (Self::default(), Vec::new(), 0_u64, false);
        loop {
            line.clear();
            let got = read_line(&mut text, &mut line).map_err(failed)?;
            if got == 0 {
                break;
            }
            if line.len() > LONGEST {
                return Err(malformed(
                    path,
                    offset,
                    "a line",
                    format!("longer than {LONGEST} bytes"),
                    "lines of `trace`",
                ));
            }
            offset += got as u64;
            known |= counts.line(&String::from_utf8_lossy(&line));
        }
        let head = "the text of `trace` or `trace_pipe`: task-pid [cpu] flags time: event";
        if known {
            Ok(counts)
        } else {
            Err(malformed(path, 0, "the file", "without any event".to_owned(), head))
        }
    }

    /// Whether the line is one of a trace.
    fn line(&mut self, line: &str) -> bool {
        if let Some(rest) = line.strip_prefix("# entries-in-buffer/entries-written:") {
            let numbers = rest.split_whitespace().next().and_then(|word| word.split_once('/'));
            let number = |text: &str| text.parse::<u64>().unwrap_or(0);
            if let Some((left, written)) = numbers {
                self.lost_somewhere = number(written).saturating_sub(number(left));
            }
            return true;
        }
        if line.starts_with('#') {
            return line.starts_with("# tracer:");
        }
        if let Some((cpu, count)) = lost(line) {
            let lost = self.lost.entry(cpu).or_default();
            match count {
                Some(count) => lost.events = lost.events.saturating_add(count),
                None => lost.unknown_pages += 1,
            }
            return true;
        }
        let Some((cpu, name)) = event(line) else { return false };
        self.total += 1;
        *self.events.entry(name.to_owned()).or_default() += 1;
        *self.per_cpu.entry(cpu).or_default().entry(name.to_owned()).or_default() += 1;
        self.lost.entry(cpu).or_default();
        true
    }
}

/// A line, of which at most one byte too many is read.
fn read_line(text: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<usize> {
    text.take(LONGEST as u64 + 1).read_until(b'\n', line)
}

fn malformed(path: &Path, offset: u64, what: &'static str, value: String, expected: &str) -> Error {
    Error::Malformed { path: path.to_owned(), offset, what, value, expected: expected.to_owned() }
}

fn lost(line: &str) -> Option<(u32, Option<u64>)> {
    let (cpu, rest) = line.trim_start().strip_prefix("CPU:")?.split_once(" [LOST ")?;
    let count = rest.split_once(" EVENTS]").and_then(|(count, _)| count.parse().ok());
    (count.is_some() || rest.starts_with("EVENTS]")).then_some((cpu.parse().ok()?, count))
}

/// CPU and name. Names of tasks may hold anything, so the CPU is the first bracket of three digits
/// at least whose line continues with a time.
fn event(line: &str) -> Option<(u32, &str)> {
    let mut rest = line;
    loop {
        let (_, behind) = rest.split_once('[')?;
        rest = behind;
        let Some((cpu, after)) = behind.split_once(']') else { continue };
        let digits = cpu.len() >= 3 && cpu.bytes().all(|byte| byte.is_ascii_digit());
        if let (true, Some(name)) = (digits, after_time(after)) {
            return Some((cpu.parse().ok()?, name));
        }
    }
}

/// What follows "flags seconds.fraction: ", where the flags may be missing.
fn after_time(text: &str) -> Option<&str> {
    let is_time = |word: &str| {
        word.strip_suffix(':')
            .is_some_and(|time| time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
            && word.len() > 1
    };
    let mut words = text.split_ascii_whitespace();
    let _flags = words.by_ref().take(2).find(|word| is_time(word))?;
    let name = words.next()?;
    match name.strip_suffix(':') {
        Some(name) => Some(name),
        None if words.next().is_some_and(|word| word.starts_with("<-")) => Some("function"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::LostCounts;
    use proptest::prelude::*;

    const TRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 5/1043   #P:4
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          <idle>-0       [001] d..2.  1380.216545: sched_switch: prev_comm=swapper/1 ==> next_comm=a [001]
 odd [7] name: x-12      [003] ..... 1380.216546: sys_enter: NR 35 (7f, 0, 0, 0)
          <idle>-0       [001] dN.h1.. 1380.216547: irq_handler_entry: irq=1 name=i8042
            bash-1977    (   1977) [000] .... 17284.993652: sys_close <-system_call_fastpath
CPU:3 [LOST 1038 EVENTS]
CPU:3 [LOST EVENTS]
            bash-1977    [000] 17284.993653: no_flags: here
";

    #[test]
    fn lines_are_counted_by_name_and_cpu_and_holes_with_their_numbers() {
        let counts = Counts::of_text(Path::new("trace"), TRACE.as_bytes()).unwrap();
        assert_eq!((counts.total, counts.lost_somewhere), (5, 1038));
        let of = |cpu: u32, name: &str| counts.per_cpu[&cpu].get(name).copied();
        assert_eq!(
            (of(1, "sched_switch"), of(3, "sys_enter"), of(1, "irq_handler_entry")),
            (Some(1), Some(1), Some(1))
        );
        assert_eq!((of(0, "function"), of(0, "no_flags")), (Some(1), Some(1)));
        assert_eq!(counts.lost[&3], LostCounts { events: 1038, unknown_pages: 1 });
        assert!(!counts.is_complete());
        assert!(
            is_text_trace(TRACE.as_bytes())
                && !is_text_trace(b"\x17\x08\x44tracing")
                && !is_text_trace(b"hello\n")
        );
        assert!(is_text_trace(b"  a-1   [000] d..2.  1.5: sched_switch: x\n"));
    }

    #[test]
    fn a_text_that_is_no_trace_is_refused() {
        let error = Counts::of_text(Path::new("notes"), &b"nothing\nhere\n"[..]).unwrap_err().to_string();
        assert!(
            error.starts_with("notes: byte 0: the file is without any event, expected the text of"),
            "{error}"
        );
        let long = vec![b'x'; LONGEST + 10];
        assert!(
            Counts::of_text(Path::new("long"), &long[..])
                .unwrap_err()
                .to_string()
                .contains("a line is longer")
        );
        assert_eq!(Counts::of_text(Path::new("empty"), &b"# tracer: nop\n"[..]).unwrap().total, 0);
    }

    proptest! {
        #[test]
        fn any_text_ends(lines in proptest::collection::vec("[ \\[\\]0-9a-z:.<#-]{0,40}", 0..20)) {
            let text = lines.join("\n");
            if let Ok(counts) = Counts::of_text(Path::new("any"), text.as_bytes()) {
                prop_assert!(counts.total <= lines.len() as u64);
            }
        }
    }
}
