//! What a kernel makes of a command line: which CPUs it isolates, and which words it drops.
//!
//! The rules are those of Linux `kernel/sched/isolation.c` (`housekeeping_setup`; one set for all
//! kinds before 5.18, one a kind since 65e53f869e9f) and `kernel/rcu/tree_nocb.h`, before 5.15
//! `tree_plugin.h` (`rcu_nocb_setup`, `rcu_init_nohz`).

use super::line::{Word, words};
use super::list::{self, Flags};
use super::target::Kernel;
use machine::same_name;
use model::Cpus;

/// The CPUs that a command line isolates, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Outside the scheduler's domains (`isolcpus=domain`).
    pub domain: Cpus,
    /// Spared by managed interrupts (`isolcpus=managed_irq`).
    pub managed_irq: Cpus,
    /// Full dynticks, of `nohz_full=` or `isolcpus=nohz`.
    pub nohz_full: Cpus,
    /// Whose RCU callbacks run in threads.
    pub rcu_nocbs: Cpus,
    /// Why it is not known whether these are all of them or fewer: a clause.
    pub unsure_rcu_nocbs: Option<String>,
    /// Words that the kernel drops.
    pub dropped: Vec<Dropped>,
}

/// A word that the kernel drops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// As on the command line.
    pub word: String,
    /// A clause.
    pub reason: String,
}

impl Effects {
    /// Whether every CPU that `other` isolates is isolated in the same ways here.
    pub fn cover(&self, other: &Self) -> bool {
        other.domain.is_subset(&self.domain)
            && other.managed_irq.is_subset(&self.managed_irq)
            && other.nohz_full.is_subset(&self.nohz_full)
            && other.rcu_nocbs.is_subset(&self.rcu_nocbs)
    }
}

/// Reads the line as the kernel does. A kernel whose build options are not known is taken to have
/// those that are required.
pub fn effects(kernel: &Kernel, line: &str) -> Effects {
    let mut made = Effects::default();
    let mut setup = Setup { kernel, kinds: Kinds::default() };
    for word in words(line).iter().filter(|word| word.value.is_some()) {
        let taken = match word {
            _ if same_name(word.name, "isolcpus") => setup.isolcpus(word.value.unwrap_or_default()),
            _ if same_name(word.name, "nohz_full") => setup.nohz_full(word.value.unwrap_or_default()),
            _ => continue,
        };
        if let Err(reason) = taken {
            made.dropped.push(Dropped { word: word.text.to_owned(), reason });
        }
    }
    let kinds = setup.kinds;
    made.domain = kinds.domain.unwrap_or_default();
    made.managed_irq = kinds.managed_irq.unwrap_or_default();
    made.nohz_full = kinds.tick.unwrap_or_default().minus(&keeps_time(kernel));
    offload(kernel, line, &mut made);
    made
}

/// The CPU that boots, where the kernel takes it out of full dynticks because it must be able to
/// suspend: `tick_nohz_init` of `kernel/time/tick-sched.c`.
pub(super) fn keeps_time(kernel: &Kernel) -> Cpus {
    let suspends = kernel.has("CONFIG_PM_SLEEP_SMP") == Some(true);
    let anywhere = kernel.has("CONFIG_PM_SLEEP_SMP_NONZERO_CPU") == Some(true);
    if suspends && !anywhere { kernel.present.iter().take(1).collect() } else { Cpus::default() }
}

/// The isolated CPUs of each kind that a word has set.
#[derive(Default)]
struct Kinds {
    domain: Option<Cpus>,
    managed_irq: Option<Cpus>,
    tick: Option<Cpus>,
}

struct Setup<'a> {
    kernel: &'a Kernel,
    kinds: Kinds,
}

