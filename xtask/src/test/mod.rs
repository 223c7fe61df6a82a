//! The driver behind `make test`: the steps of the fast tier, what each took and tested, and the
//! account of it as data.
//!
//! The build of the tests comes first. Steps that keep one CPU busy each then run beside each
//! other. The tests that measure on this machine are last, with those that compute and the lints on
//! CPUs that would be idle.

mod account;
pub(crate) mod all;
mod build;
mod exercises;
mod guests;
mod programs;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::output::Output;
use crate::steps::{Counts, Done, Step, run_all, summary};
use crate::{python, repo, tidy};
use build::Program;
use guests::Machines;
use programs::Order;

/// How the tests are run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fail where a guest did not boot, or a test was skipped for want of a package
    /// (`false`: only say so).
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    strict: bool,
    /// Run only the steps whose name contains this word (repeatable); the build always runs.
    #[arg(long = "only", value_name = "WORD")]
    only: Vec<String>,
    /// Store the account in docs/results/make-test.json, beside target/make-test.json.
    #[arg(long)]
    store: bool,
}

/// Where the browser tests leave their screenshots.
const SCREENS: &str = "target/report-screens";

/// The longest that a test program may print nothing. Tests print their names as they end; the
/// longest measure for half a minute.
const SILENCE: Duration = Duration::from_secs(400);

/// Tests of the command that have a step of their own, or need more than this tier installs.
const APART: [&str; 4] = ["report_browser::", "hosts::", "hosts_ssh::", "pods::"];

/// Programs whose tests wait for most of their time: package, name, tests at once. Those of the
/// command take turns themselves.
const AT_ONCE: [(&str, &str, usize); 3] =
    [("stillcore", "it", 48), ("stillcore-disturb", "disturb", 4), ("stillcore-graph", "processes", 4)];

/// Runs the steps, prints and stores the account and says whether all passed.
pub(crate) fn run_tests(root: &Path, options: &Options) -> Result<bool> {
    let started = Instant::now();
    let target = repo::target_dir(root)?;
    let built = Mutex::new(Vec::new());
    let chosen = |step: &Step| {
        let named = |word: &String| step.name.contains(word.as_str());
        options.only.is_empty() || options.only.iter().any(named)
    };
    let needed = |step: &Step| step.name == BUILD || chosen(step);
    let phases: Vec<Vec<Step>> = phases(root, &target, &built, options.strict)
        .into_iter()
        .map(|phase| phase.into_iter().filter(needed).collect())
        .collect();
    let known = phases.iter().flatten().filter(|step| chosen(step)).count();
    ensure!(known > 0, "--only {}: no such step", options.only.join(" --only "));
    let done = run_all(phases, Some(&target.join("test-logs")));
    let done = if options.strict { done.into_iter().map(strictly).collect() } else { done };
    let wall = started.elapsed();
    print!("\n{}", summary(&done, wall));
    let account = account::of("make-test", "cargo xtask test", root, &done, wall)?;
    account.write(&target.join("make-test.json"))?;
    if options.store {
        account.write(&root.join("docs/results/make-test.json"))?;
    }
    Ok(done.iter().all(|step| step.failure.is_none()))
}

const BUILD: &str = "build of tests and command";

/// The steps; those of one list run beside each other.
fn phases<'a>(
    root: &'a Path,
    target: &'a Path,
    built: &'a Mutex<Vec<Program>>,
    strict: bool,
) -> Vec<Vec<Step<'a>>> {
    let programs = move || -> Result<Vec<Program>> {
        let programs = built.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(!programs.is_empty(), "the build of the tests failed");
        Ok(programs)
    };
    vec![
        vec![Step::new("format", move |output, _| {
            output.run(root, "cargo", &["fmt", "--all", "--", "--check"])
        })],
        vec![Step::new("tidy", move |output, _| {
            ensure!(tidy::run(root, output)?, "a convention is broken");
            Ok(())
        })],
        vec![Step::new(BUILD, move |output, _| {
            *built.lock().unwrap_or_else(PoisonError::into_inner) = build::tests(root, output)?;
            Ok(())
        })],
        // Each keeps one CPU busy: an emulator has one thread for a machine's CPUs. The tests that
        // measure on this machine come after them.
        vec![
            Step::new("guest of 6.1", move |output, counts| {
                let program = find(&programs()?, "stillcore", "guests")?;
                guests::run(&program, one("fast::6.1::"), strict, output, counts)
            }),
            Step::new("wheel and Python", move |output, counts| python::test(root, target, output, counts)),
            Step::new("guest of 6.12-rt", move |output, counts| {
                let program = find(&programs()?, "stillcore", "guests")?;
                guests::run(&program, one("fast::6.12-rt::"), strict, output, counts)
            }),
            Step::new("report in Chromium", move |output, counts| {
                let screens = root.join(SCREENS);
                clear(&screens)?;
                let order = Order { filter: Some("report_browser::"), silence: SILENCE, ..Order::default() };
                programs::run(&find(&programs()?, "stillcore", "it")?, &order, output, counts)?;
                let stored = pictures(&screens)?;
                ensure!(
                    stored >= 2,
                    "{stored} screenshots in {SCREENS}; expected one with scripts and one without"
                );
                Ok(())
            }),
        ],
        vec![
            Step::new("tests on this machine", move |output, counts| {
                let all = programs()?;
                test(all.iter().filter(|program| !computes(program)), false, output, counts)
            }),
            // Those wait for more than half of the time.
            Step::new("tests that compute", move |output, counts| {
                let all = programs()?;
                test(all.iter().filter(|program| computes(program)), true, output, counts)
            })
            .idle(),
            Step::new("clippy, examples", move |output, _| {
                // The builds show that it compiles for this architecture.
                build::clippy(root, &["--target", &build::other_musl()], output)?;
                build::doc_tests(root, output)
            })
            .idle(),
            // They are built in the slow tier.
            Step::new("exercises of CONTRIBUTING.md", move |output, counts| {
                exercises::apply(root, output, counts).map(drop)
            }),
        ],
    ]
}

