//! The opening of wake-up latency and noise, alone or together as `assess` measures them.

use analysis::distribution::Distribution;
use model::sample::ProbeKind;
use stats::sampled::Quantile;

use super::{Card, Cause, Opening, PhaseValue, Value};
use crate::distribution::{maximum, quantile, quantiles};
use crate::{Document, Known, Verdict, format, verdicts};

/// The quantile of the second card, where the samples reach it.
const WANTED: f64 = 0.999;
/// Effective samples that must lie above a quantile.
const ABOVE: f64 = 10.0;

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let windows = |probe| -> Vec<&Distribution> {
        document.analysis.distributions.iter().filter(|one| one.probe == probe).collect()
    };
    let (wakeups, noise) = (windows(ProbeKind::Wakeup), windows(ProbeKind::Noise));
    let worst = verdicts(document).into_iter().next()?;
    let mut cards = Vec::new();
    if !wakeups.is_empty() {
        cards.push(largest(document, &wakeups, "Wake-up latency, observed maximum"));
        cards.push(high_quantile(document, &wakeups));
    }
    if noise.is_empty() {
        cards.push(missed(document, &wakeups));
    } else {
        cards.push(stolen(document, &noise));
        if wakeups.is_empty() {
            cards.push(largest(document, &noise, "Longest gap"));
            cards.push(gaps(document, &noise));
        }
    }
    Some(Opening { sentence: sentence(&worst, &noise), cause: Some(cause(&worst)), cards })
}

fn sentence(worst: &Verdict, noise: &[&Distribution]) -> String {
    let value = format::ns(worst.value_ns);
    if worst.probe == ProbeKind::Wakeup {
        return format!("CPU {} woke its task up to {value} late.", worst.cpu);
    }
    // Of the same CPU: another may have lost more in shorter gaps.
    let ours = noise.iter().filter(|one| one.cpu == worst.cpu);
    let share = ours.filter_map(|one| Some(one.stolen.as_ref()?.share)).fold(0.0, f64::max);
    format!(
        "CPU {} stopped a busy loop for up to {value} and took up to {} of its time.",
        worst.cpu,
        format::share(share)
    )
}

fn cause(worst: &Verdict) -> Cause {
    let against = worst.against.first().map(|line| line.split("  # ").next().unwrap_or(line).to_owned());
    Cause {
        words: worst.cause_words(),
        known: worst.confidence,
        against: against.filter(|_| worst.confidence != Known::Unknown),
    }
}

/// Of each phase the largest value of its windows.
fn by_phase(
    document: &Document,
    windows: &[&Distribution],
    of: impl Fn(&Distribution) -> Option<f64>,
    words: impl Fn(f64) -> String,
) -> Vec<PhaseValue> {
    let phases = document.run.phases.iter().filter(|p| windows.iter().any(|one| one.phase == p.name));
    let value = |name: &str| {
        windows.iter().filter(|one| one.phase == name).filter_map(|one| of(one)).reduce(f64::max)
    };
    let all: Vec<PhaseValue> =
        phases.map(|p| PhaseValue { phase: p.name.clone(), value: value(&p.name).map(&words) }).collect();
    if all.len() > 1 { all } else { Vec::new() }
}

fn total_n(windows: &[&Distribution]) -> u64 {
    windows.iter().map(|one| one.n).fold(0, u64::saturating_add)
}

fn largest(document: &Document, windows: &[&Distribution], what: &str) -> Card {
    let at = windows.iter().filter_map(|one| Some((maximum(one)?, *one))).max_by_key(|(max_ns, _)| *max_ns);
    let Some((max_ns, window)) = at else { return Card::needing(what, "no sample was measured") };
    let ns = |one: &Distribution| maximum(one).map(|ns| ns as f64);
    Card {
        what: what.to_owned(),
        value: Value::Known(format::ns(max_ns)),
        note: format!("on CPU {}; n = {}", window.cpu, format::count(total_n(windows))),
        phases: by_phase(document, windows, ns, format::ns_f),
    }
}

