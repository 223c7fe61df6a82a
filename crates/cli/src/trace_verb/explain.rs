//! `stillcore trace explain`: who interrupted the measured CPUs, and where the latency of each
//! wake-up went, in words.

use crate::folded::folded;
use crate::trace_verb::coverage_text::{NOT_RECORDED, Shows, answer, answer_of};
use crate::trace_verb::explain_text::{
    after_start, boxes, due, latest_first, proposed, rows, story, thread, worst,
};
use crate::trace_verb::options::TraceExplainArgs;
use analysis::{Analysis, Asked};
use attribution::attribute::path_section::{PathSection, SamplePath, TaskText};
use attribution::attribute::paths::Keep;
use attribution::attribute::section::Attribution;
use model::events::EventCatalogue;
use model::machine::Snapshot;
use model::run::{ProbeRecord, Run};
use model::sample::ProbeKind;
use model::{EventClass, Finding, Machine, store};
use report::advice::{Proposal, proposals};
use report::trace_answer::{self, Caused, Thread, Wakeup};
use report::{Facts, Place, format, of_sample, replaced};
use serde_json::json;
use std::fmt::Write;

/// The verbs that leave runs without a measurement.
const TOP: &str = "top";
const MONITOR: &str = "monitor";

/// Explains a run.
pub(super) fn run(args: &TraceExplainArgs) -> anyhow::Result<u8> {
    if !args.run.is_dir() {
        return super::any_trace::run(args);
    }
    if let Some(of_top) = of_top(args)? {
        return super::any_trace::run(&of_top);
    }
    if let Some(option) = super::any_trace::given(&args.threads) {
        let trace = args.run.join("trace.dat").display().to_string();
        return Err(
            model::Error::invalid(option, "an option of a trace that is explained by itself", trace).into()
        );
    }
    let keep = Keep { worst: args.of_each().max(Keep::default().worst), sample: args.sample };
    let asked = Asked { keep, trace_only: true, ..Asked::default() };
    let analysis = analysis::analyse_asked(&args.run, &asked)?;
    // A run that was not audited has nothing to propose.
    let findings = args.run.join(store::FINDINGS);
    let findings: Vec<Finding> = if findings.exists() { store::read_json(&findings)? } else { Vec::new() };
    let proposals = proposals(&analysis, &findings, &EventCatalogue::embedded()?);
    if let Some(wanted) = args.sample {
        anyhow::ensure!(
            analysis.paths.iter().flat_map(|path| &path.worst).any(|sample| sample.t_ns == wanted),
            "{}: no wake-up that was late and is in the trace was due at {} s: expected the time of one, as --worst N lists them",
            args.run.display(),
            format::instant(wanted)
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
        let run = model::run::stored::read_run(&args.run)?;
        // Without it no hypervisor is suspected; the list of suspects never claims to be whole.
        let machine = args.run.join(store::MACHINE_BEFORE);
        let machine = if machine.exists() {
            store::read_json::<Snapshot>(&machine)?.machine
        } else {
            Machine::default()
        };
        let facts = Facts { run: &run, machine: &machine, findings: &findings, blocking: &analysis.blocking };
        print!("{}", text(&analysis, &facts, &proposals, args));
    }
    Ok(0)
}

/// The trace of a run that one of these has left, by itself: nobody was measured there, and no
/// program watched.
fn of_top(args: &TraceExplainArgs) -> anyhow::Result<Option<TraceExplainArgs>> {
    let run = model::run::stored::read_run(&args.run)?;
    if ![TOP, MONITOR].contains(&report::verb(&run).as_str()) {
        return Ok(None);
    }
    let Some(trace) = run.trace else { return Ok(None) };
    let mut of_top = TraceExplainArgs { run: args.run.join(trace.file), ..args.clone() };
    of_top.threads.cpus.get_or_insert(run.measured_cpus);
    Ok(Some(of_top))
}

/// What ran on the measured CPUs, and its source.
fn sources_of(analysis: &Analysis) -> Vec<Caused> {
    analysis.attribution.iter().flat_map(|window| trace_answer::caused(window.cpu, &window.rows)).collect()
}

/// The wake-ups of the probes that the user asked for.
fn wakeups(analysis: &Analysis, args: &TraceExplainArgs) -> anyhow::Result<Vec<Wakeup>> {
    let run = model::run::stored::read_run(&args.run)?;
    let paths = chosen(analysis, args).into_iter().filter(|path| path.probe != ProbeKind::Noise);
    let mut wakeups = Vec::new();
    for path in paths {
        let key = (path.probe, &path.phase, path.cpu, path.thread);
        let of = |probe: &&ProbeRecord| (probe.probe(), &probe.phase, probe.cpu, probe.thread) == key;
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

fn text(analysis: &Analysis, facts: &Facts, proposals: &[Proposal], args: &TraceExplainArgs) -> String {
    let mut text = String::new();
    let paths = chosen(analysis, args);
    if args.sample.is_none() {
        if analysis.watch.is_some() {
            text.push_str(
                "This run is of a watched program: `stillcore trace watch --from RUN` prints it again, and `stillcore trace explain RUN/trace.dat` \
                 prints what its trace shows of any thread.\n",
            );
        } else if analysis.attribution.is_empty() {
            text.push_str("There is no trace in this run, so nobody can be named.\n");
        }
    }
    text.push_str(&stories(&paths, facts, args));
    for limit in facts.run.limits.iter().filter(|_| !paths.is_empty()) {
        text.push_str(&folded(&format!("note: {limit}"), "  "));
    }
    if args.sample.is_none() {
        paths.iter().for_each(|path| text.push_str(&boxes(path, args.stacks)));
        for window in analysis.attribution.iter().filter(|window| !window.rows.is_empty()) {
            text.push_str(&sources(window, &kept(facts.run), args.stacks));
        }
        text.push_str(&proposed(proposals));
    }
    text.push_str(&shown(analysis, args));
    for statement in &analysis.losses.statements {
        let _ = writeln!(text, "note: {statement}");
    }
    text
}

/// The latest wake-ups, then the longest gaps, each taken apart.
fn stories(paths: &[PathSection], facts: &Facts, args: &TraceExplainArgs) -> String {
    let of_kind = |gaps: bool| {
        let paths: Vec<&PathSection> =
            paths.iter().filter(|path| (path.probe == ProbeKind::Noise) == gaps).collect();
        let stories = paths.iter().flat_map(|path| {
            path.worst.iter().map(|sample| (sample.value_ns, sample_story(sample, path, facts, args)))
        });
        latest_first(stories.collect(), args.in_all(paths.len()))
    };
    of_kind(false) + &of_kind(true)
}

/// One sample of a probe as sentences.
fn sample_story(sample: &SamplePath, path: &PathSection, facts: &Facts, args: &TraceExplainArgs) -> String {
    // As a measurement counts that says when it stopped: from the first release on.
    let probes = facts.run.probes.iter().filter(|one| (&one.phase, one.probe()) == (&path.phase, path.probe));
    let start_ns = probes.map(|probe| probe.t0_ns).min();
    let after = start_ns.map(|t0_ns| after_start("measurement", sample.t_ns, t0_ns));
    let after = after.map(|after| format!(", {after}")).unwrap_or_default();
    let place = format!("CPU {}{}, phase {}{after}", path.cpu, thread(path.thread), path.phase);
    let head = match path.probe {
        ProbeKind::Noise => {
            let (at, took) = (format::instant(sample.t_ns), format::ns(sample.value_ns));
            format!("The gap that began at {at} s took {took} ({place}):\n")
        }
        _ => due(sample, &place),
    };
    let place = Place { probe: path.probe, phase: &path.phase, cpu: path.cpu };
    let verdict = of_sample(facts, place, sample);
    let mut text = story(head, sample, path, args.stacks);
    // A line of its own where the steps end; the blank line moves behind it.
    text.truncate(text.trim_end().len());
    text.push('\n');
    text.push_str(&folded(&format!("  largest part: {}", verdict.sure_words()), "    "));
    // Not where it is said already: in the sentence above, or as a part of its own.
    let is_said = |task: &&TaskText| {
        verdict.cause.contains(&replaced(task, path.cpu))
            || sample
                .parts
                .iter()
                .any(|part| part.class == Some(EventClass::Switch) && part.label.as_ref() == Some(&task.comm))
    };
    if let Some(task) = sample.replaced.as_ref().filter(|task| !is_said(task)) {
        text.push_str(&folded(&format!("  meanwhile: {}", replaced(task, path.cpu)), "    "));
    }
    if args.sample.is_some() {
        for line in verdict.against_words() {
            // Not folded: most are commands, to be pasted.
            let _ = writeln!(text, "  against it: {line}");
        }
    }
    text.push('\n');
    text
}

/// How a run comes to show more.
const RECORD: &str = "To record more: measure again with --trace --stacks (stacks of who asked) or --kprobes (senders of IPIs before 6.4)\n";

/// What the kernel of the run shows of sources.
fn shown(analysis: &Analysis, args: &TraceExplainArgs) -> String {
    let (classes, waits) = (&analysis.coverage[..], &analysis.blocking[..]);
    let shows = Shows { of: "this kernel", absent: NOT_RECORDED, classes, waits };
    let answer = match args.sample {
        None => answer(analysis.attribution.iter().flat_map(|window| &window.rows), analysis.paths.iter()),
        Some(_) => answer_of(chosen(analysis, args).iter().flat_map(|path| &path.worst)),
    };
    if args.sources || answer.is_empty() {
        return shows.all() + RECORD;
    }
    shows.limits(&answer, ", and what records more")
}

/// Of a trace that is kept around late samples: that the rows below are of all that was kept, so
/// that nobody takes them for what held up one of them.
fn kept(run: &Run) -> String {
    let Some(record) = run.trace.as_ref().and_then(|trace| trace.snapshots.as_ref()) else {
        return String::new();
    };
    let spans = record.kept.iter().map(|kept| kept.t1_ns.abs_diff(kept.t0_ns));
    let ns = spans.fold(0, u64::saturating_add);
    format!(", in the {} of trace kept, warm-up included", format::ns(i64::try_from(ns).unwrap_or(i64::MAX)))
}

fn sources(window: &Attribution, kept: &str, stacks: bool) -> String {
    let all = window.exact + window.by_order + window.unknown;
    let mut text = format!(
        "CPU {}{}, {} window of phase {}{kept}: {all} events asked for by somebody; source exact for {}, by order for {}, unknown for {}\n",
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
