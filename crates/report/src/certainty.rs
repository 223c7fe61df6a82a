//! How sure the statistics of a window are, in words: effective numbers, intervals, rule of three.

use analysis::distribution::Distribution;
use model::sample::ProbeKind;
use stats::sampled::Exceedance;

use crate::distribution::quantiles;
use crate::precision::time_with;
use crate::{Document, format};

/// Upper limit of the windows listed, those of releases and of gaps together.
const WINDOWS: usize = 8;

/// The windows, in their order. Where the user asks for deadlines, those with few samples, too.
pub(crate) fn windows(document: &Document) -> Vec<&Distribution> {
    let few = !document.deadlines_ns.is_empty();
    let sampled = |d: &&Distribution| {
        matches!(d.probe, ProbeKind::Wakeup | ProbeKind::Noise | ProbeKind::Periodic)
            && (d.dependence.is_some() || few && d.n > 0)
    };
    document.analysis.distributions.iter().filter(sampled).take(WINDOWS).collect()
}

/// Which window it is.
pub(crate) fn window(d: &Distribution) -> String {
    let thread = if d.thread > 0 { format!(", thread {}", d.thread) } else { String::new() };
    format!("{}, phase {}, CPU {}{thread}", d.probe.name(), d.phase, d.cpu)
}

/// What its samples are worth.
pub(crate) fn dependence(d: &Distribution) -> String {
    let Some(found) = &d.dependence else { return "too few samples to say".to_owned() };
    // Missed releases are charged, and are among them.
    let n = format::count((found.n_effective * found.tau).round() as u64);
    let worth = if found.resolved {
        format!(
            "{n} samples are worth {} independent ones (autocorrelation time {} samples)",
            format::count(found.n_effective.round() as u64),
            format::short((found.tau * 10.0).round() / 10.0)
        )
    } else {
        format!(
            "{n} samples depend on each other for as long as the window: worth {} independent ones at the most",
            format::count(found.n_effective.round() as u64)
        )
    };
    let tail = found.extremal.map_or_else(String::new, |tail| {
        format!("; above {} in clusters of {:.1}", format::ns(tail.threshold_ns), 1.0 / tail.theta)
    });
    format!(
        "{worth}{tail}; intervals by blocks of {} (Politis-White {})",
        format::ns(found.block_ns as i64),
        format::ns_f(found.politis_white * length_ns(d) / d.n.max(1) as f64)
    )
}

fn length_ns(d: &Distribution) -> f64 {
    d.duration_ns as f64
}

/// Its quantiles with their intervals; none where none has one.
pub(crate) fn intervals(d: &Distribution) -> Option<String> {
    let estimates: Vec<String> = quantiles(d)
        .iter()
        .filter_map(|quantile| {
            let ([low, high], value) = (quantile.interval_ns?, quantile.value_ns?);
            let name = format::quantile_name(quantile.p);
            Some(format!("{name} {}", time_with(value as f64, [low as f64, high as f64])))
        })
        .collect();
    let short = quantiles(d).iter().find(|quantile| quantile.value_ns.is_none());
    let short = short.map(|quantile| {
        format!("{} is not estimable from n = {}", format::quantile_name(quantile.p), format::count(d.n))
    });
    let all: Vec<String> = estimates.into_iter().chain(short).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The answer to each deadline that the user asked for, one sentence each.
pub(crate) fn deadlines(document: &Document, d: &Distribution) -> Vec<String> {
    let counted = |limit_ns: &i64| d.exceedances.iter().find(|one| one.threshold_ns == *limit_ns);
    let sentence = |limit_ns: &i64| match counted(limit_ns) {
        Some(one) => exceedance(one),
        None => format!("at or above {}: not known, samples as small are not stored", format::ns(*limit_ns)),
    };
    document.deadlines_ns.iter().map(sentence).collect()
}

/// Why no deadline has an answer; none where one has, or none was asked for.
pub(crate) fn no_deadline(document: &Document) -> Option<String> {
    let unanswered = !document.deadlines_ns.is_empty() && windows(document).is_empty();
    unanswered.then(|| {
        "--deadline counts late releases of measure wakeup, periodic and assess, and long gaps of measure spin: this run has neither"
            .to_owned()
    })
}

/// A deadline in words: `at or above 150 us: 3 of 50,000, 6e-5 (…); 1.2 an hour (…)`.
pub fn exceedance(one: &Exceedance) -> String {
    let limit = format::ns(one.threshold_ns);
    if one.count == 0 {
        return format!(
            "at or above {limit}: none, which is less than {} of them and less than {} an hour with 95 % (rule of three)",
            format::share_up(one.interval[1]),
            hourly(one.per_hour_interval[1], true)
        );
    }
    format!(
        "at or above {limit}: {} ({} to {} of them with 95 %), {} an hour ({} to {})",
        format::plural(one.count, "time"),
        format::share(one.interval[0]),
        format::share_up(one.interval[1]),
        hourly(one.per_hour, false),
        hourly(one.per_hour_interval[0], false),
        hourly(one.per_hour_interval[1], true)
    )
}

/// Two digits of a number an hour; a bound is rounded up, so that what is printed still is one.
fn hourly(value: f64, up: bool) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let step = 10f64.powf(value.log10().floor() - 1.0);
    let digits = if up { (value / step - 1e-9).ceil() } else { (value / step).round() };
    let rounded = digits * step;
    if rounded >= 1000.0 { format::count(rounded.round() as u64) } else { format::short(rounded) }
}
