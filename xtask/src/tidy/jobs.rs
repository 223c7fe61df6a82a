//! Rule: what `xtask/jobs.toml` names exists: benches, examples, tests, scripts, experiments,
//! packages.

use super::Violation;
use crate::jobs::{FILE, Jobs};
use crate::repo::{Repo, has_extension};

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let Some(Some(text)) = repo.files.get(FILE) else { return Vec::new() };
    // A list that cannot be read is reported with the results.
    let Ok(jobs) = Jobs::parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    for job in &jobs.jobs {
        for command in job.build.iter().chain(&job.run) {
            for missing in missing(repo, command) {
                let line = text.lines().position(|line| line == format!("name = {:?}", job.name));
                found.push(Violation::at(
                    FILE,
                    line.map_or(1, |at| at + 1),
                    format!("job {}: `{missing}`", job.name),
                    "something that exists",
                ));
            }
        }
    }
    found
}

/// Words of a command that name something missing.
fn missing<'a>(repo: &Repo, command: &'a [String]) -> Vec<&'a str> {
    let package = value(command, "--package").unwrap_or("stillcore");
    let target_of = |word: &str| match word {
        "--bench" => Some("benches"),
        "--example" => Some("examples"),
        "--test" => Some("tests"),
        _ => None,
    };
    let mut found = Vec::new();
    if command.first().is_some_and(|program| program == "cargo") && !has_package(repo, package) {
        found.push(package);
    }
    for pair in command.windows(2) {
        let (word, name) = (pair[0].as_str(), pair[1].as_str());
        let there = match (target_of(word), word) {
            (Some(folder), _) => has_target(repo, package, folder, name),
            // A study by name, of the shipped program.
            (None, "run") if command[0] == "{program}" => {
                repo.files.contains_key(&format!("experiments/{name}.toml"))
            }
            _ => true,
        };
        if !there {
            found.push(name);
        }
    }
    let is_file = |word: &&String| {
        !word.contains('{')
            && word.contains('/')
            && ["toml", "py", "sh"].iter().any(|e| has_extension(word, e))
    };
    found.extend(
        command.iter().filter(is_file).filter(|path| !repo.files.contains_key(*path)).map(String::as_str),
    );
    found
}

fn value<'a>(command: &'a [String], option: &str) -> Option<&'a str> {
    let at = command.iter().position(|word| word == option)?;
    command.get(at + 1).map(String::as_str)
}

/// The folder of a package: crates/ holds them under their names without the prefix, the command
/// under `cli`.
fn folder_of(package: &str) -> String {
    match package.strip_prefix("stillcore-") {
        Some(name) => format!("crates/{name}"),
        None => "crates/cli".to_owned(),
    }
}

fn has_package(repo: &Repo, package: &str) -> bool {
    repo.files.contains_key(&format!("{}/Cargo.toml", folder_of(package)))
}

fn has_target(repo: &Repo, package: &str, kind: &str, name: &str) -> bool {
    let base = format!("{}/{kind}/{name}", folder_of(package));
    [".rs", "/main.rs", "/mod.rs"].iter().any(|end| repo.files.contains_key(&format!("{base}{end}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_our_jobs_name_exists() {
        let root = crate::repo::root();
        assert!(Jobs::read(&root).unwrap().jobs.len() > 30);
        assert_eq!(check(&Repo::read(&root).unwrap()), []);
    }

    #[test]
    fn everything_that_a_job_names_must_exist() {
        let job = |run: &str| {
            let list = format!(
                "[[job]]\nname = \"bench-x\"\nkind = \"bench\"\nabout = \"x\"\nminutes = 1\nprogram = true\nrun = [{run}]\n"
            );
            let files = [
                (FILE, list.as_str()),
                ("crates/cli/Cargo.toml", ""),
                ("crates/cli/benches/a.rs", ""),
                ("crates/cli/tests/guest.rs", ""),
                ("crates/analysis/Cargo.toml", ""),
                ("crates/analysis/examples/b/main.rs", ""),
                ("experiments/fig1.toml", ""),
                ("xtask/c.py", ""),
            ];
            check(&Repo::of(&files)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for good in [
            "[\"cargo\", \"bench\", \"--package\", \"stillcore\", \"--bench\", \"a\"]",
            "[\"cargo\", \"run\", \"--package\", \"stillcore-analysis\", \"--example\", \"b\"]",
            "[\"cargo\", \"test\", \"--test\", \"guest\"]",
            "[\"{program}\", \"study\", \"run\", \"fig1\", \"--out\", \"{work}/fig1.toml\"]",
            "[\"python3\", \"xtask/c.py\"]",
        ] {
            assert_eq!(job(good), Vec::<String>::new());
            let bad = good.replace("\"a\"", "\"z\"").replace("\"b\"", "\"z\"").replace("guest", "z");
            let bad = bad.replace("\"fig1\"", "\"z\"").replace("c.py", "z.py");
            let found = job(&bad);
            assert_eq!(found.len(), 1, "{bad}");
            assert!(found[0].starts_with("xtask/jobs.toml:2: job bench-x: `"), "{found:?}");
        }
        assert_eq!(job("[\"cargo\", \"run\", \"--package\", \"stillcore-gone\"]").len(), 1);
    }
}
