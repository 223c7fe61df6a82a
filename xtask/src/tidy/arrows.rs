//! Rule: a crate uses only the crates behind its arrow. The table is the house plan (see
//! ARCHITECTURE.md); a crate that is not in it has no room yet and must be entered here first.
//! Tests may span rooms, so development dependencies are free.

use super::Violation;
use crate::repo::Repo;

/// Crate, and the crates of the workspace that it may use; both without `stillcore-`.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("result", &[]),
    ("ftrace", &[]),
    ("stats", &[]),
    ("sched", &[]),
    ("infer", &[]),
    ("attribution", &["model", "ftrace", "stats", "infer"]),
    ("analysis", &["model", "ftrace", "stats", "sched", "infer", "attribution"]),
    ("sys", &["model"]),
    ("machine", &["model"]),
    ("boot", &["model", "machine"]),
    ("audit", &["model", "machine", "boot"]),
    ("journal", &["model", "sys", "machine"]),
    ("record", &["model", "ftrace", "sys", "journal"]),
    ("disturb", &["model", "sys", "machine", "journal", "record"]),
    ("exchange", &["model", "machine", "audit"]),
    ("isolate", &["model", "sys", "machine", "boot", "audit", "journal"]),
    ("measure", &["model", "sys", "machine", "journal", "record"]),
    ("monitor", &["model", "stats"]),
    ("graph", &["model", "sys", "machine", "journal", "record", "measure"]),
    ("lab", &["model", "machine"]),
    ("study", &["model", "stats"]),
    ("report", &["model", "stats", "attribution", "analysis", "sched", "infer"]),
    ("fixture", &["stats", "machine"]),
    ("stillcore", ALL),
    (
        "py",
        &[
            "model",
            "ftrace",
            "stats",
            "sched",
            "machine",
            "boot",
            "audit",
            "attribution",
            "analysis",
            "report",
        ],
    ),
    ("xtask", &["result"]),
    ("pack", &[]),
];

/// What the command may use: everything but what tests and benches are for.
const ALL: &[&str] = &[
    "model",
    "ftrace",
    "stats",
    "sched",
    "infer",
    "attribution",
    "analysis",
    "sys",
    "machine",
    "boot",
    "audit",
    "journal",
    "record",
    "disturb",
    "exchange",
    "isolate",
    "measure",
    "monitor",
    "graph",
    "lab",
    "study",
    "report",
];

/// Its name in the table.
fn short(package: &str) -> &str {
    package.strip_prefix("stillcore-").unwrap_or(package)
}

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &repo.packages {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == short(&package.name)) else {
            found.push(Violation::file(
                "Cargo.toml",
                format!("package {} is in no room of the house", package.name),
                "a row in the table of xtask/src/tidy/arrows.rs",
            ));
            continue;
        };
        let used = package.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev"));
        for dependency in used.filter(|d| d.name == "stillcore" || d.name.starts_with("stillcore-")) {
            if !allowed.contains(&short(&dependency.name)) {
                found.push(Violation::file(
                    "Cargo.toml",
                    format!("{} uses {}", package.name, dependency.name),
                    format!("only {}", listed(allowed)),
                ));
            }
        }
    }
    found
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "no crate of the workspace".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::{Dependency, Package};

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).into(),
            kind: kind.map(Into::into),
        };
        Package { name: name.into(), dependencies: uses.iter().map(dependency).collect() }
    }

    fn check_one(name: &str, uses: &[(&str, Option<&str>)]) -> Vec<Violation> {
        check(&Repo { packages: vec![package(name, uses)], ..Repo::default() })
    }

    #[test]
    fn an_arrow_of_the_plan_is_free() {
        assert_eq!(check_one("stillcore-analysis", &[("stillcore-model", None), ("serde", None)]), []);
    }

    #[test]
    fn a_broken_arrow_names_both_ends() {
        let found = check_one("stillcore-model", &[("stillcore-machine", None)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "stillcore-model uses stillcore-machine");
    }

    #[test]
    fn build_dependencies_count_and_development_ones_do_not() {
        assert_eq!(check_one("stillcore-sched", &[("stillcore-model", Some("build"))]).len(), 1);
        assert_eq!(check_one("stillcore-sched", &[("stillcore-model", Some("dev"))]), []);
    }

    #[test]
    fn a_crate_without_a_room_is_reported() {
        assert_eq!(check_one("stillcore-cellar", &[]).len(), 1);
    }

    #[test]
    fn every_arrow_leads_to_a_room_and_none_in_a_circle() {
        for (at, (name, uses)) in ARROWS.iter().enumerate() {
            for used in *uses {
                let there = ARROWS.iter().position(|(n, _)| n == used);
                assert!(there.is_some_and(|t| t < at), "{name} -> {used}");
            }
        }
    }
}
