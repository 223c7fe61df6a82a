//! Boot parameters: asked on the kernel command line, judged by what the kernel made of it.

use super::super::catalogue::{Effective, Mechanism, ValueType, Want};
use super::remedy::{at_boot, propose};
use super::unread::Unread;
use super::why_not::why_not;
use super::{Outcome, Scene, effective, named};
pub(super) use crate::probe::parameter::switch;
use crate::probe::parameter::{value, without_dynticks};
use machine::bracketed;
use model::Cpus;

/// What must be built into the kernel for it to know the parameter.
pub(super) struct Built<'a> {
    pub(super) option: Option<&'a str>,
    /// A file that exists exactly where the option is set.
    pub(super) evidence: Option<&'a str>,
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, name: &str, built: &Built) -> Outcome {
    let have = value(scene, name);
    if mechanism.effective.is_none() && matches!(mechanism.want, Want::Covers {}) {
        return with_value(have, name, judge_mask(scene, mechanism, built, have));
    }
    if !matches!(mechanism.want, Want::Covers {} | Want::Avoids {}) {
        return with_value(have, name, judge_word(scene, mechanism, name, built, have));
    }
    let in_force = match &mechanism.effective {
        Some(effective) => effective::set(scene, effective),
        None => Err(Unread::Traceless),
    };
    let outcome = match in_force {
        Ok(Some(set)) => {
            judge_set(scene, mechanism, name, built, have, &set).in_effect(spelled(mechanism, &set))
        }
        Ok(None) => match lacking(scene, built) {
            Some(option) => unbuilt(scene, mechanism, name, option),
            None => Outcome::absent(mechanism),
        },
        Err(reason) => Outcome::unknown(reason),
    };
    with_value(have, name, outcome)
}

fn with_value(have: Option<&str>, name: &str, outcome: Outcome) -> Outcome {
    match have {
        Some(value) => outcome.having(as_given(name, value)),
        None => outcome,
    }
}

fn as_given(name: &str, value: &str) -> String {
    if value.is_empty() { name.to_owned() } else { format!("{name}={value}") }
}