impl Setup<'_> {
    fn isolcpus(&mut self, value: &str) -> Result<(), String> {
        let (flags, list) = list::isolcpus(self.kernel, value)?;
        self.housekeeping(flags, list)
    }

    fn nohz_full(&mut self, list: &str) -> Result<(), String> {
        self.housekeeping(Flags { nohz: true, ..Flags::default() }, list)
    }

    /// `housekeeping_setup`.
    fn housekeeping(&mut self, flags: Flags, list: &str) -> Result<(), String> {
        let kernel = self.kernel;
        if kernel.has("CONFIG_CPU_ISOLATION") == Some(false) {
            return Err("the kernel is built without CONFIG_CPU_ISOLATION".to_owned());
        }
        if flags.nohz && self.kinds.tick.is_none() && kernel.has("CONFIG_NO_HZ_FULL") == Some(false) {
            return Err("the kernel is built without CONFIG_NO_HZ_FULL".to_owned());
        }
        let mut isolated = list::cpus(kernel, list)?.and(&kernel.possible);
        if kernel.present.is_subset(&isolated) {
            // The kernel keeps the CPU that boots, which is the first one but for a crash kernel.
            isolated = isolated.minus(&kernel.present.iter().take(1).collect());
        }
        if isolated.is_empty() {
            return Err("it leaves no CPU to isolate".to_owned());
        }
        self.conflict(flags, &isolated)?;
        for (kind, wanted) in [
            (&mut self.kinds.domain, flags.domain),
            (&mut self.kinds.managed_irq, flags.managed_irq),
            (&mut self.kinds.tick, flags.nohz),
        ] {
            if wanted {
                *kind = Some(isolated.clone());
            }
        }
        Ok(())
    }

    /// Why a word is dropped that comes after others.
    fn conflict(&self, flags: Flags, isolated: &Cpus) -> Result<(), String> {
        let kinds = [
            (&self.kinds.domain, flags.domain),
            (&self.kinds.managed_irq, flags.managed_irq),
            (&self.kinds.tick, flags.nohz),
        ];
        let one_set = !self.kernel.since(5, 18);
        for (set, _) in kinds.iter().filter(|(_, wanted)| *wanted || one_set) {
            if let Some(set) = set.as_ref().filter(|set| *set != isolated) {
                return Err(format!(
                    "an earlier word has isolated {set} in this way, and both must name the same CPUs"
                ));
            }
        }
        // Since 6.19, but no line should leave the timers nowhere to go.
        let earlier = self.kinds.domain.as_ref().or(self.kinds.tick.as_ref());
        if let Some(earlier) = earlier.filter(|_| flags.domain || flags.nohz)
            && self.kernel.since(6, 19)
            && self.kernel.present.is_subset(&earlier.or(isolated))
        {
            return Err("with an earlier word it leaves no CPU that is not isolated".to_owned());
        }
        Ok(())
    }
}

fn offload(kernel: &Kernel, line: &str, made: &mut Effects) {
    if kernel.has("CONFIG_RCU_NOCB_CPU") == Some(false) {
        let reason = || "the kernel is built without CONFIG_RCU_NOCB_CPU".to_owned();
        let words = words(line).into_iter().filter(|word| is_rcu_nocbs(kernel, word));
        made.dropped.extend(words.map(|word| Dropped { word: word.text.to_owned(), reason: reason() }));
        return;
    }
    made.rcu_nocbs = offloaded(kernel, line, &made.nohz_full).unwrap_or_else(|reason| {
        made.unsure_rcu_nocbs = Some(reason);
        kernel.possible.clone()
    });
}

/// The CPUs whose callbacks a kernel built for it offloads, where those of `nohz_full` have full
/// dynticks: `rcu_nocb_setup` and `rcu_init_nohz`. An error is the reason why it is not known.
pub fn offloaded(kernel: &Kernel, line: &str, nohz_full: &Cpus) -> Result<Cpus, String> {
    let all = words(line);
    let listed = match all.iter().rfind(|word| is_rcu_nocbs(kernel, word)).map(|word| word.value) {
        // All CPUs unless somebody names some, be it by nohz_full= alone.
        None if nohz_full.is_empty() && kernel.has("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL") == Some(true) => {
            kernel.possible.clone()
        }
        None | Some(None) => Cpus::default(),
        Some(Some(list)) => list::rcu_nocbs(kernel, list)?,
    };
    Ok(listed.or(nohz_full))
}

/// Before 5.18 the parameter has a list or is none.
fn is_rcu_nocbs(kernel: &Kernel, word: &Word) -> bool {
    same_name(word.name, "rcu_nocbs") && (word.value.is_some() || kernel.since(5, 18))
}
