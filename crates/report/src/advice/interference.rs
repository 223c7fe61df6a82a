//! What ran on the measured CPUs, what it cost, and which mechanisms would remove it.

use analysis::compare::Verdict;
use analysis::distribution::Stolen;
use analysis::overlap::Overlap;
use model::sample::ProbeKind;
use model::{Cpus, EventClass};

use super::remedies::remedies;
use super::{Advice, AdviceKind, Cost, Dearest, Facts};
use crate::format;
use crate::outcome::class_of;
use crate::pooled::{Pooled, by_cost, pooled};

/// How much more time an idle phase must show than the disturbed one to be reported.
const MARGIN: f64 = 1.1;

/// One piece of advice a class that was seen, costliest first.
pub(super) fn interference(facts: &Facts) -> Vec<Advice> {
    let classes = EventClass::ALL.iter().copied();
    let seen = classes.filter(|class| !matches!(class, EventClass::SelfCaused | EventClass::Unexplained));
    let mut all: Vec<Advice> = seen.filter_map(|class| of_class(facts, class)).collect();
    all.extend(unexplained(facts));
    all.sort_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    all
}

/// Tier, then time, then count, in the phase where it was dearest: a core that is not still at rest
/// is not still. Time is stolen from a busy loop, not from a sleeping task.
fn rank(advice: &Advice) -> (u8, f64, f64) {
    let tier = |cost: &Cost| u8::from(cost.probe == ProbeKind::Noise);
    let figures = |cost: &Cost| {
        cost.dearest.as_ref().map_or((cost.net_ns_per_s, cost.per_s), |one| (one.net_ns_per_s, one.per_s))
    };
    advice.cost.as_ref().map_or((0, 0.0, 0.0), |cost| (tier(cost), figures(cost).0, figures(cost).1))
}

/// The phase in which it took most; `figures`: of a phase the events and the ns per second, and the
/// longest, ns.
fn dearest(facts: &Facts, figures: impl Fn(&str) -> (f64, f64, u64)) -> Option<Dearest> {
    let phases = facts.run.phases.iter().map(|phase| {
        let (per_s, net_ns_per_s, max_ns) = figures(&phase.name);
        Dearest { phase: phase.name.clone(), disturbed: phase.disturbed, per_s, net_ns_per_s, max_ns }
    });
    let came = phases.filter(|one| one.per_s > 0.0);
    came.max_by(|a, b| {
        (a.net_ns_per_s, a.per_s).partial_cmp(&(b.net_ns_per_s, b.per_s)).unwrap_or(std::cmp::Ordering::Equal)
    })
}

/// What a reader of the disturbed phase's values would miss.
fn elsewhere(cost: &Cost) -> String {
    let Some(one) =
        cost.dearest.as_ref().filter(|one| !one.disturbed && one.net_ns_per_s > cost.net_ns_per_s * MARGIN)
    else {
        return String::new();
    };
    let longest = (one.max_ns > 0).then(|| format!("longest {}", format::ns(one.max_ns as i64)));
    let price = (cost.probe == ProbeKind::Noise)
        .then(|| format!("{} of every second stolen", format::ns_f(one.net_ns_per_s)));
    let parts: Vec<String> = price.into_iter().chain(longest).collect();
    format!("; most in phase {}: {}", one.phase, parts.join(", "))
}

fn phases(facts: &Facts, disturbed: bool) -> Vec<String> {
    let phases = facts.run.phases.iter().filter(|phase| phase.disturbed == disturbed);
    phases.map(|phase| phase.name.clone()).collect()
}

fn sum(facts: &Facts, probe: ProbeKind, class: EventClass, disturbed: bool) -> Option<Pooled> {
    let parts = phases(facts, disturbed);
    let parts = parts.iter().map(|phase| pooled(facts.analysis, phase, Some(probe), class));
    parts.reduce(merge)
}

