//! The comparison as rows of a result: a cell per mechanism and kernel, and the sums of each
//! kernel.

use super::{Compared, Kind, Verdict};
use audit::catalogue::{Catalogue, Mechanism, Probe, Want};
use result::{Limit, Of, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// On how many machines each kernel is compared.
const MACHINES: usize = 3;

/// Why a mechanism that the guest has is not planted in it: `MECHANISM REASON`.
const CANNOT: &str = include_str!("cannot");

/// The results of a machine.
pub(super) struct Shown {
    pub(super) kernel: &'static str,
    pub(super) compared: Vec<Compared>,
    /// The mechanisms that the audit called absent in any world.
    pub(super) absent: BTreeSet<String>,
}

static ALL: Mutex<Vec<Shown>> = Mutex::new(Vec::new());

/// Takes the results of a machine; prints the rows of its kernel with its last machine.
pub(super) fn add(shown: Shown) {
    let kernel = shown.kernel;
    let mut all = ALL.lock().unwrap();
    all.push(shown);
    let of_kernel: Vec<&Shown> = all.iter().filter(|one| one.kernel == kernel).collect();
    if of_kernel.len() == MACHINES {
        for row in rows(kernel, &of_kernel) {
            println!("{}", result::sink::line(&row).unwrap());
        }
    }
}

fn rows(kernel: &str, shown: &[&Shown]) -> Vec<Row> {
    let mut of: BTreeMap<&str, Vec<&Compared>> = BTreeMap::new();
    for one in shown.iter().flat_map(|one| &one.compared) {
        of.entry(one.mechanism.as_str()).or_default().push(one);
    }
    let absent = |id: &str| shown.iter().any(|one| one.absent.contains(id));
    let catalogue = Catalogue::embedded().unwrap();
    let mut rows = Vec::new();
    let mut without: BTreeMap<&str, f64> = BTreeMap::new();
    for mechanism in &catalogue.mechanisms {
        let id = mechanism.id.as_str();
        let some = of.get(id).map_or(&[][..], Vec::as_slice);
        let text = if some.is_empty() { reason(mechanism, absent(id)).to_owned() } else { cell(some) };
        if some.is_empty() {
            *without.entry(reason(mechanism, absent(id))).or_default() += 1.0;
        }
        rows.push(Row::new(format!("cell: {id}: {kernel}"), some.len() as f64, "").why(text));
    }
    rows.extend(sums(kernel, catalogue.mechanisms.len(), &of, &without));
    rows
}

fn has(some: &[&Compared], verdict: Verdict) -> bool {
    some.iter().any(|one| one.verdict == verdict)
}

fn both(some: &[&Compared]) -> bool {
    has(some, Verdict::TrueRed) && has(some, Verdict::TrueGreen)
}

fn counted(some: &[&Compared]) -> bool {
    some.iter().any(|one| one.kind == Kind::Behaviour)
}

/// Which states the audit was right about; bold where they were counted.
fn cell(some: &[&Compared]) -> String {
    let word = match (has(some, Verdict::TrueRed), has(some, Verdict::TrueGreen)) {
        _ if has(some, Verdict::FalseGreen) => "FALSE GREEN",
        _ if has(some, Verdict::FalseRed) => "FALSE RED",
        (true, true) => "both",
        (true, false) => "red",
        (false, true) => "green",
        (false, false) => "",
    };
    let word = if counted(some) && !word.is_empty() { format!("**{word}**") } else { word.to_owned() };
    if has(some, Verdict::Unknown) { format!("{word} ?").trim().to_owned() } else { word }
}

/// Why a mechanism has nothing to be compared.
fn reason(mechanism: &Mechanism, absent: bool) -> &'static str {
    let own = |line: &&str| line.split_once(' ').is_some_and(|(id, _)| id == mechanism.id);
    match (&mechanism.probe, &mechanism.want) {
        (Probe::Practice { .. }, _) => "unseen",
        (_, Want::Contested { .. } | Want::Any { .. }) => "any",
        _ if absent => "n/a",
        _ if CANNOT.lines().any(|line| own(&line)) => "cannot",
        _ => "MISSING",
    }
}

fn sums(
    kernel: &str,
    mechanisms: usize,
    of: &BTreeMap<&str, Vec<&Compared>>,
    without: &BTreeMap<&str, f64>,
) -> Vec<Row> {
    let row = |what: &str, value: f64| Row::new(format!("sum: {what}: {kernel}"), value, "");
    let states = |verdict: Verdict| of.values().flatten().filter(|one| one.verdict == verdict).count() as f64;
    let that = |test: fn(&[&Compared]) -> bool| of.values().filter(|some| test(some)).count() as f64;
    let none = |what: &str, value: f64| row(what, value).budget(Of::Value, Limit::AtMost(0.0));
    let reason = |word: &str| without.get(word).copied().unwrap_or(0.0);
    vec![
        row("mechanisms of the catalogue", mechanisms as f64),
        row("compared with the kernel", of.len() as f64),
        row("of them wrong once and right once", that(both)),
        row("of them by behaviour", that(counted)),
        none("states: false green", states(Verdict::FalseGreen)),
        none("states: false red", states(Verdict::FalseRed)),
        row("states: wrong and red", states(Verdict::TrueRed)),
        row("states: right and green", states(Verdict::TrueGreen)),
        row("states: unknown to the audit", states(Verdict::Unknown)),
        row("not compared: no value is wrong (any)", reason("any")),
        row("not compared: nothing shows it (unseen)", reason("unseen")),
        row("not compared: not on this kernel or machine (n-a)", reason("n/a")),
        row("not compared: cannot be planted in a guest", reason("cannot")),
        none("not compared: without a reason", reason("MISSING")),
    ]
}
