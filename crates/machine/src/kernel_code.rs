//! The running kernel's symbols, and which of its functions call which, read from its code:
//! `/proc/kallsyms`, and `/proc/kcore` (an ELF core of the kernel's memory). Root alone may read
//! the core and see addresses; a kernel under lockdown or without `CONFIG_PROC_KCORE` has none to
//! read.
//!
//! Direct calls and jumps are counted: on x86-64 `E8` and `E9` with a 32-bit displacement (Intel
//! SDM, CALL and JMP), on arm64 `BL` and `B` (Arm ARM, C6.2). A function is taken with the parts
//! that compilers split off (`.cold`, `.part.0`, `.isra.0`, `.constprop.0`).

use super::Root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where a captured tree keeps the answers: "symbol NAME", and "call CALLERS CALLEES yes|no".
pub(super) const CODE: &str = "stillcore-kernel-code";

const SYMBOLS: &str = "proc/kallsyms";
const CORE: &str = "proc/kcore";

/// No function that is asked about is as long; a symbol followed by no other would seem endless.
const LONGEST: u64 = 1 << 16;

/// Whether any of some functions calls any of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallQuestion {
    /// Functions by name; one that this kernel lacks, or has inlined, is passed over.
    pub callers: Vec<String>,
    /// Functions by name.
    pub callees: Vec<String>,
}

/// What is asked of the kernel's code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeQuestions {
    /// Names of functions and variables.
    pub symbols: Vec<String>,
    /// Who calls whom.
    pub calls: Vec<CallQuestion>,
}

/// What the kernel's code shows of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KernelCode {
    /// Those names that it has.
    pub symbols: BTreeSet<String>,
    /// Those questions that it answers, and how.
    pub calls: BTreeMap<CallQuestion, bool>,
}

/// Reads it; what cannot be read is left out.
pub fn kernel_code(root: &Root, asked: &CodeQuestions) -> KernelCode {
    if !root.is_live() {
        return KernelCode::captured(&root.maybe(CODE).unwrap_or_default(), asked);
    }
    let Ok(symbols) = std::fs::read(root.at(SYMBOLS)) else { return KernelCode::default() };
    let core = Core::open(root);
    let read = |from: u64, bytes: &mut [u8]| core.as_ref()?.read(from, bytes);
    KernelCode::of(&symbols, asked, read)
}

