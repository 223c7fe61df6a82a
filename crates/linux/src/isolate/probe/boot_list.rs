//! The CPU lists of boot parameters, and why the kernel did not take one.
//!
//! Sources: Linux `Documentation/admin-guide/kernel-parameters.rst` (cpu lists, `isolcpus=`), `kernel/sched/isolation.c`,
//! `kernel/time/tick-sched.c`. One CPU that does not exist makes the kernel drop the whole parameter.

use model::{Cpus, Machine};

/// The flags that `isolcpus=` may start with.
const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

/// A boot parameter's value: flags (of `isolcpus=`) and a list.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct BootList<'a> {
    pub(in super::super) flags: Vec<&'a str>,
    pub(in super::super) list: &'a str,
}

impl<'a> BootList<'a> {
    pub(in super::super) fn split(value: &'a str) -> Self {
        let mut rest = value;
        let mut flags = Vec::new();
        while let Some(first) = rest.split(',').next().filter(|word| is_flag(word)) {
            flags.push(first);
            rest = rest.strip_prefix(first).unwrap_or("").trim_start_matches(',');
        }
        Self { flags, list: rest }
    }

    /// The CPUs named, on a machine of `possible` CPUs; `all` and `N` (the last CPU, 5.13) as the kernel reads them.
    pub(in super::super) fn cpus(&self, possible: &Cpus) -> Result<Cpus, String> {
        let last = possible.0.last().copied().unwrap_or(0);
        let bad = || format!("{:?} is no CPU list, and the kernel drops the whole parameter", self.list);
        if self.list == "all" {
            return Ok(possible.clone());
        }
        let spelled = self.list.replace('N', &last.to_string());
        let cpus = Cpus::parse_list(&spelled).ok().filter(|cpus| !cpus.is_empty()).ok_or_else(bad)?;
        match cpus.0.last() {
            Some(&highest) if highest > last => Err(format!(
                "it names CPU {highest} on a machine whose last CPU is {last}, and the kernel drops the whole parameter"
            )),
            _ => Ok(cpus),
        }
    }
}

/// A word that starts with a letter is a flag, known or skipped; `all` and `N` belong to the list.
fn is_flag(word: &str) -> bool {
    FLAGS.contains(&word)
        || (word != "all" && !word.starts_with('N') && word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Why a parameter that is on the command line does not cover the wanted CPUs.
pub(super) fn why_not(
    machine: &Machine,
    possible: &Cpus,
    parameter: &str,
    value: &str,
    wanted: &Cpus,
) -> String {
    let asked = BootList::split(value);
    let known = asked.flags.iter().any(|flag| FLAGS.contains(flag));
    if parameter == "isolcpus" && known && !asked.flags.contains(&"domain") {
        return format!(
            "its flags ({}) leave out domain, so the scheduler still balances tasks there",
            asked.flags.join(",")
        );
    }
    match asked.cpus(possible) {
        Err(reason) => reason,
        Ok(cpus) if !wanted.is_subset(&cpus) => {
            let missing = wanted.minus(&cpus);
            format!("it names {}, not {}", super::named(&cpus), super::named(&missing))
        }
        Ok(cpus) => clash(machine, possible, parameter, &cpus)
            .unwrap_or_else(|| "the kernel did not take it; its log of this boot may say why".to_owned()),
    }
}

/// `isolcpus=nohz,…` and `nohz_full=` must name the same CPUs, or the later of the two is dropped.
fn clash(machine: &Machine, possible: &Cpus, parameter: &str, cpus: &Cpus) -> Option<String> {
    if parameter != "nohz_full" {
        return None;
    }
    let isolcpus = super::cmdline::parameter(&machine.cmdline, "isolcpus").map(BootList::split)?;
    let other = isolcpus.cpus(possible).ok().filter(|_| isolcpus.flags.contains(&"nohz"))?;
    (other != *cpus).then(|| {
        format!(
            "isolcpus=nohz names {}, and the kernel drops a nohz_full= that differs",
            super::named(&other)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn why(parameter: &str, value: &str, cmdline: &str) -> String {
        let machine = Machine { cmdline: cmdline.to_owned(), ..Machine::default() };
        why_not(&machine, &"0-3".parse().unwrap(), parameter, value, &"2-3".parse().unwrap())
    }

    #[test]
    fn flags_come_off_and_lists_stay() {
        let split = |value| (BootList::split(value).flags.join(" "), BootList::split(value).list);
        assert_eq!(split("managed_irq,domain,2-3"), ("managed_irq domain".into(), "2-3"));
        assert_eq!(split("foo,2,3"), ("foo".into(), "2,3"));
        assert_eq!(split("all"), (String::new(), "all"));
        assert_eq!(split("2-N"), (String::new(), "2-N"));
        let four = "0-3".parse().unwrap();
        assert_eq!(BootList::split("2-N").cpus(&four).unwrap().to_string(), "2,3");
        assert_eq!(BootList::split("all").cpus(&four).unwrap().to_string(), "0-3");
    }

    #[test]
    fn each_way_to_lose_a_parameter_has_its_sentence() {
        for (parameter, value, cmdline, part) in [
            ("isolcpus", "2-9", "", "CPU 9 on a machine whose last CPU is 3"),
            ("isolcpus", "managed_irq,2-3", "", "leave out domain"),
            ("nohz_full", "0xc", "", "no CPU list"),
            ("nohz_full", "", "", "no CPU list"),
            ("rcu_nocbs", "0-1", "", "names CPUs 0,1, not CPUs 2,3"),
            ("nohz_full", "2-3", "isolcpus=nohz,domain,1", "isolcpus=nohz names CPU 1"),
            ("nohz_full", "2-3", "isolcpus=1", "did not take it"),
        ] {
            let reason = why(parameter, value, cmdline);
            assert!(reason.contains(part), "{parameter}={value}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics(value in ".{0,30}") {
            let _ = why("isolcpus", &value, &value);
        }
    }
}