/// Packages whose own tests use nothing of this machine but its CPUs, and files of their own.
const COMPUTE: [&str; 14] = [
    "pack",
    "stillcore-analysis",
    "stillcore-attribution",
    "stillcore-audit",
    "stillcore-boot",
    "stillcore-exchange",
    "stillcore-ftrace",
    "stillcore-infer",
    "stillcore-model",
    "stillcore-report",
    "stillcore-sched",
    "stillcore-stats",
    "stillcore-study",
    "xtask",
];

fn computes(program: &Program) -> bool {
    COMPUTE.contains(&program.package.as_str())
}

/// Runs test programs one after another; `idle`: on CPUs that nothing else wants.
fn test<'p>(
    programs: impl Iterator<Item = &'p Program>,
    idle: bool,
    output: &mut Output,
    counts: &mut Counts,
) -> Result<()> {
    let mut failures = Vec::new();
    for program in programs.filter(|program| program.name != "guests") {
        let name = (program.package.as_str(), program.name.as_str());
        let threads = AT_ONCE.iter().find(|(package, it, _)| name == (*package, *it)).map(|row| row.2);
        let order = Order { skip: &APART, silence: SILENCE, threads, idle, ..Order::default() };
        // One that fails does not keep the others from being run.
        failures.extend(programs::run(program, &order, output, counts).err());
    }
    all_well(&failures)
}

/// One machine of the fast tier.
fn one(tier: &str) -> Machines<'_> {
    Machines { tier, at_once: 1, kernels: 1 }
}

fn find(programs: &[Program], package: &str, name: &str) -> Result<Program> {
    let found = programs.iter().find(|program| program.package == package && program.name == name);
    found.cloned().with_context(|| format!("no test program {name} of {package} was built"))
}

fn all_well(failures: &[anyhow::Error]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let all: Vec<String> = failures.iter().map(|error| format!("{error:#}")).collect();
    let (first, more): (Vec<_>, Vec<_>) =
        all.iter().map(|text| text.split_once('\n').unwrap_or((text, ""))).unzip();
    bail!("{}", format!("{}\n{}", first.join("; "), more.join("\n")).trim_end())
}

/// A step fails where a package is missing that `deps.sh` installs.
fn strictly(mut step: Done) -> Done {
    let lacking = programs::for_want_of_a_package(&step.counts);
    if step.failure.is_none() && !lacking.is_empty() {
        step.failure = Some(format!("skipped (STRICT=0 allows it): {}", lacking.join("; ")));
    }
    step
}

/// Removes what an earlier run left, so that a step cannot pass on old evidence.
fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn pictures(folder: &Path) -> Result<usize> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.iter().filter(|path| path.extension().is_some_and(|it| it == "png")).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Counts;

    #[test]
    fn a_missing_package_fails_a_strict_run_and_nothing_else_that_is_skipped_does() {
        let step = |why: &str| Done {
            name: "s".into(),
            took: Duration::ZERO,
            counts: Counts { passed: 1, skipped: vec![why.into()], ..Counts::default() },
            failure: None,
        };
        assert_eq!(strictly(step("p it: needs root")).failure, None);
        let failed = strictly(step("p it: trace-cmd is missing (package trace-cmd)")).failure;
        assert!(failed.is_some_and(|why| why.contains("trace-cmd")));
    }
}
