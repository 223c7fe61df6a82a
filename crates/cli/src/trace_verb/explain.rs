//! `stillcore trace explain`: who interrupted the measured CPUs, and where the latency of each wake-up went, in words.

use crate::args::TraceExplainArgs;
use analysis::attribute::Confidence;
use analysis::attribute::blocking::Blocking;
use analysis::attribute::path::Step;
use analysis::attribute::paths::Keep;
use analysis::shape::{
    AttributedRow, Attribution, BlockingCoverage, Coverage, PathBox, PathSection, SamplePath, SourceText,
};
use analysis::{Analysis, Asked};
use model::events::EventCatalogue;
use model::run::ProbeRecord;
use model::sample::ProbeKind;
use model::{EventClass, Finding, store};
use report::advice::{Proposal, proposals};
use report::trace_answer::{Caused, Thread, Wakeup};
use report::{format, trace_answer};
use serde_json::json;
use std::fmt::Write;

/// Rows of sources and boxes that are printed of each window.
const ROWS: usize = 12;
/// Number of `against` lines printed per proposal.
const AGAINST: usize = 3;
/// The longest present value that is printed.
const LONGEST_VALUE: usize = 40;

/// Explains a run.
pub(super) fn run(args: &TraceExplainArgs) -> anyhow::Result<u8> {
    if !args.run.is_dir() {
        return super::any_trace::run(args);
    }
    if let Some(option) = super::any_trace::given(&args.threads) {
        let trace = args.run.join("trace.dat").display().to_string();
        return Err(
            model::Error::invalid(option, "an option of a trace that is explained by itself", trace).into()
        );
    }
    let keep = Keep { worst: args.worst.max(Keep::default().worst), sample: args.sample };
    let asked = Asked { keep, trace_only: true, ..Asked::default() };
    let analysis = analysis::analyse_asked(&args.run, &asked)?;
    // A run that was not audited has nothing to propose.
    let findings = args.run.join(store::FINDINGS);
    let findings: Vec<Finding> = if findings.exists() { store::read_json(&findings)? } else { Vec::new() };
    let proposals = proposals(&analysis, &findings, &EventCatalogue::embedded()?);
    if let Some(wanted) = args.sample {
        anyhow::ensure!(
            analysis.paths.iter().flat_map(|path| &path.worst).any(|sample| sample.t_ns == wanted),
            "{}: no wake-up that was late and is in the trace was due at {wanted} ns: expected the time of one, as --worst N lists them",
            args.run.display()
        );
    }
    if args.json {
        let answer = json!({
            "schema": trace_answer::SCHEMA,
            "questions": trace_answer::questions(&analysis.coverage, &analysis.blocking),
            "sources": sources_of(&analysis),
            "wakeups": wakeups(&analysis, args)?,
            "complete": analysis.complete,
            "statements": analysis.losses.statements,
            "coverage": analysis.coverage,
            "blocking": analysis.blocking,
            "attribution": analysis.attribution,
            "paths": chosen(&analysis, args),
            "proposals": proposals,
        });
        println!("{answer}");
    } else {
        print!("{}", text(&analysis, &proposals, args));
    }
    Ok(0)
}

/// What ran on the measured CPUs, and its source.
fn sources_of(analysis: &Analysis) -> Vec<Caused> {
    analysis.attribution.iter().flat_map(|window| trace_answer::caused(window.cpu, &window.rows)).collect()
}

/// The wake-ups of the probes that the user asked for.
fn wakeups(analysis: &Analysis, args: &TraceExplainArgs) -> anyhow::Result<Vec<Wakeup>> {
    let run = store::read_run(&args.run)?;
    let paths = chosen(analysis, args).into_iter().filter(|path| path.probe != ProbeKind::Noise);
    let mut wakeups = Vec::new();
    for path in paths {
        let key = (path.probe, &path.phase, path.cpu, path.thread);
        let of = |probe: &&ProbeRecord| (probe.probe, &probe.phase, probe.cpu, probe.thread) == key;
        let Some(probe) = run.probes.iter().find(of) else { continue };
        let steal_ns = trace_answer::steal_most_ns(&run, &path);
        wakeups.extend(trace_answer::wakeups(&path, &Thread::of_probe(probe), steal_ns));
    }
    Ok(wakeups)
}

