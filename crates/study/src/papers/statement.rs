//! The list of statements, as read from TOML.

use super::own::Own;
use crate::experiment::{Fault, Published};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// All statements, in the order of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statements {
    /// Each.
    #[serde(rename = "statement")]
    pub all: Vec<Statement>,
}

/// A statement of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Paper and number, such as `rtss24.014`.
    pub id: String,
    /// The paper.
    pub paper: String,
    /// Section, table or figure.
    #[serde(rename = "where")]
    pub place: String,
    /// Its words.
    pub quote: String,
    /// What kind of statement it is.
    pub kind: StatementKind,
    /// What it is about.
    pub of: StatementOf,
    /// The quantity.
    pub quantity: String,
    /// The groups that it compares.
    pub groups: String,
    /// What it says of them.
    pub value: String,
    /// What a reader has to know besides.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// What the paper's own numbers say of it.
    #[serde(default, skip_serializing)]
    pub own: Vec<Own>,
    /// What is missing to decide it, or to decide more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
}

/// What kind of statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementKind {
    /// One has more than another.
    Order,
    /// One is the reason for another.
    Cause,
    /// Two are the same, or one is a number.
    Same,
    /// One is so many times another.
    Ratio,
    /// At least, or at most, so much.
    AtLeast,
    /// It does not happen.
    None,
    /// It changes from some level on.
    Knee,
}

/// What a statement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementOf {
    /// Lengths of time.
    Time,
    /// Numbers of events.
    Count,
    /// What is calculated.
    Calculated,
    /// What a kernel is or does.
    KernelFact,
}

/// What is missing.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// What kind of thing.
    pub needs: Missing,
    /// Why, in a sentence.
    pub why: String,
    /// The statement or experiment that stands in for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stand_in: String,
}

/// What is missing to decide a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// A kernel that nobody can install from a package: one built with or without a fix,
    /// openEuler's, LITMUS^RT.
    Kernel,
    /// Other hardware.
    Hardware,
    /// The kernel's source or image, read.
    Source,
    /// An experiment that is not written yet.
    Experiment,
    /// It says nothing that could be measured: a citation, a process, an opinion.
    Quoted,
}

impl Missing {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Kernel => "needs another kernel",
            Self::Hardware => "needs other hardware",
            Self::Source => "needs the kernel's source",
            Self::Experiment => "has no experiment yet",
            Self::Quoted => "quoted only",
        }
    }
}

impl Statements {
    /// Reads the list; every key must name a number of `published`.
    pub fn from_toml(text: &str, published: &Published) -> Result<Self, Fault> {
        let read: Self = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            Fault::at(text, &span, error.message().trim().replace('\n', ", "))
        })?;
        let mut ids = BTreeSet::new();
        for statement in &read.all {
            let at = text.find(&format!("{:?}", statement.id)).unwrap_or(0);
            let fail = |what: String| Fault::at(text, &(at..at), format!("{}: {what}", statement.id));
            if !ids.insert(statement.id.as_str()) {
                return Err(fail("twice; expected each once".to_owned()));
            }
            for own in &statement.own {
                own.check(published).map_err(fail)?;
            }
        }
        Ok(read)
    }

    /// The statement of this id.
    pub fn get(&self, id: &str) -> Option<&Statement> {
        self.all.iter().find(|one| one.id == id)
    }
}
