//! `isolcpus=` and `nohz_full=` together: the sets that the kernel accepts side by side, and that
//! take no CPU of others out of the scheduler or bring one back.
//!
//! Linux `kernel/sched/isolation.c`: before 5.18 there is one set for all kinds, since then one a
//! kind; a word that names another set for a kind that is set already is dropped whole.

use super::effects::Effects;
use super::line::{words, words_of};
use super::list;
use super::target::Kernel;
use model::Cpus;

/// The CPUs that are not yet isolated and shall be, by kind.
pub(super) struct Sets {
    pub(super) domain: Cpus,
    pub(super) nohz: Cpus,
}

/// New words of a parameter.
pub(super) struct Solved {
    pub(super) name: &'static str,
    pub(super) words: Vec<String>,
    pub(super) why: String,
}

/// The words for what is isolated now and `asked`, of the parameters that change; an error is the
/// reason why there are none.
pub(super) fn solve(
    kernel: &Kernel,
    base: &str,
    before: &Effects,
    cpus: &Cpus,
    asked: &Sets,
) -> Result<Vec<Solved>, String> {
    let by_isolcpus = nohz_by_isolcpus(kernel, base);
    let mut domain = before.domain.or(&asked.domain);
    let mut managed = before.managed_irq.clone();
    if !asked.domain.is_empty() && kernel.since(5, 6) {
        managed = managed.or(cpus);
        // One word for both kinds where that removes no other owner's CPU from the scheduler.
        if managed.is_subset(&domain) {
            managed = domain.clone();
        }
    }
    let mut nohz = before.nohz_full.or(&asked.nohz);
    let mut one_set = None;
    if !kernel.since(5, 18) {
        let all = domain.or(&managed).or(&nohz);
        if !domain.is_empty() && domain != all {
            return Err(format!(
                "before 5.18 isolcpus= and nohz_full= name the same CPUs: {} would leave the scheduler with it",
                all.minus(&domain)
            ));
        }
        let differs = [&domain, &managed, &nohz].iter().any(|set| !set.is_empty() && **set != all);
        if differs {
            one_set = Some(
                "before 5.18 isolcpus= and nohz_full= must name the same CPUs, or the kernel drops the later one",
            );
        }
        for set in [&mut domain, &mut managed, &mut nohz] {
            if !set.is_empty() {
                *set = all.clone();
            }
        }
    }
    let flags =
        [("nohz", by_isolcpus.then_some(&nohz)), ("managed_irq", Some(&managed)), ("domain", Some(&domain))];
    let isolcpus = isolcpus_words(flags.map(|(flag, set)| (flag, set.filter(|set| !set.is_empty()))));
    // Before 6.14 the flag nohz ends the tick alone, so nohz_full= goes beside it where it is asked
    // for.
    let by_flag_alone = by_isolcpus && asked.nohz.is_empty() && words_of(base, "nohz_full").is_empty();
    let nohz_full =
        if nohz.is_empty() || by_flag_alone { Vec::new() } else { vec![format!("nohz_full={nohz}")] };
    // Words that say the same in other letters stay as they are.
    let same = domain == before.domain
        && managed == before.managed_irq
        && (!by_isolcpus || nohz == before.nohz_full);
    let settled = same && (!before.domain.is_empty() || isolcpus.is_empty());
    let nohz_settled = nohz == before.nohz_full || nohz_full.is_empty();
    let changed = [("isolcpus", isolcpus, settled), ("nohz_full", nohz_full, nohz_settled)];
    let changed = changed.into_iter().filter(|(.., settled)| !settled).map(|(name, words, _)| Solved {
        name,
        words,
        why: one_set.map_or_else(|| reason(base, before, name), str::to_owned),
    });
    Ok(changed.collect())
}

fn reason(base: &str, before: &Effects, name: &str) -> String {
    let words = words_of(base, name);
    let mut dropped = before.dropped.iter().filter(|one| words.contains(&one.word.as_str()));
    if let Some(one) = dropped.next() {
        return format!("the kernel drops {}: {}", one.word, one.reason);
    }
    if words.is_empty() {
        "not given now".to_owned()
    } else {
        "a second, different word would be dropped by the kernel, so one word names the CPUs of both"
            .to_owned()
    }
}

/// Whether `isolcpus=nohz,…` stands on the line: then the kernel checks its set against
/// `nohz_full=`.
fn nohz_by_isolcpus(kernel: &Kernel, base: &str) -> bool {
    let values = words(base).into_iter().filter(|word| word.name == "isolcpus").filter_map(|word| word.value);
    values.filter_map(|value| list::isolcpus(kernel, value).ok()).any(|(flags, _)| flags.nohz)
}

/// One word a set, with the flags of all kinds that have it.
fn isolcpus_words(kinds: [(&str, Option<&Cpus>); 3]) -> Vec<String> {
    let mut sets: Vec<(&Cpus, Vec<&str>)> = Vec::new();
    for (flag, set) in kinds.iter().filter_map(|(flag, set)| Some((*flag, (*set)?))) {
        match sets.iter_mut().find(|(known, _)| *known == set) {
            Some((_, flags)) => flags.push(flag),
            None => sets.push((set, vec![flag])),
        }
    }
    let spelled = sets.iter().map(|(set, flags)| format!("isolcpus={},{set}", flags.join(",")));
    spelled.collect()
}