/// The paths with as many samples as the user asked for.
fn chosen(analysis: &Analysis, args: &TraceExplainArgs) -> Vec<PathSection> {
    let chosen = |path: &PathSection| PathSection { worst: worst(path, args), ..path.clone() };
    analysis.paths.iter().map(chosen).collect()
}

/// The samples of a window that the user asked for.
pub(super) fn worst(path: &PathSection, args: &TraceExplainArgs) -> Vec<SamplePath> {
    let over_ns = args.over.map_or(0, |over| i64::try_from(over.as_nanos()).unwrap_or(i64::MAX));
    let wanted = path.worst.iter().filter(|sample| args.sample.is_none_or(|at| sample.t_ns == at));
    wanted.filter(|sample| sample.value_ns >= over_ns).take(args.worst).cloned().collect()
}

fn text(analysis: &Analysis, proposals: &[Proposal], args: &TraceExplainArgs) -> String {
    let mut text = String::new();
    if args.sample.is_none() {
        if analysis.watch.is_some() {
            text.push_str(
                "This run is of a watched program: `stillcore trace watch --from RUN` prints it again, and `stillcore trace explain RUN/trace.dat` \
                 prints what its trace shows of any thread.\n",
            );
        } else if analysis.attribution.is_empty() {
            text.push_str("There is no trace in this run, so nobody can be named.\n");
        }
        for window in analysis.attribution.iter().filter(|window| !window.rows.is_empty()) {
            text.push_str(&sources(window, args.stacks));
        }
        text.push_str(&coverage("this kernel", NOT_RECORDED, &analysis.coverage, &analysis.blocking));
    }
    for path in chosen(analysis, args) {
        if args.sample.is_none() {
            text.push_str(&boxes(&path, args.stacks));
        }
        path.worst.iter().for_each(|sample| text.push_str(&sample_story(sample, &path, args.stacks)));
    }
    if args.sample.is_none() {
        text.push_str(&proposed(proposals));
    }
    for statement in &analysis.losses.statements {
        let _ = writeln!(text, "note: {statement}");
    }
    text
}

fn sources(window: &Attribution, stacks: bool) -> String {
    let all = window.exact + window.by_order + window.unknown;
    let mut text = format!(
        "CPU {}{}, {} window of phase {}: {all} events asked for by somebody; source exact for {}, by order for {}, unknown for {}\n",
        window.cpu,
        thread(window.thread),
        window.probe.name(),
        window.phase,
        window.exact,
        window.by_order,
        window.unknown
    );
    text.push_str(&rows(&window.rows, stacks));
    text
}

/// What ran, and its source, one line each.
pub(super) fn rows(rows: &[AttributedRow], stacks: bool) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.class != EventClass::SelfCaused).take(ROWS) {
        text.push_str(&source_line(row));
        text.push_str(&stack(row.source.as_ref(), stacks));
    }
    text.push('\n');
    text
}

/// Which of several threads.
fn thread(number: u32) -> String {
    if number == 0 { String::new() } else { format!(", thread {number}") }
}

fn source_line(row: &AttributedRow) -> String {
    let by = match (&row.source, row.confidence) {
        (Some(source), Some(confidence)) => format!("{} ({})", who(source), word(confidence)),
        _ if row.class == EventClass::TimerTick => "the CPU's own tick".to_owned(),
        _ => "source unknown".to_owned(),
    };
    let range = match row.count {
        0 | 1 => String::new(),
        _ => format!(
            ", half up to {}, at most {}",
            format::ns(row.p50_ns as i64),
            format::ns(row.max_ns as i64)
        ),
    };
    // Its time has those, its number of events does not.
    let resumed = match row.resumed {
        0 => String::new(),
        pieces => format!(" with {} after interruptions", format::plural(pieces, "piece")),
    };
    format!(
        "  {:>6} x {:<14} {:<22} {:>9}{resumed}{range}; {by}\n",
        row.count,
        row.class.name(),
        row.label,
        format::ns(row.net_ns as i64)
    )
}

