//! Every statement with its verdicts: of its own numbers, and of experiments that were run.

use super::own::OwnFinding;
use super::statement::{Open, Statement, Statements};
use crate::experiment::{Judgement, Published};
use serde::Serialize;
use std::collections::BTreeMap;

/// A verdict of an experiment on a statement, or on a part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Of which statement.
    pub statement: String,
    /// The experiment.
    pub experiment: String,
    /// Kernel and setting; empty where the statement names them.
    pub condition: String,
    /// The judgement.
    pub judgement: Judgement,
    /// Why.
    pub why: String,
}

/// Where a verdict comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The numbers of its paper.
    OwnNumbers,
    /// An experiment.
    Experiment(String),
}

/// One verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Where it comes from.
    pub by: Source,
    /// Kernel and setting.
    pub condition: String,
    /// In a word or a few.
    pub word: &'static str,
    /// Whether it decides the statement.
    pub decides: bool,
    /// Why.
    pub why: String,
}

/// A statement with its verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answered {
    /// The statement.
    #[serde(flatten)]
    pub statement: Statement,
    /// What was found, one a source and condition.
    pub verdicts: Vec<Verdict>,
    /// Experiments that would decide it.
    pub experiments: Vec<String>,
}

impl Answered {
    /// Whether any verdict decides it.
    pub fn decided(&self) -> bool {
        self.verdicts.iter().any(|verdict| verdict.decides)
    }

    /// Why it is not decided, in a sentence.
    pub fn why_open(&self) -> Option<String> {
        if self.decided() {
            return None;
        }
        let open = |open: &Open| {
            let stand_in = if open.stand_in.is_empty() {
                String::new()
            } else {
                format!("; stand-in: {}", open.stand_in)
            };
            format!("{}: {}{stand_in}", open.needs.words(), open.why.trim_end_matches('.'))
        };
        let ran = self.verdicts.iter().any(|verdict| verdict.by != Source::OwnNumbers);
        let by_experiments = match (self.experiments.is_empty(), ran) {
            (true, _) => None,
            (false, true) => Some("not decided by what was run".to_owned()),
            (false, false) => Some(format!("not run: {}", self.experiments.join(", "))),
        };
        let missing = self.statement.open.as_ref().map(open);
        Some(by_experiments.into_iter().chain(missing).collect::<Vec<_>>().join("; "))
    }
}

/// How many statements of a paper are decided, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Statements.
    pub all: usize,
    /// Decided.
    pub decided: usize,
    /// Of these, by their paper's own numbers alone.
    pub by_own_numbers: usize,
    /// Not decided, though an experiment judges it: it was not run, or did not decide.
    pub not_run: usize,
    /// Not decided, and no experiment judges it.
    pub open: usize,
}

/// All statements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answers {
    /// In the order of the list.
    pub statements: Vec<Answered>,
    /// By paper.
    pub papers: BTreeMap<String, Tally>,
}

/// Sets every statement beside what was found. `claims`: experiments by the statement that they are
/// about.
pub fn answers(
    statements: &Statements,
    published: &Published,
    claims: &BTreeMap<String, Vec<String>>,
    found: &[Found],
) -> Answers {
    let answered = |statement: &Statement| {
        let own = statement.own.iter().map(|own| {
            let (finding, why) = own.judged(published);
            of_own(finding, why)
        });
        let experiments = claims.get(&statement.id).cloned().unwrap_or_default();
        Answered {
            statement: statement.clone(),
            verdicts: own.chain(together(&statement.id, found)).collect(),
            experiments,
        }
    };
    let all: Vec<Answered> = statements.all.iter().map(answered).collect();
    let mut papers: BTreeMap<String, Tally> = BTreeMap::new();
    for one in &all {
        let tally = papers.entry(one.statement.paper.clone()).or_default();
        tally.all += 1;
        let experiment =
            one.verdicts.iter().any(|verdict| verdict.decides && verdict.by != Source::OwnNumbers);
        match (one.decided(), experiment) {
            (true, true) => tally.decided += 1,
            (true, false) => {
                tally.decided += 1;
                tally.by_own_numbers += 1;
            }
            (false, _) if one.experiments.is_empty() => tally.open += 1,
            (false, _) => tally.not_run += 1,
        }
    }
    Answers { statements: all, papers }
}

fn of_own(finding: OwnFinding, why: String) -> Verdict {
    Verdict {
        by: Source::OwnNumbers,
        condition: String::new(),
        word: finding.words(),
        decides: finding.decides(),
        why,
    }
}

/// The parts of a statement that one experiment has judged under one condition, as one verdict: it
/// holds where every part does.
fn together(id: &str, found: &[Found]) -> Vec<Verdict> {
    let mut by: BTreeMap<(&str, &str), Vec<&Found>> = BTreeMap::new();
    for one in found.iter().filter(|one| one.statement == id) {
        by.entry((&one.experiment, &one.condition)).or_default().push(one);
    }
    let verdict = |((experiment, condition), parts): ((&str, &str), Vec<&Found>)| {
        let has = |judgement| parts.iter().any(|part| part.judgement == judgement);
        let judgement =
            [Judgement::Differs, Judgement::NotApplicable, Judgement::NotComparable, Judgement::Inconclusive]
                .into_iter()
                .find(|judgement| has(*judgement))
                .unwrap_or(Judgement::Agrees);
        let deciding = parts.iter().filter(|part| part.judgement == judgement);
        let why: Vec<&str> = deciding.map(|part| part.why.as_str()).collect();
        Verdict {
            by: Source::Experiment(experiment.to_owned()),
            condition: condition.to_owned(),
            word: judgement.words(),
            decides: matches!(judgement, Judgement::Agrees | Judgement::Differs),
            why: why.join("; "),
        }
    };
    by.into_iter().map(verdict).collect()
}