/// From the noise windows where the class came there, else from the wake-up windows; a class that
/// came in the idle controls alone is reported as well, since a core that is not still at rest is
/// not still.
fn of_class(facts: &Facts, class: EventClass) -> Option<Advice> {
    let came = |probe, disturbed| sum(facts, probe, class, disturbed).filter(|pool| pool.count > 0);
    let probes = [ProbeKind::Noise, ProbeKind::Wakeup];
    let (probe, any) = probes
        .into_iter()
        .find_map(|probe| Some((probe, came(probe, true)?)))
        .or_else(|| probes.into_iter().find_map(|probe| Some((probe, came(probe, false)?))))?;
    let found = sum(facts, probe, class, true);
    let idle = sum(facts, probe, class, false);
    let overlap = overlap(facts, class);
    let of = |pool: &Option<Pooled>, figure: fn(&Pooled) -> f64| pool.as_ref().map_or(0.0, figure);
    let cost = Cost {
        probe,
        count: found.as_ref().map_or(0, |pool| pool.count),
        per_s: of(&found, Pooled::per_s),
        idle_per_s: of(&idle, Pooled::per_s),
        net_ns_per_s: of(&found, Pooled::net_ns_per_s),
        idle_net_ns_per_s: of(&idle, Pooled::net_ns_per_s),
        max_ns: any.max_ns,
        share_of_largest: overlap.and_then(|overlap| overlap.share_of_largest),
        share_of_all: overlap.map(|overlap| overlap.share),
        ran: any.labels.iter().take(3).map(|l| format!("{} ({})", l.label, format::count(l.count))).collect(),
        dearest: dearest(facts, |phase| {
            let pool = pooled(facts.analysis, phase, Some(probe), class);
            (pool.per_s(), pool.net_ns_per_s(), pool.max_ns)
        }),
    };
    let (steps, no_step) = remedies(facts, class, &any);
    Some(Advice {
        kind: AdviceKind::Interference,
        what: what(facts, class, &cost, [found.as_ref(), idle.as_ref()].map(unseen)),
        class: Some(class),
        cpus: any.cpus,
        cost: Some(cost),
        steps,
        no_step,
        source: format!("analysis.json, events (probe {}, class {class}); trace.dat", probe.name()),
    })
}

/// Nothing was counted, and some window could not see the class.
fn unseen(pool: Option<&Pooled>) -> bool {
    pool.is_none_or(|pool| pool.count == 0 && !pool.observable)
}

/// The overlap of the class with disturbed wake-ups, on the CPU where it touches most of the
/// largest.
fn overlap<'a>(facts: &'a Facts, class: EventClass) -> Option<&'a Overlap> {
    let disturbed = phases(facts, true);
    let overlaps = facts.analysis.overlaps.iter();
    let here =
        overlaps.filter(|o| o.class == class && o.probe == ProbeKind::Wakeup && disturbed.contains(&o.phase));
    here.max_by(|a, b| a.share_of_largest.unwrap_or(0.0).total_cmp(&b.share_of_largest.unwrap_or(0.0)))
}

fn merge(mut a: Pooled, b: Pooled) -> Pooled {
    a.observable &= b.observable;
    a.count += b.count;
    a.net_ns += b.net_ns;
    a.max_ns = a.max_ns.max(b.max_ns);
    a.duration_ns = a.duration_ns.saturating_add(b.duration_ns);
    a.cpus.0.extend(b.cpus.0);
    for label in b.labels {
        match a.labels.iter_mut().find(|known| known.label == label.label) {
            Some(known) => {
                known.count += label.count;
                known.net_ns += label.net_ns;
            }
            None => a.labels.push(label),
        }
    }
    by_cost(&mut a.labels);
    a
}

