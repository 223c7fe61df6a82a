//! Interference events: rates and cost by class and phase, what ran, and the kernel's own counters
//! beside them.

use analysis::events::WindowEvents;
use minijinja::{Value, context};
use model::EventClass;
use model::sample::ProbeKind;
use serde::Serialize;

use super::windows::{LISTED, list, phases, style};
use super::{chart, value};
use crate::Document;
use crate::pooled::{Pooled, cost_probe, find, pooled};
use crate::svg::{RateRow, StolenRow, rates, stolen};

/// Names of what ran, a class and phase.
const LABELS: usize = 5;
/// Rows of the kernel's counters that agree; those that do not are all shown.
const AGREEING: usize = 12;

/// One class in one probe's windows.
#[derive(Debug, Serialize)]
struct Row {
    class: EventClass,
    cells: Vec<Cell>,
    worst_net_ns_per_s: f64,
    max_ns: u64,
}

#[derive(Debug, Serialize)]
struct Cell {
    count: u64,
    per_s: f64,
    zero_bound_per_s: Option<f64>,
    known: bool,
    /// Some of the windows could not see the class: the count is a lower bound.
    partial: bool,
}

#[derive(Debug, Serialize)]
struct Ran<'a> {
    phase: &'a str,
    style: usize,
    class: EventClass,
    label: String,
    count: u64,
    net_ns: u64,
}

#[derive(Debug, Serialize)]
struct CpuRow {
    cpu: u32,
    /// Count and time; `None` where nothing was counted and the class could not be seen.
    classes: Vec<Option<(u64, u64)>>,
}

pub(super) fn figures(document: &Document) -> Value {
    let names = phases(document);
    let tables: Vec<Value> = [ProbeKind::Noise, ProbeKind::Wakeup]
        .into_iter()
        .filter(|probe| document.analysis.events.iter().any(|window| window.probe == *probe))
        .map(|probe| context! { probe => probe.name(), rows => value(&rows(document, &names, probe)) })
        .collect();
    let probe = cost_probe(&document.analysis);
    let (checks, agreeing_left_out) = cross_checks(document);
    let (per_cpu, classes, unlisted) = per_cpu(document, probe);
    context! {
        tables => tables,
        rates => chart(rates_chart(document, &names, probe)),
        stolen => chart(stolen_chart(document, &names, probe)),
        charted => probe.map(ProbeKind::name),
        ran => value(&ran(document, probe)),
        checks => checks,
        agreeing_left_out => agreeing_left_out,
        per_cpu => value(&per_cpu),
        per_cpu_classes => value(&classes),
        unlisted => list(&unlisted),
        unobservable => unobservable(document),
        gaps => observed(document).any(|class| {
            let rows = document.analysis.events.iter().filter_map(|window| find(window, class));
            rows.clone().any(|row| !row.observable)
        }),
        phases => names,
    }
}

/// Classes that some window could see, or did.
fn observed(document: &Document) -> impl Iterator<Item = EventClass> + '_ {
    EventClass::ALL.iter().copied().filter(|class| {
        let rows = document.analysis.events.iter().filter_map(|window| find(window, *class));
        rows.clone().any(|row| row.observable || row.count > 0)
    })
}

fn unobservable(document: &Document) -> String {
    let seen: Vec<EventClass> = observed(document).collect();
    let not =
        EventClass::ALL.iter().filter(|class| !seen.contains(class) && **class != EventClass::Unexplained);
    not.map(|class| class.name()).collect::<Vec<_>>().join(", ")
}

fn pools(document: &Document, names: &[String], probe: Option<ProbeKind>, class: EventClass) -> Vec<Pooled> {
    names.iter().map(|phase| pooled(&document.analysis, phase, probe, class)).collect()
}

fn rows(document: &Document, names: &[String], probe: ProbeKind) -> Vec<Row> {
    let row = |class| {
        let pools = pools(document, names, Some(probe), class);
        Row {
            class,
            worst_net_ns_per_s: pools.iter().map(Pooled::net_ns_per_s).fold(0.0, f64::max),
            max_ns: pools.iter().map(|pool| pool.max_ns).max().unwrap_or(0),
            cells: pools.iter().map(cell).collect(),
        }
    };
    observed(document).map(row).collect()
}

fn cell(pool: &Pooled) -> Cell {
    Cell {
        count: pool.count,
        per_s: pool.per_s(),
        zero_bound_per_s: pool.zero_bound_per_s(),
        known: pool.count > 0 || pool.observable,
        partial: pool.count > 0 && !pool.observable,
    }
}

