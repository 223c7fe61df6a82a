//! The conventions of the house as checks: one rule a file, each a pure function from the
//! repository to violations. A violation is one line: where, what is there, what was expected.

mod arrows;
mod book;
mod changelog;
mod circles;
mod documented;
mod foreign;
mod headers;
mod jobs;
mod length;
mod links;
mod printing;
mod results;
mod unfinished;
mod unsafe_code;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::output::Output;
use crate::repo::Repo;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub path: String,
    /// Counted from 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    pub what: String,
    pub expected: String,
}

impl Violation {
    fn file(path: &str, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into(), expected: expected.into() }
    }

    fn at(path: &str, line: usize, what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::file(path, what, expected) }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; expected {}", self.what, self.expected)
    }
}

/// The rules, in the order their violations are printed.
const RULES: &[fn(&Repo) -> Vec<Violation>] = &[
    arrows::check,
    book::check,
    circles::check,
    unsafe_code::check,
    headers::check,
    length::check,
    foreign::check,
    printing::check,
    unfinished::check,
    changelog::check,
    documented::check,
    links::check,
    jobs::check,
    results::check,
];

/// Checks the repository at `root`, prints each violation, and says whether there was none.
pub(crate) fn run(root: &Path, output: &mut Output) -> Result<bool> {
    let repo = Repo::read(root)?;
    let violations: Vec<_> = RULES.iter().flat_map(|rule| rule(&repo)).collect();
    for violation in &violations {
        output.line(&violation.to_string())?;
    }
    output.line(&format!("tidy: {} files, {} violations", repo.files.len(), violations.len()))?;
    Ok(violations.is_empty())
}