/// How often, at what cost, and how that compares with idle, by the comparison's verdict where
/// there is one. `unseen`: whether zero means "not observable", disturbed and idle.
fn what(facts: &Facts, class: EventClass, cost: &Cost, unseen: [bool; 2]) -> String {
    let mut verdicts =
        facts.analysis.comparisons.iter().filter(|c| class_of(c) == Some(class)).map(|c| c.verdict);
    let mark = if verdicts.any(|verdict| verdict == Verdict::Worse) { ", distinguished" } else { "" };
    let idle = match (cost.idle_per_s > 0.0, unseen[1]) {
        (true, _) => format::rate(cost.idle_per_s),
        (false, true) => "not observable".to_owned(),
        (false, false) => "none seen".to_owned(),
    };
    let title = crate::class_title(class);
    let name = if title == class.name() { title.to_owned() } else { format!("{title} ({class})") };
    let longest = format::ns(cost.max_ns as i64);
    if cost.count == 0 {
        let when = if unseen[0] {
            "in the idle controls; disturbed it was not observable"
        } else {
            "only in the idle controls"
        };
        return format!("{name}: {when}, {idle}{}, longest {longest}{}", each(facts), elsewhere(cost));
    }
    let price = match (cost.probe, cost.net_ns_per_s > 0.0) {
        (_, false) => "length not recorded".to_owned(),
        (ProbeKind::Noise, true) => {
            format!("{} of every second stolen, longest {longest}", format::ns_f(cost.net_ns_per_s))
        }
        (_, true) => format!("longest {longest}, only while the task slept"),
    };
    // A class that touches the largest latencies no more often than all others is no suspect.
    let overlap = match (cost.share_of_largest, cost.share_of_all) {
        (Some(largest), Some(all)) if largest > all => format!(
            "; touches {} of the largest hundredth of wake-up latencies, {} of all",
            format::share(largest),
            format::share(all)
        ),
        _ => String::new(),
    };
    format!(
        "{name}: {}{} (idle: {idle}{mark}), {price}{overlap}{}",
        format::rate(cost.per_s),
        each(facts),
        elsewhere(cost)
    )
}

/// ` a CPU` where rates are those of several CPUs.
fn each(facts: &Facts) -> &'static str {
    if facts.run.measured_cpus.len() > 1 { " a CPU" } else { "" }
}