/// A parameter of a subsystem that this kernel may not have at all: a hex mask that should name the
/// CPUs that are isolated, and only them.
fn judge_mask(scene: &Scene, mechanism: &Mechanism, built: &Built, have: Option<&str>) -> Outcome {
    let Some(value) = have else { return Outcome::absent(mechanism) };
    if let Some(path) = built.evidence.filter(|path| !scene.root.has(path)) {
        let absent = Outcome::absent(mechanism);
        return Outcome { reason: format!("there is no /{path}: the parameter does nothing"), ..absent };
    }
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

/// A parameter that is a word, a number or a flag: judged by what the kernel made of it where a
/// file shows it.
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
        return match have.filter(|value| values.iter().any(|one| means(mechanism, one, value))) {
            None => Outcome::ok(format!("{name} is not given as {}", values.join(" or "))),
            Some(value) => unwelcome(scene, mechanism, &as_given(name, value), built),
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
            Err(error) => Outcome::unknown(error),
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
    if mechanism.effective == Some(Effective::RcuPoll {}) && have.is_some() {
        return polls(scene, mechanism);
    }
    // A kernel that has the option runs on a machine that may not have what the parameter is about.
    if built.evidence.is_some_and(|path| !scene.root.has(path)) {
        return Outcome::absent(mechanism);
    }
    // For a flag the kernel ignores the text after `=`.
    let flag = matches!(&mechanism.want, Want::Literal { value } if value.is_empty());
    if have.is_some_and(|value| flag || wants(mechanism, value)) {
        return Outcome::ok("given on the kernel command line; no file shows what the kernel made of it");
    }
    if lacking(scene, built).is_some() {
        return absent_or_unbuilt(scene, mechanism, name, built);
    }
    if mechanism.effective == Some(Effective::TscWatched {})
        && let Some(reason) = unwatched(scene)
    {
        return Outcome::unknown(reason);
    }
    let asked =
        have.map_or_else(|| "not given".to_owned(), |value| format!("given as {}", as_given(name, value)));
    propose(scene, mechanism, &[], format!("{asked}: {}", mechanism.harm))
}

/// Why it is not known whether the time-stamp counter is watched; one that was found unstable is
/// not (Linux kernel/time/clocksource.c), and in guests of the lab nothing else was either.
fn unwatched(scene: &Scene) -> Option<String> {
    let clocks = &scene.machine.clocksource;
    let other = !clocks.available.is_empty() && !clocks.available.iter().any(|name| name == "tsc");
    other.then(|| {
        "the time-stamp counter is not offered as a clock, found unstable or switched off: whether the watchdog has another to \
         watch no file shows"
            .to_owned()
    })
}

/// A parameter that is given and should not be; a kernel that is not built for it ignores it.
fn unwelcome(scene: &Scene, mechanism: &Mechanism, given: &str, built: &Built) -> Outcome {
    if let Some(option) = lacking(scene, built) {
        return Outcome::ok(format!(
            "{given} is given, and this kernel is built without {option} and ignores it"
        ));
    }
    if let Some(option) = built.option.filter(|_| scene.machine.kernel.config_source.is_none()) {
        return Outcome::unknown(format!(
            "{given} is given; a kernel with {option} takes it, and this one does not show its build options"
        ));
    }
    at_boot(scene, mechanism, format!("{given} is on the kernel command line: {}", mechanism.harm))
}

/// `rcu_nocb_poll`: without offloaded callbacks there is no thread that could poll
/// (Linux kernel/rcu/tree_nocb.h, `rcu_init_nohz`).
fn polls(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    match effective::rcu_offload(scene) {
        Err(reason) => Outcome::unknown(reason),
        Ok(set) if scene.cpus.is_subset(&set) => {
            Outcome::ok(format!("the threads of {} poll", named(scene.cpus))).in_effect(set.to_string())
        }
        Ok(_) => {
            let reason = format!("it is given, and callbacks of {} are not offloaded", named(scene.cpus));
            Outcome { remedy: None, ..at_boot(scene, mechanism, reason) }
        }
    }
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
        Want::Literal { value: wanted } => means(mechanism, wanted, value),
        Want::OneOf { values } | Want::Contested { values, .. } => {
            values.iter().any(|one| means(mechanism, one, value))
        }
        Want::AtLeast { value, or } => {
            number().is_some_and(|number| number >= *value || or.contains(&number))
        }
        Want::AtMost { value } => number().is_some_and(|number| number <= *value),
        _ => false,
    }
}

