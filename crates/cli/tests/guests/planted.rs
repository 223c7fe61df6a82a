//! Mechanisms set wrong and right on purpose: what the audit says of each, against what the kernel
//! itself does. Not one wrong state is green, and not one right state is red.
//!
//! `planted.sh` makes worlds and records in each the kernel's own evidence (provoked and counted,
//! or else a setting read back) and the audit's answer. Here they are compared.

mod rows;

use crate::machine::{Case, Guest};
use crate::support::read_json;
use audit::catalogue::{Catalogue, Probe};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The machine that plants at run time: isolated in nothing at boot, with parameters that are
/// refused, and with some that are accepted although oddly spelled.
pub(crate) const RUN_TIME: &str = "isolcpus= nohz_full= rcu_nocbs= irqaffinity= nohz=no rcu_nocb_poll skew_tick=2 psi=no \
     threadirqs=0 mce=ignore_ce mce=dont_log_ce kthread_cpus=0-1 csdlock_debug=1 mitigations=off audit=0 \
     split_lock_detect=off";

/// The machine that is booted as isolation wants, on the lab's own CPUs 2 and 3.
pub(crate) const RIGHT: &str = "irqaffinity=0,1 skew_tick=1 rcu_nocb_poll nowatchdog psi=0 threadirqs mce=ignore_ce tsc=nowatchdog \
     mitigations=off audit=off cpuidle.off=1 processor.max_cstate=1 workqueue.power_efficient=1 workqueue.unbound_cpus=0,1 \
     rcupdate.rcu_normal_after_boot=1 rcutree.nohz_full_patience_delay=1000 transparent_hugepage=never preempt=full \
     xenomai.supported_cpus=0xc efi=noruntime rcutree.use_softirq=0 split_lock_detect=fatal";

/// Further devices of those two: a card whose interrupt is new each time, and the devices for
/// planting.
pub(crate) const DEVICES: [&str; 10] =
    ["--module", "zram", "--module", "dummy", "--module", "pcrypt", "--module", "kvm", "--nic", "e1000"];

/// Where the tables of the script are.
const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/planted");

/// The state of a mechanism in one world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As isolation wants.
    Right,
    Wrong,
    /// The kernel has no such thing.
    Absent,
    /// It could not be planted, or not be seen.
    Open,
}

/// How a state was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It was read back, past the audit's reader.
    Setting,
    /// Something was provoked and counted.
    Behaviour,
}

/// The kernel's own evidence of a mechanism in one world.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Truth {
    state: State,
    kind: Kind,
    words: String,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    TrueGreen,
    TrueRed,
    Unknown,
    FalseGreen,
    FalseRed,
}

/// One mechanism in one world of one machine.
#[derive(Debug, Clone)]
struct Compared {
    mechanism: String,
    verdict: Verdict,
    kind: Kind,
}

/// The script with its tables.
pub(crate) fn case(kind: &'static str) -> Case {
    let catalogue = Catalogue::embedded().unwrap();
    let mut daemons = String::new();
    for mechanism in &catalogue.mechanisms {
        if let Probe::Daemon { process, .. } = &mechanism.probe {
            writeln!(daemons, "{} {process}", mechanism.id).unwrap();
        }
    }
    let case = Case::new("planted", "planted.sh", the_audit_says_what_the_kernel_does).with(&[kind]);
    let table = |name| std::fs::read_to_string(Path::new(TABLES).join(name)).unwrap();
    let names = ["evidence.sh", "parameters.sh", "booted", "settings", "symbols"];
    let case = names.into_iter().fold(case, |case, name| case.file(name, table(name)));
    case.file("daemons", daemons).limit(900)
}

/// The lines of a world's truth; counts have precedence over settings read back.
fn truths(text: &str) -> BTreeMap<String, Truth> {
    let mut all: BTreeMap<String, Vec<Truth>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [id, verdict, kind, rest] = words[..] else { panic!("no truth: {line}") };
        let state = match verdict {
            "right" => State::Right,
            "wrong" => State::Wrong,
            "absent" => State::Absent,
            "none" => State::Open,
            _ => panic!("no verdict: {line}"),
        };
        let kind = if kind == "behaviour" { Kind::Behaviour } else { Kind::Setting };
        all.entry(id.to_owned()).or_default().push(Truth { state, kind, words: rest.to_owned() });
    }
    all.into_iter().map(|(id, said)| (id, together(said))).collect()
}

/// One truth from several: those of the best kind decide; one that is wrong is enough.
fn together(said: Vec<Truth>) -> Truth {
    let decided = said.iter().filter(|one| one.state != State::Open);
    let best = decided.map(|one| one.kind).max().unwrap_or(Kind::Setting);
    let of: Vec<&Truth> = said.iter().filter(|one| one.kind == best).collect();
    let has = |state: State| of.iter().any(|one| one.state == state);
    let first = [State::Wrong, State::Open, State::Absent].into_iter().find(|state| has(*state));
    let state = first.unwrap_or(State::Right);
    let words = said.iter().map(|one| one.words.as_str()).collect::<Vec<_>>().join("; ");
    Truth { state, kind: best, words }
}

/// The verdict on a state of the audit, given the kernel's; none where that is open.
fn verdict(truth: State, audit: &str) -> Option<Verdict> {
    Some(match (truth, audit) {
        (State::Open, _) => return None,
        (_, "unknown") => Verdict::Unknown,
        (State::Right, "ok") | (State::Absent, "not-applicable") => Verdict::TrueGreen,
        // A mechanism that is present and right is not absent.
        (State::Right, _) => Verdict::FalseRed,
        (State::Wrong, "fixable" | "boot" | "immovable") => Verdict::TrueRed,
        (State::Wrong, _) => Verdict::FalseGreen,
        (State::Absent, "ok") => Verdict::FalseGreen,
        (State::Absent, _) => Verdict::FalseRed,
    })
}

/// Every world of a machine.
pub(crate) fn the_audit_says_what_the_kernel_does(guest: &Guest) {
    let mut false_ones = String::new();
    let (mut compared, mut absent) = (Vec::new(), BTreeSet::new());
    let worlds: Vec<String> = std::fs::read_dir(&guest.root)
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".truth")?.to_owned()))
        .collect();
    assert!(!worlds.is_empty(), "no worlds: {}", guest.read("script.err"));
    for world in &worlds {
        let audit = read_json(&guest.root.join(format!("{world}.json")));
        let findings = audit["findings"].as_array().unwrap();
        let is_absent = |one: &&serde_json::Value| one["state"] == "not-applicable";
        absent.extend(findings.iter().filter(is_absent).map(|one| one["id"].as_str().unwrap().to_owned()));
        for (mechanism, truth) in truths(&guest.read(&format!("{world}.truth"))) {
            let Some(found) = findings.iter().find(|one| one["id"] == mechanism.as_str()) else {
                panic!("{mechanism} is not in the catalogue")
            };
            let state = found["state"].as_str().unwrap();
            let Some(verdict) = verdict(truth.state, state) else { continue };
            if verdict >= Verdict::FalseGreen {
                let _ = writeln!(
                    false_ones,
                    "{verdict:?} {mechanism} in the world {world}: the audit says {state} ({}), the kernel: {}",
                    found["reason"], truth.words
                );
            }
            compared.push(Compared { mechanism, verdict, kind: truth.kind });
        }
    }
    println!("{}: {} comparisons in {} worlds", guest.machine.name, compared.len(), worlds.len());
    rows::add(rows::Shown { kernel: guest.kernel(), compared, absent });
    assert!(false_ones.is_empty(), "{}:\n{false_ones}", guest.machine.name);
}
