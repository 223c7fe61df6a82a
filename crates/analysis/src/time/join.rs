//! Who has this period: the sources of a trace against the spikes of the samples, by period, by
//! phase, and by when they ran.
//!
//! A source is the class of its events, what ran, and who requested it. Three things must agree
//! before it is named: its events (or as many of its longest as there are turns: a source whose
//! every tenth event takes long) come back with the period of the spikes; they ran while most
//! spikes were taken; and half a period later, where no spike is due, they did so seldom: a source
//! that always runs explains nothing. A source of the same period that runs at another phase is
//! listed, not named. Of several that agree the one is named that ran longest in the spikes: the
//! timer that woke a task has its period, and took little.
//!
//! A source faster than half the rate of the samples is seen by them at |f − k/Δ|; where that is
//! the period of the spikes and it ran in them, the source is named as what it is and the period of
//! the spikes as its alias.

use super::shape::{OwnPeriod, Suspect};
use attribution::attribute::Confidence;
use attribution::attribute::section::SourceText;
use attribution::attribute::table::{Table, Timed};
use attribution::instants::{Instant, Instants};
use attribution::labels::Labels;
use model::EventClass;
use stats::time::fold::{agreement, line};
use stats::time::periods::SCATTER;
use stats::time::search::{LEAST, Spectra, Watch, search};
use std::collections::BTreeMap;

/// The most suspects of a period.
const MOST_SUSPECTS: usize = 8;
/// A source named has run in so many of the spikes.
const TOUCHED: f64 = 0.6;
/// Its events agree so well.
const AGREES: f64 = 0.8;
/// A source without even this share of the spikes is no suspect.
const SUSPECT: f64 = 0.25;
/// Its own period counts where chance gives it this rarely.
const SIGNIFICANT: f64 = 1e-3;

/// What may cause spikes.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    class: EventClass,
    label: String,
    text: Option<SourceText>,
    confidence: Option<Confidence>,
    instants: Instants,
    own: Option<OwnPeriod>,
}

/// CPU, name and call site.
type Caller = (u32, String, Option<String>);

/// The sources of one window on one CPU: what ran by its requester, and with several requesters
/// once more by what ran alone.
pub(crate) fn sources(table: &Table, labels: &Labels, comm: &dyn Fn(i32) -> Option<String>) -> Vec<Source> {
    let mut single: BTreeMap<(EventClass, &str, Option<Caller>), Source> = BTreeMap::new();
    let mut shared: BTreeMap<(EventClass, &str), (usize, Source)> = BTreeMap::new();
    for Timed { class, label, source, instants } in table.instants(labels, comm) {
        let (text, confidence) = source.unzip();
        // A task that is started anew each time has another number and the same name.
        let who = text.as_ref().map(|text: &SourceText| (text.cpu, text.who.clone(), text.site.clone()));
        let one = || Source {
            class,
            label: label.to_owned(),
            text: text.clone(),
            confidence,
            instants: Instants::default(),
            own: None,
        };
        let many = single.len();
        single.entry((class, label, who)).or_insert_with(one).instants.append(instants);
        let (callers, all) = shared.entry((class, label)).or_insert_with(|| (0, one()));
        *callers += usize::from(single.len() > many);
        all.instants.append(instants);
    }
    let shared = shared.into_values().filter(|(callers, _)| *callers > 1).map(|(_, source)| source);
    let mut spectra = Spectra::default();
    single.into_values().chain(shared).map(|source| own_period(source, &mut spectra)).collect()
}

/// The period that a source's events have by themselves.
fn own_period(source: Source, spectra: &mut Spectra) -> Source {
    let events = source.instants.without_gap();
    let own = (|| {
        let (first, last) = (events.first()?.t0_ns, events.last()?.t0_ns);
        let times: Vec<f64> = events.iter().map(|one| (one.t0_ns - first) as f64 / 1e9).collect();
        let span = (last - first) as f64 / 1e9;
        // Three events a turn at the most: faster would be a grid that they happen to lie on.
        let watch = Watch { span, resolution: 1e-6, highest: events.len() as f64 / span.max(1e-9) * 2.0 };
        let found = search(&times, &watch, SIGNIFICANT, spectra);
        let found = found.filter(|found| found.p_value < SIGNIFICANT)?;
        let line = line(&times, found.frequency, 1e-6)?;
        // Bursts agree at long periods without having one.
        let sharp = line.jitter <= SCATTER * line.period && line.members.len() * 2 > times.len();
        sharp.then_some(OwnPeriod { period_ns: line.period * 1e9, half_width_ns: line.half_width * 1e9 })
    })();
    Source { own, ..source }
}

/// The spikes of a period.
#[derive(Debug, Clone)]
pub(crate) struct Spiking<'s> {
    /// From release to end of each, ns, by time.
    pub(crate) spikes: &'s [[i64; 2]],
    pub(crate) period_ns: f64,
    pub(crate) half_width_ns: f64,
    /// Turns from the first to the last.
    pub(crate) turns: u64,
    /// Distance of equally spaced samples, ns.
    pub(crate) step_ns: Option<u64>,
}

