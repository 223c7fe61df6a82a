//! The six multicore deployments of the IEEE Access 2020 paper (Table 1): C-states, SMT, cores and
//! isolation, on or off.
//!
//! Each is named by what is on: C-state, Hyper-threading, Multicore, Isolated CPU; `Single` has
//! none of them. Where the paper boots another kernel command line, the same state is reached at
//! run time as far as the kernel can, and the boot line is given too.

use super::catalogue::Catalogue;
use super::plan::{Request, plan};
use super::purpose::Purpose;
use super::smt;
use machine::{Root, SMT_CONTROL, cpuidle_states};
use model::plan::{BootStep, Left, Placement, Plan, SCHEMA, Step, StepKind};
use model::{Cpus, Error, Machine};

const WHY: &str = "the deployment asks for it";
const COST: &str = "What the deployment gives up: power, threads or cores.";

/// A deployment: which of the four features are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deployment {
    /// Its name in the paper.
    pub name: &'static str,
    /// C-states.
    pub c_states: bool,
    /// Both threads of each core.
    pub smt: bool,
    /// More than one core.
    pub multicore: bool,
    /// All CPUs but CPU 0 isolated.
    pub isolated: bool,
}

/// All six, in the paper's order.
pub const ALL: [Deployment; 6] = [
    Deployment { name: "CHM", c_states: true, smt: true, multicore: true, isolated: false },
    Deployment { name: "HM", c_states: false, smt: true, multicore: true, isolated: false },
    Deployment { name: "HMI", c_states: false, smt: true, multicore: true, isolated: true },
    Deployment { name: "M", c_states: false, smt: false, multicore: true, isolated: false },
    Deployment { name: "MI", c_states: false, smt: false, multicore: true, isolated: true },
    Deployment { name: "Single", c_states: false, smt: false, multicore: false, isolated: false },
];

/// A deployment on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// What to change.
    pub plan: Plan,
    /// The CPU to measure.
    pub measure: u32,
    /// Features of the deployment that this machine does not have, one sentence each.
    pub not_applicable: Vec<String>,
}

/// Plans a deployment. Error: a machine with one CPU has nothing to deploy but `Single`.
pub fn deploy(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    deployment: Deployment,
    purpose: &Purpose,
) -> Result<Deployed, Error> {
    let topology = &machine.topology;
    let mut not_applicable = Vec::new();
    let kept = kept(machine, deployment, &mut not_applicable);
    if kept.len() < 2 && deployment.multicore {
        let what = format!("deployment {} on a machine with one core online", deployment.name);
        return Err(Error::invalid("deployment", what, "a machine with more cores, or Single"));
    }
    let mut steps = Vec::new();
    let idle = idle_steps(root, &kept, deployment.c_states);
    if idle.is_empty() && topology.online.iter().all(|cpu| cpuidle_states(root, cpu).is_empty()) {
        not_applicable.push("the kernel drives no C-states here".to_owned());
    } else {
        steps.extend(idle);
    }
    if !deployment.c_states && root.has("dev/cpu_dma_latency") {
        steps.push(held());
    }
    let gone = topology.online.minus(&kept);
    let house: Cpus = kept.iter().take(1).collect();
    let mut plan = if deployment.isolated {
        let cpus = kept.minus(&house);
        let purpose = purpose.clone();
        let request = Request { cpus, allow_split: true, purpose, ..Request::default() };
        plan(root, &smt::shrunk(machine, &kept), catalogue, &request)?
    } else {
        unisolated(root, machine, &kept)
    };
    steps.append(&mut plan.steps);
    steps.extend(smt::steps(root, machine, &gone, WHY, COST));
    plan.left.extend(smt::found(machine));
    plan.steps = steps;
    plan.boot.extend(boot(machine, deployment));
    let measure = plan.cpus.0.last().or(kept.0.last()).copied().unwrap_or(0);
    Ok(Deployed { plan, measure, not_applicable })
}

/// The CPUs that stay online: all, the first thread of each core, or CPU 0.
fn kept(machine: &Machine, deployment: Deployment, not_applicable: &mut Vec<String>) -> Cpus {
    let topology = &machine.topology;
    if !deployment.multicore {
        // CPU 0, unless somebody has taken even that offline.
        return topology.online.iter().take(1).collect();
    }
    let cores = smt::firsts(machine);
    if cores == topology.online {
        let reason = if deployment.smt {
            "this machine has no SMT siblings online: H cannot be distinguished from its absence"
        } else {
            "this machine has no SMT siblings online: nothing to switch off"
        };
        not_applicable.push(reason.to_owned());
    }
    if deployment.smt { topology.online.clone() } else { cores }
}

