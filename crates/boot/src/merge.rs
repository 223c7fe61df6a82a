//! One boot line: what is wanted, put together with what stands on the command line, for one
//! kernel.
//!
//! Pure. The new line is read once more as the kernel reads it ([`effects`]), and nothing is
//! proposed that loses a CPU which others have isolated or that does not isolate what was asked
//! for.

use super::effects::{Effects, effects, keeps_time};
use super::housekeeping::{self, Sets};
use super::line::{exchange, plain_name, words, words_of};
use super::target::Kernel;
use super::wish::{Together, Wanted, narrowed, together};
use super::{limit, list};
use model::Cpus;
use model::boot::{BootLine, BootOmitted, BootWord};
use std::collections::BTreeMap;

/// The lines at hand.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    /// The command line as it is now.
    pub current: &'a str,
    /// The same without what stillcore itself has put there; the same text where that is nothing.
    pub base: &'a str,
}

/// Puts the wanted words into the line. `cpus` are those to isolate.
pub fn merge(kernel: &Kernel, lines: Lines, cpus: &Cpus, wanted: &[Wanted]) -> BootLine {
    let before = in_force(kernel, lines);
    let mut work = Work {
        kernel,
        base: lines.base,
        cpus,
        line: lines.base.to_owned(),
        why: BTreeMap::new(),
        omitted: Vec::new(),
        notes: Vec::new(),
    };
    let possible = work.built(wanted);
    work.isolate(&before, &possible);
    work.rcu(&before, &possible);
    for one in &possible {
        work.others(one);
    }
    let refused = work.refused(&before, &possible);
    let line = if refused.is_some() { lines.current.to_owned() } else { work.line.clone() };
    BootLine {
        kernel: format!("{} {}", kernel.release, kernel.arch).trim().to_owned(),
        changes: changes(lines, &line, &work.why),
        omitted: work.omitted,
        notes: work.notes,
        refused,
        base: lines.base.to_owned(),
        line,
        longest: limit::longest(kernel),
    }
}

/// What the base isolates: by the kernel's rules, and by what the running kernel reports of the
/// very same line.
fn in_force(kernel: &Kernel, lines: Lines) -> Effects {
    let mut before = effects(kernel, lines.base);
    let Some(reported) = kernel.reported.as_ref().filter(|_| lines.current == lines.base) else {
        return before;
    };
    before.nohz_full = before.nohz_full.or(&reported.nohz_full);
    if let Some(offloaded) = &reported.offloaded {
        before.rcu_nocbs = offloaded.clone();
        before.unsure_rcu_nocbs = None;
    }
    // Partitions made at run time are reported as well; only those named here are of this line.
    let listed = words(lines.base).into_iter().filter(|word| plain_name(word.name) == "isolcpus");
    let named = listed.filter_map(|word| {
        let (flags, list) = list::isolcpus(kernel, word.value?).ok()?;
        list::cpus(kernel, list).ok().filter(|_| flags.domain)
    });
    let named = named.fold(Cpus::default(), |all, cpus| all.or(&cpus));
    before.domain = before.domain.or(&named.and(&reported.isolated));
    before
}

struct Work<'a> {
    kernel: &'a Kernel,
    base: &'a str,
    cpus: &'a Cpus,
    line: String,
    /// By name of the parameter.
    why: BTreeMap<String, String>,
    omitted: Vec<BootOmitted>,
    notes: Vec<String>,
}

