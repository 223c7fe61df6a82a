//! Build options: what the kernel was compiled with.

use super::super::catalogue::Mechanism;
use super::{Outcome, Scene, remedy};

/// A file that tells of an option.
pub(super) struct Evidence<'a> {
    /// It exists only where the option is set.
    pub(super) path: Option<&'a str>,
    /// Whether it exists wherever the option is set.
    pub(super) exact: bool,
}

pub(super) fn judge(
    scene: &Scene,
    mechanism: &Mechanism,
    option: &str,
    or: &[String],
    evidence: &Evidence,
) -> Outcome {
    let kernel = &scene.machine.kernel;
    let Some(source) = &kernel.config_source else {
        return without_options(scene, mechanism, option, evidence);
    };
    if let Some(value) = kernel.config.get(option) {
        return Outcome::ok(format!("{option} is set in {source}")).having(value);
    }
    let set_instead = or.iter().find(|name| kernel.config.contains_key(*name));
    if let Some(name) = set_instead {
        let value = kernel.config[name].clone();
        return Outcome::ok(format!(
            "{option} is an old name; {name}, which does the work, is set in {source}"
        ))
        .having(format!("{name}={value}"));
    }
    remedy::at_boot(scene, mechanism, format!("{option} is not set in {source}: {}", mechanism.harm))
        .having("n")
}

/// For kernels that do not tell their options.
fn without_options(scene: &Scene, mechanism: &Mechanism, option: &str, evidence: &Evidence) -> Outcome {
    let release = &scene.machine.kernel.release;
    match evidence.path {
        Some(path) if scene.root.has(path) => Outcome::ok(format!(
            "the kernel does not tell its build options, but /{path} exists only with {option}"
        )),
        Some(path) if evidence.exact => {
            let reason = format!("there is no /{path}, so {option} is not set: {}", mechanism.harm);
            remedy::at_boot(scene, mechanism, reason)
        }
        _ => Outcome::unknown(format!(
            "the kernel's build options are neither in /proc/config.gz nor in /boot/config-{release}"
        )),
    }
}
