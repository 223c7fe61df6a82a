//! What each section of a profile does: the plugins of TuneD that settings of isolation go through.
//! The options of the others are listed as they are.
//!
//! Sources: TuneD 2.20 and 2.25, `tuned/plugins/plugin_*.py`.

use super::Profile;
use super::expand::{Variables, open};
use super::load::Unit;
use machine::{Root, wildcard};
use model::Cpus;

/// The most `*` in a path: each may stand for any of many names.
const MOST_STARS: usize = 3;
const CPUS: &str = "/sys/devices/system/cpu";

/// Adds what a section does.
pub(super) fn does(unit: &Unit, variables: &mut Variables<'_>, machine: &Root, profile: &mut Profile) {
    if let Some((what, pattern)) = unit.only_where.first() {
        let condition = format!("applies only where {what} matches {:?}", variables.expand(pattern));
        for (option, value) in unit.options.iter() {
            profile.unknown.push(format!("[{}] {option} = {value}: {condition}", unit.name));
        }
        return;
    }
    for script in &unit.scripts {
        profile.unknown.push(format!("[{}] runs {script}", unit.name));
    }
    let devices = variables.expand(&unit.devices);
    let mut section = Section { unit, machine, profile, devices };
    let mut words = Vec::new();
    for (option, value) in unit.options.iter() {
        let value = variables.expand(value);
        // Names of files can hold variables as well.
        let option = variables.expand(option);
        if let Some(open) = [&option, &value].into_iter().find_map(|text| open(text)) {
            let why = if open.starts_with("${f:") {
                "is not computed without TuneD"
            } else {
                "is not set anywhere"
            };
            section.profile.unknown.push(format!("[{}] {option} = {value}: {open} {why}", unit.name));
            continue;
        }
        let value = value.trim_matches(['"', '\'']).trim();
        match unit.kind.as_str() {
            "bootloader" if option.starts_with("cmdline") => on_the_line(&mut words, value),
            _ => section.option(&option, value),
        }
    }
    profile.parameters.extend(words);
}

/// Adds words to the line, or takes them off it.
fn on_the_line(words: &mut Vec<String>, value: &str) {
    if let Some(off) = value.strip_prefix('-') {
        words.retain(|word| !off.split_whitespace().any(|off| off == word));
        return;
    }
    // A backslash makes a plus or minus a part of the word.
    let rest = value.strip_prefix(['+', '\\']).unwrap_or(value);
    words.extend(rest.split_whitespace().map(str::to_owned));
}

struct Section<'a> {
    unit: &'a Unit,
    machine: &'a Root,
    profile: &'a mut Profile,
    devices: String,
}