/// Gaps of the busy loop that no recorded event overlaps, as a source of their own.
fn unexplained(facts: &Facts) -> Option<Advice> {
    let pool = |disturbed: bool| pool_unexplained(facts, &phases(facts, disturbed));
    let (found, idle) = (pool(true), pool(false));
    if found.count + idle.count == 0 {
        return None;
    }
    let seconds = |pool: &Gaps| (pool.duration_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    let cost = Cost {
        probe: ProbeKind::Noise,
        count: found.count,
        per_s: found.count as f64 / seconds(&found),
        idle_per_s: idle.count as f64 / seconds(&idle),
        net_ns_per_s: found.ns as f64 / seconds(&found),
        idle_net_ns_per_s: idle.ns as f64 / seconds(&idle),
        max_ns: 0,
        share_of_largest: None,
        share_of_all: None,
        ran: Vec::new(),
        dearest: dearest(facts, |phase| {
            let gaps = pool_unexplained(facts, &[phase.to_owned()]);
            (gaps.count as f64 / seconds(&gaps), gaps.ns as f64 / seconds(&gaps), 0)
        }),
    };
    let cpus = found.cpus.iter().chain(idle.cpus.iter()).collect();
    let why =
        facts.catalogue.classes.get(&EventClass::Unexplained).and_then(|remedy| remedy.why_none.clone());
    Some(Advice {
        kind: AdviceKind::Interference,
        what: format!(
            "{} of the busy loop that no recorded event overlaps: {}{} (idle: {}), {} of every second stolen{}{}",
            format::plural(found.count + idle.count, "gap"),
            format::rate(cost.per_s),
            each(facts),
            format::rate(cost.idle_per_s),
            format::ns_f(cost.net_ns_per_s),
            elsewhere(&cost),
            stolen_by_host(facts)
        ),
        class: Some(EventClass::Unexplained),
        cpus,
        cost: Some(cost),
        steps: Vec::new(),
        no_step: why,
        source: "analysis.json, distributions (stolen.unexplained)".to_owned(),
    })
}

#[derive(Debug, Default)]
struct Gaps {
    count: u64,
    ns: u64,
    duration_ns: u64,
    cpus: Cpus,
}

fn pool_unexplained(facts: &Facts, phases: &[String]) -> Gaps {
    let mut sum = Gaps::default();
    for window in facts.analysis.distributions.iter().filter(|d| phases.contains(&d.phase)) {
        if let Some(Stolen { unexplained: Some(gaps), .. }) = &window.stolen {
            sum.count += gaps.count;
            sum.ns += gaps.ns;
            sum.duration_ns = sum.duration_ns.saturating_add(window.duration_ns);
            if gaps.count > 0 {
                sum.cpus.0.insert(window.cpu);
            }
        }
    }
    sum
}

fn stolen_by_host(facts: &Facts) -> String {
    let noise = facts.run.windows.iter().filter(|window| window.probe == ProbeKind::Noise);
    let steal_ns: u64 =
        noise.flat_map(|window| window.steal_ns.values().copied()).fold(0, u64::saturating_add);
    if steal_ns == 0 {
        return String::new();
    }
    format!(
        "; the kernel counted {} of steal time, taken by the hypervisor, in the noise windows",
        format::ns(steal_ns as i64)
    )
}

/// Values that got worse although no recorded event shows the source.
pub(super) fn unattributed(facts: &Facts) -> Vec<Advice> {
    let worse =
        facts.analysis.comparisons.iter().filter(|c| c.verdict == Verdict::Worse && class_of(c).is_none());
    worse
        .map(|comparison| Advice {
            kind: AdviceKind::Unattributed,
            what: comparison.sentence.clone(),
            class: None,
            cpus: Cpus::one(comparison.cpu),
            cost: None,
            steps: Vec::new(),
            no_step: Some(match facts.run.trace {
                Some(_) if !whole(facts) => {
                    "the trace cannot say: it could not see every class in every window".to_owned()
                }
                Some(_) => "the trace has no event for it".to_owned(),
                None => "without a trace nobody can say who it was: run as root".to_owned(),
            }),
            source: format!("analysis.json, comparisons ({})", comparison.figure),
        })
        .collect()
}

/// Whether each class that some window could see was seen by all of them.
fn whole(facts: &Facts) -> bool {
    let rows = || facts.analysis.events.iter().flat_map(|window| &window.classes);
    let some = |class| rows().any(|row| row.class == class && row.observable);
    rows().any(|row| row.observable) && rows().all(|row| row.observable || !some(row.class))
}

/// The good answer, with what it rests on.
pub(super) fn nothing(facts: &Facts) -> Advice {
    let traced_ns: u64 =
        facts.analysis.events.iter().map(|window| window.duration_ns).fold(0, u64::saturating_add);
    let observable =
        facts.analysis.events.iter().flat_map(|window| &window.classes).any(|row| row.observable);
    let seen = if traced_ns > 0 && !observable {
        "the trace could see no class of interference, so it shows only in the samples".to_owned()
    } else if traced_ns > 0 {
        format!(
            "no interference event of an observable class in {} of traced time (95 %: fewer than {}{} in each class)",
            format::span(traced_ns),
            format::rate_up(3e9 / traced_ns as f64),
            each(facts)
        )
    } else {
        "no trace was recorded, so interference shows only in the samples".to_owned()
    };
    Advice {
        kind: AdviceKind::Nothing,
        what: format!("nothing found: {seen}; no audited mechanism is left to set"),
        class: None,
        cpus: facts.run.measured_cpus.clone(),
        cost: None,
        steps: Vec::new(),
        no_step: Some("a longer run tightens the bound".to_owned()),
        source: "analysis.json, events; findings.json".to_owned(),
    }
}
