//! A profile of another tool against a desired state: what is the same, what differs, and what the
//! profile leaves or does besides.

use crate::profile::Profile;
use audit::{Desired, Means};
use model::Cpus;
use std::collections::BTreeSet;

/// How a profile stands to one thing that is desired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It does it.
    Same,
    /// It does something else.
    Other,
    /// It does nothing about it.
    Left,
}

/// One thing that is desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The mechanism's name in the catalogue; of a word of the boot line its parameter.
    pub mechanism: String,
    /// The file, the word, or a clause.
    pub what: String,
    /// The value that is desired; empty where `what` says it all.
    pub desired: String,
    /// What the profile does instead.
    pub profile: Option<String>,
    /// How it stands.
    pub verdict: Verdict,
    /// Whether the machine has it so already.
    pub is_so: bool,
}

/// A profile against a desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// All that is desired.
    pub rows: Vec<Row>,
    /// What the profile does besides, one line each.
    pub besides: Vec<String>,
}

/// Compares; `line`: the machine's boot line.
pub fn compare(desired: &Desired, profile: &Profile, line: &str) -> Compared {
    let mut rows: Vec<Row> = files(desired, profile).collect();
    rows.extend(words(desired, profile, line));
    rows.extend(moved(desired, profile));
    rows.extend(rest(desired, profile));
    Compared { rows, besides: besides(desired, profile) }
}

fn files<'a>(desired: &'a Desired, profile: &'a Profile) -> impl Iterator<Item = Row> + 'a {
    let changed: BTreeSet<&str> = desired.plan.steps.iter().map(|step| step.target.as_str()).collect();
    desired.files.iter().map(move |(path, setting)| {
        let theirs = profile.files.get(path);
        let verdict = match theirs {
            None => Verdict::Left,
            Some(value) if is_same(path, &setting.value, value) => Verdict::Same,
            Some(_) => Verdict::Other,
        };
        Row {
            mechanism: setting.mechanism.clone(),
            what: path.clone(),
            desired: setting.value.clone(),
            profile: theirs.cloned().filter(|_| verdict == Verdict::Other),
            verdict,
            is_so: !changed.contains(path.as_str()),
        }
    })
}

/// Masks and lists have more than one spelling.
fn is_same(path: &str, one: &str, other: &str) -> bool {
    let spaced = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    if spaced(one) == spaced(other) {
        return true;
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let read = if name.contains("mask") || name.contains("affinity") && !name.contains("list") {
        Cpus::parse_hex
    } else if name.contains("cpus") || name.contains("list") {
        Cpus::parse_list
    } else {
        return false;
    };
    read(one).is_ok_and(|one| read(other).is_ok_and(|other| one == other))
}

fn words<'a>(desired: &'a Desired, profile: &'a Profile, line: &'a str) -> impl Iterator<Item = Row> + 'a {
    desired.parameters.iter().map(move |word| {
        let name = parameter(word);
        // The kernel takes the last one of most parameters.
        let theirs = profile.parameters.iter().rev().find(|theirs| parameter(theirs) == name);
        let verdict = match theirs {
            None => Verdict::Left,
            Some(theirs) if is_same_word(word, theirs) => Verdict::Same,
            Some(_) => Verdict::Other,
        };
        Row {
            mechanism: "boot line".to_owned(),
            what: word.clone(),
            desired: String::new(),
            profile: theirs.cloned().filter(|_| verdict == Verdict::Other),
            verdict,
            is_so: line.split_whitespace().any(|there| is_same_word(word, there)),
        }
    })
}

