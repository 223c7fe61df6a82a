//! `stillcore study statements`: what five papers state, each statement quoted, with what decides
//! it: its paper's own numbers, or experiments that were run.

use super::experiment::files;
use clap::Args;
use model::{Error, store};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use study::experiment::Judgement;
use study::papers::{Answered, Answers, Found, Source, Tally, Verdict, answers};

/// Schema of `--json`.
const SCHEMA: &str = "stillcore.study-statements/1";

/// Arguments of `study statements`.
#[derive(Debug, Args)]
pub(crate) struct StatementsArgs {
    /// Directories of studies that were run, or directories that hold such directories.
    #[arg(value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Only those of these papers [default: all].
    #[arg(long, value_delimiter = ',', value_name = "PAPERS")]
    paper: Vec<String>,
    /// Only those that are not decided.
    #[arg(long)]
    open: bool,
    /// Print a page of Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Experiments by the statement that they judge.
pub(crate) fn claims() -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in files::FILES {
        let experiment = files::read(text)?.map_err(anyhow::Error::new)?;
        for id in experiment.claims.iter().filter_map(|claim| claim.statement.as_ref()) {
            let names = claims.entry(id.get_ref().clone()).or_default();
            if !names.iter().any(|known| known == name) {
                names.push((*name).to_owned());
            }
        }
    }
    Ok(claims)
}

/// What is read of a study's answer.
#[derive(Debug, Deserialize)]
struct Study {
    schema: String,
    name: String,
    #[serde(default)]
    claims: Vec<Claim>,
}

#[derive(Debug, Deserialize)]
struct Claim {
    #[serde(default)]
    statement: Option<String>,
    #[serde(default)]
    condition: String,
    judgement: Judgement,
    #[serde(default)]
    why: String,
}

/// The verdicts on statements in these directories.
fn found(dirs: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
    let mut found = Vec::new();
    for dir in dirs {
        let studies = studies(dir)?;
        if studies.is_empty() {
            let expected = "the directory of a study that was run, or one that holds such directories";
            return Err(Error::invalid(dir.display(), "no study.json", expected).into());
        }
        for path in studies {
            let study: Study = store::read_json(&path)?;
            if study.schema != super::experiment::answer::SCHEMA {
                let expected = format!("{:?}", super::experiment::answer::SCHEMA);
                return Err(
                    Error::invalid(path.display(), format!("schema {:?}", study.schema), expected).into()
                );
            }
            found.extend(study.claims.into_iter().filter_map(|claim| {
                Some(Found {
                    statement: claim.statement?,
                    experiment: study.name.clone(),
                    condition: claim.condition,
                    judgement: claim.judgement,
                    why: claim.why,
                })
            }));
        }
    }
    Ok(found)
}

/// Answers of studies in a directory or right below it, in the order of their names.
fn studies(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let own = dir.join(ANSWER);
    if own.exists() {
        return Ok(vec![own]);
    }
    let failed = |source| Error::io("read", dir, source);
    let mut below = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path().join(ANSWER);
        if path.exists() {
            below.push(path);
        }
    }
    below.sort();
    Ok(below)
}

const ANSWER: &str = "study.json";

/// The papers, in the order of their files.
pub(crate) fn papers() -> anyhow::Result<Vec<String>> {
    let mut papers: Vec<String> = files::statements()?.all.into_iter().map(|one| one.paper).collect();
    papers.dedup();
    Ok(papers)
}

/// The statements of these papers with what is found in these directories.
pub(crate) fn answered(papers: &[String], dirs: &[PathBuf]) -> anyhow::Result<Answers> {
    let mut statements = files::statements()?;
    statements.all.retain(|one| papers.contains(&one.paper));
    Ok(answers(&statements, &files::published()?, &claims()?, &found(dirs)?))
}

