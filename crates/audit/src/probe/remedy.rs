//! What to do: the first change of a mechanism that this machine allows, as steps of a plan and as
//! a command to type, with CPU sets spelled as the file wants them.

use super::super::catalogue::{Change, Mechanism, When};
use super::super::narrow::Narrowed;
use super::{Outcome, Scene};
use model::plan::{Step, StepKind};
use model::{Cpus, FindingState};

/// One thing that is not as wanted, with its present value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Off {
    /// How it is changed.
    pub(super) kind: StepKind,
    /// What it is, as a step names it.
    pub(super) target: String,
    /// Its present value.
    pub(super) old: String,
}

impl Off {
    pub(super) fn file(file: &str, old: impl Into<String>) -> Self {
        Self { kind: StepKind::File, target: rooted(file), old: old.into() }
    }
}

/// A finding that something is not as wanted: fixable, for the next boot, or immovable, as the
/// changes at hand allow.
pub(super) fn propose(scene: &Scene, mechanism: &Mechanism, wrong: &[Off], reason: String) -> Outcome {
    let mut possible = mechanism.change.iter().filter(|change| can(scene, change, wrong));
    let Some(change) = possible.next() else { return Outcome::new(FindingState::Immovable, reason) };
    let state = if change.when() == When::Now { FindingState::Fixable } else { FindingState::Boot };
    let caveat = change.caveat().map(str::to_owned);
    Outcome {
        caveat,
        steps: steps(scene, mechanism, change, wrong),
        parameter: parameter(scene, change),
        ..Outcome::new(state, reason).cured_by(spell(scene, change, wrong))
    }
}

/// A finding that only another boot can change.
pub(super) fn at_boot(scene: &Scene, mechanism: &Mechanism, reason: String) -> Outcome {
    let change = mechanism.change.iter().find(|change| change.when() != When::Now);
    let outcome = Outcome::new(FindingState::Boot, reason);
    match change {
        Some(change) => {
            Outcome { parameter: parameter(scene, change), ..outcome.cured_by(spell(scene, change, &[])) }
        }
        None => outcome,
    }
}

/// Whether the machine allows a change: a file without a write bit refuses every write.
fn can(scene: &Scene, change: &Change, wrong: &[Off]) -> bool {
    match change {
        Change::Write { path: Some(path), .. } => {
            scene.expand(path).iter().any(|file| scene.root.writable(file) == Some(true))
        }
        Change::Write { path: None, .. } => {
            wrong.iter().all(|off| scene.root.writable(&off.target) != Some(false))
        }
        _ => true,
    }
}

/// The steps of a plan; none for what a program cannot do at run time.
fn steps(scene: &Scene, mechanism: &Mechanism, change: &Change, wrong: &[Off]) -> Vec<Step> {
    let step = |off: &Off, new: String| step(mechanism, off.clone(), new);
    let noted = |off: &Off, new: Written| Step { note: new.note, ..step(off, new.text) };
    match change {
        Change::Write { path: Some(path), value, .. } => {
            files(scene, path).iter().map(|off| noted(off, written(scene, value, &off.old))).collect()
        }
        Change::Write { path: None, value, .. } | Change::Governor { value } => {
            wrong.iter().map(|off| noted(off, written(scene, value, &off.old))).collect()
        }
        Change::Affinity {} | Change::Irqs {} => {
            wrong.iter().map(|off| noted(off, elsewhere(scene, &off.old))).collect()
        }
        Change::Stop {} | Change::Disable {} => wrong
            .iter()
            .map(|off| {
                step(off, if off.kind == StepKind::Process { "stopped" } else { "inactive" }.to_owned())
            })
            .collect(),
        Change::Swapoff {} => wrong.iter().map(|off| step(off, "off".to_owned())).collect(),
        Change::Flag { value } => wrong.iter().map(|off| step(off, value.clone())).collect(),
        Change::Idle {} => wrong.iter().map(|off| step(off, "1".to_owned())).collect(),
        Change::Hold { path, value } => {
            let off = Off {
                kind: StepKind::Held,
                target: format!("{}={value}", rooted(path)),
                old: "not held".to_owned(),
            };
            vec![step(&off, "held".to_owned())]
        }
        Change::Option { .. } | Change::Parameter { .. } | Change::Partition {} | Change::Advice { .. } => {
            Vec::new()
        }
    }
}

