//! With which frequency do times recur? A spectrum of the times shows the candidates; folding
//! decides.
//!
//! The times are put into bins and transformed. What lies half-way between two frequencies of the
//! transform follows from those around it (S. M. Ransom, S. S. Eikenberry and J. Middleditch,
//! Astronomical Journal 124 (2002), §4.1), so that nowhere much is missed; each place whose
//! agreement is about the best is then folded exactly. A period's fractions fit as well as it does,
//! so that of all that fit the longest is meant. All frequencies of the band count as tried. Spans
//! with more turns than a transform of bearable size holds are looked at over the stretch with the
//! most times first, and the frequency found there is made finer over all of them.

use super::fold::{arc, arc_p, line, rayleigh_p, refined};
use super::phases::Nearer;
use super::transform::Transform;
use rustfft::num_complex::Complex;

/// Fewer times give no period.
pub const LEAST: usize = 5;
/// Turns of the highest frequency over the stretch that is transformed: 2¹⁷ bins of a third.
const TURNS: f64 = 43_690.0;
/// How much a spectrum underestimates an agreement between two of its frequencies.
const BETWEEN: f64 = 0.17;
/// Upper limit of the agreement that is missed where nine frequencies around a peak of the spectrum
/// are tried: agreement at the best frequency less that at the best of the nine. Agreement is the
/// mean resultant length, 0 to 1.
const MISSED: f64 = 0.01;
/// Of times without a period a stretch has a frequency of this probability as often as not.
const LIKELY: f64 = 0.5;
/// Places that are folded exactly.
const PLACES: usize = 64;
/// Frequencies of the band that count as independent, for each 1/span: the best of a continuum is
/// sought.
const TRIALS: f64 = 4.0;

/// A frequency at which times agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Hz.
    pub frequency: f64,
    /// Mean resultant length there.
    pub agreement: f64,
    /// Bound of the probability that so many times without a period agree so well at some frequency
    /// of the band.
    pub p_value: f64,
}

/// What is known of times before they are searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watch {
    /// Seconds in which times could have been seen.
    pub span: f64,
    /// Times are known to so many seconds.
    pub resolution: f64,
    /// The highest frequency that may be claimed, Hz.
    pub highest: f64,
}

impl Watch {
    /// The lowest frequency: at least four turns are seen.
    pub fn lowest(&self) -> f64 {
        (LEAST as f64 - 1.0) / (1.05 * self.span)
    }
}

/// The frequency that the times, ascending, in seconds from the start of the watch, agree at best.
/// None below five times, where no frequency may be claimed, and where even a first look shows that
/// its probability would be above `at_most`.
pub fn search(times: &[f64], watch: &Watch, at_most: f64, spectra: &mut Spectra) -> Option<Found> {
    if times.len() < LEAST || watch.highest <= watch.lowest() {
        return None;
    }
    let slow = [watch.lowest(), watch.highest.min(TURNS / watch.span)];
    let whole = best(
        times,
        &Band { stretch: [0.0, watch.span], frequencies: slow, trials: trials(watch), at_most },
        spectra,
    );
    let stretch = TURNS / watch.highest;
    if stretch >= watch.span {
        return whole.map(|one| judged(times, one, watch));
    }
    let fast = densest(times, stretch).and_then(|(from, part)| {
        let lowest = (LEAST as f64 - 1.0) / stretch;
        let frequencies = [lowest.max(watch.lowest()), watch.highest];
        // What is rather sure from all times may be less so from some.
        let (trials, at_most) = (TRIALS * watch.highest * stretch, at_most.max(LIKELY));
        let one = best(part, &Band { stretch: [from, stretch], frequencies, trials, at_most }, spectra)?;
        Some(over_all(times, one, from, stretch, watch.span))
    });
    let judged = |one: f64| judged(times, one, watch);
    let found: Vec<Found> = [whole, fast].into_iter().flatten().map(judged).collect();
    found.into_iter().min_by(|a, b| a.p_value.total_cmp(&b.p_value))
}