/// The functions of a source, a line of their own, where that is wanted.
fn stack(source: Option<&SourceText>, wanted: bool) -> String {
    let Some(source) = source.filter(|_| wanted) else { return String::new() };
    let line = |what: &str, functions: &[String]| match functions {
        [] => String::new(),
        _ => format!("           {what}{}\n", functions.join(" < ")),
    };
    line("", &source.frames) + &line("called in user space by ", &source.users)
}

pub(super) fn who(source: &SourceText) -> String {
    let site = source.place().map(|site| format!(" by {site}")).unwrap_or_default();
    format!("{} on CPU {}{site}", source.name(), source.cpu)
}

pub(super) fn word(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Exact => "exact",
        Confidence::Order => "by order",
    }
}

/// The words for a class without events: in a recording of ours, and in any trace, of which it is
/// unknown what was recorded.
pub(super) const NOT_RECORDED: &str = "not recorded";
pub(super) const NONE_SEEN: &str = "none seen";

/// `absent`: the words for a class without events.
pub(super) fn coverage(of: &str, absent: &str, lines: &[Coverage], blocking: &[BlockingCoverage]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("What {of} shows of sources:\n");
    for line in lines {
        let sources = match (line.seen, line.sources) {
            (false, _) => absent,
            (true, Some(Confidence::Exact)) => "exact",
            (true, Some(Confidence::Order)) => "by order",
            (true, None) => "not at all",
        };
        let _ = writeln!(text, "  {:<27} {sources:<12} {}", line.class.name(), line.how);
    }
    for line in blocking {
        let seen = match (line.seen, line.needs.is_empty()) {
            (true, _) => "its time",
            (false, false) => absent,
            (false, true) => "not known",
        };
        let _ = writeln!(text, "  {:<27} {seen:<12} {}", line.blocking.words(), line.how);
    }
    text.push('\n');
    text
}

/// The boxes of a window.
fn boxes(path: &PathSection, stacks: bool) -> String {
    let what = match path.probe {
        ProbeKind::Noise => format!("where the time of {} went", format::plural(path.samples, "gap")),
        ProbeKind::Graph => {
            format!("where the latencies of {} went", format::plural(path.samples, "release"))
        }
        _ => format!("where the latencies of {} went", format::plural(path.samples, "wake-up")),
    };
    let place = format!("CPU {}{}, phase {}", path.cpu, thread(path.thread), path.phase);
    format!("{place}: {what} ({} in all)\n{}", format::ns(path.total_ns as i64), shares(path, stacks))
}

/// The boxes, with their shares.
pub(super) fn shares(path: &PathSection, stacks: bool) -> String {
    let mut text = String::new();
    for one in path.boxes.iter().take(ROWS).filter(|one| one.ns > 0) {
        let share = one.ns as f64 * 100.0 / path.total_ns.max(1) as f64;
        let _ = writeln!(
            text,
            "  {share:>5.1} %  {:<60} in {:>6}, at most {}",
            describe(one, path.cpu, path.probe),
            one.count,
            format::ns(one.max_ns as i64)
        );
        text.push_str(&stack(one.source.as_ref(), stacks));
    }
    text.push('\n');
    text
}

