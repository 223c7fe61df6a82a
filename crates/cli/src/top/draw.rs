//! The state as lines of a given width and height: pure, so that every size can be tested.
//!
//! Texts from outside are made harmless and cut to their column here, all of them through
//! [`harmless`]; the terminal draws only what this makes.

use super::pen::{Pen, fit, harmless};
use super::shot::Shot;
use super::state::{Pane, Sort, State, Typing, text_of};
use attribution::attribute::section::SourceText;
use attribution::live::view::{CpuView, PartView, RowView, WorstView};
use model::EventClass;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

/// Below this the table of sources is left out.
const LEAST: (u16, u16) = (80, 24);
/// Latencies from which on there are ten above their 99.9th percentile.
const ENOUGH: u64 = 10_000;
/// CPUs that are listed at most on a screen of that height.
const MOST_CPUS: usize = 6;

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

/// The screen; never more lines than it has rows, none longer than it has columns.
pub(crate) fn draw(state: &State, size: Size) -> Vec<Line<'static>> {
    let facts = &state.facts;
    let pen =
        Pen { ascii: facts.ascii, plain: facts.plain, keys: facts.keys, width: usize::from(size.columns) };
    let rows = usize::from(size.rows);
    let mut lines = Vec::new();
    match state.shot() {
        None => {
            lines.push(
                pen.line(&format!("stillcore {}  {}: waiting for the first second", facts.title, facts.cpus)),
            );
        }
        Some(shot) => {
            lines.push(header(state, &shot, pen));
            if let Some(note) = &shot.seen.note {
                lines.push(pen.bold(note));
            }
            if size.columns < LEAST.0 || size.rows < LEAST.1 {
                small(state, &shot, pen, rows, &mut lines);
            } else {
                match state.pane {
                    Pane::Main => main(state, &shot, pen, rows, &mut lines),
                    Pane::Help => help(pen, &mut lines),
                    Pane::Worst(at) => worst_in_full(&shot, at, pen, &mut lines),
                    Pane::Row => row_in_full(state, &shot, pen, &mut lines),
                    Pane::Drift => drift_in_full(&shot, pen, &mut lines),
                }
            }
        }
    }
    lines.truncate(rows.saturating_sub(1));
    while lines.len() + 1 < rows {
        lines.push(Line::default());
    }
    lines.push(footer(state, pen));
    lines.truncate(rows);
    lines
}

fn clock(shot: &Shot, t_ns: i64) -> String {
    let at =
        jiff::Timestamp::from_nanosecond(i128::from(t_ns) + i128::from(shot.wall_ns)).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M:%SZ").to_string()
}

fn header(state: &State, shot: &Shot, pen: Pen) -> Line<'static> {
    let facts = &state.facts;
    let mode = match (state.frozen_for(), state.by_minute) {
        (Some(0), _) => "FROZEN".to_owned(),
        (Some(back), _) => format!("FROZEN -{back}s"),
        (None, false) => "LIVE 1s".to_owned(),
        (None, true) => format!("LIVE {:.0}s", state.seconds(shot)),
    };
    let lost = shot.seen.lost.map_or_else(String::new, |lost| format!(" lost {lost}"));
    let cuts = match (shot.seen.view.losses.holes, shot.seen.view.losses.renewals) {
        (0, 0) => String::new(),
        (holes, renewals) => format!(" holes {holes} cuts {renewals}"),
    };
    let end = format!("cpus {}  own cost {:.1}%{lost}{cuts}", facts.cpus, shot.own_percent);
    let begin = format!("{} {mode}", clock(shot, shot.seen.view.t_ns));
    let room =
        pen.width.saturating_sub("stillcore    ".len() + facts.title.len() + begin.len() + end.len() + 5);
    let kernel = fit(&harmless(&facts.kernel), room.saturating_sub(8).min(facts.kernel.len()));
    let host = fit(&harmless(&facts.host), room.saturating_sub(kernel.len()).min(facts.host.len()));
    let text = format!("stillcore {}  {host} {kernel}  {begin}  {end}", facts.title);
    let is_bad = shot.late || shot.seen.lost.is_some_and(|lost| lost > 0);
    if is_bad { pen.bold(&text) } else { pen.line(&text) }
}

