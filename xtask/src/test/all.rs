//! The slow tier, `cargo xtask test-all`: what does not fit into `make test`, in parts that can be
//! run by what a change touches. The last result of each part is kept with its commit in
//! `docs/results/test-all.json`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::build::{self, Program};
use super::guests::{self, Machines};
use super::programs::{self, Order};
use super::{SILENCE, find};
use crate::jobs::Needs;
use crate::output::Output;
use crate::steps::{Counts, Done, Step, run_all, summary};
use crate::{hosts, packages, place, repo};

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only this part (repeatable).
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<String>,
    /// Run the parts that the change since this commit touches.
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// List the parts, what touches them and their last results; run nothing.
    #[arg(long)]
    list: bool,
}

/// A part: its name, the minutes it is expected to take on two cores, and the paths whose change
/// requires it.
struct Part {
    name: &'static str,
    minutes: u32,
    touched_by: &'static [&'static str],
    work: Work,
}

/// The work of a part.
enum Work {
    /// Machines of `crates/cli/tests/guests/table.rs`.
    Guests { tier: &'static str, at_once: usize },
    /// Lints of tests, and of both architectures: the fast tier's are for the other one, without
    /// tests.
    Lints,
    /// The exercises of CONTRIBUTING.md, built; the fast tier applies them.
    Exercises,
    /// The lab's own boots, failed ones among them.
    LabBoots,
    /// Studies on two machines, by tests of the command with this in their names: `hosts::` through
    /// Ansible, `hosts_ssh::` by ssh; `pods::`, the pods of `deploy/kubernetes`.
    Hosts(&'static str),
    /// Packages made twice, installed, upgraded and removed.
    Packages,
    /// All tests of a package with these features.
    Features { package: &'static str, features: &'static str },
    /// All tests of packages, each access to memory watched.
    Sanitizer(&'static [&'static str]),
}

impl Work {
    /// What is installed before it.
    const fn needs(&self) -> Needs {
        match self {
            Self::Guests { .. } | Self::LabBoots | Self::Lints | Self::Exercises | Self::Sanitizer(_) => {
                Needs::Test
            }
            Self::Hosts(_) => Needs::Hosts,
            Self::Packages => Needs::Packages,
            Self::Features { .. } => Needs::Middleware,
        }
    }
}

/// What runs in guests, and what puts it there.
const IN_GUESTS: &[&str] = &[
    "crates/sys/",
    "crates/machine/",
    "crates/boot/",
    "crates/audit/",
    "crates/journal/",
    "crates/record/",
    "crates/disturb/",
    "crates/isolate/",
    "crates/measure/",
    "crates/cli/",
    "crates/lab/",
    "crates/model/",
    "crates/attribution/",
    "crates/analysis/",
    "crates/stats/",
    "catalogue/",
];

const PARTS: &[Part] = &[
    guests("guests-slow", "slow::", 3, 36),
    guests("guests-slow-arm64", "slow-arm64::", 1, 10),
    guests("guests-5.10", "matrix::5.10::", 3, 35),
    guests("guests-5.10-rt", "matrix::5.10-rt::", 3, 35),
    guests("guests-6.1", "matrix::6.1::", 3, 35),
    guests("guests-6.1-rt", "matrix::6.1-rt::", 3, 35),
    guests("guests-6.12", "matrix::6.12::", 3, 35),
    guests("guests-6.12-rt", "matrix::6.12-rt::", 3, 35),
    Part { name: "lints", minutes: 5, touched_by: &["crates/", "xtask/"], work: Work::Lints },
    Part {
        name: "exercises",
        minutes: 4,
        touched_by: &["crates/", "catalogue/", "docs/exercises/"],
        work: Work::Exercises,
    },
    Part { name: "lab-boots", minutes: 3, touched_by: &["crates/lab/"], work: Work::LabBoots },
    Part {
        name: "hosts-by-ansible",
        minutes: 2,
        touched_by: &["deploy/", "crates/study/", "crates/cli/src/study_verb/"],
        work: Work::Hosts("hosts::"),
    },
    Part {
        name: "hosts-by-ssh",
        minutes: 5,
        touched_by: &["deploy/", "crates/study/", "crates/cli/src/study_verb/"],
        work: Work::Hosts("hosts_ssh::"),
    },
    Part {
        name: "pods",
        minutes: 2,
        touched_by: &["deploy/kubernetes/", "crates/isolate/", "crates/journal/"],
        work: Work::Hosts("pods::"),
    },
    Part {
        name: "packages",
        minutes: 6,
        touched_by: &[
            "deploy/packages/",
            "xtask/pack/",
            "xtask/install.sh",
            "crates/isolate/",
            "crates/cli/",
        ],
        work: Work::Packages,
    },
    Part {
        name: "middleware",
        minutes: 10,
        touched_by: &["crates/graph/"],
        work: Work::Features { package: "stillcore-graph", features: "ros2,iceoryx2" },
    },
    Part {
        name: "sanitizer",
        minutes: 10,
        touched_by: &[
            "crates/ftrace/",
            "crates/graph/",
            "crates/sys/",
            "crates/record/",
            "crates/disturb/",
            "crates/measure/",
        ],
        work: Work::Sanitizer(&[
            "stillcore-ftrace",
            "stillcore-graph",
            "stillcore-sys",
            "stillcore-record",
            "stillcore-disturb",
            "stillcore-measure",
        ]),
    },
];

const fn guests(name: &'static str, tier: &'static str, at_once: usize, minutes: u32) -> Part {
    Part { name, minutes, touched_by: IN_GUESTS, work: Work::Guests { tier, at_once } }
}

/// Runs the chosen parts, stores their results and says whether all passed.
pub(crate) fn run_parts(root: &Path, options: &Options) -> Result<bool> {
    for name in &options.parts {
        ensure!(
            PARTS.iter().any(|part| part.name == name),
            "no part {name}; see cargo xtask test-all --list"
        );
    }
    let changed = options.since.as_deref().map(|since| changed(root, since)).transpose()?;
    let chosen: Vec<&Part> =
        PARTS.iter().filter(|part| is_chosen(part, &options.parts, changed.as_deref())).collect();
    let store = root.join("docs/results/test-all.json");
    let mut last = Results::read(&store)?;
    if options.list {
        print!("{}", last.listed());
        return Ok(true);
    }
    if chosen.is_empty() {
        println!("the change touches no part");
        return Ok(true);
    }
    let logs = repo::target_dir(root)?.join("test-logs");
    let started = Instant::now();
    let mut programs = Vec::new();
    let mut done = run_all(
        vec![vec![Step::new(super::BUILD, |output, _| {
            programs = build::tests(root, output)?;
            Ok(())
        })]],
        Some(&logs),
    );
    for part in chosen {
        let step = Step::new(part.name, |output, counts| part.run(root, &programs, output, counts));
        let ended = run_all(vec![vec![step]], Some(&logs));
        // Stored one by one: an interrupted run keeps what it has shown.
        for step in &ended {
            last.put(row(step, root)?);
        }
        last.write(&store)?;
        done.extend(ended);
    }
    print!("\n{}", summary(&done, started.elapsed()));
    Ok(done.iter().all(|step| step.failure.is_none()))
}

fn is_chosen(part: &Part, named: &[String], changed: Option<&[String]>) -> bool {
    let touched = |changed: &[String]| {
        changed.iter().any(|path| part.touched_by.iter().any(|folder| path.starts_with(folder)))
    };
    (named.is_empty() || named.iter().any(|name| name == part.name)) && changed.is_none_or(touched)
}

/// The paths that differ from a commit.
fn changed(root: &Path, since: &str) -> Result<Vec<String>> {
    let out = Command::new("git").args(["diff", "--name-only", since, "--"]).current_dir(root).output();
    let out = out.context("run git diff")?;
    ensure!(out.status.success(), "git diff {since}: {}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect())
}

impl Part {
    fn run(&self, root: &Path, programs: &[Program], output: &mut Output, counts: &mut Counts) -> Result<()> {
        output.run(root, "sh", &["xtask/deps.sh", self.work.needs().word()])?;
        match self.work {
            Work::Guests { tier, at_once } => {
                if tier.contains("arm64") {
                    build::arm64(root, output)?;
                }
                let machines = Machines { tier, at_once, kernels: 1 };
                guests::run(&find(programs, "stillcore", "guests")?, machines, true, output, counts)
            }
            Work::Lints => [build::musl(), build::other_musl()]
                .iter()
                .try_for_each(|target| build::clippy(root, &["--all-targets", "--target", target], output)),
            Work::Exercises => super::exercises::test(root, output, counts),
            Work::LabBoots => {
                let program = build::one(root, "stillcore-lab", "boot", output)?;
                let order = Order { threads: Some(1), silence: SILENCE, ..Order::default() };
                programs::run(&program, &order, output, counts)
            }
            Work::Hosts(filter) => {
                hosts::prepare(root, output)?;
                let order = Order { filter: Some(filter), silence: SILENCE, ..Order::default() };
                programs::run(&find(programs, "stillcore", "it")?, &order, output, counts)
            }
            Work::Packages => packages::test(root, output),
            Work::Features { package, features } => {
                let order = Order { silence: SILENCE, ..Order::default() };
                let programs = build::with_features(root, package, features, output)?;
                programs.iter().try_for_each(|program| programs::run(program, &order, output, counts))
            }
            Work::Sanitizer(packages) => {
                // The model checker of lock-free code has stacks of its own, and all orders are
                // run without this.
                let skip = &["every_order_that_memory_allows", "_found_out"];
                let order = Order { silence: SILENCE, skip, ..Order::default() };
                let mut programs = build::with_sanitizer(root, packages, output)?;
                // Disturbances limit their memory, and the sanitizer takes terabytes of addresses.
                programs.retain(|program| program.name != "disturb");
                programs.iter().try_for_each(|program| programs::run(program, &order, output, counts))
            }
        }
    }
}

/// The last result of every part (`stillcore.result/1`).
#[derive(Debug, Serialize, Deserialize)]
struct Results {
    schema: String,
    name: String,
    rows: Vec<Row>,
}

/// One part, as it last ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    what: String,
    /// Wall time.
    value: f64,
    unit: String,
    /// Tests that ran.
    n: u32,
    skipped: Vec<String>,
    notes: Vec<String>,
    failure: Option<String>,
    commit: String,
    machine: String,
    verdict: String,
}

fn row(step: &Done, root: &Path) -> Result<Row> {
    Ok(Row {
        what: step.name.clone(),
        value: step.took.as_secs_f64().round(),
        unit: "s".into(),
        n: step.counts.passed + step.counts.failed,
        skipped: step.counts.skipped.clone(),
        notes: step.counts.notes.clone(),
        failure: step.failure.clone(),
        commit: place::commit(root)?,
        machine: place::machine(),
        verdict: if step.failure.is_none() { "met" } else { "missed" }.into(),
    })
}

impl Results {
    /// What is stored; nothing where there is no file yet.
    fn read(path: &PathBuf) -> Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("parse {}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (schema, name) = ("stillcore.result/1".to_owned(), "test-all".to_owned());
                Ok(Self { schema, name, rows: Vec::new() })
            }
            Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
        }
    }

    /// In place of the part's last result.
    fn put(&mut self, row: Row) {
        self.rows.retain(|old| old.what != row.what);
        self.rows.push(row);
        let place = |row: &Row| PARTS.iter().position(|part| part.name == row.what);
        self.rows.sort_by_key(place);
    }

    fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("encode the results")? + "\n";
        std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }

    /// A line a part.
    fn listed(&self) -> String {
        let line = |part: &Part| {
            let last = match self.rows.iter().find(|row| row.what == part.name) {
                None => "never run".to_owned(),
                Some(row) => {
                    let commit: String = row.commit.chars().take(9).collect();
                    let ended = if row.failure.is_some() { "FAILED" } else { "passed" };
                    format!("{ended} at {commit} in {} s, {} tests", row.value, row.n)
                }
            };
            format!(
                "{:18} {:3} min expected  {last}; touched by {}\n",
                part.name,
                part.minutes,
                part.touched_by.join(" ")
            )
        };
        PARTS.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_chooses_the_parts_that_it_touches() {
        let part = |name: &str| PARTS.iter().find(|part| part.name == name).unwrap();
        let changed = ["crates/graph/src/lib.rs".to_owned()];
        assert!(is_chosen(part("middleware"), &[], Some(&changed)));
        assert!(!is_chosen(part("guests-5.10"), &[], Some(&changed)));
        assert!(is_chosen(part("guests-5.10"), &[], None));
        assert!(!is_chosen(part("guests-5.10"), &["middleware".into()], None));
    }

    #[test]
    fn all_parts_take_six_hours_at_most_and_what_touches_them_is_there() {
        assert!(PARTS.iter().map(|part| part.minutes).sum::<u32>() <= 360);
        let root = repo::root();
        for path in PARTS.iter().flat_map(|part| part.touched_by) {
            assert!(root.join(path).exists(), "{path}");
        }
    }

    #[test]
    fn only_the_last_result_of_a_part_is_kept() {
        let row = |what: &str, n| Row {
            what: what.into(),
            value: 1.0,
            unit: "s".into(),
            n,
            skipped: vec![],
            notes: vec![],
            failure: None,
            commit: "c".into(),
            machine: "m".into(),
            verdict: "met".into(),
        };
        let mut results = Results::read(&PathBuf::from("/nowhere/test-all.json")).unwrap();
        for one in [row("middleware", 1), row("lab-boots", 2), row("middleware", 3)] {
            results.put(one);
        }
        let kept: Vec<_> = results.rows.iter().map(|row| (row.what.as_str(), row.n)).collect();
        assert_eq!(kept, [("lab-boots", 2), ("middleware", 3)]);
        assert!(results.listed().contains("never run"));
    }
}