fn parameter(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// The same parameter with the same flags and CPUs. `isolcpus` without flags is `domain`.
fn is_same_word(one: &str, other: &str) -> bool {
    let parts = |word: &str| {
        let value = word.split_once('=').map_or("", |(_, value)| value);
        let is_of_cpus = |part: &&str| part.starts_with(|letter: char| letter.is_ascii_digit());
        let (cpus, flags): (Vec<&str>, Vec<&str>) = value.split(',').partition(is_of_cpus);
        let mut flags: BTreeSet<String> = flags.into_iter().map(str::to_owned).collect();
        if parameter(word) == "isolcpus" && flags.is_empty() {
            flags.insert("domain".to_owned());
        }
        Some((Cpus::parse_list(&cpus.join(",")).ok()?, flags))
    };
    one == other
        || parameter(one) == parameter(other) && parts(one).is_some_and(|one| Some(one) == parts(other))
}

/// Tasks and interrupts.
fn moved(desired: &Desired, profile: &Profile) -> Vec<Row> {
    let isolated = &desired.plan.isolated;
    let row = |mechanism: &str, what: &str, theirs: &Cpus, steps: bool| {
        let verdict = if isolated.is_subset(theirs) {
            Verdict::Same
        } else if isolated.and(theirs).is_empty() {
            Verdict::Left
        } else {
            Verdict::Other
        };
        Row {
            mechanism: mechanism.to_owned(),
            what: format!("{what} run on other CPUs than {isolated}"),
            desired: String::new(),
            profile: Some(format!("on others than {theirs}")).filter(|_| verdict == Verdict::Other),
            verdict,
            is_so: !steps,
        }
    };
    let has = |id: &str| desired.plan.steps.iter().any(|step| step.mechanism == id && !step.kind.remembers());
    let mut rows = Vec::new();
    if desired.tasks {
        let mut tasks = row("user-tasks", "tasks", &profile.isolated, has("user-tasks"));
        if tasks.verdict == Verdict::Same && !profile.spared.is_empty() && desired.plan.keep.is_empty() {
            tasks.verdict = Verdict::Other;
            tasks.profile = Some(format!("all but some ({})", profile.spared.join(", ")));
        }
        rows.push(tasks);
    }
    if desired.interrupts {
        rows.push(row("irq-affinity", "interrupts", &profile.quiet, has("irq-affinity")));
    }
    rows
}

/// Groups, services, latencies.
fn rest(desired: &Desired, profile: &Profile) -> Vec<Row> {
    let rest = desired.rest().into_iter();
    rest.map(|(mechanism, means)| {
        let (what, theirs, verdict) = match means {
            Means::Placement => ("a group keeps the scheduler off".to_owned(), None, Verdict::Left),
            Means::Service(unit) => {
                let stops = profile.stopped.contains(unit);
                let verdict = if stops { Verdict::Same } else { Verdict::Left };
                (format!("{unit} is stopped"), None, verdict)
            }
            Means::Latency(us) => {
                let theirs = profile.latency_us.as_deref();
                let verdict = match theirs {
                    None => Verdict::Left,
                    Some(theirs) if theirs == us => Verdict::Same,
                    Some(_) => Verdict::Other,
                };
                (
                    format!("/dev/cpu_dma_latency is held at {us} us"),
                    theirs.map(|us| format!("at {us} us")),
                    verdict,
                )
            }
            Means::Other(what) => (what.to_owned(), None, Verdict::Left),
        };
        Row {
            mechanism: mechanism.to_owned(),
            what,
            desired: String::new(),
            profile: theirs.filter(|_| verdict == Verdict::Other),
            verdict,
            is_so: false,
        }
    })
    .collect()
}

fn besides(desired: &Desired, profile: &Profile) -> Vec<String> {
    let files = profile.files.iter().filter(|(path, _)| !desired.files.contains_key(*path));
    let mut lines: Vec<String> = files.map(|(path, value)| format!("{path} = {value}")).collect();
    let known = |word: &str| desired.parameters.iter().any(|one| parameter(one) == parameter(word));
    lines.extend(
        profile.parameters.iter().filter(|word| !known(word)).map(|word| format!("boot line: {word}")),
    );
    let rest = desired.rest();
    let stops = |unit: &str| rest.iter().any(|(_, means)| *means == Means::Service(unit));
    lines.extend(profile.stopped.iter().filter(|unit| !stops(unit)).map(|unit| format!("{unit} is stopped")));
    if let Some(us) = &profile.latency_us
        && !rest.iter().any(|(_, means)| matches!(means, Means::Latency(_)))
    {
        lines.push(format!("/dev/cpu_dma_latency is held at {us} us"));
    }
    let beyond = profile.isolated.minus(&desired.plan.isolated);
    if !beyond.is_empty() {
        lines.push(format!("tasks are moved away from CPUs {beyond} too"));
    }
    lines.extend(profile.more.iter().cloned());
    lines
}