impl Work<'_> {
    fn omit(&mut self, wanted: &Wanted, reason: impl Into<String>) {
        self.omitted.push(BootOmitted {
            mechanism: wanted.mechanism.clone(),
            parameter: wanted.parameter.clone(),
            reason: reason.into(),
        });
    }

    fn put(&mut self, name: &str, new: &[String], why: impl Into<String>) {
        self.line = exchange(&self.line, name, new);
        self.why.insert(plain_name(name), why.into());
    }

    /// The wanted words that this kernel does not ignore, and that its loader can change.
    fn built(&mut self, wanted: &[Wanted]) -> Vec<Wanted> {
        let mut possible = Vec::new();
        let mut unknown = Vec::new();
        let compiled = self.kernel.config.as_ref().and_then(|config| config.get("CONFIG_CMDLINE")).cloned();
        let compiled = compiled.unwrap_or_default();
        for one in wanted {
            let name = one.parameter.split('=').next().unwrap_or_default();
            match one.option.as_deref().map(|option| (option, self.kernel.has(option))) {
                Some((option, Some(false))) => {
                    self.omit(one, format!("this kernel is built without {option} and ignores it"));
                    continue;
                }
                Some((option, None)) => unknown.push(option.to_owned()),
                _ => {}
            }
            let kept = keeps_time(self.kernel).and(self.cpus);
            if plain_name(name) == "nohz_full" && !kept.is_empty() {
                let reason = format!("the kernel can suspend, and for that takes CPU {kept} out of it");
                self.omit(one, reason);
            } else if words_of(&compiled, name).is_empty() {
                possible.push(one.clone());
            } else {
                let reason = format!(
                    "{name} is built into the kernel (CONFIG_CMDLINE), where no boot loader changes it"
                );
                self.omit(one, reason);
            }
        }
        if !unknown.is_empty() {
            self.notes.push(format!(
                "the build options of this kernel could not be read: without {} it ignores what depends on it",
                unknown.join(", ")
            ));
        }
        possible
    }

    /// `isolcpus=` and `nohz_full=`, which the kernel checks against each other.
    fn isolate(&mut self, before: &Effects, wanted: &[Wanted]) {
        let find = |name: &str| wanted.iter().find(|one| name_of(one) == name);
        let (isolcpus, nohz_full) = (find("isolcpus"), find("nohz_full"));
        let asked = Sets {
            domain: isolcpus.map_or_else(Cpus::default, |_| self.cpus.minus(&before.domain)),
            nohz: nohz_full.map_or_else(Cpus::default, |_| self.cpus.minus(&before.nohz_full)),
        };
        if asked.domain.is_empty() && asked.nohz.is_empty() {
            return;
        }
        match housekeeping::solve(self.kernel, self.base, before, self.cpus, &asked) {
            Ok(solved) => {
                for one in solved {
                    self.put(one.name, &one.words, one.why);
                }
            }
            Err(reason) => {
                let affected = [
                    isolcpus.filter(|_| !asked.domain.is_empty()),
                    nohz_full.filter(|_| !asked.nohz.is_empty()),
                ];
                for one in affected.into_iter().flatten() {
                    self.omit(one, reason.clone());
                }
            }
        }
    }

    /// `rcu_nocbs=`, of which the last word counts alone, and which takes the place of the default.
    fn rcu(&mut self, before: &Effects, wanted: &[Wanted]) {
        let asked = wanted.iter().any(|one| name_of(one) == "rcu_nocbs");
        let goal = if asked { before.rcu_nocbs.or(self.cpus) } else { before.rcu_nocbs.clone() };
        let lacks = |line: &str| !goal.is_subset(&effects(self.kernel, line).rcu_nocbs);
        let unsure = before.unsure_rcu_nocbs.as_deref();
        if (asked && (unsure.is_some() || !self.cpus.is_subset(&before.rcu_nocbs))) || lacks(&self.line) {
            let why = if let Some(reason) = unsure {
                reason
            } else if before.rcu_nocbs.is_empty() {
                "no CPU is offloaded now"
            } else {
                "a new list takes the place of the old one, so it names the CPUs that are offloaded now as well"
            };
            self.put("rcu_nocbs", &[format!("rcu_nocbs={goal}")], why);
            let known = self.kernel.config.is_some()
                || self.kernel.reported.as_ref().is_some_and(|reported| reported.offloaded.is_some());
            // The option came with 6.0.
            let has_option = self.kernel.since(6, 0);
            if !known && has_option && words_of(self.base, "rcu_nocbs").is_empty() {
                self.notes.push(
                    "a kernel with CONFIG_RCU_NOCB_CPU_DEFAULT_ALL offloads every CPU without rcu_nocbs=, and those of the list alone with it"
                        .to_owned(),
                );
            }
        }
    }

    /// All other parameters.
    fn others(&mut self, wanted: &Wanted) {
        for word in words(&wanted.parameter) {
            let old = words_of(self.base, word.name);
            let given = old.last().copied();
            match together(word.name) {
                Together::Isolated => {}
                Together::Housekeeping => {
                    let list =
                        given.and_then(|word| word.split_once('=')).map(|(_, list)| list.trim_matches('"'));
                    let kept = list.and_then(|list| narrowed(self.kernel, list, self.cpus));
                    let (new, why) = match kept {
                        Some(kept) => {
                            (format!("{}={kept}", word.name), "the old list without the isolated CPUs")
                        }
                        None => (word.text.to_owned(), "the CPUs that are not isolated"),
                    };
                    self.put(word.name, &[new], why);
                }
                Together::Added => {
                    let mut all: Vec<_> = old.iter().map(|word| (*word).to_owned()).collect();
                    if !old.contains(&word.text) {
                        all.push(word.text.to_owned());
                    }
                    self.put(word.name, &all, "the kernel takes each of these words");
                }
                Together::Replaced => {
                    let why = if old.is_empty() { "not given now" } else { "the last of several counts" };
                    self.put(word.name, &[word.text.to_owned()], why);
                }
            }
        }
    }

    /// Why the line must not be written.
    fn refused(&self, before: &Effects, wanted: &[Wanted]) -> Option<String> {
        if self.line == self.base {
            return None;
        }
        let after = effects(self.kernel, &self.line);
        let longest = limit::longest(self.kernel);
        if self.line.len() > longest {
            return Some(format!(
                "the line would have {} bytes, and this kernel cuts it after {longest}: shorten it first",
                self.line.len()
            ));
        }
        if self.kernel.present.is_subset(&after.domain.or(&after.nohz_full)) {
            return Some("with what others isolate no CPU would be left for everything else".to_owned());
        }
        if !after.cover(before) {
            return Some(format!(
                "the words on the line cannot be put together without losing what they isolate now ({})",
                described(before)
            ));
        }
        let promised = |name: &str, set: &Cpus| {
            let proposed = wanted.iter().any(|one| {
                name_of(one) == name && !self.omitted.iter().any(|omitted| omitted.mechanism == one.mechanism)
            });
            !proposed || self.cpus.is_subset(set)
        };
        let kept = promised("isolcpus", &after.domain)
            && promised("nohz_full", &after.nohz_full)
            && promised("rcu_nocbs", &after.rcu_nocbs);
        (!kept).then(|| {
            let dropped = after.dropped.iter().map(|one| format!("{}: {}", one.word, one.reason));
            format!("the kernel would not take the line: {}", dropped.collect::<Vec<_>>().join("; "))
        })
    }
}

