//! What is said of samples over time, a sentence each: periods and who has them, changes, drift.
//! The same for terminal and page.

use analysis::time::{Change, FoundIn, OwnPeriod, Periodicity, Suspect, TimeSection};
use model::sample::ProbeKind;
use stats::time::periods::Multiple;

use crate::precision::{Precision, Quantity};
use crate::words::class_title;
use crate::{Document, format};

/// Changes listed one by one.
const CHANGES: usize = 6;

/// A window that has something to say: a period, a change or a drift.
pub(crate) fn has_findings(section: &TimeSection) -> bool {
    !section.periods.is_empty()
        || !section.changes.is_empty()
        || section.drift.as_ref().is_some_and(stats::time::trend::Trend::drifts)
}

/// Which window it is.
pub(crate) fn name(document: &Document, section: &TimeSection) -> String {
    let several = |other: &&TimeSection| {
        (other.cpu, other.probe, &other.phase) == (section.cpu, section.probe, &section.phase)
    };
    let thread = document.analysis.time.iter().filter(several).count() > 1;
    let thread = if thread { format!(", thread {}", section.thread) } else { String::new() };
    format!("CPU {}{thread}, {}, {}", section.cpu, section.probe.name(), section.phase)
}

/// Everything that is said of one window.
pub(crate) fn remarks(document: &Document, section: &TimeSection) -> Vec<String> {
    let trace = document.run.trace.as_ref().is_some_and(|trace| trace.snapshots.is_none());
    let mut sentences: Vec<String> = Vec::new();
    for period in &section.periods {
        sentences.push(format!("{}: {}", every(section, period), who(section, period, trace)));
        sentences.extend(structure(section, period));
    }
    sentences.extend(apart(section));
    if section.periods.is_empty() {
        sentences.push(none_found(section));
    }
    sentences.extend(section.looked.own_ns.iter().map(|own_ns| {
        format!("what seems to come back every {} is the loop's own pausing, and is no one's", about(*own_ns))
    }));
    sentences.extend(changes(section));
    sentences.extend(drift(section));
    sentences
}

/// A period with its interval, as many digits as the interval bears: `3.0000 s +- 0.0003`.
pub(crate) fn period(period_ns: f64, half_width_ns: f64) -> String {
    let (scale, unit) = scale(period_ns);
    let (value, half) = (period_ns / scale, half_width_ns / scale);
    let decimals = if half > 0.0 { (1.0 - half.log10().floor()).clamp(0.0, 7.0) as usize } else { 7 };
    format!("{value:.decimals$} {unit} +- {half:.decimals$}")
}

/// The period of a source.
pub(crate) fn own_period(own: OwnPeriod) -> String {
    period(own.period_ns, own.half_width_ns)
}

/// The same, about.
pub(crate) fn about(period_ns: f64) -> String {
    let (scale, unit) = scale(period_ns);
    let value = period_ns / scale;
    let decimals = (3.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$} {unit}")
}

fn scale(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns >= 1e9 => (1e9, "s"),
        ns if ns >= 1e6 => (1e6, "ms"),
        _ => (1e3, "us"),
    }
}

/// What comes back, how often, how large.
fn every(section: &TimeSection, one: &Periodicity) -> String {
    let every = period(one.period_ns, one.half_width_ns);
    let first = (one.first_ns - section.span_ns[0]) as f64;
    if one.found_in == FoundIn::Values {
        let (height, at) = (format::ns(one.height_ns), about(first.max(0.0)));
        return format!(
            "values go up and down every {every}, by {height}, highest first {at} into the window"
        );
    }
    let what = if one.found_in == FoundIn::LargerSpikes { "large spikes" } else { "spikes" };
    let (seen, turns) = (one.seen, one.turns);
    let height =
        format!("median {}, observed maximum {}", format::ns(one.height_ns), format::ns(one.observed_max_ns));
    if seen * 2 < turns {
        return format!("{what} lie on a grid of {every}, {seen} of its {turns} places taken; {height}");
    }
    format!(
        "{what} every {every}, in {seen} of {turns} turns, the first {} into the window; {height}",
        about(first.max(0.0))
    )
}

/// Who has that period.
fn who(section: &TimeSection, one: &Periodicity, trace: bool) -> String {
    match one.suspects.first() {
        Some(suspect) if one.named => named(section, suspect),
        _ if !trace => format!(
            "without a trace of the whole window nobody can be named (--trace){}",
            aliases(section, one)
        ),
        Some(suspect) => {
            let why = if suspect.same_period && suspect.touched * 5 < suspect.asked * 3 {
                format!(
                    "has that period, and ran in {} of {} of them: at another phase",
                    suspect.touched, suspect.asked
                )
            } else if suspect.touched * 5 < suspect.asked * 3 {
                format!("ran in {} of {} of them", suspect.touched, suspect.asked)
            } else if suspect.touched_between * 2 > suspect.touched {
                "runs as often half a period later".to_owned()
            } else if suspect.asked < 5 {
                "too few of them could be asked".to_owned()
            } else {
                "does not have the period".to_owned()
            };
            format!(
                "no source of the trace is named; the nearest, {}, {why}{}",
                source(suspect),
                aliases(section, one)
            )
        }
        None => format!("no source of the trace ran in them{}", aliases(section, one)),
    }
}

