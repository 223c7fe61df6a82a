//! A desired state in full: what a plan would change, and what is right already, so that it can be
//! carried to another machine in the words of another tool.

use super::catalogue::{Catalogue, Change, Mechanism};
use super::in_force::{Class, Means, Setting, class};
use super::plan::{self, Made, Request};
use machine::Root;
use model::plan::{Left, Plan};
use model::{Error, Machine};
use std::collections::BTreeMap;

/// A desired state.
#[derive(Debug, Clone)]
pub struct Desired {
    /// What would change on the machine that was read; whose CPUs, placement and changes.
    pub plan: Plan,
    /// Every file of `/proc/sys` and `/sys` that holds a setting, by path.
    pub files: BTreeMap<String, Setting>,
    /// Whether tasks are to run elsewhere.
    pub tasks: bool,
    /// Whether interrupts are to be handled elsewhere.
    pub interrupts: bool,
    /// Words of the kernel command line, for a line that has none of them.
    pub parameters: Vec<String>,
    /// What isolation wants and is not here: parameters that this kernel does not take as they are,
    /// mechanisms that were named and cannot be read.
    pub omitted: Vec<Left>,
    /// Options of the kernel's build, `CONFIG_NAME` → value (`n` for not set).
    pub options: BTreeMap<String, String>,
}

/// Works it out. Errors: as of [`super::plan()`].
pub fn desired(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    request: &Request,
) -> Result<Desired, Error> {
    let Made { plan, right, words, unread } = plan::make(root, machine, catalogue, request)?;
    let mut files: BTreeMap<_, _> = right.into_iter().collect();
    for step in &plan.steps {
        if class(step.kind, &step.target) == Class::Setting {
            let setting = Setting { mechanism: step.mechanism.clone(), value: step.new.clone() };
            files.insert(step.target.clone(), setting);
        }
    }
    let kernel = match request.kernel.as_deref() {
        Some(release) => boot::Kernel::other(root, machine, root, Some(release)),
        None => boot::Kernel::running(root, machine),
    };
    // What it reports is of a line that has words.
    let kernel = boot::Kernel { reported: None, ..kernel };
    let line = boot::merge(&kernel, boot::Lines { current: "", base: "" }, &plan.isolated, &words);
    let omitted = line.omitted.iter().map(|omitted| Left {
        mechanism: omitted.mechanism.clone(),
        reason: format!("{}: {}", omitted.parameter, omitted.reason),
    });
    let refused = line.refused.iter().map(|reason| Left {
        mechanism: "kernel command line".to_owned(),
        reason: format!("no line is proposed, {reason}"),
    });
    let omitted = omitted.chain(refused).chain(unread).collect();
    let parameters = line.changes.into_iter().flat_map(|change| change.new).collect();
    let wanted = || catalogue.mechanisms.iter().filter(|one| plan::wanted(one, request));
    let has = |id: &str| wanted().any(|one| one.id == id);
    let (tasks, interrupts) = (has("user-tasks"), has("irq-affinity"));
    let options = wanted().flat_map(|one| options(one, &machine.kernel.arch)).collect();
    Ok(Desired { plan, files, tasks, interrupts, parameters, omitted, options })
}

impl Desired {
    /// The steps that are no file of [`Desired::files`] and move nothing, each mechanism once.
    pub fn rest(&self) -> Vec<(&str, Means<'_>)> {
        let mut rest = Vec::new();
        for step in self.plan.steps.iter().filter(|step| !step.kind.remembers()) {
            if let Class::Rest(means) = class(step.kind, &step.target)
                && !rest.contains(&(step.mechanism.as_str(), means))
            {
                rest.push((&step.mechanism, means));
            }
        }
        rest
    }
}

/// The options of the kernel's build that a mechanism wants.
fn options(mechanism: &Mechanism, arch: &str) -> Vec<(String, String)> {
    let values = mechanism.change.iter().filter_map(|change| match change {
        Change::Option { value } => Some(value.as_str()),
        _ => None,
    });
    let text = values.collect::<Vec<_>>().join(" ");
    // `CONFIG_A=y (arm64: CONFIG_B=y)`.
    let (common, other) = text.split_once(" (").unwrap_or((&text, ""));
    let of_arch = match arch {
        "aarch64" => other.strip_prefix("arm64: ").map_or(common, |text| text.trim_end_matches(')')),
        _ => common,
    };
    let pairs = of_arch.split_whitespace().filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