/// The probability of a frequency by chance.
fn judged(times: &[f64], frequency: f64, watch: &Watch) -> Found {
    let (frequency, agreement) = refined(times, frequency, 0.3 / watch.span);
    let width = arc(times, frequency) + watch.resolution * frequency;
    // Two tests, of which the better counts.
    let p = rayleigh_p(times.len(), agreement).min(arc_p(times.len(), width));
    Found { frequency, agreement, p_value: (2.0 * trials(watch) * p).min(1.0) }
}

/// Frequencies that are tried in a watch.
fn trials(watch: &Watch) -> f64 {
    (TRIALS * (watch.highest - watch.lowest()) * watch.span).max(1.0)
}

/// The stretch of this length with the most times: its start and its times.
fn densest(times: &[f64], length: f64) -> Option<(f64, &[f64])> {
    let end = |from: usize| times.partition_point(|time| *time < times[from] + length);
    let from = (0..times.len()).max_by_key(|from| (end(*from) - from, std::cmp::Reverse(*from)))?;
    Some((times[from], &times[from..end(from)]))
}

/// A frequency from a stretch, made finer over stretches that grow to the whole.
fn over_all(times: &[f64], frequency: f64, from: f64, length: f64, span: f64) -> f64 {
    let (mut frequency, mut length) = (frequency, length);
    while length < span {
        let within = |time: &&f64| (**time - from).abs() <= length;
        let part: Vec<f64> = times.iter().filter(within).map(|time| time - from).collect();
        frequency = refined(&part, frequency, 0.3 / length).0;
        length *= 2.0;
    }
    frequency
}

/// Where a frequency is looked for.
struct Band {
    /// Start and length of the stretch in which the times lie, s.
    stretch: [f64; 2],
    /// Lowest and highest, Hz.
    frequencies: [f64; 2],
    /// So many of them count as tried.
    trials: f64,
    /// Probabilities above this are of no interest.
    at_most: f64,
}

impl Band {
    /// Whether `n` times that agree so well at the best frequency are nothing that chance does not
    /// do as well. Phases within an arc w agree by cos(πw) at least, so that they lie in none that
    /// is smaller than this agreement makes it.
    fn is_chance(&self, n: usize, agreement: f64) -> bool {
        let arc = agreement.clamp(0.0, 1.0).acos() / std::f64::consts::PI;
        (2.0 * self.trials * rayleigh_p(n, agreement.min(1.0)).min(arc_p(n, arc))).min(1.0) > self.at_most
    }
}

/// The lowest of the frequencies of a band at which the times agree about best.
///
/// Times of several sources all lie on any grid that is fine enough, the kernel's ticks above all;
/// so a frequency of which most turns have a time goes before one of which few have, where chance
/// does not explain it.
fn best(times: &[f64], wanted: &Band, spectra: &mut Spectra) -> Option<f64> {
    let (n, [low, high], length) = (times.len() as f64, wanted.frequencies, wanted.stretch[1]);
    if times.len() < LEAST || high <= low {
        return None;
    }
    let spectrum = spectra.of(times, wanted.stretch, high);
    let filled = n / FILLED / length;
    let surprising = ((TRIALS * high * length).ln() + 10.0) / n;
    let chance = |agreement: f64| wanted.is_chance(times.len(), agreement);
    let filled = pick(times, &spectrum, [low, filled.min(high)], chance);
    let sure = |one: &(f64, f64)| one.1 * one.1 > surprising && fill(times, one.0) >= FILLED;
    filled.filter(sure).or_else(|| pick(times, &spectrum, [low, high], chance)).map(|one| one.0)
}

/// Of a period's turns so many have a time, where that is not so for its fractions.
const FILLED: f64 = 0.5;

/// The share of the turns that have a time.
fn fill(times: &[f64], frequency: f64) -> f64 {
    let mut turns: Vec<i64> = line(times, frequency, 0.0)
        .map_or_else(Vec::new, |line| line.members.iter().map(|one| one.1).collect());
    turns.dedup();
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return 0.0 };
    turns.len() as f64 / (last - first + 1) as f64
}