pub(crate) fn run(args: &StatementsArgs) -> anyhow::Result<u8> {
    let papers = papers()?;
    if let Some(other) = args.paper.iter().find(|paper| !papers.contains(paper)) {
        let expected = papers.join(", ");
        return Err(Error::unknown("--paper", "paper", other, papers).expecting(expected).into());
    }
    let answers = answered(if args.paper.is_empty() { &papers } else { &args.paper }, &args.dirs)?;
    let shown: Vec<&Answered> =
        answers.statements.iter().filter(|one| !args.open || !one.decided()).collect();
    if args.json {
        let statements: Vec<_> = shown.iter().map(|one| object(one)).collect();
        println!("{}", json!({ "schema": SCHEMA, "papers": answers.papers, "statements": statements }));
    } else if args.markdown {
        print!("{}", markdown(&answers, &shown));
    } else {
        print!("{}", text(&answers, &shown));
    }
    Ok(0)
}

pub(crate) fn object(one: &Answered) -> serde_json::Value {
    let mut object = json!(one);
    object["decided"] = json!(one.decided());
    object["why_open"] = json!(one.why_open());
    object
}

/// A verdict in a line.
fn line(verdict: &Verdict) -> String {
    let condition =
        if verdict.condition.is_empty() { String::new() } else { format!(" on {}", verdict.condition) };
    match &verdict.by {
        Source::OwnNumbers => format!("{}: {}", verdict.word, verdict.why),
        Source::Experiment(name) => format!("{}{condition} ({name}): {}", verdict.word, verdict.why),
    }
}

/// How many are decided, a line a paper and one for all.
fn tallies(answers: &Answers) -> Vec<String> {
    let line = |name: &str, tally: &Tally| {
        format!(
            "{name}: {} of {} decided, {} of them by the paper's own numbers; {} not run or not decided by what was run, {} open",
            tally.decided, tally.all, tally.by_own_numbers, tally.not_run, tally.open
        )
    };
    let mut all = Tally::default();
    for tally in answers.papers.values() {
        all.all += tally.all;
        all.decided += tally.decided;
        all.by_own_numbers += tally.by_own_numbers;
        all.not_run += tally.not_run;
        all.open += tally.open;
    }
    let mut lines: Vec<String> = answers.papers.iter().map(|(name, tally)| line(name, tally)).collect();
    if lines.len() > 1 {
        lines.push(line("all", &all));
    }
    lines
}

fn text(answers: &Answers, shown: &[&Answered]) -> String {
    let mut page = String::new();
    for one in shown {
        let statement = &one.statement;
        let _ = writeln!(page, "{}  {}\n  \"{}\"", statement.id, statement.place, statement.quote);
        one.verdicts.iter().for_each(|verdict| _ = writeln!(page, "  - {}", line(verdict)));
        if let Some(why) = one.why_open() {
            let _ = writeln!(page, "  - {why}");
        }
    }
    tallies(answers).iter().for_each(|line| _ = writeln!(page, "{line}"));
    page
}

/// A table a section of a paper, in the order of the list.
pub(crate) fn markdown(answers: &Answers, shown: &[&Answered]) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut page = String::new();
    tallies(answers).iter().for_each(|line| _ = writeln!(page, "- {line}"));
    let mut section = String::new();
    for one in shown {
        let statement = &one.statement;
        let place = statement.place.split([' ', ',']).next().unwrap_or_default();
        let here = format!("{}, {place}", statement.paper);
        if here != section {
            let _ = write!(page, "\n## {here}\n\n| | where | statement | answer |\n|---|---|---|---|\n");
            section = here;
        }
        let mut answer: Vec<String> = one.verdicts.iter().map(line).collect();
        answer.extend(one.why_open());
        let number = statement.id.rsplit('.').next().unwrap_or_default();
        let _ = writeln!(
            page,
            "| {number} | {} | {} | {} |",
            cell(&statement.place),
            cell(&statement.quote),
            cell(&answer.join("<br>"))
        );
    }
    page
}
