//! What to type: the first change of a mechanism that this machine allows, with CPU sets spelled as its file wants them.

use super::super::catalogue::{Change, Mechanism, When};
use super::{Outcome, Scene};
use model::{Cpus, FindingState};

/// What of a mechanism is not as wanted.
#[derive(Default)]
pub(super) struct Wrong<'a> {
    /// Files, by path under the root.
    pub(super) files: &'a [String],
    /// Processes or interrupts, by number.
    pub(super) numbers: &'a [u32],
}

/// A finding that something is not as wanted: fixable, for the next boot, or immovable, as the changes at hand allow.
pub(super) fn propose(scene: &Scene, mechanism: &Mechanism, wrong: &Wrong, reason: String) -> Outcome {
    let mut possible = mechanism.change.iter().filter(|change| can(scene, change, wrong));
    let Some(change) = possible.next() else { return Outcome::new(FindingState::Immovable, reason) };
    let state = if change.when() == When::Now { FindingState::Fixable } else { FindingState::Boot };
    let caveat = change.caveat().map(str::to_owned);
    Outcome { caveat, ..Outcome::new(state, reason).cured_by(spell(scene, change, wrong)) }
}

/// A finding that only another boot can change.
pub(super) fn at_boot(scene: &Scene, mechanism: &Mechanism, reason: String) -> Outcome {
    let change = mechanism.change.iter().find(|change| change.when() != When::Now);
    let outcome = Outcome::new(FindingState::Boot, reason);
    match change {
        Some(change) => outcome.cured_by(spell(scene, change, &Wrong::default())),
        None => outcome,
    }
}

/// Whether the machine allows a change: a file without a write bit refuses every write.
fn can(scene: &Scene, change: &Change, wrong: &Wrong) -> bool {
    match change {
        Change::Write { path: Some(path), .. } => scene.root.writable(path) == Some(true),
        Change::Write { path: None, .. } => {
            wrong.files.iter().all(|file| scene.root.writable(file) != Some(false))
        }
        _ => true,
    }
}

fn spell(scene: &Scene, change: &Change, wrong: &Wrong) -> String {
    match change {
        Change::Option { value } => format!("build the kernel with {value}"),
        Change::Parameter { value } => {
            format!("add {} to the kernel command line and reboot", fill(scene, value))
        }
        Change::Write { path: Some(path), value, .. } => write(path, &fill(scene, value)),
        Change::Write { path: None, value, .. } => {
            let value = fill(scene, value);
            wrong.files.iter().map(|file| write(file, &value)).collect::<Vec<_>>().join(" && ")
        }
        Change::Affinity {} => each(wrong.numbers, |pid| format!("taskset -pc {} {pid}", scene.housekeeping)),
        Change::Irqs {} => each(wrong.numbers, |irq| {
            format!("echo {} > /proc/irq/{irq}/smp_affinity_list", scene.housekeeping)
        }),
        Change::Stop {} => "stop it".to_owned(),
        Change::Swapoff {} => "swapoff -a".to_owned(),
        Change::Governor { value } => each(wrong.numbers, |cpu| {
            format!("echo {value} > /sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        }),
        Change::Partition {} => partition(scene),
    }
}

fn write(file: &str, value: &str) -> String {
    format!("echo {value} > /{}", file.trim_start_matches('/'))
}

/// One command for one number, a shell loop for more.
fn each(numbers: &[u32], command: impl Fn(&str) -> String) -> String {
    match numbers {
        [one] => command(&one.to_string()),
        all => {
            let all: Vec<_> = all.iter().map(u32::to_string).collect();
            format!("for n in {}; do {}; done", all.join(" "), command("$n"))
        }
    }
}

fn partition(scene: &Scene) -> String {
    let base = super::partition::mounted(scene.root).unwrap_or_else(|| "/sys/fs/cgroup".to_owned());
    let group = format!("{base}/isolated");
    format!(
        "echo +cpuset > {base}/cgroup.subtree_control && mkdir {group} && echo {} > {group}/cpuset.cpus && echo isolated > {group}/cpuset.cpus.partition",
        scene.isolated
    )
}

/// Puts CPU sets into a template.
pub(super) fn fill(scene: &Scene, template: &str) -> String {
    let put = |text: String, name: &str, cpus: &Cpus| {
        text.replace(&format!("{{{name}}}"), &cpus.to_string())
            .replace(&format!("{{{name}:hex}}"), &cpus.to_hex())
    };
    put(put(template.to_owned(), "isolated", &scene.isolated), "housekeeping", &scene.housekeeping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_or_a_loop() {
        assert_eq!(each(&[7], |n| format!("x {n}")), "x 7");
        assert_eq!(each(&[7, 8], |n| format!("x {n}")), "for n in 7 8; do x $n; done");
    }
}