/// Whether the kernel reads a value as this one.
fn means(mechanism: &Mechanism, one: &str, value: &str) -> bool {
    let alike = || switch(one).is_some() && switch(one) == switch(value);
    one == value || (mechanism.value == ValueType::Switch && alike())
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
        Some(value) if name == "nohz_full" && without_dynticks(scene.machine) => {
            let nohz = as_given("nohz", crate::probe::parameter::value(scene, "nohz").unwrap_or_default());
            format!(
                "{name}={value} is not in force for {}: {nohz} switches off full dynticks too",
                named(&missing)
            )
        }
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
    use super::super::parameter::parameter;
    use super::super::tests::{judged, with_cpus};

    fn state(id: &str, cmdline: &str, more: &[(&str, &str)]) -> String {
        judged(id, &with_cpus(&[&[("proc/cmdline", cmdline)], more].concat())).0
    }

    /// Each was green for a kernel that had it off, or red for one that had taken it.
    #[test]
    fn words_are_read_as_the_kernel_reads_them() {
        for off in ["off", "0", "n", "N", "no", "OFF", "false"] {
            assert_eq!(state("nohz", &format!("nohz={off}"), &[]), "boot", "{off}");
            assert_eq!(state("psi", &format!("psi={off}"), &[]), "ok", "{off}");
        }
        for on in ["on", "1", "yes", "y"] {
            assert_eq!(state("nohz", &format!("nohz={on}"), &[]), "ok", "{on}");
            assert_eq!(state("psi", &format!("psi={on}"), &[]), "boot", "{on}");
        }
        assert_eq!(state("skew_tick", "skew_tick=2", &[]), "ok", "any number but 0");
        assert_eq!(state("skew_tick", "skew_tick=0", &[]), "boot");
        assert_eq!(state("threadirqs", "threadirqs=0", &[]), "ok", "the kernel looks at no value");
        let at_work = [("proc/sys/kernel/soft_watchdog", "1")];
        assert_eq!(state("nosoftlockup", "nosoftlockup=1", &at_work), "boot", "whoever switched it on");
    }

    #[test]
    fn what_another_word_of_the_same_name_says_holds_too() {
        let file = |text| [("sys/devices/system/machinecheck/machinecheck0/ignore_ce", text)];
        assert_eq!(state("mce", "mce=ignore_ce mce=dont_log_ce", &file("1")), "ok");
        assert_eq!(state("mce", "mce=dont_log_ce", &file("0")), "boot");
    }

    #[test]
    fn a_counter_that_is_no_clock_is_not_called_watched() {
        let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        assert_eq!(state("tsc", "quiet", &[(clocks, "hpet acpi_pm")]), "unknown");
        assert_eq!(state("tsc", "quiet", &[(clocks, "tsc hpet acpi_pm")]), "boot");
        assert_eq!(state("tsc", "tsc=nowatchdog", &[(clocks, "hpet acpi_pm")]), "ok");
    }

    #[test]
    fn without_dynticks_there_are_no_full_ones() {
        let file = [("sys/devices/system/cpu/nohz_full", "2-3")];
        assert_eq!(state("nohz_full", "nohz_full=2-3", &file), "ok");
        let files = with_cpus(&[("proc/cmdline", "nohz_full=2-3 nohz=off"), file[0]]);
        let (state, reason, _) = judged("nohz_full", &files);
        assert_eq!(state, "boot");
        assert!(reason.contains("nohz=off switches off full dynticks too"), "{reason}");
    }

    #[test]
    fn what_a_kernel_has_no_code_for_is_neither_green_nor_red() {
        assert_eq!(state("csdlock_debug", "csdlock_debug=1", &[]), "unknown");
        assert_eq!(state("xenomai-supported_cpus", "xenomai.supported_cpus=0xc", &[]), "not-applicable");
        let config = |text| [("proc/sys/kernel/osrelease", "6.1.0"), ("boot/config-6.1.0", text)];
        let built = config("CONFIG_CSD_LOCK_WAIT_DEBUG=y");
        assert_eq!(state("csdlock_debug", "csdlock_debug=1", &built), "boot");
        assert_eq!(state("csdlock_debug", "csdlock_debug=1", &config("CONFIG_SMP=y")), "ok");
        let with = [("proc/xenomai/version", "3.2")];
        // The parameter is given, and nothing in the lab shows its effect.
        assert_eq!(state("xenomai-supported_cpus", "xenomai.supported_cpus=0xc", &with), "unknown");
    }

    /// A machine that was not booted by EFI was asked to boot with a parameter against its
    /// services.
    #[test]
    fn what_a_machine_has_not_needs_no_parameter() {
        let config = [("proc/sys/kernel/osrelease", "6.1.0"), ("boot/config-6.1.0", "CONFIG_EFI=y")];
        for cmdline in ["quiet", "efi=noruntime"] {
            assert_eq!(state("efi-noruntime", cmdline, &config), "not-applicable", "{cmdline}");
        }
        let booted = [&config[..], &[("sys/firmware/efi/fw_platform_size", "64")]].concat();
        assert_eq!(state("efi-noruntime", "quiet", &booted), "boot");
        assert_eq!(state("efi-noruntime", "efi=noruntime", &booted), "unknown", "nothing shows it");
    }

    #[test]
    fn the_last_word_before_the_dashes_counts() {
        let line = "quiet isolcpus=1 nohz_full=\"2-3\" isolcpus=2-3 rcu_nocbs -- isolcpus=0";
        assert_eq!(parameter(line, "isolcpus"), Some("2-3"));
        assert_eq!(parameter(line, "nohz_full"), Some("2-3"));
        assert_eq!(parameter(line, "rcu_nocbs"), Some(""));
        assert_eq!(parameter(line, "isol"), None);
    }
}
