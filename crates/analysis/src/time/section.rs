//! One window's samples over time, and the sources of its trace, put together.

use super::join::{Source, Spiking, suspects};
use super::shape::{FoundIn, Looked, Periodicity, PhaseStatistics, TimeSection};
use super::windows::{changes, windows};
use model::run::ProbeRecord;
use model::sample::ProbeKind;
use stats::resample::generator;
use stats::stretches::Stretches;
use stats::time::fold::agreement;
use stats::time::periods::{Period, periods};
use stats::time::phases::resultant;
use stats::time::search::Watch;
use stats::time::spikes::{Spike, spikes, threshold};
use stats::time::trend::trend;
use stats::time::waves::{Wave, waves};

/// Bins of a folded profile.
const BINS: usize = 48;
/// Spikes nearer than so many samples are one.
const APART_STEPS: i64 = 4;
/// Gaps of a busy loop nearer than this are one, ns.
const APART_NS: i64 = 200_000;
/// Equally spaced values that are searched as a whole, at the most: the first ones.
const WAVES: usize = 1 << 18;
/// A period at which the watch itself agrees so well is an artefact of the watch.
const OWN: f64 = 0.2;
/// Periods below two steps that are reported.
const ALIASES: usize = 4;

/// Whether a probe's samples are searched: one value a release or a gap, and all of one kind.
pub(crate) fn applies(probe: ProbeKind) -> bool {
    matches!(probe, ProbeKind::Wakeup | ProbeKind::Noise | ProbeKind::Periodic | ProbeKind::Taskset)
}

/// Analyses the samples of one window over time, (start, value) by time, and which source has the
/// periods found.
pub(crate) fn section(record: &ProbeRecord, samples: &[(i64, i64)], sources: &[Source]) -> TimeSection {
    let noise = record.probe() == ProbeKind::Noise;
    let span_ns = [record.t0_ns, record.t1_ns];
    let seed = u64::from(record.cpu) << 32 | u64::from(record.thread);
    let step_ns = record.period_ns().filter(|step| *step > 0);
    let from_ns = threshold(samples, noise);
    let apart_ns = step_ns.map_or(APART_NS, |step| (step.min(i64::MAX as u64 / 8) as i64) * APART_STEPS);
    let found = spikes(samples, from_ns, apart_ns);
    let watch = Watch {
        span: span_ns[1].saturating_sub(span_ns[0]).max(0) as f64 / 1e9,
        resolution: step_ns.map_or(1e-6, |step| step as f64 / 1e9),
        highest: 1e9 / (apart_ns as f64 * 1.25),
    };
    let mut looked = Looked {
        from_ns: if noise { samples.iter().map(|one| one.1).min().unwrap_or(0) } else { from_ns },
        spikes: found.len() as u64,
        between_ns: (watch.highest > watch.lowest()).then(|| [1e9 / watch.highest, 1e9 / watch.lowest()]),
        step_ns,
        waves: false,
        own_ns: Vec::new(),
    };
    let window = Window { record, samples, span_ns, step_ns, sources };
    let mut random = generator(seed, 7);
    let own = std::cell::RefCell::new(Vec::new());
    let refused = |frequency: f64| {
        let refused = window.watches_with(frequency);
        if refused {
            own.borrow_mut().push(1e9 / frequency);
        }
        refused
    };
    let of_spikes = periods(&found, span_ns[0], &watch, &refused, &mut random);
    let mut periods: Vec<Periodicity> =
        of_spikes.iter().map(|period| window.of_spikes(period, &found)).collect();
    if let Some(values) = step_ns.and_then(|step| equally_spaced(samples, step as i64)) {
        looked.waves = true;
        let waves = waves(&values, &mut random);
        periods.extend(
            waves.iter().filter_map(|wave| window.of_values(wave)).filter(|wave| unlike(wave, &of_spikes)),
        );
    }
    looked.own_ns = own.into_inner();
    looked.own_ns.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-3);
    let parts = windows(samples, span_ns);
    TimeSection {
        phase: record.phase.clone(),
        probe: record.probe(),
        cpu: record.cpu,
        thread: record.thread,
        span_ns,
        changes: parts.as_ref().map_or_else(Vec::new, |parts| changes(parts, seed)),
        drift: parts.as_ref().and_then(|parts| {
            trend(&parts.rows.iter().map(|row| (row.t_ns, row.median_ns as f64)).collect::<Vec<_>>())
        }),
        windows: parts,
        looked,
        periods,
    }
}

