//! `cargo xtask bench|lab|study NAME`: what can be measured is data, `xtask/jobs.toml`; a run of a
//! job is one stored result.

mod derived;
mod run;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::shipped;
pub(crate) use derived::Source;

/// Where jobs are declared.
pub(crate) const FILE: &str = "xtask/jobs.toml";

/// What to run, and how.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A name of the list, with or without the kind in front.
    name: Option<String>,
    /// Print the list: name, minutes, purpose.
    #[arg(long)]
    list: bool,
    /// Store the result in this folder instead of docs/results, for a trial.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Further arguments of what is run, after `--`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// The verb that runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Bench,
    Lab,
    Study,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bench => "bench",
            Self::Lab => "lab",
            Self::Study => "study",
        })
    }
}

/// One job.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// Its name begins with its kind and a hyphen; its result is `NAME.json`.
    pub name: String,
    pub kind: Kind,
    /// One sentence: what it is for.
    pub about: String,
    /// What `xtask/deps.sh` installs first.
    pub needs: Option<Needs>,
    /// Expected wall time on two idle CPUs, the build not included.
    pub minutes: u32,
    /// The shipped program is built first, and is what is measured.
    #[serde(default)]
    pub program: bool,
    /// The cargo profile of what is measured, where that is not the shipped program.
    pub profile: Option<String>,
    /// The result that it replaces, where that is another job's.
    pub stores: Option<String>,
    /// Commands that prepare.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// Commands that measure, one after the other; the first that fails ends the job.
    pub run: Vec<Vec<String>>,
    /// Rows that follow from files which the commands wrote.
    #[serde(default)]
    pub rows: Vec<Derived>,
}

/// A file that a command wrote, and how its rows are called.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Derived {
    pub from: Source,
    pub file: String,
    /// In front of the name of each row.
    #[serde(default)]
    pub prefix: String,
}

/// An argument of `xtask/deps.sh`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Needs {
    Test,
    Release,
    Middleware,
    Examples,
    Hosts,
    Loader,
    Packages,
}

impl Needs {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Release => "release",
            Self::Middleware => "middleware",
            Self::Examples => "examples",
            Self::Hosts => "hosts",
            Self::Loader => "loader",
            Self::Packages => "packages",
        }
    }
}

/// All jobs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jobs {
    /// Beginnings of commands that jobs share: the word `@NAME` stands for these words.
    #[serde(default)]
    commands: BTreeMap<String, Vec<String>>,
    #[serde(rename = "job")]
    pub jobs: Vec<Job>,
}

impl Jobs {
    /// Reads the list of the working tree.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("read {FILE}"))?;
        Self::parse(&text).with_context(|| FILE)
    }

    /// Reads a list and checks what types do not say.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut jobs: Self = toml::from_str(text)?;
        for at in 0..jobs.jobs.len() {
            let job = &jobs.jobs[at];
            ensure!(
                job.name.starts_with(&format!("{}-", job.kind)),
                "job {:?}: expected a name that begins with \"{}-\"",
                job.name,
                job.kind
            );
            ensure!(
                jobs.jobs[..at].iter().all(|one| one.name != job.name),
                "job {:?} occurs twice",
                job.name
            );
            if let Some(stores) = &job.stores {
                let known = jobs.jobs.iter().any(|one| one.name == *stores);
                ensure!(known, "job {:?} stores {stores:?}; expected the name of a job", job.name);
            }
            ensure!(!job.run.is_empty(), "job {:?} runs nothing", job.name);
            ensure!(
                job.program == job.profile.is_none(),
                "job {:?}: expected either `program = true` or a `profile`",
                job.name
            );
            let (build, run) = (jobs.whole(&job.build)?, jobs.whole(&job.run)?);
            (jobs.jobs[at].build, jobs.jobs[at].run) = (build, run);
        }
        Ok(jobs)
    }

    /// Commands with their shared beginnings written out.
    fn whole(&self, commands: &[Vec<String>]) -> Result<Vec<Vec<String>>> {
        let whole = |command: &Vec<String>| -> Result<Vec<String>> {
            let mut words = Vec::new();
            for word in command {
                match word.strip_prefix('@') {
                    None => words.push(word.clone()),
                    Some(name) => {
                        let shared = self.commands.get(name);
                        words.extend(shared.with_context(|| format!("no [commands] {name:?}"))?.clone());
                    }
                }
            }
            Ok(words)
        };
        commands.iter().map(whole).collect()
    }

    /// The job of this kind that is called so, with or without the kind in front.
    fn find(&self, kind: Kind, name: &str) -> Result<&Job> {
        let whole = format!("{kind}-{name}");
        let found = self.jobs.iter().find(|job| job.kind == kind && (job.name == name || job.name == whole));
        let Some(job) = found else { bail!("no {kind} is called {name:?}\n{}", self.list(kind)) };
        Ok(job)
    }

    /// A line a job: name, minutes, purpose.
    fn list(&self, kind: Kind) -> String {
        let of: Vec<&Job> = self.jobs.iter().filter(|job| job.kind == kind).collect();
        let width = of.iter().map(|job| job.short_name().len()).max().unwrap_or(0);
        let line =
            |job: &&Job| format!("{:width$}  {:>4} min  {}\n", job.short_name(), job.minutes, job.about);
        of.iter().map(line).collect::<Vec<_>>().concat()
    }
}

