//! What is to be isolated, as all verbs that plan take it, and the plan it comes to.

use super::State;
use super::desired::{self, Reading};
use audit::keep::Keep;
use audit::{Catalogue, Profile, Purpose, Request};
use clap::{Args, ValueEnum};
use machine::Root;
use model::foreign::in_a_line;
use model::plan::{Fate, Placement, Plan, Resident, ResidentKind};
use model::{Cpus, Machine};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments that select what to isolate.
#[derive(Debug, Clone, Args)]
pub(crate) struct Target {
    /// CPUs to isolate, as a list such as 2,3 or 4-7 [default: those isolated on the kernel command
    /// line].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Also isolate CPU 0, and CPUs that belong to a partition, the kubelet or tuned.
    #[arg(long)]
    pub(crate) force: bool,
    /// Isolate some hardware threads of a core and leave its siblings for other work.
    #[arg(long)]
    pub(crate) allow_split: bool,
    /// Also change these mechanisms, which are choices, risks or contested, and by default
    /// unchanged.
    #[arg(long = "with", value_delimiter = ',', value_name = "IDS")]
    pub(crate) with: Vec<String>,
    /// Do not change these mechanisms.
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub(crate) without: Vec<String>,
    /// Do not move this: a PID, a task's name, a control group such as /rt.slice, irq:NUMBER,
    /// irq:NAME, policy:fifo (or rr, deadline, realtime). Repeatable.
    #[arg(long, value_name = "WHAT")]
    pub(crate) keep: Vec<Keep>,
    /// Also move real-time tasks and tasks explicitly pinned to these CPUs.
    #[arg(long)]
    pub(crate) move_pinned: bool,
    /// How to keep the scheduler off these CPUs [default: the best that the kernel and its mounts
    /// allow].
    #[arg(long, value_name = "HOW")]
    pub(crate) placement: Option<How>,
    /// Desired state to take instead of these options: a file of stillcore isolate profile.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["cpus", "force", "allow_split", "with", "without", "move_pinned", "placement"],
    )]
    pub(crate) profile: Option<PathBuf>,
    /// Directory of mechanisms to use instead of the built-in catalogue.
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
}

/// How to keep the scheduler off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// CPUs outside the kernel's scheduling domains since boot.
    Boot,
    /// Isolated partition of cgroup v2.
    Partition,
    /// Cpusets of cgroup v1.
    Cpuset,
    /// Affinities only.
    Affinity,
}

impl From<How> for Placement {
    fn from(how: How) -> Self {
        match how {
            How::Boot => Self::Boot,
            How::Partition => Self::Partition,
            How::Cpuset => Self::Cpuset,
            How::Affinity => Self::Affinity,
        }
    }
}

/// Who is on the isolated CPUs of this machine on purpose; unknown for a captured machine, and for
/// a journal that may not be read.
pub(crate) fn purpose(root: &Root, state: &State, keep: &[Keep]) -> anyhow::Result<Purpose> {
    let standing = || state.standing().ok().flatten();
    let found = root.is_live().then(standing).flatten().filter(|(_, found)| found.this_boot);
    let mut purpose = found.map(|(_, found)| found.purpose).unwrap_or_default();
    for one in keep {
        let one = one.clone().found(root)?;
        if !purpose.keep.contains(&one) {
            purpose.keep.push(one);
        }
    }
    Ok(purpose)
}

/// How many of the tasks and interrupts that would move are named.
const SHOWN: usize = 5;

/// Refuses to move away what somebody has put on these CPUs.
pub(crate) fn leaves_residents(plan: &Plan, move_pinned: bool) -> anyhow::Result<()> {
    let thrown = plan.residents.iter().filter(|one| one.deliberate && one.fate == Fate::Moves);
    let thrown: Vec<_> = thrown.collect();
    let Some(first) = thrown.first().filter(|_| !move_pinned) else { return Ok(()) };
    let some: Vec<_> = thrown.iter().take(SHOWN).map(|one| resident(one)).collect();
    let more =
        if thrown.len() > SHOWN { format!(" and {} more", thrown.len() - SHOWN) } else { String::new() };
    anyhow::bail!(
        "somebody has put these on {}: {}{more}; nothing was changed. Leave them there with --keep {}, or move them away with --move-pinned",
        named(&plan.isolated),
        some.join("; "),
        first.process.unwrap_or(first.id),
    )
}

/// "CPU 2", "CPUs 2,3".
fn named(cpus: &Cpus) -> String {
    format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" })
}

