//! Everything a renderer gets, in one plain value; and what of it goes to `analysis.json`.
//!
//! Facts come in (run, machine, findings), conclusions are drawn once, here, and every renderer
//! says the same.

use analysis::Analysis;
use model::events::EventCatalogue;
use model::machine::Snapshot;
use model::monitor::Breach;
use model::{Finding, Run};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::advice::{self, Advice, NextStep};
use crate::guarantee::{self, Guarantee};
use crate::outcome::{self, Outcome};
use crate::{heading, responses};

/// One run with all that was concluded from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The run directory as the user would type it; commands and paths are built from it.
    pub dir: String,
    /// `run.json`.
    pub run: Run,
    /// `machine-before.json`.
    pub machine: Snapshot,
    /// `findings.json`.
    pub findings: Vec<Finding>,
    /// Conclusions from samples and trace.
    pub analysis: Analysis,
    /// Deadlines whose misses the user wants counted, ns.
    pub deadlines_ns: Vec<i64>,
    /// Of a run that a monitor has kept: what was late.
    pub breach: Option<Breach>,
    /// What follows for a task set.
    pub guarantee: Guarantee,
    /// Calculated response times of a measured task set, ns, in the order of [`Analysis::taskset`];
    /// none behind a deadline.
    pub responses: Vec<Option<u64>>,
    /// What is wrong, in order of cost.
    pub advice: Vec<Advice>,
    /// What to type next.
    pub next: NextStep,
    /// Pass, or a finding and why.
    pub outcome: Outcome,
}

impl Document {
    /// Draws the conclusions. Pure: the same facts give the same document.
    pub fn conclude(
        dir: &str,
        run: Run,
        machine: Snapshot,
        findings: Vec<Finding>,
        analysis: Analysis,
        catalogue: &EventCatalogue,
    ) -> Self {
        let guarantee = guarantee::guarantee(&run, &machine.machine, &analysis);
        let facts = advice::Facts {
            dir,
            run: &run,
            machine: &machine.machine,
            findings: &findings,
            analysis: &analysis,
            guarantee: &guarantee,
            catalogue,
        };
        let measurement = heading::is_measurement(&run);
        let advice = if measurement { advice::of_measurement(&facts) } else { advice::advise(&facts) };
        let next =
            if measurement { advice::after_measurement(&facts) } else { advice::next_step(&facts, &advice) };
        let outcome = if measurement {
            outcome::of_measurement(&run, &analysis)
        } else {
            outcome::outcome(&findings, &analysis, &guarantee)
        };
        let responses = responses::of_measured(&analysis.taskset);
        Self {
            dir: dir.to_owned(),
            deadlines_ns: Vec::new(),
            breach: None,
            run,
            machine,
            findings,
            analysis,
            guarantee,
            responses,
            advice,
            next,
            outcome,
        }
    }

    /// Path of a file of the run directory, as the user would type it.
    pub fn path(&self, name: &str) -> String {
        join(&self.dir, name)
    }

    /// The content of `analysis.json`: the sections of [`Analysis`], and beside them `guarantee`,
    /// `advice`, `next` and `outcome`. [`Analysis`] reads back from it; the sections it does not
    /// know are ignored.
    pub fn analysis_json(&self) -> Result<Value, serde_json::Error> {
        let mut sections = serde_json::to_value(&self.analysis)?;
        if let Value::Object(sections) = &mut sections {
            sections.insert("guarantee".into(), serde_json::to_value(&self.guarantee)?);
            if !self.responses.is_empty() {
                sections.insert("responses".into(), serde_json::to_value(&self.responses)?);
            }
            sections.insert("advice".into(), serde_json::to_value(&self.advice)?);
            sections.insert("next".into(), serde_json::to_value(&self.next)?);
            sections.insert("outcome".into(), serde_json::to_value(&self.outcome)?);
        }
        Ok(sections)
    }
}

/// Text, not `std::path`: what is built here is shown and typed, never opened.
pub(crate) fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{}/{name}", dir.trim_end_matches('/')) }
}

/// The sections that this crate adds to `analysis.json`, to read them back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conclusions {
    /// What follows for a task set.
    pub guarantee: Guarantee,
    /// What is wrong, in order of cost.
    pub advice: Vec<Advice>,
    /// What to type next.
    pub next: NextStep,
    /// Pass, or a finding and why.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn analysis_json_reads_back_as_both_halves() {
        let document = fixture::document();
        let text = serde_json::to_string(&document.analysis_json().unwrap()).unwrap();
        let analysis: Analysis = serde_json::from_str(&text).unwrap();
        let conclusions: Conclusions = serde_json::from_str(&text).unwrap();
        assert_eq!(analysis, document.analysis);
        assert_eq!(conclusions.guarantee, document.guarantee);
        assert_eq!(conclusions.advice, document.advice);
        assert_eq!(conclusions.outcome, document.outcome);
    }

    #[test]
    fn paths_are_what_one_types() {
        let mut document = fixture::document();
        document.dir = "run".into();
        assert_eq!(document.path("trace.dat"), "run/trace.dat");
        document.dir = "/".into();
        assert_eq!(document.path("trace.dat"), "/trace.dat");
        document.dir = String::new();
        assert_eq!(document.path("trace.dat"), "trace.dat");
    }
}