impl Job {
    /// Its name without the kind.
    fn short_name(&self) -> &str {
        self.name.split_once('-').map_or(&self.name, |(_, name)| name)
    }

    /// The name of its result.
    pub(crate) fn result(&self) -> &str {
        self.stores.as_deref().unwrap_or(&self.name)
    }

    /// The cargo profile of what is measured.
    pub(crate) fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or(shipped::PROFILE)
    }
}

/// Runs the named job, or prints the list.
pub(crate) fn run(root: &Path, kind: Kind, options: &Options) -> Result<bool> {
    let jobs = Jobs::read(root)?;
    match &options.name {
        Some(name) if !options.list => {
            let job = jobs.find(kind, name)?;
            run::job(root, job, &options.arguments, options.out.as_deref())
        }
        _ => {
            print!("{}", jobs.list(kind));
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[commands]\nbench = [\"cargo\", \"bench\"]\n\
        [[job]]\nname = \"bench-a\"\nkind = \"bench\"\nabout = \"First.\"\nminutes = 3\nprogram = true\nrun = [[\"@bench\", \"a\"]]\n\
        [[job]]\nname = \"study-b\"\nkind = \"study\"\nabout = \"Second.\"\nminutes = 40\nprofile = \"release\"\nrun = [[\"b\"]]\n";

    #[test]
    fn shared_words_are_written_out_and_names_found_with_and_without_their_kind() {
        let jobs = Jobs::parse(TWO).unwrap();
        assert_eq!(jobs.jobs[0].run, [["cargo", "bench", "a"]]);
        assert_eq!(jobs.jobs[0].profile(), shipped::PROFILE);
        for name in ["a", "bench-a"] {
            assert_eq!(jobs.find(Kind::Bench, name).unwrap().about, "First.");
        }
        assert_eq!(jobs.list(Kind::Study), "b    40 min  Second.\n");
        let error = jobs.find(Kind::Bench, "b").unwrap_err().to_string();
        assert!(error.contains("no bench is called \"b\"") && error.contains("a     3 min"), "{error}");
    }

    #[test]
    fn wrong_lists_are_refused() {
        for (from, to, why) in [
            ("bench-a", "a", "begins with"),
            ("name = \"study-b\"\nkind = \"study\"", "name = \"bench-a\"\nkind = \"bench\"", "twice"),
            ("@bench", "@gone", "no [commands]"),
            ("run = [[\"b\"]]", "run = []", "runs nothing"),
            ("program = true", "", "either"),
            ("minutes = 3", "minutes = 3\nhours = 1", "unknown field"),
        ] {
            let error = format!("{:#}", Jobs::parse(&TWO.replace(from, to)).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