/// p99.9, or the highest quantile that every window can give, or what it would take.
fn high_quantile(document: &Document, windows: &[&Distribution]) -> Card {
    let mut known: Vec<f64> = windows.iter().flat_map(|one| quantiles(one)).map(|one| one.p).collect();
    known.retain(|p| *p <= WANTED + 1e-9 && windows.iter().all(|one| quantile(one, *p).is_some()));
    let Some(p) = known.into_iter().reduce(f64::max) else {
        let n = windows.iter().map(|one| one.n).min().unwrap_or(0);
        return Card::needing(
            format!("Wake-up latency, {}", format::quantile_name(WANTED)),
            format!("needs {} independent samples; {} taken", format::count(needed()), format::count(n)),
        );
    };
    let largest = windows.iter().filter_map(|one| Some((value_of(one, p)?, *one)));
    let largest = largest.max_by_key(|(quantile, _)| quantile.value_ns);
    let Some((worst, window)) = largest else {
        return Card::needing("Wake-up latency, quantiles", "no sample was measured");
    };
    let more = if p < WANTED - 1e-9 {
        format!("; {} needs {} samples", format::quantile_name(WANTED), format::count(needed()))
    } else {
        String::new()
    };
    let note = match worst.interval_ns {
        Some([low, high]) => {
            format!("on CPU {}; 95 %: {} to {}{more}", window.cpu, format::ns(low), format::ns(high))
        }
        None => format!("on CPU {}; n = {}{more}", window.cpu, format::count(window.n)),
    };
    Card {
        what: format!("Wake-up latency, {}", format::quantile_name(p)),
        value: Value::Known(format::ns(worst.value_ns.unwrap_or(0))),
        note,
        phases: by_phase(document, windows, |one| quantile(one, p).map(|ns| ns as f64), format::ns_f),
    }
}

/// Independent samples that the wanted quantile needs.
fn needed() -> u64 {
    (ABOVE / (1.0 - WANTED)).round() as u64
}

fn value_of(window: &Distribution, p: f64) -> Option<&Quantile> {
    quantiles(window).iter().find(|one| (one.p - p).abs() < 1e-9 && one.value_ns.is_some())
}

fn stolen(document: &Document, noise: &[&Distribution]) -> Card {
    let what = "CPU time taken from a busy loop";
    let share = |one: &Distribution| one.stolen.as_ref().map(|stolen| stolen.share);
    let worst = noise.iter().filter_map(|one| Some((share(one)?, *one))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((most, window)) = worst else { return Card::needing(what, "no gap was measured") };
    let threshold = window.stolen.as_ref().map_or(0, |stolen| stolen.threshold_ns);
    Card {
        what: what.to_owned(),
        value: Value::Known(format::share(most)),
        note: format!(
            "on CPU {}; in gaps of {} and more, {} of them",
            window.cpu,
            format::ns(threshold as i64),
            format::count(window.n)
        ),
        phases: by_phase(document, noise, share, format::share),
    }
}

fn gaps(document: &Document, noise: &[&Distribution]) -> Card {
    let rate =
        |one: &Distribution| (one.duration_ns > 0).then(|| one.n as f64 / (one.duration_ns as f64 / 1e9));
    let most = noise.iter().filter_map(|one| Some((rate(one)?, one.cpu))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((most, cpu)) = most else { return Card::needing("Gaps", "nothing was measured") };
    Card {
        what: "Gaps of a busy loop".to_owned(),
        value: Value::Known(format!("{}/s", format::rate(most))),
        note: format!("on CPU {cpu}; {} in all", format::count(total_n(noise))),
        phases: by_phase(document, noise, rate, |per_s| format!("{}/s", format::rate(per_s))),
    }
}

/// Releases that passed unserved, of all that were due.
fn missed(document: &Document, wakeups: &[&Distribution]) -> Card {
    let missed = wakeups.iter().map(|one| one.missed).fold(0, u64::saturating_add);
    let due = total_n(wakeups).saturating_add(missed);
    let note = format!("of {} due; a missed one is charged with its lateness", format::count(due));
    Card::of_losses(document, "Releases missed", missed, note)
}
