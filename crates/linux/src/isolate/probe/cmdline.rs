//! Boot parameters: asked on the kernel command line, judged by what the kernel made of it.

use super::super::catalogue::{Effective, Mechanism, Want};
use super::effective::{self, InForce};
use super::remedy::{at_boot, propose};
use super::why_not::why_not;
use super::{Outcome, Scene, named};
use crate::machine::{bracketed, parameters, same_name};
use model::Cpus;

pub(super) fn value<'a>(scene: &'a Scene, name: &str) -> Option<&'a str> {
    parameter(&scene.machine.cmdline, name)
}

/// The last value of a parameter; empty for one without.
pub(super) fn parameter<'a>(cmdline: &'a str, name: &str) -> Option<&'a str> {
    parameters(cmdline).filter(|(key, _)| same_name(key, name)).last().map(|(_, value)| value)
}

/// What must be built into the kernel for it to know the parameter.
pub(super) struct Built<'a> {
    pub(super) option: Option<&'a str>,
    /// A file that exists exactly where the option is set.
    pub(super) evidence: Option<&'a str>,
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, name: &str, built: &Built) -> Outcome {
    let have = value(scene, name);
    if mechanism.effective.is_none() && matches!(mechanism.want, Want::Covers {}) {
        return told(have, name, judge_mask(scene, mechanism, have));
    }
    if !matches!(mechanism.want, Want::Covers {} | Want::Avoids {}) {
        return told(have, name, judge_word(scene, mechanism, name, built, have));
    }
    let outcome = match in_force(scene, mechanism) {
        InForce::Set(set) => {
            judge_set(scene, mechanism, name, built, have, &set).in_effect(spelled(mechanism, &set))
        }
        InForce::Absent => match lacking(scene, built) {
            Some(option) => unbuilt(scene, mechanism, name, option),
            None => Outcome::absent(mechanism),
        },
        InForce::Unknown(reason) => Outcome::unknown(reason),
    };
    told(have, name, outcome)
}

fn told(have: Option<&str>, name: &str, outcome: Outcome) -> Outcome {
    match have {
        Some(value) => outcome.having(as_given(name, value)),
        None => outcome,
    }
}

fn as_given(name: &str, value: &str) -> String {
    if value.is_empty() { name.to_owned() } else { format!("{name}={value}") }
}

/// A parameter of a subsystem that this kernel may not have at all: a hex mask that should name the CPUs that are isolated, and only
/// them.
fn judge_mask(scene: &Scene, mechanism: &Mechanism, have: Option<&str>) -> Outcome {
    let Some(value) = have else { return Outcome::absent(mechanism) };
    let digits = value.trim_start_matches("0x");
    let Ok(mask) = Cpus::parse_hex(digits) else {
        return at_boot(scene, mechanism, format!("{value} is no hex mask: {}", mechanism.harm));
    };
    let (missing, beyond) = (scene.isolated.minus(&mask), mask.minus(&scene.isolated));
    if missing.is_empty() && beyond.is_empty() {
        return Outcome::ok(format!("the mask names {}", named(&mask)));
    }
    let reason = format!(
        "{value} names {}, isolated are {}: {}",
        named(&mask),
        named(&scene.isolated),
        mechanism.harm
    );
    at_boot(scene, mechanism, reason)
}

/// A parameter that is a word, a number or a flag: judged by what the kernel made of it where a file shows it.
fn judge_word(
    scene: &Scene,
    mechanism: &Mechanism,
    name: &str,
    built: &Built,
    have: Option<&str>,
) -> Outcome {
    if let Want::Any { note } = &mechanism.want {
        return Outcome::ok(note);
    }
    if let Want::NotOneOf { values } = &mechanism.want {
        return match have.filter(|value| values.iter().any(|one| one == value)) {
            None => Outcome::ok(format!("{name} is not given as {}", values.join(" or "))),
            Some(value) => {
                let given = as_given(name, value);
                at_boot(
                    scene,
                    mechanism,
                    format!("{given} is on the kernel command line: {}", mechanism.harm),
                )
            }
        };
    }
    if let Want::Unset {} = &mechanism.want {
        return match have {
            None => Outcome::ok(format!("{name} is not on the kernel command line")),
            Some(value) => {
                let given = as_given(name, value);
                at_boot(
                    scene,
                    mechanism,
                    format!("{given} is on the kernel command line: {}", mechanism.harm),
                )
            }
        };
    }
    if let Some(Effective::File { path, value: wanted }) = &mechanism.effective {
        return match scene.root.text(path) {
            Err(error) => Outcome::unknown(error.to_string()),
            Ok(None) => absent_or_unbuilt(scene, mechanism, name, built),
            Ok(Some(text)) => {
                let found = bracketed(&text).unwrap_or(text.trim());
                let outcome = if found == wanted || wants(mechanism, found) {
                    Outcome::ok(format!("/{path} is {found}"))
                } else {
                    let asked = have.map_or_else(
                        || format!("{name} is not given"),
                        |value| format!("{} is given", as_given(name, value)),
                    );
                    let reason = format!("{asked} and /{path} is {found}: {}", mechanism.harm);
                    propose(scene, mechanism, &[], reason)
                };
                outcome.in_effect(found)
            }
        };
    }
    if have.is_some_and(|value| wants(mechanism, value)) {
        return Outcome::ok("given on the kernel command line; no file shows what the kernel made of it");
    }
    if lacking(scene, built).is_some() {
        return absent_or_unbuilt(scene, mechanism, name, built);
    }
    let asked =
        have.map_or_else(|| "not given".to_owned(), |value| format!("given as {}", as_given(name, value)));
    propose(scene, mechanism, &[], format!("{asked}: {}", mechanism.harm))
}

