//! Suites: named sets of disturbances, from `catalogue/suites.toml`, and how they are placed on
//! CPUs.

use super::{Error, Order, StressorSpec, catalogue};
use model::Cpus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const TEXT: &str = include_str!("../../../catalogue/suites.toml");
const SCHEMA: &str = "stillcore.suites/1";

/// A set of disturbances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name on the command line.
    pub id: String,
    /// What it is, in one line.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// How it is placed unless asked otherwise.
    pub place: Placing,
    /// Whether it loads the measured CPUs too.
    #[serde(default)]
    pub colocated: bool,
    /// What a run with it must see on the measured CPU to count.
    #[serde(default)]
    pub expect: Expect,
    /// Whether its stressors run as fast as they can, except those with a rate of their own here.
    #[serde(default)]
    pub unpaced: bool,
    /// The suite whose stressors it has, each at its default rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paced_like: Option<String>,
    /// Number of CPUs that the `copies` and `workers` of its stressors were published for. They
    /// are scaled to the CPUs of this machine; without it they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_cpus: Option<u32>,
    /// What its stressors have in common, where it has all that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// Its stressors.
    #[serde(default)]
    pub stressors: Vec<Member>,
}

/// Stressors that a suite need not name, so that it has those to come, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Every {
    /// Those that do no harm beyond their own end, and stay on their own CPUs.
    Safe,
    /// Of these, those that an ordinary user can run.
    Unprivileged,
}

impl Every {
    fn has(self, spec: &StressorSpec) -> bool {
        let safe = !spec.dangerous && !spec.colocated;
        safe && (self == Self::Safe || spec.privilege.starts_with("none"))
    }
}

/// One stressor of a suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Name in the catalogue.
    pub name: String,
    /// Operations per second, if not its own default; 0 is as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Bytes to work on, if not its own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Loops, if not its own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Processes of it, if not one: for stressors that are one loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
}

impl Suite {
    /// Its stressors on so many CPUs, each copy by itself.
    pub fn members(&self, cpus: usize) -> Vec<Member> {
        let scaled = |count: u32| match self.published_cpus {
            Some(published) if published > 0 => {
                (u64::from(count) * cpus as u64).div_ceil(u64::from(published)).max(1) as u32
            }
            _ => count,
        };
        let mut members = Vec::new();
        for member in &self.stressors {
            // Loops are scaled where they are counted, else processes are.
            let (copies, workers) = match member.workers {
                Some(workers) => (member.copies.unwrap_or(1), Some(scaled(workers))),
                None => (scaled(member.copies.unwrap_or(1)), None),
            };
            let one = Member { workers, copies: None, ..member.clone() };
            members.extend(std::iter::repeat_n(one, copies as usize));
        }
        members
    }
}

/// Which CPUs a stressor gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placing {
    /// Each stressor runs once and may use all CPUs.
    All,
    /// Each stressor runs once on each CPU.
    OnePerCpu,
    /// Each stressor runs once on one CPU, dealt out in turn.
    Spread,
}

/// What must be seen on the measured CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// That is what is asked.
    #[default]
    Any,
    /// A positive control.
    Seen,
    /// A negative control.
    Unseen,
}

#[derive(Deserialize)]
struct File {
    schema: String,
    suites: Vec<Suite>,
}

/// All suites, in the order of the catalogue.
pub fn suites() -> Result<Vec<Suite>, Error> {
    let invalid = |reason: String| Error::Suites { reason };
    let mut file: File = toml::from_str(TEXT).map_err(|error| invalid(error.to_string()))?;
    if file.schema != SCHEMA {
        return Err(invalid(format!("schema {}, expected {SCHEMA}", file.schema)));
    }
    let written: BTreeMap<String, Vec<Member>> =
        file.suites.iter().map(|suite| (suite.id.clone(), suite.stressors.clone())).collect();
    for suite in &mut file.suites {
        if let Some(other) = &suite.paced_like {
            let found = written.get(other).ok_or_else(|| invalid(format!("no suite {other}")))?;
            suite.stressors.clone_from(found);
        }
        if suite.unpaced {
            suite.stressors.iter_mut().for_each(|member| member.rate = member.rate.or(Some(0.0)));
        }
        let alike = |spec: &&StressorSpec| suite.every.is_some_and(|every| every.has(spec));
        let plain = |spec: &StressorSpec| Member { name: spec.name.to_owned(), ..Member::default() };
        suite.stressors.extend(catalogue().iter().filter(alike).map(plain));
    }
    Ok(file.suites)
}

/// The suite of one name.
pub fn find(id: &str) -> Result<Suite, Error> {
    let all = suites()?;
    let known = || all.iter().map(|suite| suite.id.as_str()).collect::<Vec<_>>().join(", ");
    all.iter()
        .find(|suite| suite.id == id)
        .cloned()
        .ok_or_else(|| Error::UnknownSuite { name: id.to_owned(), known: known() })
}

