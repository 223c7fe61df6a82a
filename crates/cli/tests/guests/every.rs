//! Every mechanism that a running machine can change: first set to what isolation does not want,
//! then applied, judged by the audit, verified, undone, and the machine as before.

use crate::machine::{Case, Guest};
use crate::state::the_same;
use crate::support::read_json;
use audit::catalogue::{Catalogue, Change, Mechanism, Probe, Want};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Four cores of two threads; the last two cores are isolated.
const CPUS: &str = "4-7";
/// Those of them that SMT control leaves online.
const LEFT: &str = "4,6";
const EVERY_MASK: &str = "ff";
const EVERY_LIST: &str = "0-7";

/// Whether a running machine can be changed by it.
fn at_run_time(mechanism: &Mechanism) -> bool {
    let elsewhere = |change: &Change| {
        matches!(change, Change::Option { .. } | Change::Parameter { .. } | Change::Advice { .. })
    };
    mechanism.change.iter().any(|change| !elsewhere(change))
}

/// A value that isolation does not want; none where it is not a value that is written, or a risk
/// that is not taken anyway.
fn unwanted(mechanism: &Mechanism) -> Option<String> {
    if mechanism.risky {
        return None;
    }
    let value = match &mechanism.want {
        Want::Literal { value } => match value.as_str() {
            "0" => "1",
            "1" => "0",
            "never" => "always",
            "n/a" => "100",
            _ => return None,
        },
        Want::OneOf { values } if values.iter().any(|value| value == "never") => "always",
        Want::OneOf { values } if values.iter().any(|value| value == "0") => "1",
        Want::AtLeast { .. } => "1",
        Want::AtMost { .. } => "60",
        Want::Avoids {} if matches!(mechanism.probe, Probe::CpulistFile { .. }) => EVERY_LIST,
        Want::Avoids {} => EVERY_MASK,
        _ => return None,
    };
    Some(value.to_owned())
}

/// The files of a mechanism that `write` changes, as patterns of the guest's shell.
fn files(mechanism: &Mechanism) -> Vec<String> {
    let written = mechanism.change.iter().find_map(|change| match change {
        Change::Write { path, .. } => Some(path.clone()),
        _ => None,
    });
    let paths = match (written, &mechanism.probe) {
        (Some(Some(path)), _) => vec![path],
        (
            Some(None),
            Probe::FileWord { paths }
            | Probe::FileBracketedWord { paths }
            | Probe::FileInteger { paths }
            | Probe::CpulistFile { paths }
            | Probe::HexmaskFile { paths },
        ) => paths.clone(),
        _ => Vec::new(),
    };
    let cpus: model::Cpus = CPUS.parse().unwrap();
    let expand = |path: &String| -> Vec<String> {
        let path = format!("/{path}").replace("/{debugfs}", "/sys/kernel/debug");
        if path.contains("{cpu}") {
            cpus.iter().map(|cpu| path.replace("{cpu}", &cpu.to_string())).collect()
        } else {
            vec![path]
        }
    };
    paths.iter().flat_map(expand).collect()
}

/// Input of the guest's script: `mechanism file value`, and the daemons to pretend.
fn orders(catalogue: &Catalogue) -> (String, String) {
    let mut spoil = String::new();
    let mut daemons = String::new();
    for mechanism in catalogue.mechanisms.iter().filter(|one| at_run_time(one)) {
        for file in files(mechanism) {
            if let Some(value) = unwanted(mechanism) {
                writeln!(spoil, "{} {file} {value}", mechanism.id).unwrap();
            }
        }
        if let Probe::Daemon { process, .. } = &mechanism.probe {
            writeln!(daemons, "{process}").unwrap();
        }
    }
    (spoil, daemons)
}

fn states(audit: &Value) -> BTreeMap<String, (String, String)> {
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let findings = audit["findings"].as_array().unwrap();
    findings.iter().map(|one| (word(one, "id"), (word(one, "state"), word(one, "reason")))).collect()
}

