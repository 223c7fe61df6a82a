//! The one object that `--json` prints: `stillcore.assess/1`.
//!
//! Keys: `outcome`, `exit`, `run` (what the run says of itself), `machine`, `findings`, `verdicts`
//! (the worst wake-up and the longest gap, what took most of each, and what is against it), and
//! every section of `analysis.json` under `analysis`, among them `guarantee`, `advice` and `next`;
//! `paths` names the files, with the directory.

use model::run::{Losses, ObserverCost, Phase};
use model::store;
use model::stressor::StressorRecord;
use model::{Cpus, Finding, Machine};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

use crate::{Document, Error};

/// Schema of the object.
pub(crate) const SCHEMA: &str = "stillcore.assess/1";

#[derive(Debug, Serialize)]
struct Assess<'a> {
    schema: &'static str,
    outcome: &'a crate::Outcome,
    exit: u8,
    run: RunSummary<'a>,
    machine: &'a Machine,
    findings: &'a [Finding],
    verdicts: Vec<crate::Verdict>,
    analysis: Value,
    paths: BTreeMap<&'static str, String>,
}

/// `run.json` without the long lists; the whole is at `paths.run`.
#[derive(Debug, Serialize)]
struct RunSummary<'a> {
    tool_version: &'a str,
    command: &'a [String],
    started_at: &'a str,
    complete: bool,
    incomplete_reason: &'a Option<String>,
    measured_cpus: &'a Cpus,
    housekeeping_cpus: &'a Cpus,
    phases: &'a [Phase],
    stressors: &'a [StressorRecord],
    /// Null where the run never counted them.
    losses: Option<Losses>,
    observer: &'a ObserverCost,
    seeds: &'a BTreeMap<String, u64>,
    limits: &'a [String],
}

/// The object as a value.
pub fn assess_value(document: &Document) -> Result<Value, Error> {
    let json = |source| Error::Json { what: "the assessment", source };
    let analysis = document.analysis_json().map_err(json)?;
    let run = &document.run;
    let object = Assess {
        schema: SCHEMA,
        outcome: &document.outcome,
        exit: document.outcome.exit_code(),
        run: RunSummary {
            tool_version: &run.tool_version,
            command: &run.command,
            started_at: &run.started_at,
            complete: run.complete,
            incomplete_reason: &run.incomplete_reason,
            measured_cpus: &run.measured_cpus,
            housekeeping_cpus: &run.housekeeping_cpus,
            phases: &run.phases,
            stressors: &run.stressors,
            losses: run.has_ended().then_some(run.losses),
            observer: &run.observer,
            seeds: &run.seeds,
            limits: &run.limits,
        },
        machine: &document.machine.machine,
        findings: &document.findings,
        verdicts: crate::verdicts(document),
        analysis,
        paths: paths(document),
    };
    serde_json::to_value(object).map_err(json)
}

/// The object as text, one line, newline at the end.
pub fn assess_json(document: &Document) -> Result<String, Error> {
    let value = assess_value(document)?;
    let mut text =
        serde_json::to_string(&value).map_err(|source| Error::Json { what: "the assessment", source })?;
    text.push('\n');
    Ok(text)
}

/// The files of the run directory that exist or are about to.
pub(crate) fn paths(document: &Document) -> BTreeMap<&'static str, String> {
    let run = &document.run;
    let mut names = vec![
        ("run", store::RUN),
        ("machine_before", &run.machine_before),
        ("findings", store::FINDINGS),
        ("samples", store::SAMPLES),
        ("analysis", store::ANALYSIS),
        ("report", store::REPORT),
    ];
    names.extend(run.machine_after.as_deref().map(|name| ("machine_after", name)));
    names.extend(run.trace.as_ref().map(|trace| ("trace", trace.file.as_str())));
    let mut paths: BTreeMap<_, _> = names.into_iter().map(|(key, name)| (key, document.path(name))).collect();
    paths.insert("dir", document.dir.clone());
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use snapbox::{assert_data_eq, file};

    /// The object, with the long lists cut: their content is the business of `analysis`.
    fn shortened(mut value: Value) -> Value {
        fn cut(value: &mut Value) {
            match value {
                Value::Array(items) => {
                    let left_out = items.len().saturating_sub(2);
                    items.truncate(2);
                    items.iter_mut().for_each(cut);
                    if left_out > 0 {
                        items.push(Value::String(format!("... {left_out} more")));
                    }
                }
                Value::Object(map) => map.values_mut().for_each(cut),
                _ => (),
            }
        }
        cut(&mut value);
        value
    }

    #[test]
    fn the_object_is_what_it_was() {
        let value = assess_value(&fixture::document()).unwrap();
        let text = serde_json::to_string_pretty(&shortened(value)).unwrap() + "\n";
        assert_data_eq!(text, file!["snapshots/object.json": Text].raw());
    }

    #[test]
    fn it_is_one_line_and_the_same_every_time() {
        let text = assess_json(&fixture::document()).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert_eq!(text, assess_json(&fixture::document()).unwrap());
    }

    #[test]
    fn a_run_without_trace_names_no_trace() {
        let mut document = fixture::document();
        document.run.trace = None;
        assert!(!paths(&document).contains_key("trace"));
        assert_eq!(paths(&document)["report"], "run/report.html");
    }
}
