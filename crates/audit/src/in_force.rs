//! What is as a plan wants it already: the files and the parameters by which a mechanism is in
//! force, and what each step of a plan is to a tool that is not stillcore.

use super::catalogue::{Change, Mechanism, Probe, Want};
use super::judge::Judgement;
use super::probe::{self, Scene};
use boot::Wanted;
use machine::bracketed;
use model::FindingState;
use model::plan::StepKind;

/// What a file is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The mechanism's id.
    pub mechanism: String,
    /// Its text.
    pub value: String,
}

/// What a step is that is no file of [`super::Desired::files`] and moves nothing, for tools that
/// have means of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means<'a> {
    /// Groups that keep the scheduler off.
    Placement,
    /// A systemd unit is stopped.
    Service(&'a str),
    /// A limit of the latency of idle states is held, microseconds.
    Latency(&'a str),
    /// Something else: what, a clause.
    Other(&'a str),
}

/// What a step is to another tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Class<'a> {
    /// A file of [`super::Desired::files`].
    Setting,
    /// A task or an interrupt is moved.
    Move,
    Rest(Means<'a>),
}

pub(super) fn class(kind: StepKind, target: &str) -> Class<'_> {
    let groups = target.starts_with("/sys/fs/cgroup/");
    let settings = ["/proc/sys/", "/sys/"].iter().any(|place| target.starts_with(place));
    match kind {
        StepKind::File if groups => Class::Rest(Means::Placement),
        StepKind::File if target.starts_with("/sys/fs/resctrl/") => {
            Class::Rest(Means::Other("parts of the cache and of the memory's bandwidth"))
        }
        StepKind::File if settings => Class::Setting,
        StepKind::File if target.starts_with("/proc/irq/") => Class::Move,
        StepKind::Task | StepKind::Affinities => Class::Move,
        StepKind::Group | StepKind::Member | StepKind::Controller => Class::Rest(Means::Placement),
        StepKind::Service => Class::Rest(Means::Service(target)),
        StepKind::Held if target.starts_with("/dev/cpu_dma_latency=") => {
            Class::Rest(Means::Latency(target.rsplit('=').next().unwrap_or_default()))
        }
        StepKind::Flag => Class::Rest(Means::Other("a flag of a file that lists many")),
        StepKind::Process => Class::Rest(Means::Other("a process that no service manager holds")),
        StepKind::Swap => Class::Rest(Means::Other("swap areas")),
        StepKind::File | StepKind::Held | StepKind::Kept => {
            Class::Rest(Means::Other("a file outside /proc/sys and /sys"))
        }
    }
}

/// The files by which a mechanism is set, where it is as wanted.
pub(super) fn files(scene: &Scene, mechanism: &Mechanism, judged: &Judgement) -> Vec<(String, Setting)> {
    let as_wanted = judged.finding.state == FindingState::Ok || judged.finding.unproven;
    // What is right because it makes no difference here is asked of nobody.
    let is_moot = mechanism.moot.as_ref().is_some_and(|moot| moot.note == judged.finding.reason);
    let is_open = matches!(mechanism.want, Want::Any { .. } | Want::Contested { .. });
    if !as_wanted || is_moot || is_open {
        return Vec::new();
    }
    let paths = mechanism.change.iter().find_map(|change| match (change, &mechanism.probe) {
        (Change::Write { path: Some(path), .. }, _) => Some(vec![path.clone()]),
        (
            Change::Write { path: None, .. },
            Probe::FileWord { paths }
            | Probe::FileBracketedWord { paths }
            | Probe::FileInteger { paths }
            | Probe::CpulistFile { paths }
            | Probe::HexmaskFile { paths },
        ) => Some(paths.clone()),
        (Change::Governor { .. }, _) => {
            Some(vec!["sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor".to_owned()])
        }
        _ => None,
    });
    let files = paths.into_iter().flatten().flat_map(|path| scene.expand(&path));
    let held = files.filter_map(|file| {
        let text = scene.root.maybe(&file)?;
        let value = bracketed(&text).map_or(text.clone(), str::to_owned);
        let path = format!("/{}", file.trim_start_matches('/'));
        (class(StepKind::File, &path) == Class::Setting)
            .then(|| (path, Setting { mechanism: mechanism.id.clone(), value }))
    });
    held.collect()
}

/// A parameter that is in force, as the catalogue spells it.
pub(super) fn parameter(scene: &Scene, mechanism: &Mechanism, judged: &Judgement) -> Option<Wanted> {
    let Probe::Cmdline { parameter, option, .. } = &mechanism.probe else { return None };
    let given = scene.machine.cmdline.split_whitespace();
    let mut names = given.map(|word| word.split('=').next().unwrap_or(word));
    let is_given = names.any(|name| machine::same_name(name, parameter));
    let template = mechanism.change.iter().find_map(|change| match change {
        Change::Parameter { value } => Some(value),
        _ => None,
    })?;
    let wanted = || Wanted {
        mechanism: mechanism.id.clone(),
        parameter: probe::fill(scene, template),
        option: option.clone(),
    };
    (is_given && judged.finding.state == FindingState::Ok).then(wanted)
}