fn shown_cpus<'s>(state: &State, shot: &'s Shot) -> Vec<&'s CpuView> {
    shot.seen.view.cpus.iter().filter(|cpu| state.only_cpu.is_none_or(|only| only == cpu.cpu)).collect()
}

/// The greatest value that a CPU shows.
fn longest(cpu: &CpuView) -> u64 {
    let of_seconds = cpu.maxima_ns.iter().copied().max().unwrap_or(0);
    cpu.latency.as_ref().map_or(of_seconds, |latency| latency.max_ns)
}

fn runs(cpu: &CpuView) -> String {
    match &cpu.running {
        None => "(no switch yet)".to_owned(),
        Some(task) if task.pid == 0 => "(idle)".to_owned(),
        Some(task) => {
            let behind = format!("/{} {}", task.pid, task.policy);
            let name = harmless(&task.comm);
            format!("{}{behind}", fit(&name, 17usize.saturating_sub(behind.len()).max(4).min(name.len())))
        }
    }
}

fn since(shot: &Shot, cpu: &CpuView) -> String {
    let Some(task) = cpu.running.as_ref().filter(|task| task.since_ns > 0) else { return "–".to_owned() };
    let s = (shot.seen.view.t_ns - task.since_ns).max(0) as f64 / 1e9;
    match s {
        ..10.0 => format!("{s:.1}s"),
        ..600.0 => format!("{s:.0}s"),
        _ => format!("{:.0}m", s / 60.0),
    }
}

/// Whether there are times of this CPU: of events, or of a probe.
fn shows_times(shot: &Shot, cpu: &CpuView) -> bool {
    shot.seen.lost.is_some() || cpu.latency.is_some()
}

fn cpu_line(shot: &Shot, cpu: &CpuView, pen: Pen, is_marked: bool) -> Line<'static> {
    let newest = cpu.maxima_ns.last().copied().unwrap_or(0);
    let (what, last, p999) = match &cpu.latency {
        Some(latency) => (
            harmless(&latency.comm),
            latency.last_ns.map_or("–".to_owned(), Pen::us),
            if latency.n < ENOUGH { "–".to_owned() } else { Pen::us(latency.p999_ns) },
        ),
        None => ("event".to_owned(), Pen::us(newest), "–".to_owned()),
    };
    let counts = shows_times(shot, cpu);
    let [last, p999, max] =
        if counts { [last, p999, Pen::us(longest(cpu))] } else { ["–"; 3].map(str::to_owned) };
    let steal = shot.steal_ms.get(&cpu.cpu).map_or("–".to_owned(), u64::to_string);
    let isolation = match &shot.drifted {
        None => "–".to_owned(),
        Some(drifted) if drifted.is_empty() => "as set".to_owned(),
        Some(drifted) => format!("DRIFT {}", drifted.len()),
    };
    let text = format!(
        "{:>3}  {} {:>6}  {} {last:>7} {p999:>6} {max:>6} {steal:>6} {isolation}",
        cpu.cpu,
        fit(&runs(cpu), 18),
        since(shot, cpu),
        fit(&what, 9),
    );
    pen.marked(&dash(&text, pen), is_marked, Style::new())
}

/// Without characters that an ASCII terminal lacks.
fn dash(text: &str, pen: Pen) -> String {
    if pen.ascii { text.replace('–', "-").replace('µ', "u").replace('·', ".") } else { text.to_owned() }
}

fn main(state: &State, shot: &Shot, pen: Pen, rows: usize, lines: &mut Vec<Line<'static>>) {
    let columns = format!(
        "CPU  runs now            since  latency{}   last  p99.9    max  steal isolation",
        if pen.ascii { "us" } else { "µs" }
    );
    lines.push(pen.bold(&columns));
    let cpus = shown_cpus(state, shot);
    let most = cpus.iter().map(|cpu| longest(cpu)).max().unwrap_or(0);
    let room = MOST_CPUS.max(rows / 3);
    for cpu in cpus.iter().take(room) {
        let is_marked = most > 0 && shows_times(shot, cpu) && longest(cpu) == most && cpus.len() > 1;
        lines.push(cpu_line(shot, cpu, pen, is_marked));
    }
    if cpus.len() > room {
        lines.push(pen.line(&format!("     and {} more CPUs (c: one by one)", cpus.len() - room)));
    }
    lines.push(pen.rule());
    let behind = below(shot, pen);
    let table = rows.saturating_sub(lines.len() + behind.len() + 2);
    rows_table(state, shot, pen, table, lines);
    lines.extend(behind);
}

