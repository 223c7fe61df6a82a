//! The lines that grep would find in the text of a trace, counted from the records: a pattern is
//! found in a function's name, in its caller's, in the name of the task, in a field of another
//! event, or in a frame of a stack.
//!
//! Source of the text: kernel/trace/trace_output.c (`trace_fn_trace`: "function <-caller";
//! `trace_stack_print`: a line a frame), and the plug-in plugin_function.c of libtraceevent, which
//! names callers only with its option `parent`.

use super::{GrepCounts, PatternCounts};
use crate::functions::call::{Call, Seen};
use ftrace::{Endian, EventFormat, Field, FieldKind, Symbols, TraceFile};
use model::functions::{FunctionCatalogue, FunctionList, stem};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Fields that hold the address of a function and are printed as its name.
const FUNCTIONS: [&str; 6] = ["function", "func", "callsite", "callback", "caller", "handler"];

/// The distinct patterns of all lists; a set of them is a bit each.
#[derive(Debug)]
pub(super) struct Patterns {
    texts: Vec<String>,
}

impl Patterns {
    /// At most 64; the catalogue has half as many.
    pub(super) fn of(catalogue: &FunctionCatalogue) -> Self {
        Self { texts: catalogue.patterns.iter().take(64).map(|one| one.text.clone()).collect() }
    }

    fn within(&self, text: &str) -> u64 {
        let hits = self.texts.iter().enumerate().filter(|(_, pattern)| text.contains(pattern.as_str()));
        hits.fold(0, |all, (at, _)| all | 1 << at)
    }

    fn bit(&self, pattern: &str) -> u64 {
        self.texts.iter().position(|one| one == pattern).map_or(0, |at| 1 << at)
    }
}

/// What else is in the text.
struct Words {
    /// What the event's own name matches.
    name: u64,
    texts: Vec<Field>,
    functions: Vec<Field>,
    /// Addresses of which each has a line of its own.
    frames: Option<Field>,
}

/// Finds the patterns while the trace streams by.
pub(super) struct Lines<'f> {
    patterns: Patterns,
    symbols: &'f Symbols,
    endian: Endian,
    long_size: usize,
    tasks: FxHashMap<i32, u64>,
    words: FxHashMap<u16, Words>,
    addresses: FxHashMap<u64, u64>,
    /// Lines of other events, by what they match.
    others: FxHashMap<u64, u64>,
}

impl<'f> Lines<'f> {
    pub(super) fn new(patterns: Patterns, file: &TraceFile, symbols: &'f Symbols) -> Self {
        let tasks = file.comms().map(|(pid, comm)| (pid, patterns.within(comm)));
        let tasks = tasks.filter(|(_, matched)| *matched != 0).collect();
        let formats = file.formats();
        let words = formats.iter().map(|format| (format.id, words(&patterns, format))).collect();
        let frame = formats.by_name("ftrace:kernel_stack").and_then(|format| format.field("caller"));
        let long_size = match frame.map(|field| field.kind) {
            Some(FieldKind::Array { element_size: 4, .. }) => 4,
            _ => 8,
        };
        let (addresses, others) = (FxHashMap::default(), FxHashMap::default());
        Self { patterns, symbols, endian: formats.endian(), long_size, tasks, words, addresses, others }
    }

    /// What the name of a task matches.
    pub(super) fn of_task(&self, pid: i32) -> u64 {
        self.tasks.get(&pid).copied().unwrap_or(0)
    }

