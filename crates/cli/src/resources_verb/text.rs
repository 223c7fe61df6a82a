//! The rows as a page: for each kind a line that sums it up, a table, and why some cannot be moved
//! or are not known.

use super::{Tally, tallies};
use crate::terminal;
use comfy_table::{ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle};
use model::Resource;
use model::foreign::in_a_line;
use model::resource::Kind;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns of the page: tables of fewer than this break inside names.
const LEAST: u16 = 80;

fn width() -> u16 {
    terminal::to_read().max(LEAST)
}

/// Columns separated by space, one rule under the header: what can be read in a terminal and pasted
/// into a mail.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('-').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// The page.
pub(super) fn page(cpu: u32, kinds: &[Kind], rows: &[Resource]) -> String {
    let tallies = tallies(rows);
    let mut page = head(cpu, rows);
    for (kind, tally) in &tallies {
        let of_kind: Vec<_> = rows.iter().filter(|row| row.kind == *kind).collect();
        page.push('\n');
        verdict(&mut page, *kind, tally);
        table(&mut page, &of_kind);
        notes(&mut page, &of_kind);
    }
    let absent: Vec<_> = Kind::ALL
        .iter()
        .filter(|kind| kinds.contains(kind) && !tallies.contains_key(kind))
        .map(|kind| kind.name())
        .collect();
    if !absent.is_empty() {
        page.push('\n');
        paragraph(&mut page, "nothing of these kinds: ", &absent.join(", "));
    }
    page
}

fn head(cpu: u32, rows: &[Resource]) -> String {
    let count = |wanted: fn(&Resource) -> bool| rows.iter().filter(|row| wanted(row)).count();
    let may = count(|row| row.may_touch == Some(true));
    let stuck = count(|row| row.may_touch == Some(true) && row.movable == Some(false));
    let mut head = String::new();
    let text = format!(
        "{may} may touch it; {} are seen to have touched it; {stuck} of those that may cannot be kept away, marked with !; \
         of {} is not known whether they may, marked with ?",
        count(|row| row.touched == Some(true)),
        count(|row| row.may_touch.is_none())
    );
    paragraph(&mut head, &format!("CPU {cpu}: "), &text);
    head
}

/// What the kind is called, and how its three questions are put.
fn words(kind: Kind) -> (&'static str, &'static str, &'static str, &'static str) {
    match kind {
        Kind::Irq => ("interrupts", "may be handled here", "routed here now", "did come"),
        Kind::Vector => ("the processor's own interrupts", "may come", "", "did come"),
        Kind::Softirq => ("softirqs", "may run here", "", "did run"),
        Kind::NetQueue => ("network queues", "may reach this CPU", "routed here now", "did interrupt it"),
        Kind::BlockQueue => ("block queues", "may reach this CPU", "routed here now", "did interrupt it"),
        Kind::Kthread => ("kernel threads", "may run here", "", "did, or ran here last"),
        Kind::Workqueue => ("workqueues", "may run here", "", "did"),
        Kind::Timer => ("timers by function", "armed or due here", "", "known to have come"),
        Kind::Task => ("processes", "may run here", "", "ran here last"),
        Kind::Shared => ("shared by threads bound here", "shared with threads elsewhere", "", ""),
        Kind::Cgroup => ("control groups", "with this CPU in their set", "", "with tasks that ran here last"),
        Kind::Bandwidth => {
            ("limits of control groups", "of tasks that may run here", "of tasks that ran here last", "")
        }
        Kind::SchedDomain => ("scheduling domains", "with this CPU", "", ""),
        Kind::Sibling => ("SMT siblings", "on the same core", "", ""),
        Kind::Cache => ("caches", "shared with other CPUs", "", ""),
        Kind::Numa => ("memory node", "shared", "", ""),
        Kind::Resctrl => ("cache and bandwidth groups", "sharing with this CPU", "", ""),
        Kind::Clockevent => ("hardware timers", "may interrupt", "in use", ""),
        Kind::Clocksource => ("clock", "may disturb", "", ""),
        Kind::Capacity => ("kinds of cores", "may disturb", "", ""),
        Kind::Cpufreq => ("frequency domains", "may change", "", ""),
        Kind::Cpuidle => ("idle states", "allowed that take time to leave", "", "entered"),
        Kind::PmQos => ("latency limits", "that let idle states in", "", ""),
        Kind::Throttle => ("time taken from real-time tasks", "in force", "", ""),
        Kind::Watchdog => ("lockup detectors", "watching this CPU", "", ""),
        Kind::Tracing => ("tracing", "recording on this CPU", "", "with entries of it"),
        Kind::Probe => ("probes in code", "act wherever the code runs", "", ""),
        Kind::Bpf => ("BPF programs", "run wherever their hook is", "attached", ""),
        Kind::MachineCheck => ("machine checks", "polling on this CPU", "", "did"),
    }
}