/// Who may be behind the spikes, most likely first; and whether the first is named.
pub(crate) fn suspects(sources: &[Source], spiking: &Spiking<'_>) -> (Vec<Suspect>, bool) {
    let mut found: Vec<(bool, Suspect)> =
        sources.iter().filter_map(|source| suspect(source, spiking)).collect();
    // What is known more exactly goes before the same with several callers in it.
    found.sort_by_key(|(named, one)| {
        let callers = one.source.is_none();
        (!*named, !*named && !one.same_period, std::cmp::Reverse(one.overlap_ns), one.events, callers)
    });
    found.dedup_by(|a, b| (a.1.class, &a.1.label, &a.1.source) == (b.1.class, &b.1.label, &b.1.source));
    found.truncate(MOST_SUSPECTS);
    let named = found.first().is_some_and(|one| one.0);
    (found.into_iter().map(|one| one.1).collect(), named)
}

fn suspect(source: &Source, spiking: &Spiking<'_>) -> Option<(bool, Suspect)> {
    let kept = source.instants.kept();
    let (agreement, longest_only) = agreeing(source, &kept, spiking);
    let alias = agreement < AGREES && source.own.is_some_and(|own| is_alias(own, spiking));
    // Of a source too fast to be kept as a whole, only the stretch can be asked that is.
    let events = if longest_only {
        source.instants.longest(spiking.turns as usize)
    } else {
        source.instants.without_gap()
    };
    let until = if source.instants.whole() || longest_only { i64::MAX } else { events.last()?.t0_ns };
    let asked: Vec<[i64; 2]> = spiking.spikes.iter().copied().filter(|spike| spike[1] <= until).collect();
    let (touched, overlap_ns) = touching(&events, asked.iter().copied());
    let share = touched as f64 / asked.len().max(1) as f64;
    let same_period = source.own.is_some_and(|own| {
        let both = own.half_width_ns + spiking.half_width_ns;
        (own.period_ns - spiking.period_ns).abs() <= 3.0 * both
    });
    if (share < SUSPECT || touched < 2) && !alias && !same_period {
        return None;
    }
    let later = (spiking.period_ns / 2.0) as i64;
    let between = asked.iter().map(|[t0, t1]| [t0.saturating_add(later), t1.saturating_add(later)]);
    let (touched_between, _) = touching(&events, between);
    let enough = asked.len() >= LEAST && share >= TOUCHED && touched_between * 2 <= touched;
    let named = enough && (agreement >= AGREES || alias);
    let suspect = Suspect {
        class: source.class,
        label: source.label.clone(),
        source: source.text.clone(),
        confidence: source.confidence,
        events: source.instants.count(),
        own_period_ns: source.own,
        agreement,
        longest_only,
        asked: asked.len() as u64,
        touched,
        touched_between,
        overlap_ns,
        same_period,
        alias,
    };
    Some((named, suspect))
}