/// Whether a period of all values is neither one that the spikes have shown, nor a fraction of one.
fn unlike(wave: &Periodicity, of_spikes: &[Period]) -> bool {
    of_spikes.iter().all(|period| {
        let ratio = period.line.period * 1e9 / wave.period_ns;
        (ratio - ratio.round().max(1.0)).abs() > 0.02 * ratio.round().max(1.0)
    })
}

/// The values, one a step, holes filled with the middle; none where more than a tenth is missing.
fn equally_spaced(samples: &[(i64, i64)], step_ns: i64) -> Option<Vec<f64>> {
    let (first, last) = (samples.first()?.0, samples.last()?.0);
    let place = |t_ns: i64| ((t_ns.saturating_sub(first)) as f64 / step_ns as f64).round() as usize;
    let length = (place(last) + 1).min(WAVES);
    let inside = &samples[..samples.partition_point(|one| place(one.0) < length)];
    if inside.len() * 10 < length * 9 {
        return None;
    }
    let mut values: Vec<f64> = inside.iter().map(|one| one.1 as f64).collect();
    let middle = stats::runs::median(&mut values)?;
    let mut spaced = vec![middle; length];
    inside.iter().for_each(|one| spaced[place(one.0)] = one.1 as f64);
    Some(spaced)
}

/// The data that a period is derived from.
struct Window<'a> {
    record: &'a ProbeRecord,
    samples: &'a [(i64, i64)],
    span_ns: [i64; 2],
    step_ns: Option<u64>,
    sources: &'a [Source],
}

