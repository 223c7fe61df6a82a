//! arm64: how many processes it takes until the address space identifiers run out, which is the
//! paper's own case for `u_fork` (RTSS 2024, Table I: ASID exhaustion), and how long.
//!
//! There is no IPI and no event there: the kernel begins a new generation of identifiers and leaves
//! it to every CPU to flush its TLB at its next switch (`check_and_switch_context`, Linux
//! arch/arm64/mm/context.c), isolated ones included. The witness is a probe of the function that
//! assigns them.

use crate::machine::Guest;
use crate::support::print_row;
use result::Row;

/// One line of the guest's account: a start or a new generation, with the machine's counts then.
#[derive(Debug, Clone, Copy)]
struct Mark {
    generation: u64,
    forks: u64,
    given: u64,
    at_s: f64,
}

fn marks(text: &str) -> Vec<Mark> {
    let mark = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        Mark { generation: number(0), forks: number(1), given: number(2), at_s: words[3].parse().unwrap() }
    };
    text.lines().map(mark).collect()
}

/// Sizes of the allocator, as the kernel says at boot: "ASID allocator initialised with 65536
/// entries".
fn entries(log: &str) -> u64 {
    let line = log.lines().find(|line| line.contains("ASID allocator initialised")).unwrap();
    line.split_whitespace().find_map(|word| word.parse().ok().filter(|entries| *entries > 255)).unwrap()
}

pub(crate) fn address_spaces_run_out(guest: &Guest) {
    let (kernel, read) = (guest.kernel(), |name: &str| guest.read(name));
    let marks = marks(&read("rollovers"));
    assert!(
        marks.len() >= 3,
        "two generations at least: {} {} {}",
        read("rollovers"),
        read("symbols"),
        read("probe.err")
    );
    // Where user and kernel have page tables of their own, a process takes two: the kernel says how
    // many processes it can distinguish.
    let entries = entries(&read("allocator"));
    print_row(&Row::new("identifiers", entries as f64, ""));
    println!("{kernel} arm64: {entries} address space identifiers");
    // The first one began before we looked.
    let [from, to] = [marks[1], marks[2]];
    let of = |what: &str, value: f64, unit| Row::new(format!("one generation: {what}"), value, unit);
    print_row(&of("processes made", (to.forks - from.forks) as f64, ""));
    let given = of("identifiers given out", (to.given - from.given) as f64, "");
    print_row(&Row { why: Some("read up to 0.2 s after the fact".into()), ..given });
    print_row(&of("length", ((to.at_s - from.at_s) * 10.0).round() / 10.0, "s"));
    for pair in marks[1..].windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let (forks, given) = (to.forks - from.forks, to.given - from.given);
        println!(
            "{kernel} arm64: generation {} after {forks} processes made, {given} identifiers given out, {:.1} s",
            to.generation,
            to.at_s - from.at_s
        );
        assert_eq!(to.generation, from.generation + 1);
        // Counts are read a moment after the fact, while more processes are made.
        assert!(given.abs_diff(entries) < entries / 50, "{given} of {entries}");
        assert!(forks <= given && forks > entries * 9 / 10, "{forks} processes, {given} identifiers");
    }
}
