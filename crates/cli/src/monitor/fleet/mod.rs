//! `monitor fleet`: the histories of many machines, read from copies or a shared directory, held
//! against each other.

mod read;
#[cfg(test)]
mod tests;
mod words;

use clap::{Args, ValueEnum};
use model::foreign::in_a_line;
use monitor::fleet::{GroupStanding, Member, Standing, groups, standings};
use read::{Labels, Machine};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The schema of the answer.
const SCHEMA: &str = "stillcore.monitor-fleet/1";
/// Packages that are named where more differ alike.
const NAMED: usize = 3;
/// The version of a package that is not installed.
const ABSENT: &str = "absent";

/// Arguments of `monitor fleet`.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Histories: a state directory, its monitor/ or monitor/history/, or a directory of such.
    #[arg(value_name = "DIR", required = true)]
    histories: Vec<PathBuf>,
    /// The last so many days (UTC).
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
    /// What to hold against the rest: each machine, or all machines with the same of these.
    #[arg(long, value_enum, default_value_t = By::Machine)]
    by: By,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// What machines have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    /// Each by itself.
    Machine,
    /// The release of the kernel.
    Kernel,
    /// The version of stillcore.
    Version,
    /// The version of a package; each package that is not the same everywhere.
    Package,
}

#[derive(Serialize)]
struct Answer {
    schema: &'static str,
    /// First and last day that any has.
    days: [String; 2],
    by: By,
    /// Whether limit and threads were the same; otherwise late threads are not compared.
    same_question: bool,
    machines: Vec<Listed>,
    /// Each machine against the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    standings: Vec<Judged<Standing>>,
    /// Each group against the rest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Judged<GroupStanding>>,
    /// Machines of which the packages are not known; only by package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages_unknown: Vec<String>,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    dir: PathBuf,
    hours: usize,
    kernels: Vec<String>,
}

#[derive(Serialize)]
struct Judged<T> {
    #[serde(flatten)]
    row: T,
    verdict: &'static str,
}

/// Holds them against each other.
pub(crate) fn run(args: &FleetArgs) -> anyhow::Result<u8> {
    let answer = answer(args)?;
    if args.json {
        println!("{}", serde_json::to_string(&answer)?);
    } else {
        print!("{}", words::words(&answer));
    }
    Ok(0)
}

fn answer(args: &FleetArgs) -> anyhow::Result<Answer> {
    let (sources, days) = read::sources(&args.histories, args.days)?;
    let (machines, same_question) = read::read(&sources)?;
    anyhow::ensure!(
        machines.len() > 1,
        "only one machine has a history there ({}), expected two at least",
        machines.first().map_or("none", |one| &one.member.name)
    );
    let members: Vec<Member> = machines.iter().map(|one| one.member.clone()).collect();
    let label = |of: fn(&Machine) -> &Labels| {
        grouped(&machines, |machine, hour| of(machine).get(hour).cloned().flatten())
    };
    let all_groups = match args.by {
        By::Machine => Vec::new(),
        By::Kernel => groups(&label(|machine| &machine.kernels)),
        By::Version => groups(&label(|machine| &machine.versions)),
        By::Package => by_package(&machines),
    };
    let standings = if args.by == By::Machine { standings(&members) } else { Vec::new() };
    let judge = |row: Standing| Judged { verdict: standing_words(&row), row };
    let unknown = machines.iter().filter(|one| args.by == By::Package && one.packages.is_empty());
    Ok(Answer {
        schema: SCHEMA,
        days,
        by: args.by,
        same_question,
        standings: standings.into_iter().map(judge).collect(),
        groups: all_groups.into_iter().map(|row| Judged { verdict: row.verdict(), row }).collect(),
        packages_unknown: unknown.map(|one| one.member.name.clone()).collect(),
        machines: machines.iter().map(listed).collect(),
    })
}

fn listed(machine: &Machine) -> Listed {
    let kernels: BTreeSet<&String> = machine.kernels.values().flatten().collect();
    Listed {
        name: machine.member.name.clone(),
        dir: machine.dir.clone(),
        hours: machine.member.hours().len(),
        kernels: kernels.into_iter().cloned().collect(),
    }
}

fn standing_words(row: &Standing) -> &'static str {
    match (row.is_worse(), row.p_value) {
        (true, _) => "worse",
        (false, Some(_)) => "not worse",
        (false, None) => "too few hours",
    }
}

/// The machines that were one thing all the time. One that changed would be on both sides, and what
/// changed with time on all of them would count for what it became.
fn grouped(machines: &[Machine], label: impl Fn(&Machine, &str) -> Option<String>) -> Vec<(String, Member)> {
    let parts = machines.iter().map(|one| one.member.split(|hour| label(one, hour)));
    parts.filter(|parts| parts.len() == 1).flatten().collect()
}

/// Packages that are not the same everywhere; those that differ alike are one question, and there
/// are as many questions as there are ways to differ.
fn by_package<'a>(machines: &'a [Machine]) -> Vec<GroupStanding> {
    let lists = || machines.iter().flat_map(|one| one.packages.values());
    let names: BTreeSet<&String> = lists().flat_map(BTreeMap::keys).collect();
    let mut alike = BTreeMap::<Vec<usize>, Vec<&String>>::new();
    for name in names {
        // Numbers in the order in which versions first occur: the same for packages that differ
        // alike.
        let mut versions: Vec<Option<&String>> = Vec::new();
        let mut number = |version: Option<&'a String>| {
            versions.iter().position(|one| *one == version).unwrap_or_else(|| {
                versions.push(version);
                versions.len() - 1
            })
        };
        let pattern: Vec<usize> = lists().map(|list| number(list.get(name))).collect();
        if pattern.iter().any(|at| *at > 0) {
            alike.entry(pattern).or_default().push(name);
        }
    }
    let questions = alike.len() as f64;
    let mut found = Vec::new();
    for names in alike.values() {
        let members = grouped(machines, |one, hour| one.version_of(names[0], hour));
        for row in groups(&members) {
            found.push(GroupStanding {
                group: title(names, &row.group, lists()),
                p_value: (row.p_value * questions).min(1.0),
                least: (row.least * questions).min(1.0),
                ..row
            });
        }
    }
    found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    found
}

/// Packages that differ alike, by the version of the first one.
fn title<'a>(
    names: &[&String],
    version: &str,
    mut lists: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> String {
    let of =
        |list: &'a BTreeMap<String, String>, name: &String| list.get(name).map_or(ABSENT, String::as_str);
    let list = lists.find(|list| of(list, names[0]) == version);
    let version = |name: &&String| list.map_or(ABSENT, |list| of(list, name));
    let named: Vec<String> =
        names.iter().take(NAMED).map(|name| format!("{name} {}", version(name))).collect();
    match names.len() - named.len() {
        0 => in_a_line(&named.join(", ")),
        more => format!("{}, and {more} more that differ alike", in_a_line(&named.join(", "))),
    }
}
