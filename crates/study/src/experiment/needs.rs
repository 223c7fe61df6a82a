//! What a cell needs of the machine that runs it, and whether a machine has it. The only place that
//! decides this, for this machine, for guests and for machines of an inventory.

use super::boot_word::{Missing, missing};
use super::declared::Experiment;
use super::words::text;
use crate::cell::Cell;
use crate::experiment::factors::KERNEL;
use crate::experiment::ground::Ground;
use crate::experiment::parts::Wants;
use model::Machine;

/// Everything that a cell needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Words of the kernel's command line, level by level; one that ends with `=` is a parameter
    /// that must be absent. `{cpus}`, `{cpu}` and `{housekeeping}` stand for those of the machine.
    pub boot: Vec<Vec<String>>,
    /// Whether the measured CPUs are to be isolated, by a boot line or a partition, or no CPU.
    pub isolated: Option<bool>,
    /// Name of the kernel, such as `6.1-rt`; a path of the lab is none.
    pub kernel: Option<String>,
    /// The rest, of the experiment and of each level.
    pub wants: Vec<Wants>,
}

/// The lab's name of a kernel: `6.1`, with `-rt` where it is built for real time, `-openeuler`
/// where openEuler built it.
pub fn kernel_name(machine: &Machine) -> String {
    kernel_named(&machine.kernel.release, machine.kernel.realtime)
}

/// The same of a kernel's release, and of whether it is built for real time.
pub fn kernel_named(release: &str, realtime: bool) -> String {
    let numbers: Vec<&str> =
        release.split(|c: char| !c.is_ascii_digit()).take(2).filter(|one| !one.is_empty()).collect();
    let name = if numbers.len() == 2 { numbers.join(".") } else { release.to_owned() };
    let vendor = if release.contains(".oe") { "-openeuler" } else { "" };
    format!("{name}{vendor}{}", if realtime { "-rt" } else { "" })
}

/// Whether a text names a kernel as [`kernel_name`] does; else it is the path of one.
fn is_name(text: &str) -> bool {
    !text.contains('/') && text.starts_with(|c: char| c.is_ascii_digit())
}

/// Words of a boot line with the CPUs of a machine filled in.
pub fn boot_line(words: &str, cpus: &str, housekeeping: &str) -> String {
    let first = cpus.split([',', '-']).next().unwrap_or_default();
    words.replace("{cpus}", cpus).replace("{cpu}", first).replace("{housekeeping}", housekeeping)
}

impl Experiment {
    /// What a cell needs.
    pub fn needs(&self, cell: &Cell) -> Needs {
        let levels: Vec<_> = self.levels(cell).map(|(_, level)| level).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        Needs {
            boot: levels.iter().filter_map(|level| level.boot.as_deref()).map(words).collect(),
            isolated: levels.iter().find_map(|level| level.isolated).or(self.machine.isolated),
            kernel: Some(text(cell.factors.get(KERNEL)).to_owned()).filter(|name| is_name(name)),
            wants: levels.iter().filter_map(|level| level.needs).chain(self.machine.needs).collect(),
        }
    }
}

/// What a machine as it stands lacks.
struct Lacks {
    /// Of its boot: kernel, words of its line, what the kernel made of them.
    boot: Vec<String>,
    /// What does not depend on the boot line.
    rest: Vec<String>,
}