impl Window<'_> {
    /// Whether the watching comes and goes with a frequency: what is seen only then seems to come
    /// back with it.
    fn watches_with(&self, frequency: f64) -> bool {
        let slices = Stretches::new(self.record.slices());
        let whole = slices.length_ns() as f64;
        if whole == 0.0 || self.record.probe() != ProbeKind::Noise {
            return false;
        }
        // Where it begins anew with a period, its first turns have more to say than later ones,
        // however short its pauses.
        let begins: Vec<f64> =
            slices.parts().iter().map(|part| (part[0] - self.span_ns[0]) as f64 / 1e9).collect();
        let every = self.span_ns[1].abs_diff(self.span_ns[0]) as f64 / 1e9 / begins.len() as f64;
        if begins.len() > 3 && frequency * every < 4.5 && agreement(&begins, frequency) > 0.8 {
            return true;
        }
        let turn =
            |t_ns: i64| std::f64::consts::TAU * ((t_ns - self.span_ns[0]) as f64 / 1e9 * frequency).fract();
        // Integral of e^(−2πift) over each slice, as a share of all of them.
        let parts = slices.parts().iter().map(|[t0, t1]| {
            let scale = 1e9 / (std::f64::consts::TAU * frequency) / whole;
            [(turn(*t1).sin() - turn(*t0).sin()) * scale, (turn(*t1).cos() - turn(*t0).cos()) * scale]
        });
        let sum = parts.fold([0.0, 0.0], |[x, y], [a, b]| [x + a, y + b]);
        let gaps = self.span_ns[1].abs_diff(self.span_ns[0]) as f64 - whole;
        gaps > 0.0 && sum[0].hypot(sum[1]) > OWN
    }

    fn of_spikes(&self, period: &Period, spikes: &[Spike]) -> Periodicity {
        let period_ns = period.line.period * 1e9;
        let mut heights: Vec<i64> = period.members.iter().map(|at| spikes[*at].value_ns).collect();
        heights.sort_unstable();
        let stretch = |at: &usize| {
            let spike = spikes[*at];
            [spike.t_ns, spike.t_ns.saturating_add(spike.value_ns.max(0))]
        };
        let stretches: Vec<[i64; 2]> = period.members.iter().map(stretch).collect();
        let half_width_ns = period.line.half_width * 1e9;
        let spiking = Spiking {
            spikes: &stretches,
            period_ns,
            half_width_ns,
            turns: period.turns,
            step_ns: self.step_ns,
        };
        let (suspects, named) = suspects(self.sources, &spiking);
        Periodicity {
            found_in: if period.of.is_some() { FoundIn::LargerSpikes } else { FoundIn::Spikes },
            period_ns,
            half_width_ns,
            first_ns: self.span_ns[0] + (period.line.start.rem_euclid(period.line.period) * 1e9) as i64,
            jitter_ns: period.line.jitter * 1e9,
            spikes: period.members.len() as u64,
            turns: period.turns,
            seen: period.seen,
            height_ns: heights.get(heights.len() / 2).copied().unwrap_or(0),
            observed_max_ns: heights.last().copied().unwrap_or(0),
            agreement: period.agreement,
            p_value: period.p_value,
            shuffled_p: period.shuffled_p,
            multiple_of: period.of,
            aliases_ns: self.aliases(period_ns),
            profile_ns: self.profile(period_ns),
            suspects,
            named,
        }
    }

    fn of_values(&self, wave: &Wave) -> Option<Periodicity> {
        let step = self.step_ns? as f64;
        let period_ns = wave.steps * step;
        let profile_ns = self.profile(period_ns);
        let highest = profile_ns.iter().max_by_key(|bin| bin.median_ns)?;
        let lowest = profile_ns.iter().min_by_key(|bin| bin.median_ns)?;
        let first = self.span_ns[0] + highest.phase_ns;
        // The samples of the highest phase stand for the spikes.
        let width = (period_ns / 8.0).max(step);
        let near = |t_ns: i64| {
            let off = ((t_ns - first) as f64).rem_euclid(period_ns);
            off.min(period_ns - off) <= width / 2.0
        };
        let stretches: Vec<[i64; 2]> = self
            .samples
            .iter()
            .filter(|one| near(one.0))
            .take(2_000)
            .map(|one| [one.0, one.0.saturating_add(one.1.max(0))])
            .collect();
        let turns = ((self.span_ns[1] - self.span_ns[0]) as f64 / period_ns) as u64;
        let half_width_ns = wave.half_width * step;
        let spiking = Spiking { spikes: &stretches, period_ns, half_width_ns, turns, step_ns: self.step_ns };
        let (suspects, named) = suspects(self.sources, &spiking);
        let times: Vec<f64> = stretches.iter().map(|one| (one[0] - self.span_ns[0]) as f64).collect();
        let [x, y] = resultant(&times, 1.0 / period_ns);
        Some(Periodicity {
            found_in: FoundIn::Values,
            period_ns,
            half_width_ns,
            first_ns: first,
            jitter_ns: 0.0,
            spikes: 0,
            turns,
            seen: 0,
            height_ns: highest.median_ns - lowest.median_ns,
            observed_max_ns: profile_ns.iter().map(|bin| bin.max_ns).max()?,
            agreement: x.hypot(y),
            p_value: wave.p_value,
            shuffled_p: Some(wave.turned_p),
            multiple_of: None,
            aliases_ns: self.aliases(period_ns),
            profile_ns,
            suspects,
            named,
        })
    }

    /// Periods below two steps that samples would see as this one: f = k/Δ ∓ 1/P.
    fn aliases(&self, period_ns: f64) -> Vec<f64> {
        let Some(step) = self.step_ns.map(|step| step as f64) else { return Vec::new() };
        let both = (1..=ALIASES).flat_map(|k| {
            let rate = k as f64 / step;
            [rate - 1.0 / period_ns, rate + 1.0 / period_ns]
        });
        both.take(ALIASES).map(|frequency| 1.0 / frequency).collect()
    }

    fn profile(&self, period_ns: f64) -> Vec<PhaseStatistics> {
        // No more bins than phases that the samples resolve.
        let step = self.step_ns.unwrap_or(1) as f64;
        let bins = ((period_ns / step).floor() as usize).clamp(2, BINS);
        let mut folded: Vec<Vec<i64>> = vec![Vec::new(); bins];
        for (t_ns, value) in self.samples {
            let phase = (t_ns.saturating_sub(self.span_ns[0]) as f64 / period_ns).rem_euclid(1.0);
            folded[((phase * bins as f64) as usize).min(bins - 1)].push(*value);
        }
        let bin = |(at, mut values): (usize, Vec<i64>)| {
            let max_ns = values.iter().copied().max()?;
            let middle = values.len() / 2;
            let (_, &mut median_ns, _) = values.select_nth_unstable(middle);
            let phase_ns = (at as f64 / bins as f64 * period_ns) as i64;
            Some(PhaseStatistics { phase_ns, median_ns, max_ns })
        };
        folded.into_iter().enumerate().filter_map(bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{record, spun};
    use fixture::noise::{normal, uniform};

    const MS: i64 = 1_000_000;

    /// Ten seconds of wake-ups every ms; `late` adds to one of them.
    fn samples(late: impl Fn(i64) -> i64) -> Vec<(i64, i64)> {
        let mut random = generator(1, 0);
        let noise = |random: &mut _| (400.0 * normal(random)) as i64 + (300.0 * uniform(random)) as i64;
        (0..10_000).map(|k| (k * MS, 5_000 + late(k) + noise(&mut random))).collect()
    }

    fn section_of(samples: &[(i64, i64)]) -> TimeSection {
        let record = ProbeRecord { t1_ns: 10_000 * MS, ..record(ProbeKind::Wakeup) };
        section(&record, samples, &[])
    }

    #[test]
    fn spikes_with_a_period_are_reported_with_their_profile_and_their_aliases() {
        let section = section_of(&samples(|k| if k % 300 == 17 { 150_000 } else { 0 }));
        let period = &section.periods[0];
        assert!((period.period_ns - 300e6).abs() <= period.half_width_ns, "{period:?}");
        assert_eq!((period.seen, period.turns, period.first_ns), (34, 34, 17 * MS));
        assert!(period.profile_ns.iter().any(|bin| bin.max_ns > 150_000));
        assert!((period.aliases_ns[0] - 1e6 / (1.0 - 1.0 / 300.0)).abs() < 1.0, "{:?}", period.aliases_ns);
        assert!(!period.named && section.periods.len() == 1, "{section:?}");
    }

    #[test]
    fn a_slight_period_of_all_values_is_reported_where_nothing_stands_out() {
        let section = section_of(&samples(|k| if k % 4 == 1 { 500 } else { 0 }));
        let period = section.periods.iter().find(|one| one.found_in == FoundIn::Values).unwrap();
        assert!((period.period_ns - 4e6).abs() < 2_000.0 && period.height_ns > 300, "{period:?}");
    }

    #[test]
    fn nothing_is_claimed_of_noise() {
        let section = section_of(&samples(|_| 0));
        assert!(section.periods.is_empty() && section.changes.is_empty(), "{section:?}");
        assert!(!section.drift.unwrap().drifts());
    }

    #[test]
    fn what_a_loop_that_pauses_sees_does_not_have_the_period_of_its_pauses() {
        let mut random = generator(2, 0);
        // Gaps at random while the loop ran: 100 ms of every 250.
        let slices: Vec<[i64; 2]> = (0..240).map(|k| [k * 250 * MS, k * 250 * MS + 100 * MS]).collect();
        let mut gaps: Vec<(i64, i64)> = (0..600)
            .map(|_| (uniform(&mut random) * 60e9) as i64)
            .filter(|t| t % (250 * MS) < 100 * MS)
            .map(|t| (t, 20_000))
            .collect();
        gaps.sort_unstable();
        let record = ProbeRecord { t1_ns: 60_000 * MS, detail: spun(&slices), ..record(ProbeKind::Noise) };
        let section = section(&record, &gaps, &[]);
        assert!(section.periods.is_empty(), "{:?}", section.periods);
        let window = |slices: &[[i64; 2]]| {
            Window {
                record: &ProbeRecord { detail: spun(slices), ..record.clone() },
                samples: &gaps,
                span_ns: [0, 60_000 * MS],
                step_ns: None,
                sources: &[],
            }
            .watches_with(4.0)
        };
        assert!(window(&slices) && !window(&[[0, 60_000 * MS]]));
    }

    #[test]
    fn nothing_at_all_is_no_error() {
        let section = section_of(&[]);
        assert!(section.windows.is_none() && section.periods.is_empty() && section.drift.is_none());
    }
}