    /// Another event than a function's.
    pub(super) fn other(&mut self, id: u16, data: &[u8], by_task: u64) {
        let Self { patterns, symbols, endian, addresses, others, .. } = self;
        let Some(words) = self.words.get(&id) else { return };
        let mut of = |address: u64| {
            *addresses
                .entry(address)
                .or_insert_with(|| name(symbols, address).map_or(0, |name| patterns.within(&name)))
        };
        let mut line = words.name | by_task;
        for field in &words.texts {
            line |= field.text(data, *endian).map_or(0, |text| patterns.within(&text));
        }
        for field in &words.functions {
            line |= field.uint(data, *endian).map_or(0, &mut of);
        }
        let frames = words.frames.as_ref().and_then(|field| data.get(field.offset..)).unwrap_or_default();
        let frames = frames
            .chunks_exact(self.long_size)
            .map(|frame| of(endian.uint_at(frame, 0, frame.len()).unwrap_or(0)));
        for matched in std::iter::once(line).chain(frames).filter(|matched| *matched != 0) {
            *others.entry(matched).or_default() += 1;
        }
    }

    /// The lines of a list; `is_event` says which calls are events.
    pub(super) fn count_list(
        &self,
        catalogue: &FunctionCatalogue,
        list: &FunctionList,
        seen: &Seen,
        is_event: &dyn Fn(&Call) -> bool,
    ) -> GrepCounts {
        let bits: Vec<u64> = list.grep.iter().map(|pattern| self.patterns.bit(pattern)).collect();
        let whole = bits.iter().fold(0, |all, bit| all | bit);
        let mut counts = GrepCounts { list: list.id.clone(), ..GrepCounts::default() };
        let why = |pattern: &String| PatternCounts {
            pattern: pattern.clone(),
            why: catalogue.why(pattern).to_owned(),
            ..PatternCounts::default()
        };
        counts.patterns = list.grep.iter().map(why).collect();
        for (call, n) in &seen.calls {
            let of = |address| name(self.symbols, address).unwrap_or_default();
            let (function, caller) =
                (of(call.ip), if call.caller == 0 { Cow::default() } else { of(call.caller) });
            let (entered, as_caller) = (self.patterns.within(&function), self.patterns.within(&caller));
            let short = entered | call.by_task;
            counts.lines += if (short | as_caller) & whole == 0 { 0 } else { *n };
            counts.lines_without_callers += if short & whole == 0 { 0 } else { *n };
            for (bit, one) in bits.iter().zip(&mut counts.patterns) {
                let place = if entered & bit != 0 && stem(&function) == one.pattern {
                    &mut one.called
                } else if entered & bit != 0 {
                    &mut one.longer_name
                } else if as_caller & bit != 0 {
                    &mut one.as_caller
                } else if call.by_task & bit != 0 {
                    &mut one.elsewhere
                } else {
                    continue;
                };
                *place += n;
                one.lines += n;
                one.lines_without_callers += if short & bit == 0 { 0 } else { *n };
                one.events += if entered & bit != 0 && is_event(call) { *n } else { 0 };
            }
        }
        for (matched, n) in &self.others {
            counts.lines += if matched & whole == 0 { 0 } else { *n };
            counts.lines_without_callers += if matched & whole == 0 { 0 } else { *n };
            for (_, one) in bits.iter().zip(&mut counts.patterns).filter(|(bit, _)| matched & *bit != 0) {
                one.lines += n;
                one.lines_without_callers += n;
                one.elsewhere += n;
            }
        }
        counts
    }
}

fn words(patterns: &Patterns, format: &EventFormat) -> Words {
    let own = || format.fields.iter().filter(|field| !field.name.starts_with("common_"));
    let is_stack = format.full_name() == "ftrace:kernel_stack";
    Words {
        name: patterns.within(&format.name),
        texts: own()
            .filter(|field| field.kind != FieldKind::Scalar && field.type_name.contains("char"))
            .cloned()
            .collect(),
        functions: own()
            .filter(|field| field.kind == FieldKind::Scalar && FUNCTIONS.contains(&field.name.as_str()))
            .cloned()
            .collect(),
        frames: own().find(|field| is_stack && field.name == "caller").cloned(),
    }
}

/// The function that an address lies in; all ones end a stack.
pub(super) fn name(symbols: &Symbols, address: u64) -> Option<Cow<'_, str>> {
    symbols.resolve(address).filter(|_| address != u64::MAX).map(|(name, _)| name)
}