fn named(section: &TimeSection, suspect: &Suspect) -> String {
    let touched = format!("ran in {} of {} of them", suspect.touched, suspect.asked);
    let touched = match suspect.touched_between {
        0 => format!("{touched}, and never half a period later"),
        between => format!("{touched}, and {between} times half a period later"),
    };
    let own = suspect.own_period_ns.map(own_period);
    let own = match own {
        Some(own) if suspect.alias => {
            let step =
                section.looked.step_ns.map_or_else(String::new, |step| format!(" of {}", about(step as f64)));
            format!("; its own period is {own}, which samples{step} see slower (alias)")
        }
        Some(own) if suspect.longest_only => {
            format!("; it has events every {own}, of which these are the longest")
        }
        Some(own) => format!("; by its own events {own}"),
        None => String::new(),
    };
    format!("{}; {touched}{own}", source(suspect))
}

/// A source in words:
/// `work item vmstat_update, asked for by idle on CPU 2 from delayed_work_timer_fn`.
pub(crate) fn source(suspect: &Suspect) -> String {
    let what = format!("{} {}", class_title(suspect.class), suspect.label);
    let Some(by) = &suspect.source else { return what };
    let verb = match suspect.class {
        model::EventClass::Switch => "woken by",
        model::EventClass::Work => "queued by",
        _ => "asked for by",
    };
    let site = by.place().map_or_else(String::new, |site| format!(" from {site}"));
    format!("{what}, {verb} {} on CPU {}{site}", by.who, by.cpu)
}

/// What else would look the same.
fn aliases(section: &TimeSection, one: &Periodicity) -> String {
    let Some(step) = section.looked.step_ns else { return String::new() };
    let like: Vec<String> = one.aliases_ns.iter().take(2).map(|ns| about(*ns)).collect();
    if like.is_empty() {
        return String::new();
    }
    format!(
        ". Samples every {} see sources of {} the same: measure with another period to distinguish them",
        about(step as f64),
        like.join(" or ")
    )
}

/// How a period lies in another one.
fn structure(section: &TimeSection, one: &Periodicity) -> Option<String> {
    let Multiple { of, times } = one.multiple_of?;
    let small = section.periods.get(of)?;
    let between = format::plural(u64::from(times) - 1, "small spike");
    let first = format!(
        "{between} between two large ones: each {times}th of those every {} is large",
        about(small.period_ns)
    );
    let who = |one: &Periodicity| {
        one.suspects.first().filter(|_| one.named).map(|suspect| (suspect.class, suspect.label.clone()))
    };
    Some(match (who(small), who(one)) {
        (Some(a), Some(b)) if a == b => {
            format!("{first}; it is one source, {}, each {times}th time longer", a.1)
        }
        (Some(a), Some(b)) => format!("{first}; they are two sources that go together, {} and {}", a.1, b.1),
        _ => first,
    })
}

/// Periods that have nothing to do with each other.
fn apart(section: &TimeSection) -> Option<String> {
    let alone: Vec<String> = section
        .periods
        .iter()
        .filter(|one| one.multiple_of.is_none() && one.found_in == FoundIn::Spikes)
        .map(|one| about(one.period_ns))
        .collect();
    (alone.len() > 1)
        .then(|| format!("the periods {} do not go together: sources of their own", alone.join(", ")))
}

fn none_found(section: &TimeSection) -> String {
    let looked = &section.looked;
    let what = if section.probe == ProbeKind::Noise { "gap" } else { "spike" };
    let spikes = format!("{} from {} on", format::plural(looked.spikes, what), format::ns(looked.from_ns));
    match looked.between_ns {
        _ if looked.spikes < 5 && !looked.waves => format!("no period can be determined from {spikes}"),
        Some([least, most]) => {
            let also = if looked.waves { ", nor do the values as a whole" } else { "" };
            format!("no period between {} and {} in {spikes}{also}", about(least), about(most))
        }
        None => "the window is too short for any period".to_owned(),
    }
}

fn changes(section: &TimeSection) -> Vec<String> {
    let one = |change: &Change| {
        let at = about((change.t_ns - section.span_ns[0]) as f64);
        let blocks =
            if change.block > 1 { format!(", in blocks of {}", change.block) } else { String::new() };
        format!(
            "the {} changes {at} into the window, from {} to {} (p = {:.3} by permutations{blocks})",
            change.figure,
            format::ns(change.before_ns),
            format::ns(change.after_ns),
            change.p_value
        )
    };
    let mut sentences: Vec<String> = section.changes.iter().take(CHANGES).map(one).collect();
    if section.changes.len() > CHANGES {
        sentences.push(format!("... {} more changes in analysis.json", section.changes.len() - CHANGES));
    }
    sentences
}

fn drift(section: &TimeSection) -> Option<String> {
    let (drift, parts) = (section.drift.as_ref()?, section.windows.as_ref()?);
    let [low, high] = drift.interval_us_per_hour;
    let of = format!("medians of {} parts of {}", drift.n, about(parts.length_ns as f64));
    let interval = [low, high];
    let precision = Precision::of(Some(interval));
    Some(if drift.drifts() {
        let slope = precision.signed(drift.us_per_hour, Quantity::Number);
        let range = precision.signed_range(interval, Quantity::Number);
        format!("drift: the {of} drift by {slope} us an hour (95 %: {range})")
    } else {
        // What is not seen is bounded, and a bound is rounded up.
        let most = format::bound(low.abs().max(high.abs()));
        format!("no drift detected in the {of} (|slope| < {most} us an hour, 95 %)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_the_digits_that_its_interval_bears() {
        assert_eq!(period(3.000_04e9, 0.3e6), "3.00004 s +- 0.00030");
        assert_eq!(period(4.0e6, 2_000.0), "4.0000 ms +- 0.0020");
        assert_eq!(period(812_400.0, 90_000.0), "812 us +- 90");
        assert_eq!((about(3.0e9), about(1_003_344.0)), ("3.000 s".to_owned(), "1.003 ms".to_owned()));
    }
}
