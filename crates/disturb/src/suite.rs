//! Suites: named sets of disturbances, from `catalogue/suites.toml`, and how they are placed on
//! CPUs.

use super::{Error, Order, StressorSpec, catalogue};
use model::Cpus;
use serde::{Deserialize, Serialize};

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
    for suite in &mut file.suites {
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
    fn each_way_of_placing_uses_every_cpu_it_should() {
        let member = |name: &str| Member { name: name.into(), rate: None, bytes: Some(7), workers: None };
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