impl Needs {
    /// The boot as a sentence fragment: `kernel 6.1, with nohz_full=2,3, without isolcpus`; empty
    /// where any will do.
    fn boot_in_words(&self, cpus: &str, housekeeping: &str) -> String {
        let filled: Vec<String> =
            self.boot.iter().flatten().map(|word| boot_line(word, cpus, housekeeping)).collect();
        let (without, with): (Vec<&String>, Vec<&String>) =
            filled.iter().partition(|word| word.ends_with('='));
        let without: Vec<&str> = without.into_iter().map(|word| word.trim_end_matches('=')).collect();
        let with: Vec<&str> = with.into_iter().map(String::as_str).collect();
        let kernel = self.kernel.as_ref().map(|kernel| format!("kernel {kernel}"));
        let parts = [kernel, in_words("with", &with), in_words("without", &without)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Why a machine as it stands cannot run the cell: `needs …`; nothing where it can.
    pub fn unmet(&self, ground: &Ground) -> Option<String> {
        let Lacks { boot, rest } = self.lacks(ground);
        let lacks = [boot, rest].concat();
        (!lacks.is_empty()).then(|| format!("needs {}", lacks.join("; ")))
    }

    /// What the machine would need: the whole boot where it differs, and whatever no boot provides.
    pub fn further(&self, ground: &Ground) -> Option<String> {
        let Lacks { boot, rest } = self.lacks(ground);
        if boot.is_empty() {
            return (!rest.is_empty()).then(|| rest.join("; "));
        }
        let boot = self.boot_in_words(&ground.cpus.to_string(), &ground.housekeeping.to_string());
        Some([vec![format!("a boot: {boot}")], rest].concat().join("; "))
    }

    fn lacks(&self, ground: &Ground) -> Lacks {
        let name = kernel_name(&ground.machine);
        let mut boot: Vec<String> = Vec::new();
        if let Some(wanted) = self.kernel.as_ref().filter(|wanted| **wanted != name) {
            boot.push(format!("kernel {wanted} (this is {name})"));
        }
        let (mut with, mut without, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        let (cpus, housekeeping) = (ground.cpus.to_string(), ground.housekeeping.to_string());
        for level in &self.boot {
            let mut ignored = Vec::new();
            for word in level {
                match missing(&boot_line(word, &cpus, &housekeeping), ground) {
                    Some(Missing::With(word)) => with.push(word),
                    Some(Missing::Without(name)) => without.push(name),
                    Some(Missing::Effect(what)) => effects.push(what),
                    Some(Missing::Ignored(word)) => ignored.push(word),
                    None => {}
                }
            }
            // A level of several words is in force where the kernel knows some of them; the result
            // names those it ignores.
            if !level.is_empty() && ignored.len() == level.len() {
                effects.extend(
                    ignored.iter().map(|word| format!("a kernel built for {word}, which this one ignores")),
                );
            }
        }
        let line: Vec<String> =
            [in_words("with", &with), in_words("without", &without)].into_iter().flatten().collect();
        if !line.is_empty() {
            boot.push(format!("a boot {}", line.join(", ")));
        }
        boot.extend(effects);
        let mut rest: Vec<String> = self.isolation_unmet(ground).into_iter().collect();
        rest.extend(self.wants.iter().flat_map(|wants| wants.unmet(ground)));
        Lacks { boot, rest }
    }

    fn isolation_unmet(&self, ground: &Ground) -> Option<String> {
        let isolated = &ground.machine.topology.isolated;
        let left = ground.cpus.minus(isolated);
        match self.isolated? {
            true if !left.is_empty() => Some(format!("isolated CPUs (CPUs {left} are not)")),
            false if !isolated.is_empty() => {
                Some(format!("a machine without isolated CPUs (CPUs {isolated} are)"))
            }
            _ => None,
        }
    }
}

impl Wants {
    fn unmet(&self, ground: &Ground) -> Vec<String> {
        let online = ground.machine.topology.online.len();
        let memory = ground.machine.memory_kib.map(|kib| kib / 1024);
        let mut lacks = Vec::new();
        if let Some(cpus) = self.cpus.filter(|cpus| *cpus > online) {
            lacks.push(format!("{cpus} CPUs (online are {online})"));
        }
        if let Some(wanted) = self.memory_mib.filter(|wanted| memory.is_none_or(|has| has < *wanted)) {
            let has = memory.map_or_else(|| "not known here".to_owned(), |has| format!("there are {has}"));
            lacks.push(format!("{wanted} MiB of memory ({has})"));
        }
        if self.counters && ground.booted.pmu.is_none() {
            lacks.push("performance counters of the core".to_owned());
        }
        lacks
    }
}

/// `with a=1 b=2`; nothing of no words.
fn in_words<S: AsRef<str>>(how: &str, words: &[S]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    (!words.is_empty()).then(|| format!("{how} {}", words.join(" ")))
}
