//! The page of an experiment: what was published beside what was measured, and the next command.

use super::files::words;
use crate::shell::in_shell;
use crate::study_verb::experiment::options::AnswerOptions;
use report::precision::{Precision, Quantity};
use report::{Judged, JudgedVerdict, PageNext, StudyFigure, StudyPage, StudySheet, Times};
use std::path::Path;
use study::experiment::{Beside, Claimed, Concluded, Experiment, Judgement, Sheet, Summary};

/// What a reader has to know of times in emulated guests.
pub(super) const EMULATED: &str =
    "guests are emulated: events are counted exactly there, times are not those of a machine";

/// What an answer has besides its conclusions.
pub(super) struct Parts<'a> {
    pub(super) sheets: &'a [Sheet],
    pub(super) notes: &'a [String],
    pub(super) worth: &'a [String],
    pub(super) figures: Vec<StudyFigure>,
    pub(super) out: &'a Path,
}

/// The study as its page shows it.
pub(super) fn page(
    args: &AnswerOptions,
    experiment: &Experiment,
    concluded: &Concluded,
    parts: Parts<'_>,
) -> StudyPage {
    let mut places: Vec<String> = concluded.groups.iter().flat_map(|group| group.places.clone()).collect();
    places.sort();
    places.dedup();
    let ok: usize = concluded.groups.iter().map(|group| group.ok).sum();
    let cells: usize = concluded.groups.iter().map(|group| group.cells).sum();
    let conditions = [
        ("on", places.join("; ")),
        ("cells", format!("{ok} of {cells} with values")),
        ("scale", args.scale.to_string()),
        ("seed", experiment.seed.to_string()),
        ("program", format!("stillcore {}", env!("CARGO_PKG_VERSION"))),
        ("command", command(args, experiment)),
    ];
    let sheet = |sheet: &Sheet| StudySheet {
        title: sheet.title.clone(),
        head: sheet.head.clone(),
        rows: sheet.rows.clone(),
    };
    let (warnings, notes): (Vec<&String>, Vec<&String>) =
        parts.notes.iter().partition(|note| *note == EMULATED);
    StudyPage {
        name: experiment.name.get_ref().clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        made_by: "study run".to_owned(),
        cells: [ok, args.cells.max(cells)],
        judged: judged(experiment, concluded),
        figures: parts.figures,
        sheets: parts.sheets.iter().map(sheet).collect(),
        conditions: conditions.map(|(name, condition)| (name.to_owned(), condition)).to_vec(),
        worth: parts.worth.to_vec(),
        warnings: warnings.into_iter().cloned().collect(),
        notes: notes.into_iter().cloned().collect(),
        next: Some(next(args, experiment, concluded, parts.out)),
    }
}

fn command(args: &AnswerOptions, experiment: &Experiment) -> String {
    format!("stillcore study run {} --scale {}", experiment.name.get_ref(), args.scale)
}

/// The cells that are missing; else more of the same where it does not decide; else what the study
/// means for the statements of the papers.
fn next(args: &AnswerOptions, experiment: &Experiment, concluded: &Concluded, out: &Path) -> PageNext {
    let dir = in_shell(&out.display().to_string());
    let done: usize = concluded.groups.iter().map(|group| group.cells).sum();
    if done < args.cells {
        return PageNext {
            command: format!("{} --out {dir}", command(args, experiment)),
            why: format!(
                "{} of {} cells have no result; the same directory resumes",
                args.cells - done,
                args.cells
            ),
        };
    }
    let numbers = concluded.published.iter().map(|one| one.judgement);
    let open = numbers.chain(concluded.claims.iter().map(|one| one.judgement));
    if open.into_iter().any(|judgement| judgement == Judgement::Inconclusive) {
        let name = experiment.name.get_ref();
        return PageNext {
            command: format!("stillcore study run {name} --scale {} --out {name}-longer", args.scale * 4.0),
            why: "four times as long, for what these results do not decide".to_owned(),
        };
    }
    if concluded.claims.iter().any(|claim| claim.statement.is_some()) {
        return PageNext {
            command: format!("stillcore study statements {dir}"),
            why: "every statement of the papers with what this study says of it".to_owned(),
        };
    }
    PageNext {
        command: "stillcore study list".to_owned(),
        why: "the other experiments, with what each needs".to_owned(),
    }
}

fn class(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Agrees => "good",
        Judgement::Differs => "bad",
        Judgement::Inconclusive => "warn",
        Judgement::NotComparable | Judgement::NotApplicable => "dim",
    }
}

fn judged(experiment: &Experiment, concluded: &Concluded) -> Vec<Judged> {
    let numbers = concluded.published.iter().map(|one| number(experiment, one));
    numbers.chain(claims(&concluded.claims)).collect()
}

fn number(experiment: &Experiment, one: &Beside) -> Judged {
    let value = experiment.value(&one.value);
    let unit = value.map_or("", |value| value.unit.as_str());
    let title = value.map_or(one.value.as_str(), |value| value.title.as_str());
    let levels = one.at.values().cloned().collect::<Vec<_>>().join(" ");
    let levels = if levels.is_empty() { String::new() } else { format!(" ({levels})") };
    let comparable = !matches!(one.judgement, Judgement::NotComparable | Judgement::NotApplicable);
    Judged {
        what: format!("{title}{levels}; {}", one.system),
        group: "Published values".to_owned(),
        published: Some(format!("{} {unit}", one.published).trim_end().to_owned()),
        measured: measured(&one.measured).map(|number| format!("{number} {unit}").trim_end().to_owned()),
        times: times(one).filter(|_| comparable),
        verdicts: vec![JudgedVerdict {
            word: one.judgement.words().to_owned(),
            class: class(one.judgement),
            why: one.why.clone(),
            own: false,
        }],
    }
}

/// The median of the repetitions, with the digits that they leave certain.
pub(super) fn measured(summary: &Summary) -> Option<String> {
    let range = summary.low.zip(summary.high).map(|(low, high)| [low, high]);
    Some(Precision::of(range).text(summary.median?, Quantity::Number))
}

fn times(one: &Beside) -> Option<Times> {
    if one.published <= 0.0 {
        return None;
    }
    let (low, high) = one.measured.low.zip(one.measured.high)?;
    let of = |value: f64| value / one.published;
    Some(Times { median: of(one.measured.median?), range: [of(low), of(high)] })
}

/// Statements, those of a paper under its name; one of several conditions stands once.
fn claims(claims: &[Claimed]) -> Vec<Judged> {
    let mut judged: Vec<Judged> = Vec::new();
    for claim in claims {
        let on = if claim.condition.is_empty() { String::new() } else { format!(" on {}", claim.condition) };
        let verdict = JudgedVerdict {
            word: format!("{}{on}", claim.judgement.words()),
            class: class(claim.judgement),
            why: claim.why.clone(),
            own: false,
        };
        let what = words(claim);
        if let Some(known) = judged.iter_mut().find(|known| known.what == what) {
            known.verdicts.push(verdict);
            continue;
        }
        let paper = claim.statement.as_ref().and_then(|id| id.split('.').next());
        judged.push(Judged {
            what,
            group: paper.map_or_else(
                || "Questions of this study".to_owned(),
                |paper| format!("Statements of {paper}"),
            ),
            verdicts: vec![verdict],
            ..Judged::default()
        });
    }
    judged.sort_by_key(|one| one.group.starts_with("Questions"));
    judged
}