/// Interference, the probe's own events left out: they would only show the probe's period.
fn rates_chart(document: &Document, names: &[String], probe: Option<ProbeKind>) -> Option<String> {
    let classes = observed(document).filter(|class| *class != EventClass::SelfCaused);
    let rate = |pool: &Pooled| match pool.zero_bound_per_s() {
        Some(bound) => Some((0.0, Some(bound))),
        None => (pool.count > 0).then(|| (pool.per_s(), None)),
    };
    let row = |class: EventClass| RateRow {
        label: class.name().to_owned(),
        rates: pools(document, names, probe, class).iter().map(rate).collect(),
    };
    rates("er", "Events per CPU and second", names, &classes.map(row).collect::<Vec<_>>())
}

fn stolen_chart(document: &Document, names: &[String], probe: Option<ProbeKind>) -> Option<String> {
    let classes = observed(document).filter(|class| *class != EventClass::SelfCaused);
    let row = |class: EventClass| StolenRow {
        label: class.name().to_owned(),
        ns_per_s: pools(document, names, probe, class).iter().map(Pooled::net_ns_per_s).collect(),
    };
    let mut rows: Vec<StolenRow> =
        classes.map(row).filter(|row| row.ns_per_s.iter().any(|ns| *ns > 0.0)).collect();
    let most = |row: &StolenRow| row.ns_per_s.iter().copied().fold(0.0, f64::max);
    rows.sort_by(|a, b| most(b).total_cmp(&most(a)));
    stolen("es", "Time stolen per CPU and second", names, &rows)
}

fn ran(document: &Document, probe: Option<ProbeKind>) -> Vec<Ran<'_>> {
    let mut ran = Vec::new();
    for phase in &document.run.phases {
        for class in observed(document).filter(|class| *class != EventClass::SelfCaused) {
            let pool = pooled(&document.analysis, &phase.name, probe, class);
            ran.extend(pool.labels.into_iter().take(LABELS).map(|label| Ran {
                phase: &phase.name,
                style: style(document, &phase.name),
                class,
                label: label.label,
                count: label.count,
                net_ns: label.net_ns,
            }));
        }
    }
    ran.sort_by_key(|row| std::cmp::Reverse((row.net_ns, row.count)));
    ran.truncate(30);
    ran
}

/// Every check that fails, and the first that hold.
fn cross_checks(document: &Document) -> (Vec<Value>, usize) {
    let all =
        || document.analysis.events.iter().flat_map(|w| w.cross_checks.iter().map(move |check| (w, check)));
    let agreeing = all().filter(|(_, check)| check.agrees);
    let left_out = agreeing.clone().count().saturating_sub(AGREEING);
    let shown = all().filter(|(_, check)| !check.agrees).chain(agreeing.take(AGREEING));
    let rows = shown.map(|(window, check)| {
        context! {
            phase => window.phase.as_str(), style => style(document, &window.phase), probe => window.probe.name(),
            cpu => window.cpu, row => check.row.as_str(), kernel => check.kernel, traced => check.traced, agrees => check.agrees,
        }
    });
    (rows.collect(), left_out)
}

/// Counts and time by CPU in the disturbed phases, where more than one CPU was measured.
fn per_cpu(document: &Document, probe: Option<ProbeKind>) -> (Vec<CpuRow>, Vec<EventClass>, Vec<u32>) {
    let disturbed: Vec<&str> =
        document.run.phases.iter().filter(|phase| phase.disturbed).map(|phase| phase.name.as_str()).collect();
    let here =
        |window: &&WindowEvents| Some(window.probe) == probe && disturbed.contains(&window.phase.as_str());
    let windows: Vec<&WindowEvents> = document.analysis.events.iter().filter(here).collect();
    let mut cpus: Vec<u32> = windows.iter().map(|window| window.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < 2 {
        return Default::default();
    }
    let sum = |cpu: u32, class: EventClass| {
        let rows = windows.iter().filter(|w| w.cpu == cpu).filter_map(|w| find(w, class));
        rows.fold((0, 0, true), |sum, row| (sum.0 + row.count, sum.1 + row.net_ns, sum.2 && row.observable))
    };
    let came = |class: &EventClass| {
        *class != EventClass::SelfCaused && cpus.iter().any(|&cpu| sum(cpu, *class).0 > 0)
    };
    let classes: Vec<EventClass> = EventClass::ALL.iter().copied().filter(came).collect();
    let total = |cpu: u32| classes.iter().map(|&class| sum(cpu, class).1).fold(0, u64::saturating_add);
    cpus.sort_by_key(|&cpu| (std::cmp::Reverse(total(cpu)), cpu));
    let unlisted = cpus.split_off(cpus.len().min(LISTED));
    let known =
        |(count, net_ns, observable): (u64, u64, bool)| (count > 0 || observable).then_some((count, net_ns));
    let row = |cpu| CpuRow { cpu, classes: classes.iter().map(|&class| known(sum(cpu, class))).collect() };
    (cpus.into_iter().map(row).collect(), classes, unlisted)
}