fn verdict(page: &mut String, kind: Kind, tally: &Tally) {
    let (noun, may, now, did) = words(kind);
    let mut parts = vec![format!("{} {may}", tally.may_touch)];
    parts.extend((!now.is_empty()).then(|| format!("{} {now}", tally.in_force)));
    parts.extend((!did.is_empty()).then(|| match tally.evidence {
        // Without evidence, no row can be ruled out.
        0 => "no evidence of what did".to_owned(),
        _ => format!("{} {did}", tally.touched),
    }));
    parts.extend((tally.immovable > 0).then(|| format!("{} cannot be moved", tally.immovable)));
    parts.extend((tally.unknown > 0).then(|| format!("{} not known", tally.unknown)));
    paragraph(page, &format!("{noun}: "), &parts.join(", "));
}

/// What never happened gets no line of its own.
fn never(row: &Resource) -> bool {
    matches!(row.kind, Kind::Vector | Kind::Softirq) && row.touched == Some(false)
}

fn mark(row: &Resource) -> &'static str {
    match (row.may_touch, row.movable) {
        (None, _) => "?",
        (Some(true), Some(false)) => "!",
        _ => "",
    }
}

/// A column's title and its cell in a row.
type Column = (&'static str, fn(&Resource) -> Option<&str>);

fn table(page: &mut String, rows: &[&Resource]) {
    let shown: Vec<_> = rows.iter().filter(|row| !never(row)).collect();
    // An empty column takes room from the others.
    let columns: [Column; 6] = [
        ("", |row| Some(mark(row))),
        ("name", |row| Some(&row.name)),
        ("asked", |row| row.asked.as_deref()),
        ("in force", |row| row.effective.as_deref()),
        ("observed", |row| row.observed.as_deref()),
        ("owner", |row| row.owner.as_deref()),
    ];
    let used: Vec<_> = columns
        .into_iter()
        .filter(|(title, cell)| {
            *title == "name" || shown.iter().any(|row| cell(row).is_some_and(|text| !text.is_empty()))
        })
        .collect();
    if shown.is_empty() {
        return;
    }
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic).set_width(width() - 2);
    table.set_header(used.iter().map(|(title, _)| *title).collect::<Vec<_>>());
    for row in shown {
        table.add_row(used.iter().map(|(_, cell)| in_a_line(cell(row).unwrap_or("-"))).collect::<Vec<_>>());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    for line in table.to_string().lines() {
        let _ = writeln!(page, "  {}", line.trim_end());
    }
}

/// What never came, why some rows cannot be moved, why some are not known, and which mechanisms
/// govern the rest.
fn notes(page: &mut String, rows: &[&Resource]) {
    let names = |rows: &[&&Resource]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>().join(", ");
    let never: Vec<_> = rows.iter().filter(|row| never(row)).collect();
    if !never.is_empty() {
        paragraph(page, "  never here: ", &names(&never));
    }
    for (of_mark, label) in [("!", "cannot be moved"), ("?", "not known")] {
        let mut reasons = BTreeMap::<&str, Vec<&&Resource>>::new();
        for row in rows.iter().filter(|row| mark(row) == of_mark) {
            reasons.entry(row.reason.as_deref().unwrap_or("no reason is given")).or_default().push(row);
        }
        for (reason, rows) in reasons {
            paragraph(page, &format!("  {of_mark} "), &format!("{}: {label}: {reason}", some(&names(&rows))));
        }
    }
    let mut mechanisms: Vec<_> = rows.iter().filter_map(|row| row.mechanism.as_deref()).collect();
    mechanisms.sort_unstable();
    mechanisms.dedup();
    if !mechanisms.is_empty() {
        paragraph(page, "  governed by: ", &mechanisms.join(", "));
    }
}

/// A list of names that stays on two lines.
fn some(names: &str) -> String {
    const LETTERS: usize = 120;
    if names.chars().count() <= LETTERS {
        return names.to_owned();
    }
    let cut: String = names.chars().take(LETTERS).collect();
    let cut = cut.rsplit_once(", ").map_or(cut.as_str(), |(whole, _)| whole);
    format!("{cut} and {} more", names.matches(", ").count() - cut.matches(", ").count())
}

/// Wrapped text; lines after the first are indented below it.
fn paragraph(page: &mut String, first: &str, text: &str) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in in_a_line(text).split(' ').filter(|word| !word.is_empty()) {
        if !empty && line.chars().count() + 1 + word.chars().count() > usize::from(width()) {
            let _ = writeln!(page, "{line}");
            "    ".clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(page, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        kind: Kind,
        name: &str,
        may: Option<bool>,
        touched: Option<bool>,
        movable: Option<bool>,
    ) -> Resource {
        Resource {
            may_touch: may,
            in_force: may,
            touched,
            movable,
            observed: Some("x".to_owned()),
            reason: Some("so it is".to_owned()),
            mechanism: Some("irq-affinity".to_owned()),
            ..Resource::new(kind, name)
        }
    }

    #[test]
    fn each_kind_has_a_verdict_a_table_and_its_reasons() {
        let rows = [
            row(Kind::Irq, "4 ttyS0", Some(true), Some(false), Some(true)),
            row(Kind::Irq, "27 nvme\u{1b}[31m", Some(true), Some(true), Some(false)),
            row(Kind::Vector, "NMI", Some(true), Some(false), None),
            row(Kind::Timer, "wheel", None, None, None),
            row(Kind::Task, "web (7)", Some(true), None, Some(true)),
        ];
        let page = page(3, Kind::ALL, &rows);
        assert!(
            page.contains(
                "interrupts: 2 may be handled here, 2 routed here now, 1 did come, 1 cannot be moved\n"
            ),
            "{page}"
        );
        assert!(page.contains("! 27 nvme?[31m: cannot be moved: so it is"), "{page}");
        assert!(page.contains("? wheel: not known: so it is"), "{page}");
        assert!(page.contains("never here: NMI"), "{page}");
        assert!(page.contains("processes: 1 may run here, no evidence of what did\n"), "{page}");
        assert!(page.contains("nothing of these kinds: softirq, net-queue"), "{page}");
        assert!(!page.contains('\u{1b}'));
    }

    #[test]
    fn lines_fit_a_hundred_columns_whatever_stands_in_a_row() {
        let long = "word ".repeat(60);
        let wide = Resource {
            asked: Some(long.clone()),
            effective: Some(long.clone()),
            owner: Some("x".repeat(80)),
            reason: Some(long.clone()),
            ..row(Kind::Task, &"n".repeat(90), Some(true), None, Some(false))
        };
        let rows: Vec<_> = Kind::ALL.iter().map(|kind| Resource { kind: *kind, ..wide.clone() }).collect();
        let page = page(0, Kind::ALL, &rows);
        let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{widest}: {page}");
    }

    #[test]
    fn long_lists_say_how_many_are_left_out() {
        let names: Vec<_> = (0..100).map(|n| format!("kworker/{n}")).collect();
        let shown = some(&names.join(", "));
        let kept = shown.matches("kworker").count();
        assert!(shown.ends_with(&format!("and {} more", 100 - kept)), "{shown}");
        assert_eq!(some("a, b"), "a, b");
    }
}
