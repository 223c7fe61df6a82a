//! Counts against the text that trace-cmd and tracefs made of the same trace, on the kernel that
//! recorded it.

use super::*;
use ftrace::TraceFile;
use model::Cpus;
use model::functions::FunctionCatalogue;
use std::path::Path;

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/functions-6.1").join(name)
}

fn counted(cpus: Option<&str>, grep: bool) -> FunctionCounts {
    let file = TraceFile::open(&fixture("trace.dat")).unwrap();
    let cpus = cpus.map(|list| list.parse::<Cpus>().unwrap());
    count(&file, &FunctionCatalogue::embedded().unwrap(), &[""], cpus.as_ref(), grep).unwrap()
}

/// The lines of a file of the fixture, in words.
fn words(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn every_function_is_counted_on_every_cpu_as_trace_cmd_prints_it() {
    let counts = counted(None, false);
    let mut ours: Vec<_> = counts.lists.iter().flat_map(|list| &list.symbols).chain(&counts.others).collect();
    ours.sort_by_key(|one| &one.symbol);
    let mut theirs: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for line in words("calls.txt").iter().filter(|line| line[1] == "function") {
        theirs.insert((line[2].clone(), line[0].parse().unwrap()), line[3].parse().unwrap());
    }
    let ours: BTreeMap<(String, u32), u64> = ours
        .iter()
        .flat_map(|one| one.per_cpu.iter().map(|(cpu, n)| ((one.symbol.clone(), *cpu), *n)))
        .collect();
    assert!(theirs.len() > 30);
    assert_eq!(ours, theirs);
    assert_eq!(counts.calls, theirs.values().sum::<u64>());
    assert_eq!((counts.holes, counts.read_as.as_deref()), (0, Some("6.1")));
}

#[test]
fn events_by_function_are_those_by_tracepoint_where_functions_can_show_them() {
    let counts = counted(None, false);
    let lines = words("calls.txt");
    let printed = |cpu: u32, names: &[&str]| -> u64 {
        let mine =
            lines.iter().filter(|line| line[0] == cpu.to_string() && names.contains(&line[1].as_str()));
        mine.map(|line| line[2].parse::<u64>().unwrap()).sum()
    };
    let list = |id: &str| counts.lists.iter().find(|list| list.id == id).unwrap();
    let calls = ["call_function_entry", "call_function_single_entry"];
    for cpu in [1, 2] {
        let switches = list("context-switch").per_cpu[&cpu];
        assert_eq!(
            (switches.events, switches.by_tracepoint),
            (printed(cpu, &["sched_switch"]), switches.events)
        );
        // Reschedule IPIs and irq_work have no function.
        let ipis = list("ipi").per_cpu[&cpu];
        assert_eq!(ipis.events, printed(cpu, &calls));
        assert_eq!(ipis.by_tracepoint - ipis.events, printed(cpu, &["reschedule_entry", "irq_work_entry"]));
        assert!(ipis.by_tracepoint > ipis.events);
    }
    let flushes = list("tlb-flush");
    assert!(flushes.events > 0 && flushes.events < flushes.calls);
}

#[test]
fn a_cpu_by_itself_is_its_share_of_all() {
    let (all, one) = (counted(None, false), counted(Some("2"), true));
    for (all, one) in all.lists.iter().zip(&one.lists) {
        assert_eq!(one.per_cpu.keys().collect::<Vec<_>>(), [&2]);
        assert_eq!(one.per_cpu[&2], all.per_cpu[&2]);
    }
}

#[test]
fn lines_are_those_that_grep_counted_in_the_text() {
    let lists = counted(None, true).paper_grep.unwrap();
    let counted = words("lines.txt");
    let theirs = |file: &str, what: &str| -> u64 {
        let line = counted.iter().find(|line| line[0] == file && line[1] == what).unwrap();
        line[2].parse().unwrap()
    };
    for list in &lists {
        // Both name callers: tracefs' own text, and trace-cmd's with its option `parent`.
        for with_callers in ["trace.txt", "parent.txt"] {
            assert_eq!(list.lines, theirs(with_callers, &list.list), "{} {with_callers}", list.list);
        }
        assert_eq!(list.lines_without_callers, theirs("report.txt", &list.list), "{}", list.list);
        assert!(list.lines > list.events, "{}", list.list);
        for one in &list.patterns {
            assert_eq!(one.lines, theirs("trace.txt", &one.pattern), "{}", one.pattern);
            assert_eq!(one.lines_without_callers, theirs("report.txt", &one.pattern), "{}", one.pattern);
            assert_eq!(
                one.lines,
                one.called + one.longer_name + one.as_caller + one.elsewhere,
                "{}",
                one.pattern
            );
        }
    }
    let patterns: Vec<_> = lists.iter().flat_map(|list| &list.patterns).collect();
    let of = |text: &str| patterns.iter().find(|one| one.pattern == text).unwrap();
    // It cannot be traced, and yet is found: every line is a function that it calls.
    assert_eq!((of("__schedule").called, of("__schedule").lines), (0, of("__schedule").as_caller));
    assert!(of("__schedule").lines > 0);
}
