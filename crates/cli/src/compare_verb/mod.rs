//! `stillcore compare`: groups of runs against each other, a published method beside ours, the best
//! of several, and a gate.

mod chi2_text;
mod inputs;
mod markdown;
mod next;
mod text;
mod turns;

use crate::shell::in_shell;
use crate::verbs::end_at_once;
use analysis::groups::best::{Ranking, best};
use analysis::groups::chi2::{Chi2, chi2};
use analysis::groups::condition::{self, Condition, Judged};
use analysis::groups::figures::Figure;
use analysis::groups::measured::MeasuredRun;
use analysis::groups::{GroupComparison, Question, admitted, compare};
use clap::{Args, ValueEnum};
use inputs::{Group, Runs};
use model::sample::ProbeKind;
use model::store;
use serde::Serialize;
use serde_json::json;
use stats::decide::Margin;
use std::path::PathBuf;
use std::time::Duration;
use sys::signals::EndSignals;

/// Schema of the JSON answer.
const SCHEMA: &str = "stillcore.compare/1";

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Runs of the base; with --best, one argument per configuration. A run directory, a result of
    /// cyclictest, oslat, rtla or jitterdebugger, a directory of these, such as one of measure
    /// --runs N, or NAME=PATH[,PATH]. With --best, arguments with the same NAME form one
    /// configuration.
    #[arg(required_unless_present = "commands", value_name = "RUN")]
    runs: Vec<String>,
    /// Runs to compare with the base [default: the second of two].
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with = "best")]
    with: Vec<String>,
    /// Rank the configurations by --loss; list those that cannot be distinguished from the best.
    #[arg(long)]
    best: bool,
    /// Statistic to minimize: p99.9 and the like, max, exceed:TIME, stolen.
    #[arg(long, value_name = "FIGURE", value_parser = Figure::parse, default_value = "p99.9", requires = "best")]
    loss: Figure,
    /// Method: whole runs, or also the chi-square selection of IEEE Access 8 (2020) with the first
    /// group as reference.
    #[arg(long, value_name = "HOW", default_value = "runs")]
    method: Method,
    /// With --method chi2, directory for a Q-Q plot of each group against the reference, with
    /// regression line: qq-1.svg and so on.
    #[arg(long, value_name = "DIR")]
    qq: Option<PathBuf>,
    /// Smallest relevant difference: a time, a percentage of the base, or both: 2us, 5%, 2us,5%
    /// [default: 1us or 5%, the larger].
    #[arg(long, value_name = "TIME|%", value_parser = margin)]
    margin: Option<Margin>,
    /// Compare only these statistics, and not the whole distributions.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Figure::parse)]
    figures: Vec<Figure>,
    /// Also compare the share of samples of at least this length; for noise, their rate.
    #[arg(long, value_name = "TIME", value_parser = model::quantity::duration)]
    over: Vec<Duration>,
    /// Only this probe: wakeup, noise, periodic.
    #[arg(long, value_name = "NAME", value_parser = probe)]
    probe: Option<ProbeKind>,
    /// Phase to compare [default: the disturbed phase, if every run has it].
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// Series of rtla timerlat: irq, thread or user [default: thread].
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
    /// Also compare what was measured differently; report the differences.
    #[arg(long)]
    anyway: bool,
    /// Exit with status 2 if this holds, 1 if it cannot be judged for want of runs or samples or
    /// because the runs were measured differently, else 0: "p99 > +5us", "max > 100us", "any
    /// worse", "p50 not equivalent". Repeatable: one that holds is enough. What these runs cannot
    /// tell does not hold, and passes; with maybe in front it holds: "maybe p99 worse", "maybe any
    /// worse", "maybe p99 > +10%". A verdict on a named figure allows for the named ones only, so
    /// it needs fewer runs than any.
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse, conflicts_with = "best")]
    fail_if: Vec<Condition>,
    /// Write a Markdown summary to this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a page with forest and shift plots to this file, for offline use.
    #[arg(long, value_name = "FILE", conflicts_with = "best")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs that it makes itself.
    #[command(flatten)]
    turns: turns::Turns,
}

/// Method of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Whole runs as the unit.
    Runs,
    /// Also the published selection.
    Chi2,
}

/// Result of the published method for one group.
#[derive(Debug, Serialize)]
struct Selected {
    /// Its name.
    name: String,
    /// The probe.
    probe: ProbeKind,
    /// The test.
    #[serde(flatten)]
    chi2: Chi2,
}

