//! What would remove what a run has seen: each mechanism once, with what is set now, what to type,
//! and what it is against.
//!
//! Two things are looked up in the catalogue. The first is what ran on the measured CPUs, by class,
//! label and the function that asked for it. The second is the steps of wake-ups that waited for
//! another CPU than the task's, which no event of the measured CPU shows. Both are joined with the
//! audit of the same run: what is in place already is not proposed. A setting on which the field
//! does not agree (`Finding::otherwise`) is proposed where the run shows what it costs.

use super::remedies::label_of;
use analysis::Analysis;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, PathSection};
use attribution::attribute::section::{AttributedRow, SourceText};
use attribution::attribute::step::Step;
use model::events::EventCatalogue;
use model::sample::ProbeKind;
use model::{Cpus, EventClass, Finding, FindingState};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::format;
use crate::outcome::{option_for, speaks};

/// A change, and what speaks for it in a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposal {
    /// The mechanism's id.
    pub mechanism: String,
    /// What the audit says of it.
    pub state: FindingState,
    /// What is set here, as read.
    pub now: Option<String>,
    /// What to type or set.
    pub remedy: Option<String>,
    /// The same by stillcore, over its journal; none where another boot is needed.
    pub apply: Option<String>,
    /// What the mechanism costs.
    pub cost: Option<String>,
    /// Whether it is a choice, which the audit does not require.
    pub choice: bool,
    /// Whether a mistake under it can take the machine away.
    pub risky: bool,
    /// What it is against, dearest first.
    pub against: Vec<Seen>,
}

/// Something that a mechanism is against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// In words.
    pub what: String,
    /// The measured CPU.
    pub cpu: u32,
    /// Events, or wake-ups that waited.
    pub count: u64,
    /// Time of the CPU taken, or of wake-ups waited, ns.
    pub ns: u64,
    /// The part of all the latency of that CPU's wake-ups, for a step; of all time taken there by
    /// events, for what ran.
    pub share: f64,
}

/// One thing seen before it has a mechanism.
#[derive(Debug, Clone, PartialEq)]
struct Cost {
    seen: Seen,
    /// Best first.
    ids: Vec<String>,
    /// What ran; `None` where nothing did.
    class: Option<EventClass>,
    /// Whether it came from another CPU.
    foreign: bool,
}

