//! One probe kind a file: each reads its part of the machine and judges it.

mod aspm;
mod cmdline;
mod cpu_manager;
mod daemon;
mod domains;
mod effective;
mod file;
mod flag;
mod governor;
mod held;
mod idle;
mod irq;
mod kconfig;
mod kthread;
mod listing;
mod numa;
mod parameter;
mod partition;
mod practice;
mod preemption;
mod remedy;
mod resctrl;
mod siblings;
mod swaps;
mod tasks;
mod units;
mod unread;
mod why_not;

pub(super) use effective::rcu_offload;
pub(super) use remedy::fill;

use super::catalogue::{Mechanism, Probe, Want};
use super::narrow::Division;
use super::purpose::Purpose;
use machine::{Irq, Processes, Root, UserThread};
use model::plan::Step;
use model::{Cpus, FindingState, Machine};
use std::cell::OnceCell;

/// What a probe may look at.
pub(crate) struct Scene<'a> {
    pub(super) root: &'a Root,
    pub(super) machine: &'a Machine,
    /// The CPUs that are to be still.
    pub(super) cpus: &'a Cpus,
    /// The same and their SMT siblings, which would disturb them: what to isolate.
    pub(super) isolated: Cpus,
    /// Those for everything else.
    pub(super) housekeeping: Cpus,
    /// Whom nothing is proposed for.
    purpose: Purpose,
    /// Whether tasks pinned to CPUs isolated at boot are to leave them too.
    pub(super) evicts: bool,
    processes: OnceCell<Processes>,
    threads: OnceCell<Vec<UserThread>>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(root: &'a Root, machine: &'a Machine, cpus: &'a Cpus) -> Self {
        // Where only siblings are left, they are the housekeeping CPUs, noisy or not.
        let online = &machine.topology.online;
        let housekeeping = machine::housekeeping(machine, cpus).unwrap_or_else(|_| online.minus(cpus));
        let isolated = online.minus(&housekeeping).or(cpus);
        Self::of(root, machine, cpus, isolated, housekeeping)
    }

    /// A scene whose halves somebody has chosen.
    pub(crate) fn of(
        root: &'a Root,
        machine: &'a Machine,
        cpus: &'a Cpus,
        isolated: Cpus,
        housekeeping: Cpus,
    ) -> Self {
        Self {
            root,
            machine,
            cpus,
            isolated,
            housekeeping,
            purpose: Purpose::default(),
            evicts: false,
            processes: OnceCell::new(),
            threads: OnceCell::new(),
        }
    }

    /// The same without those who are there on purpose, for whom nothing is to be proposed.
    pub(crate) fn sparing(self, purpose: &Purpose) -> Self {
        Self { purpose: purpose.clone(), ..self }
    }

    /// The same, in which pinned tasks are to leave too.
    pub(crate) fn evicting(self, evicts: bool) -> Self {
        Self { evicts, ..self }
    }

    /// The CPUs as masks are narrowed by: an audit counts those isolated for others among the
    /// isolated, where they are to stay what they are.
    fn division(&self) -> Division {
        Division {
            isolated: self.isolated.and(&machine::cores(self.machine, self.cpus)),
            housekeeping: self.housekeeping.clone(),
            online: self.machine.topology.online.clone(),
        }
    }

    /// The files that a pattern of the catalogue names on this machine.
    pub(crate) fn expand(&self, pattern: &str) -> Vec<String> {
        let Some(placed) = machine::placed(self.root, pattern) else { return Vec::new() };
        if placed.contains("{cpu}") {
            let cpus = self.cpus.iter().map(|cpu| placed.replace("{cpu}", &cpu.to_string()));
            cpus.flat_map(|one| self.root.glob(&one)).collect()
        } else {
            self.root.glob(&placed)
        }
    }

    /// What runs; read once an audit.
    pub(super) fn processes(&self) -> &Processes {
        self.processes.get_or_init(|| {
            let mut all = machine::processes(self.root);
            all.kernel.retain(|thread| !self.purpose.keeps_kernel_thread(thread));
            all
        })
    }

    /// The threads of user space; read once an audit.
    fn user_threads(&self) -> &[UserThread] {
        self.threads.get_or_init(|| {
            let spared = |thread: &UserThread| {
                self.purpose != Purpose::default()
                    && !thread.allowed.and(&self.isolated).is_empty()
                    && self.purpose.has_thread(self.root, thread)
            };
            let mut all = machine::user_threads(self.root, &self.processes().user);
            all.retain(|thread| !spared(thread));
            all
        })
    }

    /// Interrupts that are or may be handled there, but for those that are kept.
    fn irqs(&self) -> Vec<Irq> {
        machine::irqs(self.root).into_iter().filter(|irq| !self.purpose.keeps_interrupt(irq)).collect()
    }
}

