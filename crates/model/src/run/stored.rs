//! A run read from its directory.

use super::{EARLIER_SCHEMA, SCHEMA};
use crate::Error;
use crate::store::{RUN, read_json};
use std::fs;
use std::path::{Component, Path};

/// Reads `run.json` of a run directory and checks its schema, and that the files it names are files
/// of this run. To one that is incomplete it adds records of the windows that were cut off.
pub fn read_run(dir: &Path) -> Result<crate::Run, Error> {
    let path = dir.join(RUN);
    let mut run: crate::Run = read_json(&path)?;
    if ![SCHEMA, EARLIER_SCHEMA].contains(&run.schema.as_str()) {
        return Err(Error::invalid(path.display(), format!("schema {:?}", run.schema), SCHEMA));
    }
    SCHEMA.clone_into(&mut run.schema);
    for name in run.files() {
        if let Err(what) = is_inside(dir, name) {
            let expected = "the name of a regular file below the run";
            return Err(Error::invalid(path.display(), format!("{name:?} {what}"), expected));
        }
    }
    if !run.complete {
        crate::run::cut_off::add_records(dir, &mut run);
    }
    Ok(run)
}

/// What keeps a name from being that of a file of a directory, where it is one of a file at all.
pub(crate) fn is_inside(dir: &Path, name: &str) -> Result<(), &'static str> {
    let name = Path::new(name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("leads out of the run");
    }
    let path = dir.join(name);
    // A missing file is an error for whoever needs it.
    let Ok(there) = fs::canonicalize(&path) else { return Ok(()) };
    if !fs::canonicalize(dir).is_ok_and(|dir| there.starts_with(dir)) {
        return Err("is a link that leads out of the run");
    }
    if fs::metadata(&there).is_ok_and(|meta| !meta.is_file()) {
        return Err("is no regular file");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeDetail, ProbeKind};
    use crate::run::{ProbeRecord, Run};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// Runs of schema 1, and beside each what it says as raw JSON. No fixture is a graph's.
    fn earlier() -> Vec<(Run, Value)> {
        let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs");
        let names = [
            "small",
            "measure/clocks",
            "measure/ipi",
            "measure/overheads",
            "measure/periodic",
            "measure/taskset",
        ];
        names
            .iter()
            .map(|name| (read_run(&runs.join(name)).unwrap(), read_json(&runs.join(name).join(RUN)).unwrap()))
            .collect()
    }

    /// Of two values that mean the same, what only the earlier one says: objects stand for arrays,
    /// and keys may be missing that said nothing.
    fn differs(earlier: &Value, now: &Value) -> bool {
        match (earlier, now) {
            (Value::Object(earlier), Value::Object(now)) => earlier.iter().any(|(key, value)| {
                let nothing = [json!(null), json!(0), json!([]), json!([0, 0])].contains(value);
                key != "schema" && now.get(key).map_or(!nothing, |now| differs(value, now))
            }),
            (Value::Array(earlier), Value::Array(now)) => {
                earlier.len() != now.len() || earlier.iter().zip(now).any(|(one, other)| differs(one, other))
            }
            (Value::Array(earlier), Value::Object(now)) => {
                let keys = [
                    "t0_ns",
                    "t1_ns",
                    "minor",
                    "major",
                    "voluntary",
                    "involuntary",
                    "min",
                    "median",
                    "max",
                    "before",
                    "after",
                ];
                let named: Vec<_> = keys.iter().filter_map(|key| now.get(*key)).collect();
                named != earlier.iter().collect::<Vec<_>>()
            }
            _ => earlier != now,
        }
    }

    #[test]
    fn a_run_of_the_earlier_schema_says_what_it_said() {
        let mut kinds = BTreeSet::from([ProbeKind::Graph]);
        for (run, raw) in earlier() {
            assert_eq!((raw["schema"].as_str(), run.schema.as_str()), (Some(EARLIER_SCHEMA), SCHEMA));
            kinds.extend(run.probes.iter().map(ProbeRecord::probe));
            let now = serde_json::to_value(&run).unwrap();
            for (earlier, now) in
                raw["probes"].as_array().unwrap().iter().zip(now["probes"].as_array().unwrap())
            {
                // What only the samples and another key say.
                let mut earlier = earlier.clone();
                let keys = match earlier["probe"].as_str() {
                    Some("overheads") => &["released"][..],
                    Some("clocks") => &["period_ns"],
                    _ => &[],
                };
                for key in keys {
                    assert!(earlier.as_object_mut().unwrap().remove(*key).is_some());
                }
                assert!(!differs(&earlier, now), "{earlier:#}\n{now:#}");
            }
            assert_eq!(serde_json::from_value::<Run>(now).unwrap(), run);
        }
        assert_eq!(kinds, ProbeKind::ALL.iter().copied().collect());
    }

    #[test]
    fn a_record_of_the_earlier_schema_is_read_whatever_its_probe() {
        let (run, raw) = earlier().swap_remove(0);
        for kind in ProbeKind::ALL {
            let mut earlier = raw["probes"][0].clone();
            (earlier["probe"], earlier["threshold_ns"]) = (json!(kind.name()), json!(500));
            let record: ProbeRecord = serde_json::from_value(earlier).unwrap();
            assert_eq!(
                (record.probe(), record.samples, record.switches),
                (*kind, run.probes[0].samples, run.probes[0].switches)
            );
            let served = !matches!(kind, ProbeKind::Noise | ProbeKind::Overheads | ProbeKind::Clocks);
            assert_eq!(
                (record.released(), record.missed()),
                if served { (250, 45) } else { (0, 0) },
                "{kind:?}"
            );
        }
        assert!(
            matches!(&run.probes[1].detail, ProbeDetail::Noise(noise) if noise.slices[0].t0_ns == 6_445_678_021)
        );
    }
}
