//! Rule: a crate uses only the crates behind its arrow. The table is the house plan (see ARCHITECTURE.md); a crate
//! that is not in it has no room yet and must be entered here first.
//! Tests may span rooms, so development dependencies are free.

use super::Violation;
use crate::repo::Repo;

/// Package, and the workspace packages it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("stillcore-model", &[]),
    ("stillcore-result", &[]),
    ("stillcore-ftrace", &[]),
    ("stillcore-sched", &[]),
    ("stillcore-analysis", &["stillcore-model", "stillcore-ftrace"]),
    ("stillcore-linux", &["stillcore-model", "stillcore-ftrace"]),
    ("stillcore-graph", &["stillcore-model", "stillcore-linux"]),
    ("stillcore-lab", &["stillcore-model"]),
    ("stillcore-study", &["stillcore-model"]),
    ("stillcore-report", &["stillcore-model", "stillcore-analysis", "stillcore-sched"]),
    (
        "stillcore",
        &[
            "stillcore-model",
            "stillcore-ftrace",
            "stillcore-sched",
            "stillcore-analysis",
            "stillcore-linux",
            "stillcore-graph",
            "stillcore-lab",
            "stillcore-study",
            "stillcore-report",
        ],
    ),
    (
        "stillcore-py",
        &["stillcore-model", "stillcore-ftrace", "stillcore-sched", "stillcore-analysis", "stillcore-report"],
    ),
    ("xtask", &["stillcore-result"]),
];

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &repo.packages {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            found.push(Violation::file(
                "Cargo.toml",
                format!("package {} is in no room of the house", package.name),
                "a row in the table of xtask/src/tidy/arrows.rs",
            ));
            continue;
        };
        let used = package.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev"));
        for dependency in used.filter(|d| d.name == "stillcore" || d.name.starts_with("stillcore-")) {
            if !allowed.contains(&dependency.name.as_str()) {
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
        let found = check_one("stillcore-model", &[("stillcore-linux", None)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "stillcore-model uses stillcore-linux");
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