/// What a probe concludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) state: FindingState,
    pub(super) have: Option<String>,
    pub(super) effective: Option<String>,
    /// One sentence, without a full stop.
    pub(super) reason: String,
    pub(super) remedy: Option<String>,
    /// What to type where it is in order, unless the user knows better.
    pub(super) otherwise: Option<String>,
    /// What the remedy does not do.
    pub(super) caveat: Option<String>,
    /// The remedy as changes that can be made now.
    pub(super) steps: Vec<Step>,
    /// The remedy as a parameter for the next boot.
    pub(super) parameter: Option<String>,
    /// What no remedy changes, and why: a clause.
    pub(super) stays: Option<String>,
}

impl Outcome {
    fn new(state: FindingState, reason: impl Into<String>) -> Self {
        Self {
            state,
            have: None,
            effective: None,
            reason: reason.into(),
            remedy: None,
            otherwise: None,
            caveat: None,
            steps: Vec::new(),
            parameter: None,
            stays: None,
        }
    }

    fn ok(reason: impl Into<String>) -> Self {
        Self::new(FindingState::Ok, reason)
    }

    fn absent(mechanism: &Mechanism) -> Self {
        Self::new(FindingState::NotApplicable, mechanism.absent.clone())
    }

    fn unknown(reason: impl ToString) -> Self {
        Self::new(FindingState::Unknown, reason.to_string())
    }

    fn having(self, have: impl Into<String>) -> Self {
        Self { have: Some(have.into()), ..self }
    }

    fn in_effect(self, effective: impl Into<String>) -> Self {
        Self { effective: Some(effective.into()), ..self }
    }

    fn leaving(self, stays: Option<String>) -> Self {
        Self { stays, ..self }
    }