fn unisolated(root: &Root, machine: &Machine, kept: &Cpus) -> Plan {
    let isolated = machine.topology.isolated.and(kept);
    let mut left = Vec::new();
    if !isolated.is_empty() {
        let reason =
            format!("the kernel was booted with {isolated} isolated, which only another boot can end");
        left.push(Left { mechanism: "isolcpus".to_owned(), reason });
    }
    if root.maybe(SMT_CONTROL).is_some_and(|control| control == "forceoff") {
        let reason = "SMT was switched off for good at boot".to_owned();
        left.push(Left { mechanism: smt::ID.to_owned(), reason });
    }
    Plan {
        schema: SCHEMA.to_owned(),
        cpus: Cpus::default(),
        isolated: Cpus::default(),
        housekeeping: kept.clone(),
        placement: Placement::Affinity,
        placement_reason: "this deployment isolates nothing".to_owned(),
        steps: Vec::new(),
        boot: Vec::new(),
        left,
        boot_line: model::boot::BootLine::default(),
        keep: Vec::new(),
        residents: Vec::new(),
        move_pinned: false,
    }
}

/// Opens or closes every idle state but the first, which is a busy wait where there is one (its
/// latency is 0).
fn idle_steps(root: &Root, cpus: &Cpus, open: bool) -> Vec<Step> {
    let wanted = if open { "0" } else { "1" };
    let states = cpus.iter().flat_map(|cpu| cpuidle_states(root, cpu));
    states
        .filter(|state| state.exit_latency_us.is_some_and(|latency| latency > 0))
        .filter_map(|state| {
            let (file, old) = (format!("/{}/disable", state.folder), state.disable?);
            (old != wanted).then(|| step("idle-states", StepKind::File, &file, Some(&old), wanted))
        })
        .collect()
}

fn held() -> Step {
    step("cpu_dma_latency", StepKind::Held, "/dev/cpu_dma_latency=0", Some("not held"), "held")
}

fn step(mechanism: &str, kind: StepKind, target: &str, old: Option<&str>, new: &str) -> Step {
    Step {
        mechanism: mechanism.to_owned(),
        kind,
        target: target.to_owned(),
        old: old.map(str::to_owned),
        new: new.to_owned(),
        why: WHY.to_owned(),
        cost: COST.to_owned(),
        risky: false,
        note: None,
    }
}

