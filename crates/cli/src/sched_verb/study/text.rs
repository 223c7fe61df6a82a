//! What `sched study` prints: shares beside published ones, curves as numbers, pairs, and what a
//! sample of that size cannot support. Also CSV.

use crate::measure::table::table;
use report::format;
use sched::curves::conclude::{Claimed, Concluded, CurveResult, Pair, PairPoint};
use sched::curves::{Paired, Ratio};
use std::fmt::Write;

/// Pairs shown in text; JSON has all.
const PAIRS: usize = 12;
/// Columns of a table.
const WIDTH: usize = 98;
/// p below which the sets support a difference.
const LEVEL: f64 = 0.05;

/// The tables.
pub(super) fn text(concluded: &Concluded) -> String {
    let mut text = format!("{}\n", concluded.title);
    let _ = writeln!(
        text,
        "{} sets a point, the same for every curve and all along the axis; seed {}; vector path {}",
        concluded.sets, concluded.seed, concluded.vector_path
    );
    for curve in &concluded.curves {
        let partition = curve.partition.as_ref().map(|how| format!(", cores by {how}")).unwrap_or_default();
        let jitter = format::ns(curve.jitter_ns as i64);
        let locks = curve.locks.as_ref().map(|how| format!(", locks {how}")).unwrap_or_default();
        let sections = if curve.longer_sections { ", sections longer by it" } else { "" };
        let ceilings = if curve.ceilings { " with ceilings on each core" } else { "" };
        let own = curve.own_locks.as_ref().map(|who| format!(" (own: {who})")).unwrap_or_default();
        let overheads = if curve.overheads.is_some() { ", with overheads" } else { "" };
        let _ = writeln!(
            text,
            "  {}: {}{partition}{locks}{ceilings}{own}, release jitter {jitter}{sections}{overheads}",
            curve.name, curve.test
        );
    }
    text.push_str("\nschedulable, percent, with Wilson's 95 % interval\n");
    text.push_str(&shares(concluded));
    text.push_str("\narea under the curve (SUA, 1 is all of the axis) and weighted schedulability\n");
    text.push_str(&areas(concluded));
    text.push_str(&pairs(concluded));
    text.push_str(&unsupported(concluded));
    text.push_str(&claims(concluded));
    for condition in &concluded.conditions {
        let _ = writeln!(text, "note: {condition}");
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// The curves in as many tables as it takes to be read at [`WIDTH`] columns.
fn shares(concluded: &Concluded) -> String {
    let values: Vec<String> = concluded.values.iter().map(|x| format::short(*x)).collect();
    let first = values.iter().map(String::len).chain([concluded.axis.len()]).max().unwrap_or(0);
    let mut tables = vec![Shown::new(&concluded.axis, &values)];
    let mut used = first;
    for curve in &concluded.curves {
        let columns = columns(curve);
        let width: usize =
            columns.iter().map(|column| 1 + column.iter().map(String::len).max().unwrap_or(0)).sum();
        if used + width > WIDTH && used > first {
            tables.push(Shown::new(&concluded.axis, &values));
            used = first;
        }
        used += width;
        if let Some(shown) = tables.last_mut() {
            columns.into_iter().for_each(|column| shown.add(column));
        }
    }
    tables.iter().map(Shown::text).collect::<Vec<_>>().join("\n")
}

/// A curve as one column, or two with published values; the heading first.
fn columns(curve: &CurveResult) -> Vec<Vec<String>> {
    let share = |one: &sched::curves::Proportion| {
        let [low, high] = one.interval.map(percent);
        format!("{} [{low},{high}]", percent(one.share))
    };
    let shares = std::iter::once(curve.name.clone()).chain(curve.points.iter().map(share)).collect();
    let said = curve.published.as_ref().map(|said| {
        std::iter::once("publ.".to_owned())
            .chain(said.iter().map(|percent| format::short(*percent)))
            .collect()
    });
    std::iter::once(shares).chain(said).collect()
}

/// A table being filled by columns.
struct Shown {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Shown {
    fn new(axis: &str, values: &[String]) -> Self {
        Self { head: vec![axis.to_owned()], rows: values.iter().map(|value| vec![value.clone()]).collect() }
    }

    fn add(&mut self, column: Vec<String>) {
        let mut cells = column.into_iter();
        self.head.extend(cells.next());
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    fn text(&self) -> String {
        table(&self.head.iter().map(String::as_str).collect::<Vec<_>>(), self.rows.clone())
    }
}

fn areas(concluded: &Concluded) -> String {
    let number = |value: f64, [low, high]: [f64; 2]| format!("{value:.4} [{low:.4}, {high:.4}]");
    let row = |curve: &CurveResult| {
        let one = &curve.area;
        vec![
            curve.name.clone(),
            number(one.area, one.area_interval),
            number(one.weighted, one.weighted_interval),
        ]
    };
    table(&["curve", "area", "weighted"], concluded.curves.iter().map(row).collect())
}

fn pairs(concluded: &Concluded) -> String {
    let mut rows = Vec::new();
    let grouped = || concluded.pairs.iter().filter(|pair| pair.grouped);
    for pair in grouped().take(PAIRS) {
        let [low, high] = pair.gain.area_interval;
        let gain = format!("{:+.4} [{low:+.4}, {high:+.4}]", pair.gain.area);
        rows.push(vec![name(pair), "area".to_owned(), gain, String::new(), String::new()]);
        let differs = |point: &&PairPoint| point.paired.first_only + point.paired.second_only > 0;
        for point in pair.points.iter().filter(differs) {
            let [low, high] = point.paired.interval;
            rows.push(vec![
                String::new(),
                format::short(point.x),
                format!("{} [{}, {}]", signed(point.paired.difference), signed(low), signed(high)),
                format!("{} : {}", point.paired.first_only, point.paired.second_only),
                p_value(point.paired.p),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = ["pair", "at", "gain, points", "lost : won", "McNemar p"];
    let more = concluded.pairs.len() - grouped().count().min(PAIRS);
    let more = if more > 0 { format!("{more} more pairs in the JSON\n") } else { String::new() };
    format!("\nthe same sets under two curves: what the second gains\n{}{more}", table(&head, rows))
}

/// Percentage points with a sign; zero has none.
fn signed(share: f64) -> String {
    let text = format!("{:+.1}", share * 100.0);
    if text == "+0.0" || text == "-0.0" { "0.0".to_owned() } else { text }
}

fn name(pair: &Pair) -> String {
    format!("{} -> {}", pair.first, pair.second)
}

fn p_value(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Published differences: what their own sample says of them, and what sample it would take.
fn unsupported(concluded: &Concluded) -> String {
    let Some(published) = &concluded.published else { return String::new() };
    let mut rows = Vec::new();
    let mut supported = 0;
    for pair in &concluded.pairs {
        for point in &pair.points {
            let Some(said) = point.published.filter(|said| said.difference != 0.0) else { continue };
            supported += usize::from(said.p < LEVEL);
            let needed = point.unrelated_sets_needed.map_or_else(|| "-".to_owned(), format::count);
            rows.push(vec![
                name(pair),
                format::short(point.x),
                signed(said.difference),
                signed(point.paired.difference),
                format!("{:.2}", said.z),
                p_value(said.p),
                needed,
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = ["pair", "at", "published", "here, same sets", "z", "p", "sets needed"];
    let mut text = format!(
        "\npublished differences, points ({};\n{} sets a point, drawn anew for every curve)\n{}",
        published.source,
        published.sets,
        table(&head, rows.clone())
    );
    let _ = writeln!(
        text,
        "{} sets cannot support {} of these {} differences: p is above {LEVEL} where curves share no sets.\n\
         Sets needed: a curve, for unrelated samples to show the difference found here (5 %, power 80 %).",
        published.sets,
        rows.len() - supported,
        rows.len()
    );
    text
}

/// Published statements about two curves, beside the ratio and the difference found here.
fn claims(concluded: &Concluded) -> String {
    let row = |claimed: &Claimed| {
        let of = |found: &Ratio| {
            let [low, high] = found.interval;
            format!("{:.2} [{low:.2}, {high:.2}]", found.ratio)
        };
        let points = |one: &Paired| {
            let [low, high] = one.interval;
            format!("{} [{}, {}]", signed(one.difference), signed(low), signed(high))
        };
        let claim = &claimed.claim;
        vec![
            format!("{} -> {}", claim.first, claim.second),
            claim.says.clone(),
            claim.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            claimed.x.map_or_else(|| "-".to_owned(), format::short),
            claimed.found.as_ref().map_or_else(|| "none accepted".to_owned(), of),
            claimed.paired.as_ref().map_or_else(|| "-".to_owned(), points),
        ]
    };
    if concluded.claims.is_empty() {
        return String::new();
    }
    let rows = concluded.claims.iter().map(row).collect();
    let head = ["pair", "published", "ratio", "at", "ratio here", "points here"];
    let mut text = format!(
        "\npublished statements, and the same two curves on the same sets here\n{}",
        table(&head, rows)
    );
    let ratios: Vec<(f64, [f64; 2])> = concluded
        .claims
        .iter()
        .filter_map(|claimed| Some((claimed.claim.ratio?, claimed.found.as_ref()?.interval)))
        .collect();
    if !ratios.is_empty() {
        let outside = ratios.iter().filter(|(ratio, [low, high])| !(*low..=*high).contains(ratio)).count();
        let _ = writeln!(
            text,
            "{outside} of {} published ratios lie outside the interval found here.",
            ratios.len()
        );
    }
    text
}

/// One row per curve and point.
pub(super) fn csv(concluded: &Concluded) -> String {
    let mut text =
        String::from("curve,test,partition,jitter_ns,x,accepted,sets,share,low,high,published_percent\n");
    for curve in &concluded.curves {
        for (at, (x, one)) in concluded.values.iter().zip(&curve.points).enumerate() {
            let said = curve.published.as_ref().map(|said| said[at].to_string()).unwrap_or_default();
            let _ = writeln!(
                text,
                "\"{}\",{},{},{},{x},{},{},{},{},{},{said}",
                curve.name.replace('"', "\"\""),
                curve.test,
                curve.partition.as_deref().unwrap_or_default(),
                curve.jitter_ns,
                one.accepted,
                one.sets,
                one.share,
                one.interval[0],
                one.interval[1],
            );
        }
    }
    text
}
