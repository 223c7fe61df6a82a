//! An audit as a SARIF 2.1.0 log (OASIS, Static Analysis Results Interchange Format), which CI
//! systems show beside a change.

use audit::{Answer, Catalogue};
use model::{Finding, FindingState};
use serde_json::{Value, json};

/// The log: one rule per mechanism, one result per finding.
pub(crate) fn log(catalogue: &Catalogue, audited: &Answer) -> Value {
    let rules: Vec<_> = catalogue
        .mechanisms
        .iter()
        .map(|mechanism| {
            json!({
                "id": mechanism.id,
                "shortDescription": { "text": mechanism.title },
                "help": { "text": mechanism.why.split_whitespace().collect::<Vec<_>>().join(" ") },
            })
        })
        .collect();
    let results: Vec<_> = audited.findings.iter().map(|finding| result(finding, audited)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stillcore",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

fn result(finding: &Finding, audited: &Answer) -> Value {
    let (kind, level) = match finding.state {
        FindingState::Ok => ("pass", "none"),
        FindingState::NotApplicable => ("notApplicable", "none"),
        FindingState::Unknown => ("open", "none"),
        _ if finding.optional => ("informational", "none"),
        FindingState::Fixable | FindingState::Boot => ("fail", "error"),
        FindingState::Immovable => ("fail", "warning"),
    };
    let remedy = finding.remedy.as_ref().map_or(String::new(), |remedy| format!(". To change it: {remedy}"));
    json!({
        "ruleId": finding.id,
        "kind": kind,
        "level": level,
        "message": { "text": format!("{}{remedy}", finding.reason) },
        "locations": [{
            "logicalLocations": [{
                "name": format!("CPUs {}", audited.cpus),
                "fullyQualifiedName": format!("{} CPUs {}", audited.machine.kernel.release, audited.cpus),
                "kind": "resource",
            }],
        }],
    })
}