/// `since`, rate and time of a row, each in its column.
fn rows_table(state: &State, shot: &Shot, pen: Pen, room: usize, lines: &mut Vec<Line<'static>>) {
    let mark = |sort: Sort, name: &str| {
        let sorted = if state.reverse { '^' } else { '*' };
        if state.sort == sort { format!("{name}{sorted}") } else { name.to_owned() }
    };
    let wide = pen.width.saturating_sub(80);
    // Further columns come to the right; the first ones stay where they are.
    let more = if wide >= 24 { format!(" {:>10} {:>12}", "last min", "in all") } else { String::new() };
    lines.push(pen.bold(&format!(
        "{} {} {:>4} {:>6} {:>9} {:>10} {}{more}",
        fit(&mark(Sort::Class, "CLASS"), 12),
        fit("SOURCE", 23),
        mark(Sort::Cpu, "CPU"),
        mark(Sort::Rate, "/s"),
        mark(Sort::Time, "time/s"),
        mark(Sort::Longest, "longest"),
        fit("HOW SURE", 9),
    )));
    let rows = state.rows(shot);
    let most = rows.iter().map(|row| row.max_ns).max().unwrap_or(0);
    let first = state.selected.map_or(0, |at| (at + 1).saturating_sub(room));
    for (at, row) in rows.iter().enumerate().skip(first).take(room) {
        let is_selected = state.selected == Some(at);
        let style = if is_selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        let text = row_text(state, shot, row, pen, wide >= 24);
        lines.push(pen.marked(&dash(&text, pen), most > 0 && row.max_ns == most && wide < 24, style));
    }
    if rows.is_empty() && room > 0 {
        let why = if state.filter.is_empty() {
            "no event there yet: idle, or one task that nothing has interrupted"
        } else {
            "no row has the words of the filter"
        };
        lines.push(pen.line(why));
    }
}

fn row_text(state: &State, shot: &Shot, row: &RowView, pen: Pen, wide: bool) -> String {
    let seconds = state.seconds(shot);
    let (count, ns) = if state.by_minute { (row.minute_count, row.minute_ns) } else { (row.count, row.ns) };
    let rate = count as f64 / seconds;
    let rate = if state.by_minute && rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
    let timed = shot.seen.lost.is_some() && !matches!(row.class, EventClass::Migrate);
    let time = |ns: u64| if timed { pen.time(ns) } else { "–".to_owned() };
    let sure = match (shot.seen.lost, row.confidence) {
        (None, _) => "counter",
        (_, Some(confidence)) => confidence.word(),
        // These are what they are: the event names the task, and the tick arms itself.
        (_, None) if matches!(row.class, EventClass::Switch | EventClass::TimerTick) => "exact",
        _ => "unknown",
    };
    let more =
        if wide { format!(" {:>10} {:>12}", row.minute_count, row.total_count) } else { String::new() };
    format!(
        "{} {} {:>4} {rate:>6} {:>9} {:>10} {}{more}",
        fit(row.class.name(), 12),
        fit(&harmless(&text_of(row)), 23),
        row.cpu,
        time((ns as f64 / seconds) as u64),
        if row.max_ns == 0 { "–".to_owned() } else { time(row.max_ns) },
        fit(sure, 9),
    )
}

/// What is below the table: the worst, drift, the last minute.
fn below(shot: &Shot, pen: Pen) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(worst) = shot.seen.view.worst.first() {
        lines.push(pen.rule());
        lines.extend(worst_in_short(shot, worst, pen));
    }
    lines.push(pen.rule());
    match &shot.drifted {
        Some(drifted) if !drifted.is_empty() => {
            let first = harmless(&drifted[0]);
            let more =
                if drifted.len() > 1 { format!(" and {} more", drifted.len() - 1) } else { String::new() };
            lines.push(pen.bold(&format!("DRIFT  {first}{more}{}", pen.key("   [x] list"))));
        }
        _ => {}
    }
    if shot.seen.view.cpus.iter().any(|cpu| shows_times(shot, cpu)) {
        let mut maxima: Vec<u64> = Vec::new();
        for cpu in &shot.seen.view.cpus {
            let newest_first = cpu.maxima_ns.iter().rev();
            for (at, ns) in newest_first.enumerate() {
                if at == maxima.len() {
                    maxima.push(0);
                }
                maxima[at] = maxima[at].max(*ns);
            }
        }
        maxima.reverse();
        let head = "last 60 s, max per s  ";
        let most = maxima.iter().copied().max().unwrap_or(0);
        let spark = pen.spark(&maxima, pen.width.saturating_sub(head.len() + 12).min(60));
        lines.push(pen.line(&format!("{head}{spark} {}", pen.time(most))));
    }
    lines
}