/// A task or an interrupt with what is known of it.
pub(crate) fn resident(one: &Resident) -> String {
    let what = match (one.kind, one.process) {
        (ResidentKind::Task, Some(process)) if process != one.id => {
            format!("thread {} of process {process}", one.id)
        }
        (ResidentKind::Task, _) => format!("process {}", one.id),
        (ResidentKind::KernelThread, _) => format!("kernel thread {}", one.id),
        (ResidentKind::Interrupt, _) => format!("interrupt {}", one.id),
    };
    let policy = one.policy.as_ref().map(|policy| format!(", SCHED_{}", policy.to_uppercase()));
    let priority = one.priority.map(|priority| format!(" {priority}"));
    let printable = in_a_line(&one.name);
    format!(
        "{what} {printable}{}{}, on {}",
        policy.unwrap_or_default(),
        priority.unwrap_or_default(),
        named(&one.cpus)
    )
}

/// Whether a text begins as `uname -r` does and is a file name.
fn is_release(text: &str) -> bool {
    let mut numbers = text.split('.').map(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    numbers.next() == Some(true) && numbers.next() == Some(true) && !text.contains('/')
}

impl Target {
    /// What these options, or the file in their place, ask of the machine.
    pub(crate) fn desired(&self, machine: &Machine, reading: Reading) -> anyhow::Result<Profile> {
        let kept = self.keep.iter().map(ToString::to_string);
        if let Some(file) = &self.profile {
            let mut profile = desired::read(file, reading, &self.catalogue()?)?;
            profile.keep.extend(kept);
            return Ok(profile);
        }
        let named = |ids: &[String], choice| ids.iter().map(|id| (id.clone(), choice)).collect::<Vec<_>>();
        Ok(Profile {
            cpus: self.cpus_of(machine)?,
            force: self.force,
            allow_split: self.allow_split,
            move_pinned: self.move_pinned,
            placement: self.placement.map(Placement::from),
            keep: kept.collect(),
            roles: BTreeMap::new(),
            // What is to be left alone is, whatever else is asked.
            mechanisms: [named(&self.with, true), named(&self.without, false)].concat().into_iter().collect(),
        })
    }

    /// Makes the plan for the machine under `root`. Nothing is written.
    pub(crate) fn plan(&self, root: &Root, state: &State, reading: Reading) -> anyhow::Result<Planned> {
        self.plan_for(root, state, reading, NextBoot::default())
    }

    /// The same with the boot line of a kernel of this release, or of an image.
    pub(crate) fn plan_for(
        &self,
        root: &Root,
        state: &State,
        reading: Reading,
        next: NextBoot,
    ) -> anyhow::Result<Planned> {
        let catalogue = self.catalogue()?;
        let machine = machine::read(root)?;
        let profile = self.desired(&machine, reading)?;
        let plan = plan_of(root, &machine, &catalogue, &profile, state, next)?;
        Ok(Planned { plan, profile })
    }

    fn cpus_of(&self, machine: &Machine) -> anyhow::Result<Cpus> {
        if let Some(cpus) = &self.cpus {
            return Ok(cpus.clone());
        }
        let topology = &machine.topology;
        let booted = topology.isolated.or(&topology.nohz_full).and(&topology.online);
        if booted.is_empty() {
            anyhow::bail!("no CPU of this machine is isolated at boot: name those to isolate with --cpus");
        }
        Ok(booted)
    }

    /// The catalogue named, or the built-in one.
    pub(crate) fn catalogue(&self) -> anyhow::Result<Catalogue> {
        Ok(match &self.catalogue {
            Some(directory) => Catalogue::load(directory)?,
            None => Catalogue::embedded()?,
        })
    }
}

/// A plan, and what asked for it.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) profile: Profile,
}

/// What the boot line is computed for, where it is not the kernel that runs.
#[derive(Default)]
pub(crate) struct NextBoot {
    /// Its release.
    pub(crate) kernel: Option<String>,
    /// The image that is going to boot.
    pub(crate) image: Option<Root>,
}

/// The plan that a desired state comes to on a machine.
pub(crate) fn plan_of(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    profile: &Profile,
    state: &State,
    next: NextBoot,
) -> anyhow::Result<Plan> {
    Ok(audit::plan(root, machine, catalogue, &request_of(root, profile, state, next)?)?)
}

/// A desired state as a plan is asked for.
pub(crate) fn request_of(
    root: &Root,
    profile: &Profile,
    state: &State,
    next: NextBoot,
) -> anyhow::Result<Request> {
    let keep: Result<Vec<Keep>, model::Error> = profile.keep.iter().map(|what| what.parse()).collect();
    let NextBoot { kernel, image } = next;
    if let Some(release) = kernel.as_deref().filter(|release| !is_release(release)) {
        anyhow::bail!("--for-kernel {release:?}: expected a release such as 6.12 or 6.1.0-30-amd64");
    }
    Ok(Request { kernel, image, ..profile.request(purpose(root, state, &keep?)?) })
}