/// What the paper sets on the kernel command line.
fn boot(machine: &Machine, deployment: Deployment) -> Vec<BootStep> {
    let parameter = |mechanism: &str, parameter: &str, what: &str| BootStep {
        mechanism: mechanism.to_owned(),
        parameter: Some(parameter.to_owned()),
        what: what.to_owned(),
    };
    let given =
        |name: &str| machine.cmdline.split_whitespace().any(|word| word.split('=').next() == Some(name));
    let mut steps = Vec::new();
    if !deployment.c_states && !given("processor.max_cstate") {
        steps.push(parameter(
            "processor-max_cstate",
            "intel_idle.max_cstate=0 processor.max_cstate=1",
            "both: with intel_idle alone switched off, acpi_idle enters C-states in its place",
        ));
    }
    if !deployment.smt && !given("nosmt") {
        steps.push(parameter("nosmt", "nosmt", "SMT off from boot on"));
    }
    if !deployment.multicore && !given("maxcpus") {
        steps.push(parameter("cpu-hotplug-cycle", "maxcpus=1", "one CPU from boot on"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;
    use machine;

    /// Four cores of two threads numbered 0-4, 1-5, 2-6, 3-7, with two idle states each.
    fn files() -> Vec<(String, String)> {
        let mut files = vec![
            ("sys/devices/system/cpu/online".to_owned(), "0-7".to_owned()),
            (SMT_CONTROL.to_owned(), "on".to_owned()),
            ("dev/cpu_dma_latency".to_owned(), String::new()),
        ];
        for cpu in 0..8 {
            let own = format!("sys/devices/system/cpu/cpu{cpu}");
            let pair = format!("{},{}", cpu % 4, cpu % 4 + 4);
            files.push((format!("{own}/topology/thread_siblings_list"), pair));
            for (state, latency) in [(0, "0"), (1, "133")] {
                files.push((format!("{own}/cpuidle/state{state}/name"), "C".to_owned()));
                files.push((format!("{own}/cpuidle/state{state}/latency"), latency.to_owned()));
                files.push((format!("{own}/cpuidle/state{state}/disable"), "0".to_owned()));
            }
        }
        files
    }

    fn deployed(name: &str) -> Deployed {
        deployed_on(&files(), name)
    }

    /// The same machine after somebody has taken CPUs offline: neither their topology nor they in
    /// that of others is left.
    fn without(away: &Cpus) -> Vec<(String, String)> {
        let all: Cpus = (0..8).collect();
        let mut files = files();
        files.retain(|(file, _)| !away.iter().any(|cpu| file.contains(&format!("cpu{cpu}/"))));
        for (file, text) in &mut files {
            if file.ends_with("/online") {
                *text = all.minus(away).to_string();
            } else if file.ends_with("siblings_list") {
                *text = Cpus::parse_list(text).unwrap().minus(away).to_string();
            }
        }
        files.push(("sys/devices/system/cpu/present".to_owned(), all.to_string()));
        files
    }

    fn deployed_on(files: &[(String, String)], name: &str) -> Deployed {
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let (_dir, root) = tree(&files);
        let machine = machine::read(&root).unwrap();
        let deployment = *ALL.iter().find(|deployment| deployment.name == name).unwrap();
        deploy(&root, &machine, &Catalogue::embedded().unwrap(), deployment, &Purpose::default()).unwrap()
    }

    fn targets(deployed: &Deployed, mechanism: &str) -> Vec<String> {
        let of = deployed.plan.steps.iter().filter(|step| step.mechanism == mechanism);
        of.map(|step| format!("{} {}", step.target, step.new)).collect()
    }

    #[test]
    fn names_say_what_is_on() {
        for deployment in ALL.iter().filter(|deployment| deployment.name != "Single") {
            let letters = [
                ('C', deployment.c_states),
                ('H', deployment.smt),
                ('M', deployment.multicore),
                ('I', deployment.isolated),
            ];
            let name: String = letters.iter().filter(|(_, on)| *on).map(|(letter, _)| *letter).collect();
            assert_eq!(name, deployment.name);
        }
    }

    #[test]
    fn c_states_are_closed_but_for_chm() {
        assert!(targets(&deployed("CHM"), "idle-states").is_empty(), "they are open");
        assert_eq!(targets(&deployed("HM"), "idle-states").len(), 8);
        assert_eq!(targets(&deployed("M"), "idle-states").len(), 4);
        assert_eq!(targets(&deployed("HM"), "cpu_dma_latency"), ["/dev/cpu_dma_latency=0 held"]);
    }

    #[test]
    fn siblings_go_by_one_switch_and_single_keeps_cpu_0() {
        assert_eq!(targets(&deployed("M"), "smt-control"), [format!("/{SMT_CONTROL} off")]);
        let single = deployed("Single");
        assert_eq!(targets(&single, "smt-control").len(), 7);
        assert_eq!((single.measure, single.plan.housekeeping.to_string()), (0, "0".to_owned()));
    }

    /// The switch would bring CPU 6 back, and take CPU 5 though its core has no other thread.
    #[test]
    fn what_was_offline_stays_offline_and_is_reported() {
        let files = without(&"1,6".parse().unwrap());
        let online = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online 0");
        for name in ["M", "MI"] {
            let deployed = deployed_on(&files, name);
            assert_eq!(targets(&deployed, "smt-control"), [online(4), online(7)], "{name}");
            assert_eq!(deployed.measure, 5, "{name}: CPU 5 is all that is left of its core");
            let offline_already = |left: &&Left| left.reason.starts_with("CPUs 1,6 are offline already");
            assert_eq!(deployed.plan.left.iter().filter(offline_already).count(), 1, "{name}");
        }
        assert_eq!(deployed_on(&files, "MI").plan.isolated.to_string(), "2,3,5");
        assert!(deployed_on(&files, "HM").plan.steps.iter().all(|step| step.mechanism != "smt-control"));
        // Siblings that are all offline are none to switch off.
        let halved = without(&"4-7".parse().unwrap());
        assert!(targets(&deployed_on(&halved, "M"), "smt-control").is_empty());
        assert!(
            deployed_on(&halved, "M")
                .not_applicable
                .iter()
                .any(|reason| reason.contains("nothing to switch off"))
        );
    }

    #[test]
    fn another_cpu_is_for_housekeeping_where_cpu_0_is_offline() {
        let files = without(&"0,4".parse().unwrap());
        let deployed = deployed_on(&files, "MI");
        assert_eq!(
            (deployed.plan.isolated.to_string(), deployed.plan.housekeeping.to_string()),
            ("2,3".to_owned(), "1".to_owned())
        );
        assert_eq!(deployed_on(&files, "Single").measure, 1);
    }

    #[test]
    fn isolation_takes_all_but_cpu_0() {
        let (hmi, mi) = (deployed("HMI"), deployed("MI"));
        assert_eq!((hmi.plan.isolated.to_string(), hmi.measure), ("1-7".to_owned(), 7));
        assert_eq!((mi.plan.isolated.to_string(), mi.measure), ("1-3".to_owned(), 3));
        assert_eq!(mi.plan.housekeeping.to_string(), "0");
    }
}