/// The lowest frequency of a band at which the times agree about as well as at any of it, and how
/// well that is. None where the best is chance.
fn pick(
    times: &[f64],
    spectrum: &Spectrum,
    [low, high]: [f64; 2],
    is_chance: impl Fn(f64) -> bool,
) -> Option<(f64, f64)> {
    let (first, last) = ((low * spectrum.length).floor().max(1.0) as usize, spectrum.powers.len() - 1);
    let last = last.min((high * spectrum.length).ceil() as usize);
    let powers = spectrum.powers.get(first..=last)?;
    let highest = powers.iter().copied().fold(0.0, f64::max);
    let from = (highest - slack(times.len(), highest) - BETWEEN).max(0.0);
    let is_peak = |at: usize| {
        let around = at.saturating_sub(1)..(at + 2).min(powers.len());
        powers[at] >= from && powers[around].iter().all(|other| *other <= powers[at])
    };
    let mut places: Vec<usize> = (0..powers.len()).filter(|at| is_peak(*at)).collect();
    let strongest = places.iter().copied().max_by(|a, b| powers[*a].total_cmp(&powers[*b]))?;
    places.truncate(PLACES);
    places.push(strongest);
    let wide = 0.6 / spectrum.length;
    let mut nearer = Nearer::new(times, wide);
    let near = |at: usize| nearer.best((first + at) as f64 / spectrum.length);
    let inside = |one: &(f64, f64)| (low * 0.9..=high * 1.001).contains(&one.0);
    let near: Vec<(f64, f64)> = places.into_iter().map(near).filter(inside).collect();
    let most = near.iter().map(|one| one.1).fold(0.0, f64::max);
    // A first step misses a hundredth at most. Only what may still be among the best is worth the
    // exact fold.
    if is_chance(most + 2.0 * MISSED) {
        return None;
    }
    let worth = |one: &(f64, f64)| one.1 >= most - slack(times.len(), most) - 2.0 * MISSED;
    let exact = |one: (f64, f64)| refined(times, one.0, wide / 3.0);
    let folded: Vec<(f64, f64)> = near.into_iter().filter(worth).map(exact).collect();
    let most = folded.iter().map(|one| one.1).fold(0.0, f64::max);
    let fits = |one: &(f64, f64)| one.1 >= most - slack(times.len(), most);
    folded.into_iter().filter(fits).min_by(|a, b| a.0.total_cmp(&b.0))
}

/// By how much the agreement at some fraction of a period may exceed that at the period itself:
/// what strays among n times can do, at the best of a thousand fractions.
fn slack(n: usize, agreement: f64) -> f64 {
    4.0 * (n as f64 * (1.0 - agreement).max(0.0)).sqrt() / n as f64 + 0.03
}

struct Spectrum {
    /// Agreement at k/`length` Hz.
    powers: Vec<f64>,
    /// Seconds that the transform covers.
    length: f64,
}

/// What spectra of one size share: the sines of a transform and of its bins cost more than the
/// transform.
#[derive(Default)]
pub struct Spectra {
    /// Of short floats: what is found is folded exactly.
    transforms: Vec<Transform<f32>>,
    kept: Vec<Kept>,
    counts: Vec<f32>,
    values: Vec<Complex<f32>>,
}

/// Values to either side of a place half-way between two that it is made of.
const AROUND: usize = 3;

/// What a transform has half-way between the frequencies k and k + 1, but for its phase: 2/π times
/// the sum of (X[k-m] - X[k+1+m]) / (2m+1), of which the first three make all but a fifteenth.
fn half_way(values: &[Complex<f32>], k: usize) -> Complex<f32> {
    // Those of real numbers are the same below nought, conjugated.
    let below = |m: usize| k.checked_sub(m).map_or_else(|| values[m - k].conj(), |at| values[at]);
    let above = |m: usize| values.get(k + 1 + m).copied().unwrap_or_default();
    let pair = |m: usize| (below(m) - above(m)).unscale((2 * m + 1) as f32);
    (0..AROUND).map(pair).sum::<Complex<f32>>().scale(std::f32::consts::FRAC_2_PI)
}

