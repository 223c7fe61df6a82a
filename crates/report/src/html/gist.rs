//! What stands beside the heading of a folded section: its conclusion in a few words, so that one
//! knows whether to open it.

use analysis::compare::Verdict;
use model::sample::ProbeKind;
use model::{Cpus, EventClass, FindingState};

use crate::guarantee::GuaranteeVerdict;
use crate::{Document, format, heading, outcome};

/// The gist of a section; none where its title says enough.
pub(super) fn gist(document: &Document, section: &str) -> Option<String> {
    match section {
        "advice" => advice(document),
        "comparison" => comparison(document),
        "guarantee" => Some(guarantee(document)),
        "losses" => losses(document),
        "findings" => findings(document),
        "disturbance" => disturbance(document),
        "wakeup" => samples(document, ProbeKind::Wakeup, "wake-up"),
        "noise" => samples(document, ProbeKind::Noise, "gap"),
        "sources" => sources(document),
        "paths" => paths(document),
        "machine" => Some(machine(document)),
        "observer" => observer(document),
        _ => None,
    }
}

fn samples(document: &Document, probe: ProbeKind, noun: &str) -> Option<String> {
    let windows = document.analysis.distributions.iter().filter(|one| one.probe == probe);
    let n = windows.clone().map(|one| one.n).fold(0, u64::saturating_add);
    let cpus: Cpus = windows.clone().map(|one| one.cpu).collect();
    (!cpus.is_empty()).then(|| {
        let n = format::count(n);
        let phases =
            document.run.phases.iter().filter(|phase| windows.clone().any(|one| one.phase == phase.name));
        format!("{n} {noun}s on {}, {}", heading::cpus(&cpus), format::plural(phases.count() as u64, "phase"))
    })
}

/// The classes of events with the most time.
fn sources(document: &Document) -> Option<String> {
    let mut sums: Vec<(EventClass, u64)> = Vec::new();
    let rows = document.analysis.attribution.iter().flat_map(|window| &window.rows);
    for row in rows.filter(|row| row.class != EventClass::SelfCaused) {
        match sums.iter_mut().find(|(class, _)| *class == row.class) {
            Some((_, ns)) => *ns += row.net_ns,
            None => sums.push((row.class, row.net_ns)),
        }
    }
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let named: Vec<&str> = sums.iter().take(3).map(|(class, _)| class.name()).collect();
    (!named.is_empty()).then(|| format!("most time: {}", named.join(", ")))
}

fn paths(document: &Document) -> Option<String> {
    let wakeups = document.analysis.paths.iter().filter(|one| one.probe != ProbeKind::Noise);
    let n = wakeups.map(|one| one.samples).fold(0, u64::saturating_add);
    (n > 0).then(|| format!("{} wake-ups taken apart", format::count(n)))
}

fn machine(document: &Document) -> String {
    let kernel = &document.machine.machine.kernel;
    format!("{} {}", kernel.release, kernel.arch)
}

fn observer(document: &Document) -> Option<String> {
    let event_ns = document.run.observer.trace_event_ns?;
    Some(format!("an event costs {}", format::ns_f(event_ns)))
}

fn advice(document: &Document) -> Option<String> {
    let first = document.advice.first()?;
    Some(match document.advice.len() {
        1 => first.what.clone(),
        n => format!("{n} items; first: {}", first.what),
    })
}

fn comparison(document: &Document) -> Option<String> {
    let all = &document.analysis.comparisons;
    let count = |verdict| all.iter().filter(|one| one.verdict == verdict).count();
    let [worse, better, open, withheld] =
        [Verdict::Worse, Verdict::Better, Verdict::CannotTell, Verdict::Withheld].map(count);
    (!all.is_empty()).then(|| {
        format!(
            "{worse} worse, {better} better, {open} that this run cannot distinguish, {withheld} withheld, of {}",
            all.len()
        )
    })
}

fn guarantee(document: &Document) -> String {
    let words = match document.guarantee.verdict {
        GuaranteeVerdict::Holds => "the example task set meets its deadlines under the observed jitter",
        GuaranteeVerdict::Fails => "the example task set can miss deadlines under the observed jitter",
        GuaranteeVerdict::Withheld => "withheld",
    };
    words.to_owned()
}

fn losses(document: &Document) -> Option<String> {
    let lost = crate::conditions::conditions(document).into_iter().find(|one| one.name == "lost")?;
    Some(lost.text)
}

fn findings(document: &Document) -> Option<String> {
    let open = document.findings.iter().filter(|finding| outcome::is_settable(finding)).count();
    let unknown = document.findings.iter().filter(|one| one.state == FindingState::Unknown).count();
    (!document.findings.is_empty()).then(|| {
        format!(
            "{} not set, {unknown} unknown, of {}",
            format::plural(open as u64, "setting"),
            document.findings.len()
        )
    })
}

fn disturbance(document: &Document) -> Option<String> {
    let names: Vec<&str> = document.run.stressors.iter().map(|one| one.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