/// The orders that place these stressors on these CPUs. A colocated stressor runs once: it is on
/// the measured CPUs by itself.
pub fn place(members: &[Member], cpus: &Cpus, placing: Placing) -> Result<Vec<Order>, Error> {
    let each: Vec<Cpus> = cpus.iter().map(Cpus::one).collect();
    let mut orders = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let order = |cpus: &Cpus| Order {
            name: member.name.clone(),
            cpus: cpus.clone(),
            rate: member.rate,
            bytes: member.bytes,
            workers: member.workers,
            dir: None,
        };
        match placing {
            Placing::OnePerCpu if !catalogue::find(&member.name)?.colocated => {
                orders.extend(each.iter().map(order));
            }
            Placing::Spread if !each.is_empty() => orders.push(order(&each[number % each.len()])),
            _ => orders.push(order(cpus)),
        }
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_suite_names_stressors_that_exist() {
        let all = suites().unwrap();
        let ids: BTreeSet<_> = all.iter().map(|suite| &suite.id).collect();
        assert_eq!(ids.len(), all.len());
        for suite in &all {
            assert!(!suite.title.is_empty() && !suite.source.is_empty() && !suite.stressors.is_empty());
            for member in &suite.stressors {
                catalogue::find(&member.name).unwrap();
            }
        }
        assert!(find("ordinary").is_ok());
        assert!(find("no").unwrap_err().to_string().contains("positive-control"));
    }

    #[test]
    fn what_is_not_named_is_what_is_alike() {
        let names = |id: &str| -> BTreeSet<String> {
            find(id).unwrap().stressors.into_iter().map(|member| member.name).collect()
        };
        let (safe, ordinary) = (names("all-safe"), names("unprivileged"));
        assert!(ordinary.is_subset(&safe) && ordinary.contains("u_fork"));
        assert!(safe.contains("wq_loop") && !ordinary.contains("wq_loop"));
        assert!(!safe.contains("tlb_span"));
        let left_out: Vec<_> = catalogue().iter().filter(|spec| !safe.contains(spec.name)).collect();
        assert!(left_out.iter().all(|spec| spec.dangerous || spec.colocated));
    }

    #[test]
    fn suites_of_papers_are_unpaced_and_their_paced_namesakes_have_the_same_stressors() {
        let all = suites().unwrap();
        let paced: Vec<&Suite> = all.iter().filter(|suite| suite.paced_like.is_some()).collect();
        assert!(paced.len() >= 4);
        for paced in paced {
            let id = paced.paced_like.as_ref().unwrap();
            let full = find(id).unwrap();
            assert_eq!(paced.id, format!("{id}-paced"));
            assert!(full.unpaced && !paced.unpaced);
            let names = |suite: &Suite| -> Vec<String> {
                suite.stressors.iter().map(|member| member.name.clone()).collect()
            };
            assert_eq!(names(&full), names(paced));
            assert!(full.stressors.iter().all(|member| member.rate.is_some()), "{id}");
            assert!(full.stressors.iter().any(|member| member.rate == Some(0.0)), "{id}");
        }
    }

    #[test]
    fn published_numbers_are_scaled_to_the_cpus_of_the_machine() {
        let on = |cpus: usize| {
            let mut counts = BTreeMap::<String, u32>::new();
            for member in find("replication25").unwrap().members(cpus) {
                *counts.entry(member.name).or_default() += member.workers.unwrap_or(1);
            }
            ["cpu_methods", "vm_fill", "sock", "fault"].map(|name| counts[name])
        };
        assert_eq!(on(4), [4, 2, 2, 2], "as published");
        assert_eq!(on(1), [1, 1, 1, 1]);
        assert_eq!(on(6), [6, 3, 3, 3]);
        assert_eq!(on(71), [71, 36, 36, 36]);
        assert_eq!(find("rtss24").unwrap().members(72).len(), 12, "placed on each CPU, not multiplied");
    }

    #[test]
    fn each_way_of_placing_uses_every_cpu_it_should() {
        let member = |name: &str| Member { name: name.into(), bytes: Some(7), ..Member::default() };
        let members = ["u_fork", "fault", "timer", "tlb_span"].map(member);
        let cpus = Cpus::from_iter([0, 5]);
        let placed = |placing| {
            let orders = place(&members, &cpus, placing).unwrap();
            assert!(orders.iter().all(|order| order.bytes == Some(7)));
            orders.iter().map(|order| format!("{} {}", order.name, order.cpus)).collect::<Vec<_>>()
        };
        assert_eq!(placed(Placing::All), ["u_fork 0,5", "fault 0,5", "timer 0,5", "tlb_span 0,5"]);
        assert_eq!(placed(Placing::Spread), ["u_fork 0", "fault 5", "timer 0", "tlb_span 5"]);
        let one = ["u_fork 0", "u_fork 5", "fault 0", "fault 5", "timer 0", "timer 5", "tlb_span 0,5"];
        assert_eq!(placed(Placing::OnePerCpu), one);
    }
}