/// What bins of one width keep of each frequency, from 0 on, as far as it was requested.
struct Kept {
    /// Seconds of a bin, and of all.
    bins: [f64; 2],
    shares: Vec<f64>,
}

/// Sizes that are remembered: one search has two.
const SIZES: usize = 4;

impl Spectra {
    /// Agreement of times that lie in `[start, length]`, s, at all frequencies up to `high`, Hz.
    fn of(&mut self, times: &[f64], [start, length]: [f64; 2], high: f64) -> Spectrum {
        // Three bins a turn: within a bin phases differ by a sixth of a turn at the most.
        let bins = ((3.0 * length * high).ceil() as usize).next_power_of_two().max(64);
        let width = length / bins as f64;
        let mut counts = std::mem::take(&mut self.counts);
        counts.clear();
        counts.resize(bins, 0.0);
        for time in times {
            let at = ((time - start) / width) as usize;
            counts[at.min(bins - 1)] += 1.0;
        }
        // What lies half-way counts as frequencies of twice the length.
        let cover = 2.0 * length;
        let wanted = ((high * cover).ceil() as usize + 1).min(bins + 1);
        // Counts are far from where squares overflow, so that `hypot` is not needed.
        let size = |value: Complex<f32>| f64::from(value.norm_sqr().sqrt());
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.extend(self.transform(bins).of(&counts).take(wanted / 2 + 1 + AROUND));
        let between = |k: usize| half_way(&values, k);
        let halves = (0..wanted).map(|at| if at % 2 == 0 { values[at / 2] } else { between(at / 2) });
        let mut powers: Vec<f64> = halves.map(size).collect();
        self.values = values;
        self.counts = counts;
        let n = times.len() as f64;
        let kept = self.kept(width, cover, wanted);
        powers.iter_mut().zip(kept).for_each(|(power, kept)| *power /= n * kept);
        Spectrum { powers, length: cover }
    }

    fn transform(&mut self, length: usize) -> &mut Transform<f32> {
        let at = self.transforms.iter().position(|one| one.length() == length).unwrap_or_else(|| {
            if self.transforms.len() == SIZES {
                self.transforms.remove(0);
            }
            self.transforms.push(Transform::new(length));
            self.transforms.len() - 1
        });
        &mut self.transforms[at]
    }

    fn kept(&mut self, width: f64, cover: f64, count: usize) -> &[f64] {
        let same = |kept: &Kept| kept.bins.map(f64::to_bits) == [width, cover].map(f64::to_bits);
        let at = self.kept.iter().position(same).unwrap_or_else(|| {
            if self.kept.len() == SIZES {
                self.kept.remove(0);
            }
            self.kept.push(Kept { bins: [width, cover], shares: Vec::new() });
            self.kept.len() - 1
        });
        let shares = &mut self.kept[at].shares;
        shares.extend((shares.len()..count).map(|k| {
            let turn = std::f64::consts::PI * k as f64 / cover * width;
            if turn == 0.0 { 1.0 } else { turn.sin() / turn }
        }));
        shares
    }
}

