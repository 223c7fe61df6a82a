//! The report of a replication: how many statements are decided, each statement with its answer,
//! and the studies behind them.

use super::chosen::Chosen;
use super::kept::Kept;
use crate::study_verb::statements;
use report::{Judged, StudyPage, StudySheet, format};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use study::papers::{Answered, Answers, Source, Verdict};

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
        let mut page = format!("{}\n", self.verdict(answers));
        let words: [&str; 2] = ["agrees", "differs"];
        for word in words {
            let of = |one: &&Answered| one.verdicts.iter().any(|verdict| verdict.word == word);
            let _ = writeln!(page, "{word}: {}", answers.statements.iter().filter(of).count());
        }
        self.notes().iter().for_each(|note| _ = writeln!(page, "note: {note}"));
        let _ = writeln!(
            page,
            "every statement with its answer: {}, {}",
            self.out.join("replicate.md").display(),
            self.out.join("replicate.html").display()
        );
        page
    }

    pub(super) fn markdown(&self, answers: &Answers) -> String {
        let shown: Vec<&Answered> = answers.statements.iter().collect();
        let mut page = format!("# {}\n\n", self.verdict(answers));
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
        let row = |one: &super::chosen::Wanted| {
            vec![one.name.clone(), one.title.clone(), one.cells.to_string(), one.decides.len().to_string()]
        };
        let head = ["experiment", "what it shows", "cells", "can decide"];
        report::study_page(&StudyPage {
            name: format!("replicate {}", self.paper),
            title: self.verdict(answers),
            source: "every statement quoted, with what decides it".to_owned(),
            judged: answers.statements.iter().flat_map(judged).collect(),
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
            ..StudyPage::default()
        })
    }
}

/// A line a verdict, and one for what is open; the first has the statement.
fn judged(one: &Answered) -> Vec<Judged> {
    let what =
        format!("{} \u{201c}{}\u{201d} ({})", one.statement.id, one.statement.quote, one.statement.place);
    let line = |verdict: &Verdict| {
        let name = match &verdict.by {
            Source::OwnNumbers => String::new(),
            Source::Experiment(name) => format!("{name}: "),
        };
        let on =
            if verdict.condition.is_empty() { String::new() } else { format!(" on {}", verdict.condition) };
        Judged {
            what: what.clone(),
            word: format!("{}{on}", verdict.word),
            class: class(verdict),
            why: format!("{name}{}", verdict.why),
            ..Judged::default()
        }
    };
    let mut lines: Vec<Judged> = one.verdicts.iter().map(line).collect();
    lines.extend(one.why_open().map(|why| Judged {
        what: what.clone(),
        word: "open".to_owned(),
        class: "dim",
        why,
        ..Judged::default()
    }));
    lines.iter_mut().skip(1).for_each(|line| line.what.clear());
    lines
}

fn class(verdict: &Verdict) -> &'static str {
    match verdict.word {
        "agrees" | "shown by its own counts" => "good",
        "differs" | "contradicts its own numbers" | "refuted by its own counts" => "bad",
        "inconclusive" | "not shown by its own counts" => "warn",
        _ => "dim",
    }
}