fn absent_or_unbuilt(scene: &Scene, mechanism: &Mechanism, name: &str, built: &Built) -> Outcome {
    match lacking(scene, built) {
        Some(option) if !mechanism.optional => unbuilt(scene, mechanism, name, option),
        _ => Outcome::absent(mechanism),
    }
}

fn wants(mechanism: &Mechanism, value: &str) -> bool {
    let number = || value.parse::<i64>().ok();
    match &mechanism.want {
        Want::Literal { value: wanted } => wanted == value,
        Want::OneOf { values } | Want::Contested { values, .. } => values.iter().any(|one| one == value),
        Want::AtLeast { value } => number().is_some_and(|number| number >= *value),
        Want::AtMost { value } => number().is_some_and(|number| number <= *value),
        _ => false,
    }
}

fn in_force(scene: &Scene, mechanism: &Mechanism) -> InForce {
    match &mechanism.effective {
        Some(effective) => effective::set(scene, effective),
        None => InForce::Unknown("nothing shows what the kernel made of it".to_owned()),
    }
}

fn judge_set(
    scene: &Scene,
    mechanism: &Mechanism,
    name: &str,
    built: &Built,
    have: Option<&str>,
    set: &Cpus,
) -> Outcome {
    if matches!(mechanism.want, Want::Avoids {}) {
        return avoids(scene, mechanism, set);
    }
    let missing = scene.cpus.minus(set);
    let listed = &scene.machine.topology.isolated;
    if missing.is_empty()
        && mechanism.effective == Some(Effective::IsolatedCpus {})
        && !scene.cpus.is_subset(listed)
    {
        let cpus = named(&scene.cpus.minus(listed));
        return Outcome::ok(format!("cpusets of version 1 leave {cpus} out of every group that is balanced"));
    }
    if missing.is_empty() {
        return Outcome::ok(match have {
            Some(_) => format!("in force for {}", named(scene.cpus)),
            None => format!("in force for {} without {name}= on the command line", named(scene.cpus)),
        });
    }
    if let Some(option) = lacking(scene, built) {
        return unbuilt(scene, mechanism, name, option);
    }
    let reason = match have {
        None => format!("not in force for {}: {}", named(&missing), mechanism.harm),
        Some(value) => {
            let why = why_not(scene, name, value, scene.cpus);
            format!("{name}={value} is not in force for {}: {why}", named(&missing))
        }
    };
    at_boot(scene, mechanism, reason)
}

fn avoids(scene: &Scene, mechanism: &Mechanism, set: &Cpus) -> Outcome {
    let hit = set.and(scene.cpus);
    if hit.is_empty() {
        return Outcome::ok(format!("it leaves out {}", named(scene.cpus)));
    }
    let reason = format!("it includes {}: {}", named(&hit), mechanism.harm);
    propose(scene, mechanism, &[], reason)
}

/// The option without which the parameter does nothing, if this kernel is known to lack it.
fn lacking<'a>(scene: &Scene, built: &Built<'a>) -> Option<&'a str> {
    let kernel = &scene.machine.kernel;
    built.option.filter(|option| match &kernel.config_source {
        Some(_) => !kernel.config.contains_key(*option),
        None => built.evidence.is_some_and(|path| !scene.root.has(path)),
    })
}

fn unbuilt(scene: &Scene, mechanism: &Mechanism, name: &str, option: &str) -> Outcome {
    let reason = format!("this kernel is built without {option} and ignores {name}=: {}", mechanism.harm);
    // Another kernel comes first: nothing of it belongs on the command line of this one.
    let outcome = Outcome { parameter: None, ..at_boot(scene, mechanism, reason) };
    let then = outcome.remedy.clone().map_or(String::new(), |boot| format!(", then {boot}"));
    outcome.cured_by(format!("use a kernel with {option}=y{then}"))
}

fn spelled(mechanism: &Mechanism, set: &Cpus) -> String {
    match &mechanism.effective {
        Some(Effective::HexmaskFile { .. }) => set.to_hex(),
        _ if set.is_empty() => "none".to_owned(),
        _ => set.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_before_the_dashes_counts() {
        let line = "quiet isolcpus=1 nohz_full=\"2-3\" isolcpus=2-3 rcu_nocbs -- isolcpus=0";
        assert_eq!(parameter(line, "isolcpus"), Some("2-3"));
        assert_eq!(parameter(line, "nohz_full"), Some("2-3"));
        assert_eq!(parameter(line, "rcu_nocbs"), Some(""));
        assert_eq!(parameter(line, "isol"), None);
    }
}