    fn cured_by(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

/// Reads and judges one mechanism.
pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    match &mechanism.probe {
        Probe::Kconfig { option, or, evidence, exact } => {
            let evidence = kconfig::Evidence { path: evidence.as_deref(), exact: *exact };
            kconfig::judge(scene, mechanism, option, or, &evidence)
        }
        Probe::Cmdline { parameter, option, evidence } => {
            let built = cmdline::Built { option: option.as_deref(), evidence: evidence.as_deref() };
            cmdline::judge(scene, mechanism, parameter, &built)
        }
        Probe::FileWord { paths }
        | Probe::FileBracketedWord { paths }
        | Probe::FileInteger { paths }
        | Probe::CpulistFile { paths }
        | Probe::HexmaskFile { paths } => file::judge(scene, mechanism, paths),
        Probe::Flag { paths, flag } => flag::judge(scene, mechanism, paths, flag),
        Probe::Listing { paths } => listing::judge(scene, mechanism, paths),
        Probe::SchedDomains {} => domains::judge(scene, mechanism),
        Probe::CpuManager {} => cpu_manager::judge(scene, mechanism),
        Probe::IrqAffinity {} => irq::judge(scene, mechanism),
        Probe::KthreadAffinity { name } => kthread::judge(scene, mechanism, name),
        Probe::Swaps {} => swaps::judge(scene, mechanism),
        Probe::Daemon { unit, process, spare_list, spare_hex, others } => {
            let spared = daemon::Spared { list: spare_list.as_deref(), hex: spare_hex.as_deref() };
            daemon::judge(scene, mechanism, &daemon::names(unit, process, others), &spared)
        }
        Probe::Governor {} => governor::judge(scene, mechanism),
        Probe::Aspm {} => aspm::judge(scene, mechanism),
        Probe::CpusetPartition {} => partition::judge(scene, mechanism),
        Probe::Tasks { name } => tasks::judge(scene, mechanism, name.as_deref()),
        Probe::Siblings {} => siblings::judge(scene, mechanism),
        Probe::IdleStates {} => idle::judge_states(scene, mechanism),
        Probe::IdleDriver {} => idle::judge_driver(scene, mechanism),
        Probe::HeldLatency {} => held::judge(scene, mechanism),
        Probe::Resctrl {} => resctrl::judge(scene, mechanism),
        Probe::CpusetMems {} => numa::judge_mems(scene, mechanism),
        Probe::DeviceNodes {} => numa::judge_devices(scene, mechanism),
        Probe::Units { units } => units::judge(scene, mechanism, units),
        Probe::Preemption {} => preemption::judge(scene, mechanism),
        Probe::Practice { advice } => practice::judge(advice),
    }
}

/// The value as read; `None` where there is none, or where the machine's state has a table for it.
pub(super) fn value(scene: &Scene, mechanism: &Mechanism) -> Option<String> {
    match &mechanism.probe {
        Probe::Kconfig { option, .. } => scene.machine.kernel.config.get(option).cloned(),
        Probe::Cmdline { parameter, .. } => {
            crate::probe::parameter::value(scene, parameter).map(str::to_owned)
        }
        Probe::FileWord { paths }
        | Probe::FileBracketedWord { paths }
        | Probe::FileInteger { paths }
        | Probe::CpulistFile { paths }
        | Probe::HexmaskFile { paths } => file::value(scene, mechanism, paths),
        Probe::Flag { paths, flag } => flag::value(scene, paths, flag),
        Probe::Listing { paths } => listing::value(scene, paths),
        Probe::SchedDomains {} => domains::value(scene),
        Probe::CpuManager {} => cpu_manager::value(scene),
        Probe::IrqAffinity {}
        | Probe::KthreadAffinity { .. }
        | Probe::Tasks { .. }
        | Probe::Siblings {}
        | Probe::Practice { .. }
        | Probe::DeviceNodes {} => None,
        Probe::Preemption {} => scene.machine.kernel.preempt.clone(),
        Probe::IdleStates {} => idle::value(scene),
        Probe::IdleDriver {} => idle::driver(scene),
        Probe::HeldLatency {} => held::value(scene),
        Probe::Resctrl {} => resctrl::value(scene),
        Probe::CpusetMems {} => numa::mems_value(scene),
        Probe::Units { units } => Some(units::value(scene, units)),
        Probe::Swaps {} => Some(swaps::value(scene)?),
        Probe::Daemon { unit, process, others, .. } => {
            Some(daemon::value(scene, &daemon::names(unit, process, others)))
        }
        Probe::Governor {} => governor::value(scene),
        Probe::Aspm {} => aspm::value(scene),
        Probe::CpusetPartition {} => partition::value(scene),
    }
}

/// "CPU 2", "CPUs 2,3".
fn named(cpus: &Cpus) -> String {
    format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" })
}

/// "CPU 2 is", "CPUs 2,3 are".
fn are(cpus: &Cpus) -> String {
    format!("{} {}", named(cpus), if cpus.len() == 1 { "is" } else { "are" })
}

/// The first few of a list, and how many more.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// The sentence for wants that no value can miss.
fn always(mechanism: &Mechanism) -> Option<&str> {
    match &mechanism.want {
        Want::Any { note } => Some(note),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Catalogue, audit};
    use fixture::tree;
    use model::Finding;

    /// Files of a machine of four CPUs.
    pub(super) fn with_cpus<'a>(files: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        [&[("sys/devices/system/cpu/online", "0-3"), ("sys/devices/system/cpu/isolated", "")], files].concat()
    }

    /// State, reason and remedy of a mechanism on a machine of these files, for CPUs 2 and 3.
    pub(super) fn judged(id: &str, files: &[(&str, &str)]) -> (String, String, String) {
        let finding = found(id, files);
        (finding.state.name().to_owned(), finding.reason, finding.remedy.unwrap_or_default())
    }

    /// What is found of a mechanism on a machine of these files, for CPUs 2 and 3.
    pub(super) fn found(id: &str, files: &[(&str, &str)]) -> Finding {
        let (_dir, root) = tree(files);
        let machine = machine::read(&root).unwrap();
        let catalogue = Catalogue::embedded().unwrap();
        let all = audit(&root, &machine, &catalogue, &"2-3".parse().unwrap());
        all.into_iter().find(|finding| finding.id == id).unwrap()
    }
}
