//! The statements of the papers and the experiments of this repository, together: every statement
//! is judged or has its reason, and every claim is one of a statement or our own.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use study::experiment::{Experiment, Published};
use study::papers::{Statement, Statements};

fn experiments() -> PathBuf {
    Path::new("../../experiments").to_owned()
}

fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    found.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    found.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn published() -> Published {
    Published::from_toml(&std::fs::read_to_string(experiments().join("published.toml")).unwrap()).unwrap()
}

fn statements() -> Vec<Statement> {
    let published = published();
    let read = |(name, text): (String, String)| {
        Statements::from_toml(&text, &published).unwrap_or_else(|fault| panic!("{name}: {fault}")).all
    };
    files(&experiments().join("statements")).into_iter().flat_map(read).collect()
}

/// Experiments by the statement that they judge.
fn claims() -> BTreeMap<String, Vec<String>> {
    let published = published();
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in
        files(&experiments()).iter().filter(|(_, text)| text.contains("stillcore.experiment/1\""))
    {
        let experiment =
            Experiment::from_toml(text, &published).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        for claim in &experiment.claims {
            if let Some(id) = &claim.statement {
                claims.entry(id.get_ref().clone()).or_default().push(name.clone());
            }
        }
    }
    claims
}

#[test]
fn every_statement_is_there_once() {
    let all = statements();
    let ids: BTreeSet<&str> = all.iter().map(|one| one.id.as_str()).collect();
    assert_eq!((all.len(), ids.len()), (371, 371));
}

#[test]
fn every_claim_names_a_statement_that_there_is() {
    let all = statements();
    let ids: BTreeSet<&str> = all.iter().map(|one| one.id.as_str()).collect();
    let unknown: Vec<_> = claims().into_iter().filter(|(id, _)| !ids.contains(id.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_statement_is_judged_or_has_its_reason() {
    let (published, claims) = (published(), claims());
    let without = |one: &&Statement| {
        let own = one.own.iter().any(|own| own.judged(&published).0.decides());
        !own && one.open.is_none() && !claims.contains_key(&one.id)
    };
    let all = statements();
    let without: Vec<&str> = all.iter().filter(without).map(|one| one.id.as_str()).collect();
    assert!(without.is_empty(), "{} statements: {}", without.len(), without.join(" "));
}