fn percent(part: u64, of: u64) -> u64 {
    (part as f64 * 100.0 / of.max(1) as f64).round() as u64
}

fn worst_title(shot: &Shot, worst: &WorstView, pen: Pen) -> String {
    let at = clock(shot, worst.t_ns);
    let time = pen.time(worst.ns);
    format!("CPU {}  {time}  {at}  {}", worst.cpu, harmless(&worst.what))
}

fn part_text(part: &PartView) -> String {
    let taken = part.taken.as_ref().map(|taken| format!(": {taken}")).unwrap_or_default();
    let source = part.source.as_ref().map(|source| format!(" <- {}", source.name())).unwrap_or_default();
    harmless(&format!("{}{taken}{source}", part.step))
}

/// Title and the three longest parts.
fn worst_in_short(shot: &Shot, worst: &WorstView, pen: Pen) -> Vec<Line<'static>> {
    let mut lines = vec![pen.bold(&format!("WORST  {}", worst_title(shot, worst, pen)))];
    let mut parts: Vec<&PartView> = worst.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    for part in parts.iter().take(3) {
        lines.push(part_line(part, worst, pen, 20));
    }
    if let Some(class) = parts.first().and_then(|longest| longest.class) {
        lines.push(pen.line(&format!(
            " What removes it: stillcore explain {class}{}",
            pen.key("    [Enter] all parts")
        )));
    }
    lines
}

fn part_line(part: &PartView, worst: &WorstView, pen: Pen, bar: usize) -> Line<'static> {
    let share = percent(part.ns, worst.ns);
    let filled = (share as usize * bar / 100).min(bar);
    let bars = format!("{}{}", pen.block().to_string().repeat(filled), " ".repeat(bar - filled));
    pen.line(&format!(" {bars} {:>8} {share:>3} %  CPU {} {}", pen.time(part.ns), part.cpu, part_text(part)))
}

fn worst_in_full(shot: &Shot, at: usize, pen: Pen, lines: &mut Vec<Line<'static>>) {
    let all = &shot.seen.view.worst;
    let Some(worst) = all.get(at).or_else(|| all.last()) else {
        lines.push(pen.line("no event has been long enough yet, or none are recorded"));
        return;
    };
    let at = at.min(all.len() - 1);
    lines.push(pen.bold(&format!("WORST {} of {}  {}", at + 1, all.len(), worst_title(shot, worst, pen))));
    for part in &worst.parts {
        lines.push(part_line(part, worst, pen, 20));
        let sure = part.confidence.map(attribution::attribute::Confidence::word);
        if let Some(source) = &part.source {
            let place = source.place().map(|place| format!(", in {place}")).unwrap_or_default();
            let text =
                format!("on CPU {}: {}{place} ({})", source.cpu, source.name(), sure.unwrap_or("unknown"));
            lines.push(pen.line(&format!("{}{}", " ".repeat(22), harmless(&text))));
        }
        for function in part.source.iter().flat_map(SourceText::functions).take(6) {
            lines.push(pen.line(&format!("{}  {}", " ".repeat(22), harmless(&function))));
        }
    }
}