fn margin(text: &str) -> Result<Margin, Box<dyn std::error::Error + Send + Sync>> {
    let mut margin = Margin::default();
    for part in text.split(',') {
        match part.strip_suffix('%') {
            Some(percent) => {
                let share =
                    percent.parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent >= 0.0);
                let share = share
                    .ok_or_else(|| model::Error::invalid("percentage", format!("{part:?}"), "such as 5%"))?;
                margin.share = Some(share / 100.0);
            }
            None => margin.ns = Some(model::quantity::duration(part)?.as_nanos() as f64),
        }
    }
    Ok(margin)
}

fn probe(name: &str) -> Result<ProbeKind, String> {
    let known = [ProbeKind::Wakeup, ProbeKind::Noise, ProbeKind::Periodic];
    known
        .into_iter()
        .find(|probe| probe.name() == name)
        .ok_or_else(|| format!("invalid probe {name:?}: expected wakeup, noise or periodic"))
}

/// Compares; 2 when a condition holds.
pub(crate) fn run(args: &CompareArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let question = question(args);
    args.turns.check()?;
    if !args.turns.commands.is_empty() {
        return turns::run(args, &question, signals);
    }
    end_at_once(signals)?;
    if args.best { ranked(args, &question) } else { compared(args, &question) }
}

fn question(args: &CompareArgs) -> Question {
    let over = args.over.iter().map(|time| Figure::Exceed(time.as_nanos().min(i64::MAX as u128) as i64));
    Question {
        probe: args.probe,
        phase: args.phase.clone(),
        figures: args.figures.clone(),
        more_figures: over.chain(condition::named(&args.fail_if)).collect(),
        asked: condition::asked(&args.fail_if),
        margin: args.margin.unwrap_or_default(),
        whole: args.figures.is_empty(),
        anyway: args.anyway,
    }
}

fn compared(args: &CompareArgs, question: &Question) -> anyhow::Result<u8> {
    let series = args.series.as_deref();
    let (base, other) = match (&args.runs[..], &args.with[..]) {
        ([base, other], []) => (inputs::group(base, series)?.1, inputs::group(other, series)?.1),
        (runs, []) => anyhow::bail!(
            "{} were given: two are compared with each other; more need --with before the second group, or --best",
            if runs.len() == 1 { "runs of one side".to_owned() } else { format!("{} groups", runs.len()) }
        ),
        (base, with) => (inputs::runs(base, series)?, inputs::runs(with, series)?),
    };
    conclude(args, question, base, other, None)
}

/// Compares two groups of runs and prints; `turns`: how they were made, if by this call.
fn conclude(
    args: &CompareArgs,
    question: &Question,
    base: Runs,
    other: Runs,
    turns: Option<&serde_json::Value>,
) -> anyhow::Result<u8> {
    let left_out = inputs::left_out(&[base.left_out, other.left_out].concat());
    let (base, other) = (base.runs, other.runs);
    let mut comparison = compare(&base, &other, question).map_err(anyhow::Error::msg)?;
    comparison.warnings.extend(left_out);
    let next = next::next(&comparison, [&base, &other], &typed(args), turns::typed(&args.turns));
    let selected = match args.method {
        Method::Runs => Vec::new(),
        Method::Chi2 => selected(&[("base".to_owned(), base), ("other".to_owned(), other)], question)?,
    };
    let judged: Vec<Judged> = args.fail_if.iter().map(|condition| condition.judge(&comparison)).collect();
    plots(args, &selected)?;
    if let Some(file) = &args.markdown {
        store::write_whole(file, markdown::comparison(&comparison, &judged).as_bytes())?;
    }
    if let Some(file) = &args.html {
        store::write_whole(file, report::comparison_page(&comparison, &judged, Some(next))?.as_bytes())?;
    }
    if args.json {
        let mut answer = answer(&comparison, &selected, &judged)?;
        turns.into_iter().for_each(|turns| answer["turns"] = turns.clone());
        println!("{answer}");
    } else {
        print!("{}", text::comparison(&comparison));
        print!("{}", chi2_text::page(&selected));
        print!("{}", text::gate(&judged));
    }
    gate(&judged)
}

/// What is compared, as a user would type it again behind `stillcore compare`.
fn typed(args: &CompareArgs) -> String {
    if let Some(commands) = turns::typed(&args.turns) {
        return format!("-- {commands}");
    }
    let with = if args.with.is_empty() { &[][..] } else { &["--with".to_owned()][..] };
    let words = args.runs.iter().chain(with).chain(&args.with);
    let words: Vec<String> = words.map(|word| in_shell(word)).collect();
    words.join(" ")
}