/// Everything that could be changed against what a run has seen, what it is against dearest first.
pub fn proposals(analysis: &Analysis, findings: &[Finding], catalogue: &EventCatalogue) -> Vec<Proposal> {
    let mut costs = waited(analysis, catalogue);
    costs.extend(blocked(analysis, catalogue));
    costs.extend(ran(analysis, catalogue));
    let mut found: Vec<Proposal> = Vec::new();
    for cost in costs {
        for id in &cost.ids {
            let named = findings.iter().find(|finding| finding.id == *id);
            let Some(finding) = named.filter(|finding| is_open(finding, &cost)) else { continue };
            match found.iter_mut().find(|proposal| proposal.mechanism == *id) {
                Some(known) => known.against.push(cost.seen.clone()),
                None => found.push(proposal(finding, cost.seen.clone())),
            }
        }
    }
    for proposal in &mut found {
        proposal.against.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
    let share = |proposal: &Proposal| proposal.against.first().map_or(0.0, |seen| seen.share);
    found.sort_by(|a, b| share(b).total_cmp(&share(a)));
    found
}

/// Whether a mechanism could be otherwise than it is, and this run speaks for that.
fn is_open(finding: &Finding, cost: &Cost) -> bool {
    let wrong = matches!(finding.state, FindingState::Fixable | FindingState::Boot);
    wrong || speaks(finding, cost.class, cost.foreign)
}

/// The command of ours that sets a mechanism, or that says what the next boot needs for it.
pub(crate) fn apply_command(finding: &Finding) -> String {
    if finding.state == FindingState::Boot {
        return format!("stillcore isolate plan --cpus {}", finding.cpus);
    }
    let asked = finding.optional || finding.risky || finding.state == FindingState::Ok;
    let with = if asked { format!(" {}", option_for(finding)) } else { String::new() };
    format!("stillcore isolate apply --cpus {}{with}", finding.cpus)
}

fn proposal(finding: &Finding, seen: Seen) -> Proposal {
    let contested = finding.state == FindingState::Ok;
    let now = finding.state != FindingState::Boot;
    Proposal {
        mechanism: finding.id.clone(),
        state: finding.state,
        now: finding.effective.clone().or_else(|| finding.have.clone()),
        remedy: if contested { finding.otherwise.clone() } else { finding.remedy.clone() },
        apply: now.then(|| apply_command(finding)),
        cost: finding.cost.clone(),
        choice: finding.optional || contested,
        risky: finding.risky,
        against: vec![seen],
    }
}

/// Steps of wake-ups that waited for another CPU, pooled over the windows of each measured CPU.
fn waited(analysis: &Analysis, catalogue: &EventCatalogue) -> Vec<Cost> {
    let mut all = Vec::new();
    for cpu in analysis.paths.iter().map(|path| path.cpu).collect::<Cpus>().iter() {
        let ours = |path: &&PathSection| path.cpu == cpu && path.probe != ProbeKind::Noise;
        let paths: Vec<_> = analysis.paths.iter().filter(ours).collect();
        let total_ns: u64 = paths.iter().map(|path| path.total_ns).fold(0, u64::saturating_add);
        let mut steps = BTreeMap::<Step, (u64, u64, Cpus)>::new();
        for (step, on, count, ns) in paths.iter().flat_map(|path| elsewhere(path)) {
            let sum = steps.entry(step).or_default();
            (sum.0, sum.1) = (sum.0 + count, sum.1 + ns);
            sum.2.0.insert(on);
        }
        for (step, (count, ns, on)) in steps.into_iter().filter(|(_, sum)| sum.1 > 0) {
            let share = ns as f64 / total_ns.max(1) as f64;
            let what = describe(step, cpu, &on, count, ns, share);
            let ids = catalogue.steps.get(&name_in_files(step)).cloned().unwrap_or_default();
            all.push(Cost { seen: Seen { what, cpu, count, ns, share }, ids, class: None, foreign: true });
        }
    }
    all
}

/// What wake-ups waited for though nothing else ran, where a mechanism is against it, pooled over
/// the windows of each measured CPU.
fn blocked(analysis: &Analysis, catalogue: &EventCatalogue) -> Vec<Cost> {
    let mut sums = BTreeMap::<(u32, Blocking), (u64, u64)>::new();
    let mut whole = BTreeMap::<u32, u64>::new();
    for path in analysis.paths.iter().filter(|path| path.probe != ProbeKind::Noise) {
        *whole.entry(path.cpu).or_default() += path.total_ns;
        for (one, blocking) in path.boxes.iter().filter_map(|one| Some((one, one.blocking?))) {
            let sum = sums.entry((path.cpu, blocking)).or_default();
            *sum = (sum.0 + one.count, sum.1 + one.ns);
        }
    }
    let cost = |((cpu, blocking), (count, ns)): ((u32, Blocking), (u64, u64))| {
        let ids = catalogue.blockings.get(&name_in_files(blocking))?.clone();
        let share = ns as f64 / whole[&cpu].max(1) as f64;
        let what = format!(
            "{} of CPU {cpu} held up by {}: {}, {} of the latency there",
            format::plural(count, "wake-up"),
            blocking.words(),
            format::ns(ns as i64),
            format::share(share)
        );
        Some(Cost { seen: Seen { what, cpu, count, ns, share }, ids, class: None, foreign: false })
    };
    sums.into_iter().filter_map(cost).collect()
}

/// The steps of a window that were another CPU's: which, whose, how often, how long. So is the way
/// of the IPI where a timer that expired on another CPU needed it; in a graph messages need IPIs,
/// too, and the sum of a window does not keep them apart.
fn elsewhere(path: &PathSection) -> impl Iterator<Item = (Step, u32, u64, u64)> {
    let timer = |one: &&PathBox| matches!(one.step, Step::TimerLate | Step::TimerHandler);
    let from = path.boxes.iter().filter(timer).map(|one| one.cpu).find(|cpu| *cpu != path.cpu);
    let from = from.filter(|_| path.probe != ProbeKind::Graph);
    let steps = path.boxes.iter().filter(|one| one.class.is_none() && one.blocking.is_none());
    steps.filter_map(move |one| match one.step {
        Step::IpiInFlight => Some((one.step, from?, one.count, one.ns)),
        step => (one.cpu != path.cpu).then_some((step, one.cpu, one.count, one.ns)),
    })
}

/// The name of a step or of a blocking in files, by which the catalogue knows it.
pub(crate) fn name_in_files(of: impl Serialize) -> String {
    serde_json::to_value(of).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

fn describe(step: Step, cpu: u32, on: &Cpus, count: u64, ns: u64, share: f64) -> String {
    let waited = match step {
        Step::TimerLate => "the timer expired",
        Step::TimerHandler => "the timer's handler had asked for the wake-up",
        Step::IpiInFlight => "its IPI had arrived",
        _ => "the wake-up was on its way",
    };
    format!(
        "{} of CPU {cpu} waited on {} until {waited}: {}, {} of the latency there",
        format::plural(count, "wake-up"),
        if on.len() == 1 { format!("CPU {on}") } else { format!("CPUs {on}") },
        format::ns(ns as i64),
        format::share(share)
    )
}

/// What ran on the measured CPUs, pooled over windows by class, label and function that asked.
fn ran(analysis: &Analysis, catalogue: &EventCatalogue) -> Vec<Cost> {
    type Kind<'a> = (u32, EventClass, &'a str, Option<&'a str>, bool);
    let mut kinds = BTreeMap::<Kind, (u64, u64, Option<&SourceText>)>::new();
    let mut whole = BTreeMap::<u32, u64>::new();
    for (cpu, row) in analysis.attribution.iter().flat_map(|w| w.rows.iter().map(move |row| (w.cpu, row))) {
        if row.class == EventClass::SelfCaused {
            continue;
        }
        *whole.entry(cpu).or_default() += row.net_ns;
        if !was_in_the_way(analysis, cpu, row) {
            continue;
        }
        let site = row.source.as_ref().and_then(|source| source.site.as_deref());
        let sum = kinds.entry((cpu, row.class, row.label.as_str(), site, foreign(row, cpu))).or_default();
        *sum = (sum.0 + row.count, sum.1 + row.net_ns, sum.2.or(row.source.as_ref()));
    }
    let mut all = Vec::new();
    for ((cpu, class, label, site, foreign), (count, ns, source)) in kinds {
        let share = ns as f64 / whole[&cpu].max(1) as f64;
        let asked = site.map(|site| format!(" asked for by {site}")).unwrap_or_default();
        let what = format!(
            "{} x {class} {label}{asked} on CPU {cpu}: {}, {} of the time taken there",
            format::count(count),
            format::ns(ns as i64),
            format::share(share)
        );
        let ids = catalogue.classes.get(&class).map(|entry| label_of(entry, label, source).to_vec());
        all.push(Cost {
            seen: Seen { what, cpu, count, ns, share },
            ids: ids.unwrap_or_default(),
            class: Some(class),
            foreign,
        });
    }
    all
}

/// Whether a task that ran stood between a sample and its end; one that the probe had preempted
/// delayed nobody. What interrupts takes time from whatever runs.
fn was_in_the_way(analysis: &Analysis, cpu: u32, row: &AttributedRow) -> bool {
    let mut paths = analysis.paths.iter().filter(|path| path.cpu == cpu && !path.boxes.is_empty()).peekable();
    if row.class != EventClass::Switch || paths.peek().is_none() {
        return true;
    }
    let is_it = |one: &PathBox| one.class == Some(row.class) && one.label.as_ref() == Some(&row.label);
    paths.any(|path| path.boxes.iter().any(is_it))
}

fn foreign(row: &AttributedRow, cpu: u32) -> bool {
    row.source.as_ref().is_some_and(|source| source.cpu != cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn part(step: Step, cpu: u32, ns: u64) -> PathBox {
        fixture::part(step, cpu, ns, false)
    }

    /// An analysis in which nothing was seen but a wake-up of CPU 2 that spent its time so.
    fn late(boxes: Vec<PathBox>) -> Analysis {
        let mut analysis = fixture::document().analysis;
        analysis.attribution.clear();
        let total_ns = boxes.iter().map(|one| one.ns).fold(0, u64::saturating_add);
        let phase = "disturbed".to_owned();
        analysis.paths = vec![PathSection {
            phase,
            probe: ProbeKind::Wakeup,
            cpu: 2,
            thread: 0,
            samples: 1,
            total_ns,
            boxes,
            others: Vec::new(),
            worst: Vec::new(),
            bound: None,
        }];
        analysis
    }

    /// `timer_migration` as the audit finds it where it is 1.
    fn migration() -> Finding {
        let mut finding = fixture::document().findings.remove(0);
        finding.id = "timer_migration".to_owned();
        finding.state = FindingState::Ok;
        finding.have = Some("1".to_owned());
        finding.otherwise = Some("echo 0 > /proc/sys/kernel/timer_migration".to_owned());
        finding
    }

    fn of(analysis: &Analysis, findings: &[Finding]) -> Vec<Proposal> {
        proposals(analysis, findings, &EventCatalogue::embedded().unwrap())
    }

    #[test]
    fn a_timer_that_expired_elsewhere_is_answered_by_timer_migration() {
        let analysis = late(vec![part(Step::TimerLate, 0, 900), part(Step::Switch, 2, 100)]);
        let found = of(&analysis, &[migration()]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].mechanism.as_str(), found[0].now.as_deref()), ("timer_migration", Some("1")));
        assert_eq!(found[0].remedy.as_deref(), Some("echo 0 > /proc/sys/kernel/timer_migration"));
        assert!(found[0].apply.as_deref().unwrap().ends_with("--with timer_migration"), "{found:?}");
        assert!((found[0].against[0].share - 0.9).abs() < 1e-9, "{found:?}");
    }

    /// The IPI would not have been needed, so its way counts, too; that of another wake-up does
    /// not.
    #[test]
    fn the_way_of_an_ipi_counts_where_the_timer_expired_elsewhere() {
        let steps = |timer| {
            vec![
                part(Step::TimerLate, timer, 100),
                part(Step::IpiInFlight, 2, 700),
                part(Step::Switch, 2, 200),
            ]
        };
        let found = of(&late(steps(0)), &[migration()]);
        let shares: Vec<f64> = found[0].against.iter().map(|seen| (seen.share * 10.0).round()).collect();
        assert_eq!(shares, [7.0, 1.0], "{found:?}");
        assert!(found[0].against[0].what.contains("until its IPI had arrived"), "{found:?}");
        assert_eq!(of(&late(steps(2)), &[migration()]), []);
        let mut graph = late(steps(0));
        graph.paths.iter_mut().for_each(|path| path.probe = ProbeKind::Graph);
        assert_eq!(of(&graph, &[migration()])[0].against.len(), 1);
    }

    #[test]
    fn where_it_expired_at_home_or_the_setting_is_there_nothing_is_proposed() {
        let home = late(vec![part(Step::TimerLate, 2, 900)]);
        assert_eq!(of(&home, &[migration()]), []);
        let away = late(vec![part(Step::TimerLate, 0, 900)]);
        assert_eq!(of(&away, &[Finding { otherwise: None, ..migration() }]), []);
    }

    #[test]
    fn a_contested_setting_is_proposed_against_timers_of_others_alone() {
        let mut analysis = late(vec![part(Step::Switch, 2, 1)]);
        analysis.attribution = fixture::document().analysis.attribution;
        let window = analysis.attribution.first_mut().expect("the fixture has sources");
        let cpu = window.cpu;
        let mut row = window.rows[0].clone();
        row.class = EventClass::TimerHrtimer;
        row.label = "hrtimer_wakeup".to_owned();
        window.rows = vec![row];
        analysis.attribution.truncate(1);
        for (from, expected) in [(cpu, 0), (cpu + 1, 1)] {
            analysis.attribution[0].rows[0].source = Some(SourceText::new(from, "x", None));
            assert_eq!(of(&analysis, &[migration()]).len(), expected, "armed on CPU {from}");
        }
    }

    #[test]
    fn an_exit_from_idle_is_answered_by_closing_idle_states() {
        let exit = PathBox { blocking: Some(Blocking::IdleExit), ..part(Step::TimerLate, 2, 900) };
        let analysis = late(vec![exit, part(Step::Switch, 2, 100)]);
        let open = Finding { id: "idle-states".to_owned(), state: FindingState::Fixable, ..migration() };
        let found = of(&analysis, &[migration(), open]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].mechanism, "idle-states");
        assert!((found[0].against[0].share - 0.9).abs() < 1e-9, "{found:?}");
        assert!(found[0].against[0].what.contains("held up by idle exit"), "{found:?}");
    }

    #[test]
    fn the_catalogue_names_steps_as_the_analysis_does() {
        let catalogue = EventCatalogue::embedded().unwrap();
        assert!(!catalogue.steps.is_empty());
        for name in catalogue.blockings.keys() {
            let blocking: Blocking =
                serde_json::from_value(name.as_str().into()).unwrap_or_else(|_| panic!("{name}"));
            assert_eq!(&name_in_files(blocking), name);
        }
        for name in catalogue.steps.keys() {
            let step: Step =
                serde_json::from_value(name.as_str().into()).unwrap_or_else(|_| panic!("{name}"));
            assert_eq!(&name_in_files(step), name);
        }
    }
}