/// Whether the interrupts that the audit's reason begins with (`8 rtc0, 24 virtio0-config …`) are
/// those that `verify` waits for.
fn are_pending(reason: &str, pending: &[&str]) -> bool {
    let Some((names, _)) = reason.split_once(" is set to leave") else { return false };
    let names = names.split(" and ").next().unwrap_or_default();
    let of = |name: &str| pending.iter().any(|one| one.contains(&format!("interrupt {name} is handled on")));
    !pending.is_empty() && names.split(", ").all(of)
}

/// One round of the script: judged; returns the mechanisms that were changed.
fn judge(root: &Path, round: &str, every: &[&Mechanism], kernel: &str) -> BTreeSet<String> {
    let read = |name: &str| fs::read_to_string(root.join(format!("{round}-{name}"))).unwrap_or_default();
    let json = |name: &str| read_json(&root.join(format!("{round}-{name}.json")));
    for step in ["applied", "verified", "undone"] {
        let message = format!(
            "{kernel} {round} {step}: {} {}",
            read(&format!("{step}.err")),
            read(&format!("{step}.json"))
        );
        assert_eq!(read(&format!("{step}.code")).trim(), "0", "{message}");
    }
    the_same(&json("before"), &json("after"), &format!("{kernel} {round}"));
    let during = states(&json("audit-during"));
    let status = json("status");
    let changed: BTreeSet<String> = status["changes"].as_object().unwrap().keys().cloned().collect();
    let applied = json("applied");
    let unplaced = round == "affinity" || !applied["fallback"].as_array().unwrap().is_empty();
    let immovable: BTreeSet<_> = applied["immovable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["mechanism"].as_str().unwrap())
        .collect();
    let verified = json("verified");
    let pending: Vec<_> =
        verified["pending"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    for mechanism in every {
        let id = mechanism.id.as_str();
        // Where affinities were requested, or the kernel knows no isolated partitions, there is
        // none.
        if unplaced && mechanism.change.iter().any(|change| matches!(change, Change::Partition {})) {
            continue;
        }
        // The audit cannot know what the kernel refuses to move; `apply` has tried, and said so. An
        // interrupt that is to leave does so when it comes next, and `verify` names each.
        let waits = id == "irq-affinity" && during[id].1.contains("at its next interrupt");
        let right = during[id].0 != "fixable"
            || immovable.contains(id)
            || (waits && are_pending(&during[id].1, &pending));
        assert!(right, "{kernel} {round} {id}: {:?}; pending: {pending:?}", during[id]);
    }
    for id in fs::read_to_string(root.join("spoiled")).unwrap().lines() {
        assert!(
            changed.contains(id) || during[id].0 == "not-applicable",
            "{kernel} {round} {id}: {:?}",
            during[id]
        );
    }
    changed
}

fn changed_at_run_time(catalogue: &Catalogue) -> Vec<&Mechanism> {
    catalogue.mechanisms.iter().filter(|one| at_run_time(one)).collect()
}

/// The script with its orders.
pub(crate) fn case() -> Case {
    let catalogue = Catalogue::embedded().unwrap();
    let every = changed_at_run_time(&catalogue);
    let choices: Vec<_> =
        every.iter().filter(|one| one.optional || one.risky).map(|one| one.id.as_str()).collect();
    let (spoil, daemons) = orders(&catalogue);
    let case = Case::new("every", "every.sh", every_mechanism).with(&[CPUS, &choices.join(","), LEFT]);
    case.file("spoil", spoil).file("daemons", daemons).limit(600)
}

/// All that a kernel has.
fn every_mechanism(guest: &Guest) {
    let (root, kernel) = (&guest.root, guest.kernel());
    let catalogue = Catalogue::embedded().unwrap();
    let every = changed_at_run_time(&catalogue);
    let mut changed = judge(root, "best", &every, kernel);
    changed.extend(judge(root, "affinity", &every, kernel));
    let absent: Vec<_> =
        every.iter().map(|one| one.id.as_str()).filter(|id| !changed.contains(*id)).collect();
    assert!(changed.len() > 30, "{kernel}: only {changed:?}");
    let (names, absent) = (changed.iter().cloned().collect::<Vec<_>>().join(", "), absent.join(", "));
    println!(
        "{kernel}: {} mechanisms changed, verified, undone ({names}); not on this machine, or as wanted already: {absent}",
        changed.len()
    );
}