fn row_in_full(state: &State, shot: &Shot, pen: Pen, lines: &mut Vec<Line<'static>>) {
    let rows = state.rows(shot);
    let Some(row) = state.selected.and_then(|at| rows.get(at)) else {
        lines.push(pen.line("no row is selected"));
        return;
    };
    lines.push(pen.bold(&format!("{} on CPU {}: {}", row.class, row.cpu, harmless(&text_of(row)))));
    let sums = [
        ("this second", row.count, row.ns),
        ("last minute", row.minute_count, row.minute_ns),
        ("in all", row.total_count, row.total_ns),
    ];
    for (what, count, ns) in sums {
        lines.push(pen.line(&format!("  {what:<12} {count:>10} events {:>10}", pen.time(ns))));
    }
    lines.push(pen.line(&format!("  longest      {:>28}", pen.time(row.max_ns))));
    match &row.source {
        Some(source) => {
            let place = source.place().map(|place| format!(", in {place}")).unwrap_or_default();
            let sure = row.confidence.map_or("unknown", attribution::attribute::Confidence::word);
            let text = format!("  caused on CPU {} by {}{place} ({sure})", source.cpu, source.name());
            lines.push(pen.line(&harmless(&text)));
            for function in source.functions() {
                lines.push(pen.line(&format!("    {}", harmless(&function))));
            }
        }
        None => lines.push(pen.line("  no other source is known")),
    }
    lines.push(pen.line(&format!("  What removes it: stillcore explain {}", row.class)));
}

fn drift_in_full(shot: &Shot, pen: Pen, lines: &mut Vec<Line<'static>>) {
    match &shot.drifted {
        None => lines.push(pen.line("nothing is isolated by stillcore: there is nothing to drift")),
        Some(drifted) if drifted.is_empty() => lines.push(pen.line("every applied setting is in force")),
        Some(drifted) => {
            lines.push(
                pen.bold(&format!("DRIFT  {} settings changed since they were applied", drifted.len())),
            );
            lines.extend(drifted.iter().map(|one| pen.line(&format!("  {}", harmless(one)))));
            lines.push(
                pen.line("  Compare: stillcore isolate verify    Explain one: stillcore explain SETTING"),
            );
        }
    }
}

fn help(pen: Pen, lines: &mut Vec<Line<'static>>) {
    const KEYS: [(&str, &str); 14] = [
        ("f, space", "freeze what is shown; recording continues. Again: live"),
        ("left, right", "step through the last 60 seconds, or through the worst"),
        ("up, down", "select a row (also k, j)"),
        ("Enter", "explain the selected row, else the worst event"),
        ("s, S", "sort by the next column; reverse the order"),
        ("/", "show only rows that have these words"),
        ("c", "show one CPU after the other, then all"),
        ("t", "measure the wake-ups of threads with this name; empty: of none"),
        ("+, -", "rates of the last minute, of the last second"),
        ("r", "reset maxima and the worst events"),
        ("x", "list the settings that have drifted"),
        ("?", "this page"),
        ("Esc", "back"),
        ("q, Ctrl-C", "quit"),
    ];
    lines.push(pen.bold("Keys"));
    lines.extend(KEYS.iter().map(|(key, what)| pen.line(&format!("  {key:<12} {what}"))));
    lines.push(pen.line("! marks the longest of a column. HOW SURE is about the source, not the time."));
}

/// A line per CPU.
fn small(state: &State, shot: &Shot, pen: Pen, rows: usize, lines: &mut Vec<Line<'static>>) {
    for cpu in shown_cpus(state, shot).into_iter().take(rows.saturating_sub(lines.len() + 2)) {
        let max =
            if shows_times(shot, cpu) { format!("max {}", pen.time(longest(cpu))) } else { String::new() };
        lines.push(pen.line(&format!("CPU {:>3} {} {max}", cpu.cpu, fit(&runs(cpu), 20))));
    }
    lines.push(pen.line(&format!("enlarge to {}x{}", LEAST.0, LEAST.1)));
}

fn footer(state: &State, pen: Pen) -> Line<'static> {
    if let Some((what, text)) = &state.typing {
        let what = if *what == Typing::Filter { "filter" } else { "thread name" };
        return pen.bold(&format!("{what}: {}_   Enter: take  Esc: leave", harmless(text)));
    }
    pen.line(match state.pane {
        Pane::Main => "f freeze  Enter explain  s sort  / filter  c cpu  t thread  +/- scale  ? help  q",
        Pane::Worst(_) => "left/right the others  f freeze  Esc back",
        _ => "Esc back",
    })
}

impl State {
    /// Seconds that rates are over.
    fn seconds(&self, shot: &Shot) -> f64 {
        if !self.by_minute {
            return (shot.seen.view.second_ns as f64 / 1e9).max(0.1);
        }
        ((shot.seen.view.t_ns - shot.seen.view.began_ns) as f64 / 1e9).clamp(1.0, 60.0)
    }
}

#[cfg(test)]
mod tests;
