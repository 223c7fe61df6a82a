//! The stored results: reading all of `docs/results`, and which of them are not of the program that
//! ships.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use result::Stored;

use crate::jobs::Jobs;

/// Where results are.
pub(crate) const FOLDER: &str = "docs/results";

/// By name; of a file that is no valid result, why.
pub(crate) type Results = BTreeMap<String, Result<Stored, String>>;

/// The name of the result that a path of the repository holds. The accounts of the tests have a
/// shape of their own.
pub(crate) fn name_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".json")?;
    (!name.contains('/') && !["make-test", "test-all"].contains(&name)).then_some(name)
}

/// Reads one; its name must be that of its file.
pub(crate) fn parse(name: &str, text: &str) -> Result<Stored, String> {
    let stored = Stored::read(text)?;
    if stored.name == name { Ok(stored) } else { Err(format!("named {:?}; expected {name:?}", stored.name)) }
}

/// Reads those of the working tree.
pub(crate) fn read(root: &Path) -> Result<Results> {
    let mut found = Results::new();
    let folder = root.join(FOLDER);
    for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Some(name) = name_of(&format!("{FOLDER}/{file}")) {
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            found.insert(name.to_owned(), parse(name, &text));
        }
    }
    Ok(found)
}

/// A line for each job that measures the program and whose result is missing, invalid or of another
/// file than the one with this hash.
pub(crate) fn of_another_program(jobs: &Jobs, results: &Results, sha256: &str) -> Vec<String> {
    let measured = jobs.jobs.iter().filter(|job| job.program && job.stores.is_none());
    let line = |name: &str| match results.get(name) {
        None => Some(format!("{name}: no result")),
        Some(Err(why)) => Some(format!("{name}: {why}")),
        Some(Ok(stored)) => match stored.binary_sha256.as_deref() {
            Some(of) if of == sha256 => None,
            Some(of) => Some(format!(
                "{name}: of {} ({}, profile {}), sha256 {}…; shipped is {}…",
                stored.date(),
                stored.commit,
                stored.profile,
                of.get(..12).unwrap_or(of),
                sha256.get(..12).unwrap_or(sha256)
            )),
            None => Some(format!(
                "{name}: of {} ({}, profile {}), of a program whose hash was not recorded",
                stored.date(),
                stored.commit,
                stored.profile
            )),
        },
    };
    measured.filter_map(|job| line(&job.name)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use result::Row;

    pub(crate) fn stored(name: &str, rows: Vec<Row>) -> Stored {
        Stored {
            schema: result::SCHEMA.into(),
            name: name.into(),
            commit: "cac34fc".into(),
            profile: "dist".into(),
            program: true,
            binary_sha256: Some("aa".into()),
            machine: "Linux 6.1 x86_64".into(),
            started: "2026-11-22T01:02:03Z".into(),
            took_s: None,
            command: "cargo xtask bench x".into(),
            notes: Vec::new(),
            rows,
        }
    }

    #[test]
    fn results_of_another_program_are_named() {
        let jobs: Jobs = Jobs::parse(
            "[[job]]\nname = \"bench-a\"\nkind = \"bench\"\nabout = \"a\"\nminutes = 1\nprogram = true\nrun = [[\"true\"]]\n\
             [[job]]\nname = \"bench-b\"\nkind = \"bench\"\nabout = \"b\"\nminutes = 1\nprofile = \"bench\"\nrun = [[\"true\"]]\n",
        )
        .unwrap();
        let with = |change: fn(&mut Stored)| {
            let mut one = stored("bench-a", Vec::new());
            change(&mut one);
            of_another_program(&jobs, &Results::from([("bench-a".into(), Ok(one))]), "aa")
        };
        assert_eq!(with(|_| ()), Vec::<String>::new(), "the library's bench is not asked for");
        assert!(with(|one| one.binary_sha256 = Some("bb".into()))[0].starts_with("bench-a: of 2026-11-22"));
        assert!(with(|one| one.binary_sha256 = None)[0].contains("not recorded"));
        assert_eq!(of_another_program(&jobs, &Results::new(), "aa"), ["bench-a: no result"]);
    }
}