fn name_of(wanted: &Wanted) -> String {
    plain_name(wanted.parameter.split('=').next().unwrap_or_default())
}

fn described(effects: &Effects) -> String {
    let kinds = [
        ("isolcpus", &effects.domain),
        ("managed_irq", &effects.managed_irq),
        ("nohz_full", &effects.nohz_full),
        ("rcu_nocbs", &effects.rcu_nocbs),
    ];
    let named = kinds.iter().filter(|(_, set)| !set.is_empty()).map(|(kind, set)| format!("{kind} {set}"));
    named.collect::<Vec<_>>().join(", ")
}

/// The parameters that differ between the line at hand and the new one, in the order of the new
/// line; those that go last.
fn changes(lines: Lines, new: &str, why: &BTreeMap<String, String>) -> Vec<BootWord> {
    let mut names = Vec::new();
    for word in words(new).into_iter().chain(words(lines.current)) {
        let name = plain_name(word.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let owned =
        |line: &str, name: &str| words_of(line, name).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let all = names.into_iter().map(|name| BootWord {
        old: owned(lines.current, &name),
        base: owned(lines.base, &name),
        new: owned(new, &name),
        why: why
            .get(&name)
            .cloned()
            .unwrap_or_else(|| "stillcore had put it there, and nobody asks for it now".to_owned()),
        name,
    });
    all.filter(|change| change.old != change.new).collect()
}