impl Section<'_> {
    fn option(&mut self, option: &str, value: &str) {
        match (self.unit.kind.as_str(), option) {
            ("sysctl", name) => self.file(&format!("/proc/sys/{}", sysctl(name)), value),
            ("sysfs", file) if file.starts_with("/sys/") => self.files(file, value),
            ("vm", "transparent_hugepages" | "transparent_hugepage") => {
                self.file("/sys/kernel/mm/transparent_hugepage/enabled", value);
            }
            ("vm", "transparent_hugepage.defrag") => {
                self.file("/sys/kernel/mm/transparent_hugepage/defrag", value);
            }
            ("vm", "dirty_bytes" | "dirty_background_bytes") => match value.strip_suffix('%') {
                Some(share) => {
                    self.file(&format!("/proc/sys/vm/{}", option.replace("bytes", "ratio")), share.trim());
                }
                None => self.file(&format!("/proc/sys/vm/{option}"), value),
            },
            ("vm", "dirty_ratio" | "dirty_background_ratio") => {
                self.file(&format!("/proc/sys/vm/{option}"), value);
            }
            ("cpu", _) => self.cpu(option, value),
            ("scheduler", _) => self.scheduler(option, value),
            ("service", name) if name.starts_with("service.") => {
                let unit = name["service.".len()..].trim_end_matches(".service");
                if value.split(',').any(|what| matches!(what.trim(), "stop" | "disable")) {
                    self.profile.stopped.insert(format!("{unit}.service"));
                } else {
                    self.more(option, value);
                }
            }
            ("script", "script") => {
                self.profile.unknown.push(format!("[script] runs {value}"));
            }
            _ => self.more(option, value),
        }
    }

    fn more(&mut self, option: &str, value: &str) {
        self.profile.more.push(format!("[{}] {option} = {value}", self.unit.name));
    }

    /// A file; `>` and `<` before a value set it only where it is more, or less, than what is
    /// there.
    fn file(&mut self, file: &str, value: &str) {
        let now = || self.machine.number::<i64>(file);
        let wanted = match value.split_at_checked(1) {
            Some((">", bound)) => bound.trim().parse().ok().map(|bound| now().is_none_or(|now| now < bound)),
            Some(("<", bound)) => bound.trim().parse().ok().map(|bound| now().is_none_or(|now| now > bound)),
            _ => None,
        };
        let text = if wanted.is_some() { value[1..].trim() } else { value };
        if self.machine.is_live() && !self.machine.has(file) {
            self.profile
                .more
                .push(format!("[{}] {file} = {text}, which is not on this machine", self.unit.name));
        } else if wanted != Some(false) {
            self.profile.files.insert(file.to_owned(), text.to_owned());
        }
    }

    /// All files of that name.
    fn files(&mut self, pattern: &str, value: &str) {
        if pattern.matches('*').count() > MOST_STARS {
            let line = format!("[{}] {pattern} = {value}: more than {MOST_STARS} stars", self.unit.name);
            self.profile.unknown.push(line);
            return;
        }
        let found = self.machine.glob(pattern);
        if found.is_empty() {
            self.profile
                .more
                .push(format!("[{}] {pattern} = {value}, which is not on this machine", self.unit.name));
        }
        for file in found {
            self.file(&format!("/{}", file.trim_start_matches('/')), value);
        }
    }

    /// The CPUs that the section is for.
    fn cpus(&self) -> Vec<String> {
        let (no, yes): (Vec<&str>, Vec<&str>) = self
            .devices
            .split([',', ' '])
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .partition(|name| name.starts_with('!'));
        let is_meant = |name: &str| {
            (yes.is_empty() || yes.iter().any(|pattern| wildcard(pattern, name)))
                && !no.iter().any(|pattern| wildcard(&pattern[1..], name))
        };
        let is_cpu =
            |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
        self.machine.names(CPUS).into_iter().filter(is_cpu).filter(|name| is_meant(name)).collect()
    }

    /// A file of each CPU.
    fn each_cpu(&mut self, option: &str, file: &str, value: &str) {
        let cpus = self.cpus();
        let files: Vec<String> = cpus
            .iter()
            .map(|cpu| format!("{CPUS}/{cpu}/{file}"))
            .filter(|file| self.machine.has(file))
            .collect();
        if files.is_empty() {
            self.more(option, &format!("{value}, for which this machine has no {file}"));
        }
        files.iter().for_each(|file| self.file(file, value));
    }

    fn cpu(&mut self, option: &str, value: &str) {
        match option {
            "governor" | "energy_performance_preference" => {
                let (file, all) = match option {
                    "governor" => ("cpufreq/scaling_governor", "cpufreq/scaling_available_governors"),
                    _ => (
                        "cpufreq/energy_performance_preference",
                        "cpufreq/energy_performance_available_preferences",
                    ),
                };
                let there = self.machine.maybe(&format!("{CPUS}/cpu0/{all}")).unwrap_or_default();
                let mut choices = value.split('|').map(str::trim);
                let first = choices.clone().next().unwrap_or_default();
                let chosen = choices.find(|choice| there.split_whitespace().any(|one| one == *choice));
                match chosen.or(Some(first).filter(|_| there.is_empty())) {
                    Some(chosen) => self.each_cpu(option, file, chosen),
                    None => self.more(option, &format!("{value}, of which this machine offers {there}")),
                }
            }
            "energy_perf_bias" => {
                let numbers = [("performance", "0"), ("normal", "6"), ("powersave", "15")];
                let number =
                    |word: &str| numbers.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
                let first = value.split('|').next().unwrap_or_default().trim();
                self.each_cpu(option, "power/energy_perf_bias", number(first).unwrap_or(first));
            }
            "pm_qos_resume_latency_us" => self.each_cpu(option, "power/pm_qos_resume_latency_us", value),
            "min_perf_pct" | "max_perf_pct" | "no_turbo" => {
                let file = format!("{CPUS}/intel_pstate/{option}");
                if self.machine.has(&file) { self.file(&file, value) } else { self.more(option, value) }
            }
            "boost" => {
                let file = format!("{CPUS}/cpufreq/boost");
                if self.machine.has(&file) { self.file(&file, value) } else { self.more(option, value) }
            }
            "force_latency" => {
                let us = self.latency(value);
                if us.is_none() {
                    let line = format!(
                        "[{}] {option} = {value}: this machine has no such idle state",
                        self.unit.name
                    );
                    self.profile.unknown.push(line);
                }
                self.profile.latency_us = us.or_else(|| self.profile.latency_us.take());
            }
            _ => self.more(option, value),
        }
    }

    /// The first of several spellings that this machine has: a number of microseconds, or an idle
    /// state by number or name.
    fn latency(&self, value: &str) -> Option<String> {
        let states = format!("{CPUS}/cpu0/cpuidle");
        let of = |state: &str, file: &str| self.machine.maybe(&format!("{states}/{state}/{file}"));
        value.split('|').map(str::trim).find_map(|one| match one.split_once(':') {
            None => one.parse::<u64>().ok().map(|us| us.to_string()),
            Some(("cstate.id", number)) => of(&format!("state{number}"), "latency"),
            Some(("cstate.id_no_zero", number)) => {
                of(&format!("state{number}"), "latency").filter(|latency| latency != "0")
            }
            Some((kind @ ("cstate.name" | "cstate.name_no_zero"), name)) => {
                let all = self.machine.names(&states);
                let state = all.iter().find(|state| of(state, "name").is_some_and(|known| known == name))?;
                of(state, "latency").filter(|latency| kind == "cstate.name" || latency != "0")
            }
            Some(_) => None,
        })
    }

    fn scheduler(&mut self, option: &str, value: &str) {
        let is_off = |option: &str| {
            let value = self.unit.options.get(option).unwrap_or_default().to_ascii_lowercase();
            matches!(value.as_str(), "0" | "false" | "no" | "n" | "f")
        };
        match option {
            "isolated_cores" => match Cpus::parse_list(value) {
                Ok(cpus) => {
                    if !is_off("irq_process") {
                        self.profile.quiet = cpus.clone();
                    }
                    self.profile.isolated = cpus;
                    if is_off("kthread_process") {
                        self.profile.spared.push("kthread_process = false".to_owned());
                    }
                }
                Err(error) => self.profile.unknown.push(format!("[{}] {option}: {error}", self.unit.name)),
            },
            "irq_process" | "kthread_process" => {}
            "ps_blacklist" | "ps_whitelist" | "cgroup_ps_blacklist" => {
                self.profile.spared.push(format!("{option} = {value}"));
            }
            "default_irq_smp_affinity" if value == "calc" => {}
            _ => {
                let debug =
                    option.strip_prefix("sched_").map(|name| format!("/sys/kernel/debug/sched/{name}"));
                let files = [Some(format!("/proc/sys/kernel/{option}")), debug];
                match files.into_iter().flatten().find(|file| self.machine.has(file)) {
                    Some(file) => self.file(&file, value),
                    None => self.more(option, value),
                }
            }
        }
    }
}

/// The path of a setting below `/proc/sys`: with slashes a dot is one.
fn sysctl(name: &str) -> String {
    let first = name.find(['.', '/']).map(|at| name.as_bytes()[at]);
    if first == Some(b'/') { name.to_owned() } else { name.replace('.', "/") }
}
