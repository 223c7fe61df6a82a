//! Build options: what the kernel was compiled with.

use super::super::catalogue::{Mechanism, Want};
use super::{Outcome, Scene, remedy};

/// A file that is evidence of an option.
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
    match &mechanism.want {
        Want::Unset {} => return unset(scene, mechanism, option, or, source),
        Want::Any { note } => {
            let value = kernel.config.get(option).map_or("n", String::as_str);
            return Outcome::ok(note).having(value);
        }
        Want::OneOf { values } => {
            let value = kernel.config.get(option).map_or("n", String::as_str);
            return if values.iter().any(|wanted| wanted == value) {
                Outcome::ok(format!("{option}={value} in {source}"))
            } else {
                remedy::at_boot(scene, mechanism, format!("{option}={value} in {source}: {}", mechanism.harm))
            }
            .having(value);
        }
        _ => {}
    }
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

/// An option that costs latency by being there.
fn unset(scene: &Scene, mechanism: &Mechanism, option: &str, or: &[String], source: &str) -> Outcome {
    let config = &scene.machine.kernel.config;
    let mut set = std::iter::once(option).chain(or.iter().map(String::as_str));
    match set.find_map(|name| Some((name, config.get(name)?))) {
        None => Outcome::ok(format!("{option} is not set in {source}")).having("n"),
        Some((name, value)) => {
            remedy::at_boot(scene, mechanism, format!("{name}={value} in {source}: {}", mechanism.harm))
                .having(value)
        }
    }
}

/// For kernels that do not show their options.
fn without_options(scene: &Scene, mechanism: &Mechanism, option: &str, evidence: &Evidence) -> Outcome {
    let release = &scene.machine.kernel.release;
    match evidence.path {
        Some(path) if scene.root.has(path) => Outcome::ok(format!(
            "the kernel does not report its build options, but /{path} exists only with {option}"
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
