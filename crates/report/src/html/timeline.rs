//! The run over time: maxima of the samples, and under them what the kernel ran, by class, on the
//! same axis.

use analysis::distribution::Distribution;
use analysis::events::WindowEvents;
use minijinja::{Value, context};
use model::EventClass;
use model::run::Phase;
use model::sample::ProbeKind;

use super::chart;
use super::windows::{CHARTS, list, style, worst_cpus};
use crate::Document;
use crate::pooled::find;
use crate::svg::{Band, ClassRow, ClassWindow, Stretch, classes, timeline};

pub(super) fn figures(document: &Document) -> Value {
    let drawn = |d: &&Distribution| matches!(d.probe, ProbeKind::Wakeup | ProbeKind::Noise);
    let all: Vec<&Distribution> = document.analysis.distributions.iter().filter(drawn).collect();
    let (drawn, undrawn) = worst_cpus(&all, CHARTS);
    let of = |cpu: &u32| {
        context! {
            cpu => cpu,
            maxima => chart(maxima(document, *cpu, "tl")),
            classes => chart(by_class(document, *cpu)),
        }
    };
    let slot_ns = document.analysis.events.iter().map(|window| window.slot_ns).max().filter(|ns| *ns > 0);
    context! {
        cpus => drawn.iter().map(of).collect::<Vec<_>>(),
        undrawn => list(&undrawn),
        slot_ns => slot_ns,
    }
}

/// The phases as bands.
fn bands(document: &Document) -> Vec<Band> {
    let band = |(style, phase): (usize, &Phase)| Band {
        label: phase.name.clone(),
        style,
        span_ns: [phase.t0_ns, phase.t1_ns],
    };
    document.run.phases.iter().enumerate().map(band).collect()
}

/// Maxima of a CPU over time; `key` begins the chart's id.
pub(super) fn maxima(document: &Document, cpu: u32, key: &str) -> Option<String> {
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
    timeline(&format!("{key}{cpu}"), &format!("Maxima over time on CPU {cpu}"), &bands(document), &stretches)
}

/// Whether the window has another thread on the same CPU that is drawn before this one.
fn windows_before(document: &Document, d: &Distribution) -> bool {
    let same = |other: &&Distribution| (other.cpu, other.probe, &other.phase) == (d.cpu, d.probe, &d.phase);
    document.analysis.distributions.iter().find(same).is_some_and(|first| first.thread != d.thread)
}

/// Interference, the probe's own events left out: they would only show the probe's period.
fn by_class(document: &Document, cpu: u32) -> Option<String> {
    let windows: Vec<&WindowEvents> =
        document.analysis.events.iter().filter(|window| window.cpu == cpu && window.thread == 0).collect();
    let rows = EventClass::ALL.iter().filter(|class| **class != EventClass::SelfCaused).map(|class| {
        let came = windows.iter().filter_map(|window| {
            let row = find(window, *class).filter(|row| !row.over_time.is_empty())?;
            let (style, counts) = (style(document, &window.phase), &row.over_time[..]);
            Some(ClassWindow { style, t0_ns: window.t0_ns, slot_ns: window.slot_ns, counts })
        });
        ClassRow { label: class.name().to_owned(), windows: came.collect() }
    });
    let title = format!("Interference over time on CPU {cpu}");
    classes(&format!("ic{cpu}"), &title, &bands(document), &rows.collect::<Vec<_>>())
}
