//! An audit against an earlier one: what has become worse, better, new or gone.
//!
//! States from best to worst: ok and not applicable, unknown, immovable, boot, fixable. A fixable
//! finding is the worst to leave.

use audit::{Answer, SCHEMA};
use model::{Cpus, Error, Finding, FindingState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What changed, a line each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Changes {
    pub(crate) worse: Vec<String>,
    pub(crate) better: Vec<String>,
    pub(crate) new: Vec<String>,
    pub(crate) gone: Vec<String>,
}

#[derive(Deserialize)]
struct Earlier {
    schema: String,
    cpus: Cpus,
    findings: Vec<Finding>,
}

/// Compares. Errors: a file that is no audit, or one of other CPUs.
pub(crate) fn compare(file: &Path, audited: &Answer) -> Result<Changes, Error> {
    let text = std::fs::read_to_string(file).map_err(|source| Error::io("read", file, source))?;
    let expected = "the output of stillcore audit --json";
    let earlier: Earlier = serde_json::from_str(&text)
        .map_err(|error| Error::invalid(format!("{}:{}", file.display(), error.line()), error, expected))?;
    if earlier.schema != SCHEMA {
        let what = format!("schema {}", earlier.schema);
        return Err(Error::invalid(file.display(), what, expected));
    }
    if earlier.cpus != audited.cpus {
        let what = format!("an audit of CPUs {}", earlier.cpus);
        return Err(Error::invalid(file.display(), what, format!("one of CPUs {}", audited.cpus)));
    }
    Ok(changes(&earlier.findings, &audited.findings))
}

fn rank(finding: &Finding) -> u8 {
    match finding.state {
        // A choice fails nothing, however it is set.
        _ if finding.optional => 0,
        FindingState::Ok | FindingState::NotApplicable => 0,
        FindingState::Unknown => 1,
        FindingState::Immovable => 2,
        FindingState::Boot => 3,
        FindingState::Fixable => 4,
    }
}

fn changes(before: &[Finding], now: &[Finding]) -> Changes {
    let earlier: BTreeMap<_, _> = before.iter().map(|finding| (finding.id.as_str(), finding)).collect();
    let mut changes = Changes::default();
    for finding in now {
        let Some(was) = earlier.get(finding.id.as_str()) else {
            changes.new.push(line(finding));
            if finding.failed() {
                changes.worse.push(line(finding));
            }
            continue;
        };
        let text = format!("{} (was {})", line(finding), was.state.name());
        match rank(finding).cmp(&rank(was)) {
            std::cmp::Ordering::Greater => changes.worse.push(text),
            std::cmp::Ordering::Less => changes.better.push(text),
            std::cmp::Ordering::Equal => {}
        }
    }
    let gone = before.iter().filter(|was| !now.iter().any(|finding| finding.id == was.id));
    changes.gone = gone.map(|was| was.id.clone()).collect();
    changes
}

fn line(finding: &Finding) -> String {
    format!("{}: {}, {}", finding.id, finding.state.name(), finding.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, state: FindingState) -> Finding {
        let text = format!(
            r#"{{"id":"{id}","title":"T","cpus":"3","state":"ok","want":"1","have":null,"effective":null,"reason":"r","removes":[]}}"#
        );
        Finding { state, ..serde_json::from_str(&text).unwrap() }
    }

    #[test]
    fn only_what_got_worse_counts() {
        use FindingState::{Boot, Fixable, NotApplicable, Ok};
        let before = [finding("a", Ok), finding("b", Fixable), finding("c", Boot), finding("d", Ok)];
        let now = [
            finding("a", Fixable),
            finding("b", Ok),
            finding("c", Boot),
            finding("d", NotApplicable),
            finding("e", Ok),
        ];
        let changes = changes(&before, &now);
        assert_eq!(
            (changes.worse.len(), changes.better.len(), changes.new.len(), changes.gone.len()),
            (1, 1, 1, 0)
        );
        assert!(changes.worse[0].contains("a: fixable, r (was ok)"), "{:?}", changes.worse);
    }

    #[test]
    fn a_choice_never_gets_worse() {
        let before = [finding("a", FindingState::Ok)];
        let now = [Finding { optional: true, ..finding("a", FindingState::Fixable) }];
        assert!(changes(&before, &now).worse.is_empty());
    }
}
