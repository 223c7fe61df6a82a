//! The report of a replication: how many statements are decided, each statement with its answer,
//! and the studies behind them.

use super::chosen::Chosen;
use super::kept::Kept;
use crate::shell::in_shell;
use crate::study_verb::statements;
use report::{Judged, JudgedVerdict, PageNext, StudyPage, StudySheet, format};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use study::papers::{Answered, Answers, Source, StatementOf, Verdict};

const SCHEMA: &str = "stillcore.study-replicate/1";

/// What the report is made of, besides the answers.
pub(super) struct Report<'a> {
    pub(super) paper: &'a str,
    pub(super) chosen: &'a Chosen,
    pub(super) kept: &'a Kept,
    /// Experiments that came to their end.
    pub(super) ran: usize,
    /// Those that failed, or had no time when their turn came, and why.
    pub(super) not_run: &'a [String],
    pub(super) out: &'a Path,
}

impl Report<'_> {
    /// In a sentence.
    fn verdict(&self, answers: &Answers) -> String {
        let (all, decided) = answers
            .papers
            .values()
            .fold((0, 0), |(all, decided), tally| (all + tally.all, decided + tally.decided));
        format!(
            "{}: {decided} of {all} statements decided, by {} experiments at scale {} in {}",
            self.paper,
            self.ran,
            self.chosen.scale,
            format::span((self.kept.spent_s * 1e9) as u64)
        )
    }

    /// What was not run, and why.
    fn notes(&self) -> Vec<String> {
        let left_out = self.chosen.left_out.iter().map(|one| {
            let span = format::span(one.left.as_nanos() as u64);
            format!("{}: no time left (it takes {span})", one.name)
        });
        let refused =
            self.chosen.refused.iter().map(|(name, why)| format!("{name}: cannot be run so: {why}"));
        left_out.chain(refused).chain(self.not_run.iter().cloned()).collect()
    }

    pub(super) fn text(&self, answers: &Answers) -> String {
        let described = self.described(answers);
        let mut page = format!("{}\n{}\n", report::study_sentence(&described), self.verdict(answers));
        self.notes().iter().for_each(|note| _ = writeln!(page, "note: {note}"));
        let _ = writeln!(
            page,
            "every statement with its answer: {}, {}",
            self.out.join("replicate.md").display(),
            self.out.join("replicate.html").display()
        );
        if let Some(next) = &described.next {
            let _ = writeln!(page, "next: {}\n  {}", next.command, next.why);
        }
        page
    }

    pub(super) fn markdown(&self, answers: &Answers) -> String {
        let shown: Vec<&Answered> = answers.statements.iter().collect();
        let sentence = report::study_sentence(&self.described(answers));
        let mut page = format!("# {sentence}\n\n{}\n\n", self.verdict(answers));
        page.push_str(&statements::markdown(answers, &shown));
        if !self.notes().is_empty() {
            page.push_str("\n## Not run\n\n");
            self.notes().iter().for_each(|note| _ = writeln!(page, "- {note}"));
        }
        page
    }

    pub(super) fn object(&self, answers: &Answers) -> Value {
        json!({
            "schema": SCHEMA,
            "paper": self.paper,
            "scale": self.chosen.scale,
            "spent_s": self.kept.spent_s,
            "experiments": self.chosen.fitting.iter().map(|one| &one.name).collect::<Vec<_>>(),
            "notes": self.notes(),
            "papers": answers.papers,
            "statements": answers.statements.iter().map(statements::object).collect::<Vec<_>>(),
        })
    }

    pub(super) fn html(&self, answers: &Answers) -> Result<String, report::Error> {
        report::study_page(&self.described(answers))
    }

    /// What the page shows.
    fn described(&self, answers: &Answers) -> StudyPage {
        let row = |one: &super::chosen::Wanted| {
            vec![one.name.clone(), one.title.clone(), one.cells.to_string(), one.decides.len().to_string()]
        };
        let head = ["experiment", "what it shows", "cells", "can decide"];
        let alone = answers.papers.len() == 1;
        let mut judged: Vec<Judged> = answers.statements.iter().map(|one| judged(one, alone)).collect();
        judged.sort_by(|a, b| a.group.cmp(&b.group));
        StudyPage {
            name: format!("replicate {}", self.paper),
            title: format!("Statements of {}", if alone { self.paper } else { "the papers" }),
            source: format!("{}; every statement quoted, with what decides it", self.verdict(answers)),
            made_by: "study replicate".to_owned(),
            judged,
            sheets: vec![StudySheet {
                title: "Experiments".to_owned(),
                head: head.map(str::to_owned).to_vec(),
                rows: self.chosen.fitting.iter().map(row).collect(),
            }],
            conditions: vec![
                ("scale".to_owned(), self.chosen.scale.to_string()),
                ("program".to_owned(), format!("stillcore {}", env!("CARGO_PKG_VERSION"))),
            ],
            notes: self.notes(),
            next: Some(self.next()),
            ..StudyPage::default()
        }
    }

    /// More time where there was too little, else what is still open.
    fn next(&self) -> PageNext {
        let out = in_shell(&self.out.display().to_string());
        let left: Duration = self.chosen.left_out.iter().map(|one| one.left).sum();
        let late = self.not_run.len();
        if left.is_zero() && late == 0 {
            return PageNext {
                command: format!("stillcore study statements {out} --open"),
                why: "what is not decided, each with what it needs".to_owned(),
            };
        }
        let hours = ((self.kept.spent_s + left.as_secs_f64()) / 3600.0).ceil().max(1.0);
        PageNext {
            command: format!("stillcore study replicate {} --within {hours}h --out {out}", self.paper),
            why: format!(
                "{} did not run; the same directory resumes where it was",
                format::plural((self.chosen.left_out.len() + late) as u64, "experiment")
            ),
        }
    }
}

/// A statement with all its verdicts, and why it is open where it is; `alone`: of one paper, listed
/// by what it is about.
fn judged(one: &Answered, alone: bool) -> Judged {
    let line = |verdict: &Verdict| {
        let name = match &verdict.by {
            Source::OwnNumbers => String::new(),
            Source::Experiment(name) => format!("{name}: "),
        };
        let on =
            if verdict.condition.is_empty() { String::new() } else { format!(" on {}", verdict.condition) };
        JudgedVerdict {
            word: format!("{}{on}", verdict.word),
            class: class(verdict),
            why: format!("{name}{}", verdict.why),
            own: verdict.by == Source::OwnNumbers,
        }
    };
    let open =
        one.why_open().map(|why| JudgedVerdict { word: "open".to_owned(), class: "dim", why, own: false });
    Judged {
        what: format!(
            "{} \u{201c}{}\u{201d} ({})",
            one.statement.id, one.statement.quote, one.statement.place
        ),
        group: if alone { about(one.statement.of).to_owned() } else { one.statement.paper.clone() },
        verdicts: one.verdicts.iter().map(line).chain(open).collect(),
        ..Judged::default()
    }
}

fn about(of: StatementOf) -> &'static str {
    match of {
        StatementOf::Time => "Lengths of time",
        StatementOf::Count => "Counts of events",
        StatementOf::Calculated => "Calculations",
        StatementOf::KernelFact => "What a kernel is or does",
    }
}

fn class(verdict: &Verdict) -> &'static str {
    match verdict.word {
        "agrees" | "shown by its own counts" => "good",
        "differs" | "contradicts its own numbers" | "refuted by its own counts" => "bad",
        "inconclusive" | "not shown by its own counts" => "warn",
        _ => "dim",
    }
}