fn step(mechanism: &Mechanism, off: Off, new: String) -> Step {
    Step {
        mechanism: mechanism.id.clone(),
        kind: off.kind,
        target: off.target,
        old: Some(off.old).filter(|old| !old.is_empty()),
        new,
        why: mechanism.harm.clone(),
        cost: mechanism.cost.clone(),
        risky: mechanism.risky,
        note: None,
    }
}

/// The files that a pattern names, with what they hold.
fn files(scene: &Scene, pattern: &str) -> Vec<Off> {
    let read = |file: String| Off::file(&file, scene.root.maybe(&file).unwrap_or_default());
    scene.expand(pattern).into_iter().map(read).collect()
}

/// A value to write, and what is to be said of it.
pub(super) struct Written {
    pub(super) text: String,
    note: Option<String>,
}

impl Written {
    fn of(narrowed: &Narrowed, spell: fn(&Cpus) -> String) -> Self {
        Self { text: spell(&narrowed.cpus), note: narrowed.note() }
    }
}

/// The value of a file that held `old`. A set of housekeeping CPUs is the old set narrowed, in the
/// spelling of the file.
fn written(scene: &Scene, template: &str, old: &str) -> Written {
    let (set, spell): (_, fn(&Cpus) -> String) = match template {
        "{housekeeping}" => (Cpus::parse_list(old).ok(), Cpus::to_string),
        "{housekeeping:hex}" => (Cpus::parse_hex(old).ok(), Cpus::to_hex),
        _ => (None, Cpus::to_string),
    };
    match set {
        Some(set) => Written::of(&scene.division().narrow(&set), spell),
        None => Written { text: fill(scene, template), note: None },
    }
}

/// Where a task or an interrupt goes that may be on the isolated CPUs.
pub(super) fn elsewhere(scene: &Scene, allowed: &str) -> Written {
    let old = Cpus::parse_list(allowed).unwrap_or_else(|_| scene.isolated.clone());
    Written::of(&scene.division().narrow(&old), Cpus::to_string)
}

fn parameter(scene: &Scene, change: &Change) -> Option<String> {
    match change {
        Change::Parameter { value } => Some(fill(scene, value)),
        _ => None,
    }
}

/// Whether a change moves something to the housekeeping CPUs.
fn moves_away(change: &Change) -> bool {
    match change {
        Change::Affinity {} | Change::Irqs {} => true,
        Change::Parameter { value } | Change::Write { value, .. } => value.contains("{housekeeping"),
        Change::Advice { what, .. } => what.contains("{housekeeping"),
        _ => false,
    }
}