impl KernelCode {
    /// `symbols` as `/proc/kallsyms` has them; `read` fills bytes from an address on.
    fn of(symbols: &[u8], asked: &CodeQuestions, read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Self {
        let wanted: BTreeSet<_> = asked.symbols.iter().map(String::as_str).collect();
        let named = lines(symbols).filter_map(symbol).map(|symbol| symbol.base());
        let found = named.filter(|name| wanted.contains(name)).map(str::to_owned).collect();
        let code = Code::of(symbols, &asked.calls, read);
        let answered = asked.calls.iter().filter_map(|one| Some((one.clone(), code.answer(one)?)));
        Self { symbols: found, calls: answered.collect() }
    }

    fn captured(text: &str, asked: &CodeQuestions) -> Self {
        let lines: BTreeSet<_> = text.lines().collect();
        let has = |line: String| lines.contains(line.as_str());
        let answer =
            |one: &CallQuestion| [true, false].into_iter().find(|answer| has(call_line(one, *answer)));
        let symbols = asked.symbols.iter().filter(|name| has(symbol_line(name)));
        let calls = asked.calls.iter().filter_map(|one| Some((one.clone(), answer(one)?)));
        Self { symbols: symbols.cloned().collect(), calls: calls.collect() }
    }

    /// As a capture keeps it.
    pub(super) fn lines(&self) -> String {
        let symbols = self.symbols.iter().map(|name| symbol_line(name));
        let calls = self.calls.iter().map(|(one, answer)| call_line(one, *answer));
        symbols.chain(calls).map(|line| line + "\n").collect()
    }
}

fn symbol_line(name: &str) -> String {
    format!("symbol {name}")
}

fn call_line(question: &CallQuestion, answer: bool) -> String {
    let answer = if answer { "yes" } else { "no" };
    format!("call {} {} {answer}", question.callers.join(","), question.callees.join(","))
}

/// The kernel's memory as a file.
struct Core {
    file: File,
    segments: Vec<Segment>,
}

/// A run of addresses, and where they are in the file.
struct Segment {
    address: u64,
    length: u64,
    offset: u64,
}

impl Core {
    fn open(root: &Root) -> Option<Self> {
        let file = File::open(root.at(CORE)).ok()?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        let (table, size, count) = program_headers(&head)?;
        let mut headers = vec![0; size * count];
        file.read_exact_at(&mut headers, table).ok()?;
        Some(Self { file, segments: headers.chunks_exact(size).filter_map(segment).collect() })
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let end = address.checked_add(bytes.len() as u64)?;
        let within = |one: &&Segment| one.address <= address && end - one.address <= one.length;
        let segment = self.segments.iter().find(within)?;
        self.file.read_exact_at(bytes, segment.offset + (address - segment.address)).ok()
    }
}

/// Where the program headers are, the length of one, and how many: of a 64-bit little-endian ELF.
fn program_headers(head: &[u8]) -> Option<(u64, usize, usize)> {
    const SHORTEST: u16 = 56;
    let half = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    (head.get(..6)? == b"\x7fELF\x02\x01" && half(54)? >= SHORTEST).then_some(())?;
    Some((word(head, 32)?, half(54)?.into(), half(56)?.into()))
}

/// A program header of something loaded.
fn segment(header: &[u8]) -> Option<Segment> {
    const LOAD: [u8; 4] = 1_u32.to_le_bytes();
    (header.get(..4)? == LOAD).then_some(())?;
    Some(Segment { offset: word(header, 8)?, address: word(header, 16)?, length: word(header, 32)? })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// What the functions that are asked about call.
struct Code {
    /// Addresses by name, each split-off part under the name of its function.
    named: BTreeMap<String, Vec<u64>>,
    /// Targets of calls by the address of the caller.
    called: BTreeMap<u64, BTreeSet<u64>>,
}

impl Code {
    /// `symbols` as `/proc/kallsyms` has them; `read` fills bytes from an address on.
    fn of(symbols: &[u8], questions: &[CallQuestion], read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Self {
        let asked = questions.iter().flat_map(|one| one.callers.iter().chain(&one.callees));
        let wanted: BTreeSet<&str> = asked.map(String::as_str).collect();
        let mut named = BTreeMap::<String, Vec<u64>>::new();
        let mut starts = Vec::new();
        let functions = lines(symbols).filter_map(symbol).filter(|one| one.is_function && one.address != 0);
        for function in functions {
            starts.push(function.address);
            if wanted.contains(function.base()) {
                named.entry(function.base().to_owned()).or_default().push(function.address);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let callers = questions.iter().flat_map(|one| &one.callers).filter_map(|name| named.get(name));
        let called = callers.flatten().filter_map(|start| {
            let after = starts.partition_point(|one| one <= start);
            let end = starts.get(after).copied()?.min(start + LONGEST);
            let mut code = vec![0; usize::try_from(end - start).ok()?];
            read(*start, &mut code)?;
            let targets = targets(*start, &code);
            // A kernel that patches its calls (call depth tracking) shows none that leads to a
            // function: then nothing can be concluded from those that are missing.
            let sound = targets.iter().any(|target| starts.binary_search(target).is_ok());
            sound.then_some((*start, targets))
        });
        let called = called.collect();
        Self { named, called }
    }

    /// `None` where a caller could not be read, or neither callers nor callees are there.
    fn answer(&self, question: &CallQuestion) -> Option<bool> {
        let of = |names: &[String]| -> Vec<u64> {
            names.iter().filter_map(|name| self.named.get(name)).flatten().copied().collect()
        };
        let (callers, callees) = (of(&question.callers), of(&question.callees));
        let read: Vec<_> = callers.iter().filter_map(|caller| self.called.get(caller)).collect();
        if read.is_empty() || callees.is_empty() {
            return None;
        }
        Some(read.iter().any(|targets| callees.iter().any(|callee| targets.contains(callee))))
    }
}

/// A symbol of the kernel itself, none of a module.
struct Symbol<'a> {
    /// Zero without the right to see it.
    address: u64,
    is_function: bool,
    name: &'a str,
}

impl<'a> Symbol<'a> {
    /// The name in the source.
    fn base(&self) -> &'a str {
        self.name.split_once('.').map_or(self.name, |(base, _)| base)
    }
}

fn lines(symbols: &[u8]) -> impl Iterator<Item = &[u8]> {
    symbols.split(|byte| *byte == b'\n')
}

fn symbol(line: &[u8]) -> Option<Symbol<'_>> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_function = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    words.next().is_none().then_some(Symbol { address, is_function, name })
}

/// Where direct calls and jumps lead. Each byte may begin an instruction of x86: what is none leads
/// to the very first byte of a given function once in four thousand million.
fn targets(start: u64, code: &[u8]) -> BTreeSet<u64> {
    if cfg!(target_arch = "aarch64") { arm64_targets(start, code) } else { x86_targets(start, code) }
}

fn x86_targets(start: u64, code: &[u8]) -> BTreeSet<u64> {
    let instructions = code.windows(5).zip(start..);
    let jumps = instructions.filter(|(bytes, _)| matches!(bytes[0], 0xe8 | 0xe9));
    jumps
        .map(|(bytes, at)| {
            let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
            at.wrapping_add(5).wrapping_add_signed(distance.into())
        })
        .collect()
}

fn arm64_targets(start: u64, code: &[u8]) -> BTreeSet<u64> {
    let instructions = code.chunks_exact(4).zip((start..).step_by(4));
    let words = instructions.map(|(b, at)| (u32::from_le_bytes([b[0], b[1], b[2], b[3]]), at));
    words
        .filter(|(word, _)| word & 0x7c00_0000 == 0x1400_0000)
        .map(|(word, at)| {
            // 26 bits, signed, in words.
            let distance = i64::from((word << 6).cast_signed() >> 4);
            at.wrapping_add_signed(distance)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[cfg(target_arch = "x86_64")]
    const SYMBOLS: &[u8] = b"ffffffff81000000 T first\n\
        ffffffff81000010 t asked.part.0\n\
        ffffffff81000020 T asked\n\
        ffffffff81000030 T house\n\
        ffffffff81000040 t after\n\
        ffffffffc0000000 t asked\t[module]\n";

    fn question(callers: &str, callees: &str) -> CallQuestion {
        let list = |text: &str| text.split(',').map(str::to_owned).collect();
        CallQuestion { callers: list(callers), callees: list(callees) }
    }

    /// What `asked` does at its start, and its split-off part at its own; nops elsewhere.
    #[cfg(target_arch = "x86_64")]
    fn answer(whole: &[u8], part: &[u8], question: &CallQuestion) -> Option<bool> {
        let code = Code::of(SYMBOLS, std::slice::from_ref(question), |from, bytes| {
            bytes.fill(0x90);
            match from & 0xff {
                0x10 => bytes[..part.len()].copy_from_slice(part),
                0x20 => bytes[..whole.len()].copy_from_slice(whole),
                _ => return None,
            }
            Some(())
        });
        code.answer(question)
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_call_is_found_in_a_function_and_in_its_split_off_part() {
        // From 0x20: over five bytes, eleven on to 0x30; from 0x10 a jump: 27 on to 0x30.
        let (house, after) = ([0xe8, 11, 0, 0, 0], [0xe8, 27, 0, 0, 0]);
        let jump = [0xe9, 27, 0, 0, 0];
        let asked = question("asked", "house");
        assert_eq!(answer(&house, &after, &asked), Some(true));
        assert_eq!(answer(&after, &jump, &asked), Some(true));
        assert_eq!(answer(&after, &after[..1], &asked), Some(false));
        assert_eq!(answer(&after, &[], &question("asked,gone", "gone,house")), Some(false));
        assert_eq!(answer(&house, &[], &question("gone", "house")), None);
        assert_eq!(answer(&house, &[], &question("asked", "gone")), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn code_whose_calls_lead_to_no_function_shows_nothing() {
        // Four bytes before `house`: a thunk in the padding, as call depth tracking makes them.
        assert_eq!(answer(&[0xe8, 7, 0, 0, 0], &[], &question("asked", "house")), None);
    }

    #[test]
    fn arm64_branches_lead_both_ways() {
        let code = [0x9400_0004_u32, 0x17ff_ffff, 0xd503_201f].map(u32::to_le_bytes).concat();
        let found: Vec<_> = arm64_targets(0x1000, &code).into_iter().collect();
        assert_eq!(found, [0x1000, 0x1010]);
    }

    #[test]
    fn names_are_those_of_the_source_and_modules_have_none_of_them() {
        let asked = |names: &[&str]| CodeQuestions {
            symbols: names.iter().map(|name| (*name).to_owned()).collect(),
            calls: vec![question("schedule", "house")],
        };
        // Without the right to see addresses they are all zero.
        let symbols = b"0 T schedule\n0 b cpus.12\n0 t other\t[module]\n";
        let code = KernelCode::of(symbols, &asked(&["cpus", "other", "schedule", "gone"]), |_, _| Some(()));
        assert_eq!(code.symbols, BTreeSet::from(["cpus".to_owned(), "schedule".to_owned()]));
        assert!(code.calls.is_empty());
    }

    #[test]
    fn only_a_64_bit_little_endian_core_is_read() {
        let mut head = [0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[32] = 64;
        (head[54], head[56]) = (56, 3);
        assert_eq!(program_headers(&head), Some((64, 56, 3)));
        head[5] = 2;
        assert_eq!(program_headers(&head), None);
        let mut header = [0; 56];
        (header[0], header[8], header[16], header[32]) = (1, 7, 8, 9);
        let found = segment(&header).unwrap();
        assert_eq!((found.offset, found.address, found.length), (7, 8, 9));
        header[0] = 4;
        assert!(segment(&header).is_none());
    }

    #[test]
    fn a_capture_answers_what_was_asked_when_it_was_made() {
        let (yes, no, new) = (question("a,b", "c"), question("d", "c"), question("a", "c"));
        let made = KernelCode {
            symbols: BTreeSet::from(["here".to_owned()]),
            calls: BTreeMap::from([(yes.clone(), true), (no.clone(), false)]),
        };
        let (_dir, root) = tree(&[(CODE, &made.lines())]);
        let symbols = vec!["here".to_owned(), "gone".to_owned()];
        let asked = CodeQuestions { symbols, calls: vec![yes, no, new] };
        assert_eq!(kernel_code(&root, &asked), made);
    }
}
