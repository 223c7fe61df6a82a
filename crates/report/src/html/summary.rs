//! The head of the page: the answer, the figures that carry it, and the whole run on one time axis.

use analysis::shape::Distribution;
use minijinja::{Value, context};
use model::sample::ProbeKind;

use super::chart;
use super::windows::{of, style, worst_cpus};
use crate::Document;
use crate::distribution::{maximum, quantile};
use crate::svg::{Band, Stretch, timeline};

pub(super) fn figures(document: &Document) -> Value {
    let drawn = |d: &&Distribution| matches!(d.probe, ProbeKind::Wakeup | ProbeKind::Noise);
    let all: Vec<&Distribution> = document.analysis.distributions.iter().filter(drawn).collect();
    let (drawn, undrawn) = worst_cpus(&all, 1);
    let cpu = drawn.first().copied();
    context! {
        wakeup => worst_by_phase(document, ProbeKind::Wakeup, |d| quantile(d, 0.999).map(|ns| ns as f64)),
        noise => worst_by_phase(document, ProbeKind::Noise, |d| d.stolen.as_ref().map(|stolen| stolen.share)),
        duration_ns => all.iter().map(|d| d.duration_ns).sum::<u64>(),
        timeline_cpu => cpu,
        timeline_others => !undrawn.is_empty(),
        timeline => chart(cpu.and_then(|cpu| draw(document, cpu))),
    }
}

/// For each phase the largest of a figure over the measured CPUs, with the largest observed maximum.
fn worst_by_phase(
    document: &Document,
    probe: ProbeKind,
    figure: impl Fn(&Distribution) -> Option<f64>,
) -> Vec<Value> {
    let windows = of(document, probe);
    let phase = |name: &str| {
        let here = || windows.iter().filter(|d| d.phase == name);
        let largest = here().filter_map(|d| figure(d)).reduce(f64::max);
        let max_ns = here().filter_map(|d| maximum(d)).max();
        context! { phase => name, style => style(document, name), figure => largest, max_ns => max_ns }
    };
    let phases = document.run.phases.iter().filter(|p| windows.iter().any(|d| d.phase == p.name));
    phases.map(|p| phase(&p.name)).collect()
}

fn draw(document: &Document, cpu: u32) -> Option<String> {
    let band = |(style, phase): (usize, &model::run::Phase)| Band {
        label: phase.name.clone(),
        style,
        span_ns: [phase.t0_ns, phase.t1_ns],
    };
    let bands: Vec<Band> = document.run.phases.iter().enumerate().map(band).collect();
    let drawn = |d: &&Distribution| d.cpu == cpu && matches!(d.probe, ProbeKind::Wakeup | ProbeKind::Noise);
    let windows = document.analysis.distributions.iter().filter(drawn);
    // Of several threads on one CPU one bears the name.
    let name = |d: &Distribution| match d.probe {
        _ if windows_before(document, d) => "",
        ProbeKind::Wakeup => "wake-up",
        _ => "noise",
    };
    let stretches: Vec<Stretch> = windows
        .map(|d| Stretch {
            label: name(d).to_owned(),
            style: style(document, &d.phase),
            slots: d.timeline.clone(),
        })
        .collect();
    timeline("tl", &format!("Maxima over time on CPU {cpu}"), &bands, &stretches)
}

/// Whether the window has another thread on the same CPU that is drawn before this one.
fn windows_before(document: &Document, d: &Distribution) -> bool {
    let same = |other: &&Distribution| (other.cpu, other.probe, &other.phase) == (d.cpu, d.probe, &d.phase);
    document.analysis.distributions.iter().find(same).is_some_and(|first| first.thread != d.thread)
}