fn spell(scene: &Scene, change: &Change, wrong: &[Off]) -> String {
    if scene.housekeeping.is_empty() && moves_away(change) {
        return "leave a CPU to everything else: name fewer with --cpus".to_owned();
    }
    match change {
        Change::Option { value } => format!("build the kernel with {value}"),
        Change::Parameter { value } => {
            format!("add {} to the kernel command line and reboot", fill(scene, value))
        }
        Change::Write { path, value, .. } => {
            let files = path.as_ref().map_or_else(|| wrong.to_vec(), |path| files(scene, path));
            alike(
                &files,
                |off| written(scene, value, &off.old).text,
                |value, same| {
                    let files: Vec<_> = same.iter().map(|off| off.target.as_str()).collect();
                    if files.len() <= 4 {
                        return files.iter().map(|file| write(file, value)).collect::<Vec<_>>().join(" && ");
                    }
                    format!("for f in {}; do echo {value} > $f; done", files.join(" "))
                },
            )
        }
        Change::Affinity {} => alike(
            wrong,
            |off| elsewhere(scene, &off.old).text,
            |cpus, same| each(same, |pid| format!("taskset -pc {cpus} {pid}")),
        ),
        Change::Irqs {} => alike(
            wrong,
            |off| elsewhere(scene, &off.old).text,
            |cpus, same| each(same, |irq| format!("echo {cpus} > /proc/irq/{irq}/smp_affinity_list")),
        ),
        Change::Stop {} => "stop it".to_owned(),
        Change::Disable {} => {
            let units: Vec<_> = wrong.iter().map(|off| off.target.as_str()).collect();
            format!("systemctl disable --now {}", units.join(" "))
        }
        Change::Swapoff {} => "swapoff -a".to_owned(),
        Change::Flag { value } => {
            wrong.iter().map(|off| flip(&off.target, value)).collect::<Vec<_>>().join(" && ")
        }
        Change::Governor { value } => each(&wrong.iter().collect::<Vec<_>>(), |cpu| {
            format!("echo {value} > /sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        }),
        Change::Idle {} => wrong.iter().map(|off| write(&off.target, "1")).collect::<Vec<_>>().join(" && "),
        Change::Hold { path, value } => {
            format!("keep {} open with {value} written to it", rooted(path))
        }
        Change::Partition {} => partition(scene),
        Change::Advice { what, .. } => fill(scene, what),
    }
}

fn rooted(file: &str) -> String {
    format!("/{}", file.trim_start_matches('/'))
}

fn write(file: &str, value: &str) -> String {
    format!("echo {value} > {}", rooted(file))
}

/// Of a target `FILE#NAME`.
fn flip(target: &str, value: &str) -> String {
    let (file, name) = target.rsplit_once('#').unwrap_or((target, ""));
    write(file, &if value == "on" { name.to_owned() } else { format!("NO_{name}") })
}

/// One command for those that get the same value, `&&` between them.
fn alike(wrong: &[Off], value: impl Fn(&Off) -> String, command: impl Fn(&str, &[&Off]) -> String) -> String {
    let mut groups: Vec<(String, Vec<&Off>)> = Vec::new();
    for off in wrong {
        let value = value(off);
        match groups.iter_mut().find(|(of, _)| *of == value) {
            Some((_, group)) => group.push(off),
            None => groups.push((value, vec![off])),
        }
    }
    groups.iter().map(|(value, group)| command(value, group)).collect::<Vec<_>>().join(" && ")
}

/// One command for one number, a shell loop for more.
fn each(wrong: &[&Off], command: impl Fn(&str) -> String) -> String {
    let numbers: Vec<_> = wrong.iter().map(|off| number(&off.target)).collect();
    match numbers.as_slice() {
        [one] => command(one),
        all => format!("for n in {}; do {}; done", all.join(" "), command("$n")),
    }
}

/// The number in a target: of a task, an interrupt, a CPU.
fn number(target: &str) -> &str {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = target.split('/').map(|part| part.strip_prefix("cpu").unwrap_or(part));
    parts.find(|part| digits(part)).unwrap_or(target)
}

fn partition(scene: &Scene) -> String {
    let base = machine::partition_mount(scene.root).unwrap_or_else(|| "/sys/fs/cgroup".to_owned());
    let group = format!("{base}/isolated");
    format!(
        "echo +cpuset > {base}/cgroup.subtree_control && mkdir {group} && echo {} > {group}/cpuset.cpus && echo isolated > {group}/cpuset.cpus.partition",
        scene.isolated
    )
}

/// Puts CPU sets into a template.
pub(crate) fn fill(scene: &Scene, template: &str) -> String {
    let put = |text: String, name: &str, cpus: &Cpus| {
        text.replace(&format!("{{{name}}}"), &cpus.to_string())
            .replace(&format!("{{{name}:hex}}"), &cpus.to_hex())
    };
    put(put(template.to_owned(), "isolated", &scene.isolated), "housekeeping", &scene.housekeeping)
}