/// What could be changed, each with what it is against.
fn proposed(proposals: &[Proposal]) -> String {
    if proposals.is_empty() {
        return String::new();
    }
    let mut text = "What could be changed against it, by the catalogue and this run's audit:\n".to_owned();
    for one in proposals {
        let now = one.now.as_deref().filter(|now| !now.is_empty() && now.len() <= LONGEST_VALUE);
        let now =
            now.map_or_else(|| "is not set as isolation wants".to_owned(), |now| format!("is {now} here"));
        let kind = match (one.risky, one.choice) {
            (true, _) => ", a risk",
            (false, true) => ", a choice",
            (false, false) => "",
        };
        let _ = writeln!(text, "  {} {now}{kind}", one.mechanism);
        for seen in one.against.iter().take(AGAINST) {
            let _ = writeln!(text, "      against: {}", seen.what);
        }
        let typed = one.remedy.iter().map(|remedy| format!("do: {remedy}"));
        let applied = one.apply.iter().map(|apply| format!("or: {apply}"));
        let costs = one.cost.iter().map(|cost| format!("costs: {cost}"));
        for line in typed.chain(applied).chain(costs) {
            let _ = writeln!(text, "      {line}");
        }
    }
    text.push('\n');
    text
}

/// One sample of a probe as sentences.
fn sample_story(sample: &SamplePath, path: &PathSection, stacks: bool) -> String {
    let value = format::ns(sample.value_ns);
    let head = match path.probe {
        ProbeKind::Noise => format!("The gap that began at {} ns took {value}:\n", sample.t_ns),
        _ => due(sample),
    };
    story(head, sample, path, stacks)
}

/// The first line of a wake-up whose intended time is known.
pub(super) fn due(sample: &SamplePath) -> String {
    format!("The wake-up due at {} ns was {} late:\n", sample.t_ns, format::ns(sample.value_ns))
}

/// One sample as sentences, below its first line.
pub(super) fn story(head: String, sample: &SamplePath, path: &PathSection, stacks: bool) -> String {
    let mut text = head;
    for part in &sample.parts {
        let _ =
            writeln!(text, "  {:>9}  {}", format::ns(part.ns as i64), describe(part, path.cpu, path.probe));
        let held = part.blocking == Some(Blocking::KernelCode);
        text.push_str(&stack(part.source.as_ref(), stacks || held));
    }
    text.push('\n');
    text
}

/// What a box means; the steps of a wake-up are named, a gap has none.
pub(super) fn describe(part: &PathBox, cpu: u32, probe: ProbeKind) -> String {
    let gap = probe == ProbeKind::Noise;
    let Some(what) = part.what() else {
        return if gap { "nothing recorded took it".to_owned() } else { step_words(part, cpu) };
    };
    let by = part.source.as_ref().map(|source| format!(", by {}", who(source))).unwrap_or_default();
    let sure = match (part.blocking, part.confidence) {
        (Some(blocking), _) if blocking.is_inferred() => " (inferred)".to_owned(),
        // What kept the CPU may have done so for a part of the time only.
        (Some(_), Some(Confidence::Order)) => format!(" ({})", word(Confidence::Order)),
        _ => String::new(),
    };
    let step = if gap { String::new() } else { format!("; {}", step_words(part, cpu)) };
    format!("{what}{by}{sure}{step}")
}

fn step_words(part: &PathBox, cpu: u32) -> String {
    let place = if part.cpu == cpu { String::new() } else { format!(" on CPU {}", part.cpu) };
    match part.step {
        Step::TimerLate => {
            let elsewhere = part.confidence.filter(|_| part.label.is_none() && part.cpu != cpu);
            let known = elsewhere.map(|known| format!(" ({})", word(known))).unwrap_or_default();
            format!("until the timer expired{place}{known}")
        }
        Step::TimerHandler => format!("in the timer's handler{place}"),
        Step::WakeUp => format!("until the task was queued{place}"),
        Step::IpiInFlight => "until the IPI arrived".to_owned(),
        Step::Switch => "until the scheduler switched to it".to_owned(),
        Step::Return => "until it had read the clock".to_owned(),
        Step::SwitchUnseen => "until it had read the clock (the switch to it is not in the trace)".to_owned(),
        Step::NeverSlept => "late already, did not sleep".to_owned(),
    }
}
