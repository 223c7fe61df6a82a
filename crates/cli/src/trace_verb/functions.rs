//! `stillcore trace functions`: what the function tracer recorded, and what grep makes of its text.

use super::counts::{buffers, trace_of};
use crate::folded::folded;
use crate::trace_verb::options::FunctionsArgs;
use analysis::functions::{
    FunctionCounts, GrepCounts, HiddenFunction, ListCounts, PatternCounts, SymbolCounts,
};
use ftrace::TraceFile;
use model::functions::{FunctionCatalogue, Hidden};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Functions of no list that are printed.
const OTHERS: usize = 12;

/// Counts a trace.
pub(super) fn run(args: &FunctionsArgs) -> anyhow::Result<u8> {
    let file = TraceFile::open(&trace_of(&args.file))?;
    let catalogue = FunctionCatalogue::embedded()?;
    let buffers = buffers(&file, args.buffer.as_deref())?;
    let counts =
        analysis::functions::count(&file, &catalogue, &buffers, args.cpus.as_ref(), args.paper_grep)?;
    if counts.calls == 0 {
        return Err(model::Error::invalid(
            args.file.display(),
            "no function was recorded",
            "a trace of the tracer `function` or `function_graph`",
        )
        .into());
    }
    if args.json {
        let mut answer = json!({ "schema": "stillcore.trace-functions/1" });
        if let (Some(answer), serde_json::Value::Object(counts)) =
            (answer.as_object_mut(), serde_json::to_value(&counts)?)
        {
            answer.extend(counts);
        }
        println!("{answer}");
    } else {
        print!("{}", text(&counts));
    }
    Ok(0)
}

fn text(counts: &FunctionCounts) -> String {
    let kernel = counts.kernel.as_deref().map(|uname| format!("; {}", uname.trim())).unwrap_or_default();
    let mut text = format!("{} calls of functions were recorded{kernel}\n\n", counts.calls);
    counts.lists.iter().for_each(|list| text.push_str(&list_text(list)));
    if !counts.others.is_empty() {
        let _ = writeln!(text, "In no list: {} functions", counts.others.len());
        counts.others.iter().take(OTHERS).for_each(|one| text.push_str(&symbol_line(one)));
        text.push('\n');
    }
    for list in counts.paper_grep.iter().flatten() {
        text.push_str(&grep_text(list));
    }
    if counts.holes > 0 {
        let _ = writeln!(
            text,
            "note: events are missing in {} places, {} of them counted by the kernel: all counts are lower bounds",
            counts.holes, counts.lost
        );
    }
    text
}

fn list_text(list: &ListCounts) -> String {
    let by_function = match (list.events_seen, list.events) {
        (false, _) => "no function that shows them was recorded".to_owned(),
        (true, events) => format!("{events} events by function"),
    };
    let by_tracepoint =
        list.by_tracepoint.map(|events| format!(", {events} by tracepoint")).unwrap_or_default();
    let mut text = format!("{}: {by_function}{by_tracepoint}; {} calls\n", list.title, list.calls);
    list.symbols.iter().for_each(|one| text.push_str(&symbol_line(one)));
    for reason in [Hidden::Notrace, Hidden::Inlined, Hidden::Absent] {
        let mine = |one: &&HiddenFunction| one.reason == reason;
        let names: Vec<_> = list.hidden.iter().filter(mine).map(|one| one.function.as_str()).collect();
        if !names.is_empty() {
            text.push_str(&folded(&format!("  {}: {}", reason.words(), names.join(", ")), "    "));
        }
    }
    if let Some(unseen) = &list.unseen {
        text.push_str(&folded(&format!("  not shown: {unseen}"), "    "));
    }
    text.push('\n');
    text
}

fn symbol_line(one: &SymbolCounts) -> String {
    let events = if one.events > 0 { format!(", {} of them events", one.events) } else { String::new() };
    let head = format!("  {:>9} x {}{events}: {}", one.calls, one.symbol, cpus(&one.per_cpu));
    let why = one.why.as_deref().map(|why| folded(&format!("              {why}"), "              "));
    format!("{}{}", folded(&head, "              "), why.unwrap_or_default())
}

fn cpus(per_cpu: &BTreeMap<u32, u64>) -> String {
    per_cpu.iter().map(|(cpu, n)| format!("CPU {cpu} {n}")).collect::<Vec<_>>().join(", ")
}

fn grep_text(list: &GrepCounts) -> String {
    let mut text = format!(
        "grep for {}: {} lines of `trace`, {} of `trace-cmd report` (which names no callers); events: {}\n",
        list.list, list.lines, list.lines_without_callers, list.events
    );
    list.patterns.iter().for_each(|one| text.push_str(&pattern_text(one)));
    text.push('\n');
    text
}

fn pattern_text(one: &PatternCounts) -> String {
    let parts = [
        (one.called, "called"),
        (one.longer_name, "within a longer name"),
        (one.as_caller, "only as caller"),
        (one.elsewhere, "elsewhere"),
    ];
    let parts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let events = if one.events > 0 { format!("; {} are events", one.events) } else { String::new() };
    let parts = if parts.is_empty() { String::new() } else { format!(" ({}{events})", parts.join(", ")) };
    let head = folded(&format!("  {:>9} lines {}{parts}", one.lines, one.pattern), "              ");
    format!("{head}{}", folded(&format!("              {}", one.why), "              "))
}