/// The exit status by the conditions. A gate that cannot judge must not let anything through.
fn gate(judged: &[Judged]) -> anyhow::Result<u8> {
    if let Some(open) = judged.iter().find(|judged| judged.holds.is_none())
        && !judged.iter().any(|judged| judged.holds == Some(true))
    {
        anyhow::bail!("condition {:?} cannot be judged: {}", open.condition, open.sentence);
    }
    Ok(if judged.iter().any(|judged| judged.holds == Some(true)) { 2 } else { 0 })
}

fn answer(
    comparison: &GroupComparison,
    selected: &[Selected],
    judged: &[Judged],
) -> anyhow::Result<serde_json::Value> {
    let mut answer = serde_json::to_value(comparison)?;
    answer["schema"] = json!(SCHEMA);
    answer["conditions"] = serde_json::to_value(judged)?;
    if !selected.is_empty() {
        answer["chi2"] = serde_json::to_value(selected)?;
    }
    Ok(answer)
}

fn ranked(args: &CompareArgs, question: &Question) -> anyhow::Result<u8> {
    let series = args.series.as_deref();
    let (groups, left_out): (Vec<Group>, _) = inputs::groups(&args.runs, series)?;
    if groups.len() < 2 {
        anyhow::bail!(
            "--best ranks at least two configurations, one argument each; only {} was given",
            groups[0].0
        );
    }
    let mut ranking = best(&groups, args.loss, question).map_err(anyhow::Error::msg)?;
    ranking.warnings.extend(inputs::left_out(&left_out));
    let selected = match args.method {
        Method::Runs => Vec::new(),
        Method::Chi2 => selected(&groups, question)?,
    };
    plots(args, &selected)?;
    if let Some(file) = &args.markdown {
        store::write_whole(file, markdown::ranking(&ranking).as_bytes())?;
    }
    if args.json {
        println!("{}", ranking_answer(&ranking, &selected)?);
    } else {
        print!("{}", text::ranking(&ranking));
        print!("{}", chi2_text::page(&selected));
    }
    Ok(0)
}

fn ranking_answer(ranking: &Ranking, selected: &[Selected]) -> anyhow::Result<serde_json::Value> {
    let mut answer = serde_json::to_value(ranking)?;
    answer["schema"] = json!(SCHEMA);
    if !selected.is_empty() {
        answer["chi2"] = serde_json::to_value(selected)?;
    }
    Ok(answer)
}

/// Writes the Q-Q plots, if the user asked for them.
fn plots(args: &CompareArgs, selected: &[Selected]) -> anyhow::Result<()> {
    let Some(dir) = &args.qq else { return Ok(()) };
    if args.method != Method::Chi2 {
        anyhow::bail!("--qq plots what --method chi2 compares; it was not asked for");
    }
    std::fs::create_dir_all(dir).map_err(|source| model::Error::io("create", dir, source))?;
    for (at, one) in selected.iter().enumerate() {
        let Some(found) = &one.chi2.qq else { continue };
        let points: Vec<[f64; 2]> = found.points_ns.iter().map(|pair| pair.map(|ns| ns as f64)).collect();
        let title = format!("{} against the reference, {}", one.name, one.probe.name());
        let line = Some([found.slope, found.intercept_ns]);
        let names = ["quantile of the reference", "quantile of the group"];
        if let Some(svg) = report::svg::qq("qq", &title, names, &points, line) {
            let file = dir.join(format!("qq-{}.svg", at + 1));
            store::write_whole(&file, report::svg::standalone(&svg).as_bytes())?;
        }
    }
    Ok(())
}

/// The published method: every group against the first.
fn selected(groups: &[Group], question: &Question) -> anyhow::Result<Vec<Selected>> {
    let runs: Vec<&[MeasuredRun]> = groups.iter().map(|(_, runs)| &runs[..]).collect();
    let (matched, _) = admitted(&runs, question).map_err(anyhow::Error::msg)?;
    let mut selected = Vec::new();
    for one in matched.iter().filter(|one| one.probe != ProbeKind::Noise) {
        for (windows, (name, _)) in one.groups.iter().zip(groups).skip(1) {
            let fit = chi2(&one.groups[0], windows).ok_or_else(|| {
                anyhow::anyhow!(
                    "--method chi2: {name} or its reference has no samples, or spans more than a second"
                )
            })?;
            selected.push(Selected { name: name.clone(), probe: one.probe, chi2: fit });
        }
    }
    if selected.is_empty() {
        anyhow::bail!("--method chi2 is a method for latencies, and the runs share none");
    }
    Ok(selected)
}