/// How many of the stretches some event touches, and for how long together, ns.
fn touching(events: &[Instant], stretches: impl Iterator<Item = [i64; 2]>) -> (u64, u64) {
    // Ends need not ascend: looked at is what began up to the longest event before.
    let reach = events.iter().map(|one| i64::from(one.length_ns)).max().unwrap_or(0);
    let one = |[t0, t1]: [i64; 2]| {
        let from = events.partition_point(|event| event.t0_ns < t0.saturating_sub(reach));
        let near = events[from..].iter().take_while(|event| event.t0_ns <= t1);
        let inside = near.map(|event| (event.t0_ns, event.t0_ns.saturating_add(i64::from(event.length_ns))));
        let inside = inside.filter(|(_, end)| *end >= t0);
        inside.fold((0, 0), |(_, ns), (start, end)| {
            (1, ns + end.min(t1).saturating_sub(start.max(t0)).max(0) as u64)
        })
    };
    stretches.map(one).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// How well the events agree at the period of the spikes: all, or as many of the longest as there
/// are turns.
fn agreeing(source: &Source, kept: &[Instant], spiking: &Spiking<'_>) -> (f64, bool) {
    let start = spiking.spikes.first().map_or(0, |spike| spike[0]);
    let at = |events: &[Instant]| {
        let times: Vec<f64> =
            events.iter().map(|one| one.t0_ns.saturating_sub(start) as f64 / spiking.period_ns).collect();
        // Where the period is known to less than a tenth of a turn over the window, that is all
        // there is to try.
        if times.len() < LEAST - 1 { 0.0 } else { agreement(&times, 1.0) }
    };
    let all = at(kept);
    let turns = spiking.turns as usize;
    if all >= AGREES || source.instants.count() <= turns as u64 {
        return (all, false);
    }
    let longest = at(&source.instants.longest(turns));
    if longest >= AGREES { (longest, true) } else { (all, false) }
}

/// Whether samples see a source of this period, and half the interval of it, with the period of the
/// spikes.
fn is_alias(own: OwnPeriod, spiking: &Spiking<'_>) -> bool {
    let OwnPeriod { period_ns: own, half_width_ns: half } = own;
    let Some(step) = spiking.step_ns.map(|step| step as f64).filter(|step| own < 2.0 * step) else {
        return false;
    };
    let seen = (1.0 / own - (step / own).round() / step).abs();
    let error = half / own.powi(2) + 2.0 * spiking.half_width_ns / spiking.period_ns.powi(2);
    (seen - 1.0 / spiking.period_ns).abs() <= error
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn source(class: EventClass, label: &str, events: impl Iterator<Item = (i64, i64)>) -> Source {
        let mut instants = Instants::default();
        events.for_each(|(t0, length)| instants.add(t0, t0 + length, length as u64));
        let label = label.into();
        let source = Source { class, label, text: None, confidence: None, instants, own: None };
        own_period(source, &mut Spectra::default())
    }

    fn spiking(spikes: &[[i64; 2]], period_ns: f64) -> Spiking<'_> {
        let turns = spikes.len() as u64;
        Spiking { spikes, period_ns, half_width_ns: period_ns * 1e-5, turns, step_ns: Some(1_000_000) }
    }

    #[test]
    fn the_task_is_named_and_not_the_timer_that_woke_it_or_the_tick_that_always_runs() {
        let at = |k: i64| 700 * MS + k * 3_000 * MS;
        let spikes: Vec<[i64; 2]> = (0..60).map(|k| [at(k) + 400_000, at(k) + 2 * MS]).collect();
        let sources = [
            source(EventClass::TimerTick, "tick", (0..45_000).map(|k| (k * 4 * MS, 3_000))),
            source(EventClass::TimerHrtimer, "hrtimer_wakeup", (0..60).map(|k| (at(k) + 395_000, 6_000))),
            source(EventClass::Switch, "thief", (0..60).map(|k| (at(k), 2 * MS))),
            source(EventClass::Switch, "other", (0..60).map(|k| (at(k) + 1_234 * MS, 2 * MS))),
        ];
        let (suspects, named) = suspects(&sources, &spiking(&spikes, 3e9));
        assert!(named);
        assert_eq!(
            (suspects[0].label.as_str(), suspects[0].touched, suspects[0].touched_between),
            ("thief", 60, 0)
        );
        let own = suspects[0].own_period_ns.unwrap();
        assert!((own.period_ns - 3e9).abs() <= own.half_width_ns.max(1.0), "{own:?}");
        assert_eq!(suspects[1].label, "hrtimer_wakeup");
        // It has the period at another phase: listed, behind those that ran.
        assert!(suspects[2].label == "other" && suspects[2].same_period && suspects[2].touched == 0);
    }

    #[test]
    fn a_source_whose_tenth_event_takes_long_is_named_for_the_large_spikes() {
        let at = |k: i64| 700 * MS + k * 3_000 * MS;
        let work = source(
            EventClass::Work,
            "gc",
            (0..60).map(|k| (at(k), if k % 10 == 4 { 6 * MS } else { 2 * MS })),
        );
        let large: Vec<[i64; 2]> = (0..6).map(|k| [at(10 * k + 4), at(10 * k + 4) + 6 * MS]).collect();
        let (suspects, named) = suspects(&[work], &spiking(&large, 30e9));
        assert!(named && suspects[0].longest_only, "{suspects:?}");
    }

    #[test]
    fn a_source_faster_than_the_samples_is_named_with_its_own_period() {
        // Every 1.03 ms for 30 µs: samples of 1 ms meet it every 34 ms.
        let own = 1_030_000;
        let fast = source(EventClass::TimerHrtimer, "fast", (0..900).map(|k| (k * own, 30_000)));
        let period_ns = 1.0 / (1.0 / 1e6 - 1.0 / own as f64);
        let met = (0..900).filter(|k| k * own % MS >= 970_000).map(|k| k * own / MS * MS + MS);
        let spikes: Vec<[i64; 2]> = met.map(|release| [release, release + 20_000]).collect();
        assert!(spikes.len() > 20);
        let spiking = Spiking { half_width_ns: period_ns * 1e-3, ..spiking(&spikes, period_ns) };
        let (found, named) = suspects(&[fast], &spiking);
        assert!(found[0].alias || found[0].agreement >= AGREES, "{found:?}");
        assert!(named && (found[0].own_period_ns.unwrap().period_ns - own as f64).abs() < 100.0, "{found:?}");
    }

    #[test]
    fn without_sources_nobody_is_named() {
        assert_eq!(suspects(&[], &spiking(&[[0, 1], [10, 11]], 10.0)), (Vec::new(), false));
    }
}