/// The best agreement anywhere in a band, unrefined: what permutations are compared by.
pub(crate) fn best_agreement(times: &[f64], span: f64, [low, high]: [f64; 2], spectra: &mut Spectra) -> f64 {
    let spectrum = spectra.of(times, [0.0, span], high);
    let first = (low * spectrum.length).floor().max(1.0) as usize;
    let last = ((high * spectrum.length).ceil() as usize).min(spectrum.powers.len().saturating_sub(1));
    spectrum.powers.get(first..=last).unwrap_or_default().iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::{normal, uniform};
    use rand_chacha::ChaCha8Rng;

    const WATCH: Watch = Watch { span: 180.0, resolution: 0.001, highest: 500.0 };

    fn sorted(mut times: Vec<f64>) -> Vec<f64> {
        times.sort_unstable_by(f64::total_cmp);
        times
    }

    fn strays(random: &mut ChaCha8Rng, n: usize, span: f64) -> Vec<f64> {
        (0..n).map(|_| span * uniform(random)).collect()
    }

    #[test]
    fn six_times_that_come_every_thirty_seconds_are_enough() {
        let mut random = generator(1, 0);
        let times: Vec<f64> =
            (0..6).map(|k| 12.0 + 30.0 * f64::from(k) + 0.005 * normal(&mut random)).collect();
        let found = search(&times, &WATCH, 1.0, &mut Spectra::default()).unwrap();
        assert!((1.0 / found.frequency - 30.0).abs() < 0.01 && found.p_value < 1e-3, "{found:?}");
    }

    #[test]
    fn half_of_the_times_may_be_strays() {
        let mut random = generator(2, 0);
        let mut times: Vec<f64> = (0..60).map(|k| 0.4 + 3.0 * f64::from(k)).collect();
        times.extend(strays(&mut random, 60, 180.0));
        let found = search(&sorted(times), &WATCH, 1.0, &mut Spectra::default()).unwrap();
        assert!((1.0 / found.frequency - 3.0).abs() < 0.005 && found.p_value < 1e-6, "{found:?}");
    }

    #[test]
    fn a_fast_period_over_a_long_time_is_found_and_made_fine() {
        let mut random = generator(3, 0);
        let watch = Watch { span: 3_600.0, resolution: 1e-6, highest: 2_000.0 };
        // A tenth of the ticks of 4.0001 ms, at random.
        let times: Vec<f64> = (0..899_000)
            .filter(|_| uniform(&mut random) < 0.001)
            .map(|k| f64::from(k) * 0.004_000_1 + 1.0)
            .collect();
        let found = search(&times, &watch, 1.0, &mut Spectra::default()).unwrap();
        assert!((1.0 / found.frequency - 0.004_000_1).abs() < 1e-9, "{found:?} {}", times.len());
    }

    #[test]
    fn random_times_have_a_period_as_rarely_as_said() {
        let mut random = generator(4, 0);
        let watch = Watch { highest: 10.0, ..WATCH };
        let alarms = (0..300).filter(|k| {
            let times = sorted(strays(&mut random, [6, 20, 100][k % 3], 180.0));
            search(&times, &watch, 1.0, &mut Spectra::default()).unwrap().p_value < 0.05
        });
        // Binomial(300, 0.05): 15 with a deviation of 3.8; the bound may be too wide, never too
        // narrow.
        assert!(alarms.count() <= 30);
    }

    #[test]
    fn no_frequency_lies_so_far_between_two_that_it_is_missed() {
        let mut spectra = Spectra::default();
        for tenth in 0..20 {
            // Every place between two frequencies of the transform, a tenth of their distance
            // apart.
            let frequency = (20.0 + f64::from(tenth) / 10.0) / 64.0;
            let times: Vec<f64> =
                (0..100).map(|k| f64::from(k) / frequency).filter(|time| *time < 64.0).collect();
            let spectrum = spectra.of(&times, [0.0, 64.0], 1.0);
            let at = (frequency * spectrum.length).round() as usize;
            let seen = spectrum.powers[at - 1..=at + 1].iter().copied().fold(0.0, f64::max);
            assert!((1.0 - BETWEEN..1.02).contains(&seen), "{frequency}: {seen}");
        }
    }

    #[test]
    fn too_few_times_or_too_narrow_a_band_are_none() {
        assert_eq!(search(&[1.0, 2.0, 3.0, 4.0], &WATCH, 1.0, &mut Spectra::default()), None);
        assert_eq!(search(&[1.0; 8], &Watch { highest: 0.01, ..WATCH }, 1.0, &mut Spectra::default()), None);
    }
}
