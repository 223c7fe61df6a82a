//! The periods of spikes: the surest first, then that of what it leaves, and which of its own
//! spikes are larger than the others.
//!
//! The ERTS 2022 paper (§VI-B, Figs. 6 and 7) saw nine small peaks between two large ones and could
//! not say whether two sources or one made them. Here the largest spikes are looked at by
//! themselves at several heights, a period's spikes are taken out before the next is looked for,
//! and among the spikes of one period it is asked whether every m-th is a large one.

use super::fold::{Line, line};
use super::search::{Found, LEAST, Spectra, Watch, search};
use super::shuffle::shuffled_p;
use super::spikes::{Spike, gaps, levels};
use crate::serialize_as_array;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

/// A larger probability is no period.
const SIGNIFICANT: f64 = 1e-3;
/// A larger share of shuffled orders that do as well neither.
const SHUFFLED: f64 = 0.02;
/// Periods of one series at the most.
const MOST: usize = 4;
/// Of the spikes of every m-th turn so many are large, and of the large so many are on such a turn.
const AGREE: f64 = 0.7;

/// Spikes that scatter by more than this part of a period do not come with it.
pub const SCATTER: f64 = 0.05;
/// Multiples of a period that are asked whether they are the period.
const COARSER: i64 = 12;
/// They are where so many of the spikes are theirs.
const NEARLY_ALL: f64 = 0.9;

/// A period of spikes.
#[derive(Debug, Clone, PartialEq)]
pub struct Period {
    /// Length and start, with the spikes that it explains.
    pub line: Line,
    /// Mean resultant length of the spikes that it was found from.
    pub agreement: f64,
    /// Probability of one as clear where there is none, all frequencies counted.
    pub p_value: f64,
    /// Share of shuffled gaps that agree as well; `None` where they were not shuffled.
    pub shuffled_p: Option<f64>,
    /// The least height of those.
    pub(crate) from_ns: i64,
    /// Its spikes, as places in the series.
    pub members: Vec<usize>,
    /// Turns from its first spike to its last, both counted.
    pub turns: u64,
    /// Of these, turns with a spike.
    pub seen: u64,
    /// Where its spikes are every m-th of another period's.
    pub of: Option<Multiple>,
}

/// A period that is a multiple of another one; in JSON `[of, times]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Multiple {
    /// The place of the other among the periods.
    pub of: usize,
    /// How many times.
    pub times: u32,
}

serialize_as_array!(Multiple { of, times });

/// Seconds from the start of the watch.
fn seconds(spikes: &[Spike], t0_ns: i64) -> Vec<f64> {
    spikes.iter().map(|spike| spike.t_ns.saturating_sub(t0_ns) as f64 / 1e9).collect()
}

/// The periods of spikes, by time; `refused` are frequencies that the watch itself has.
pub fn periods(
    spikes: &[Spike],
    t0_ns: i64,
    watch: &Watch,
    refused: &dyn Fn(f64) -> bool,
    random: &mut ChaCha8Rng,
) -> Vec<Period> {
    let mut found = Vec::new();
    let (mut spectra, mut tried) = (Spectra::default(), Vec::new());
    let mut rest: Vec<usize> = (0..spikes.len()).collect();
    while found.len() < MOST {
        let left: Vec<Spike> = rest.iter().map(|at| spikes[*at]).collect();
        let looked = Looked { t0_ns, watch, refused };
        let Some(period) = surest(&left, &looked, random, &mut spectra, &mut tried) else { break };
        // Its spikes among all that are left, whatever their height.
        let members: Vec<usize> = period.members.iter().map(|at| rest[*at]).collect();
        rest.retain(|at| members.binary_search(at).is_err());
        found.push(Period { members, ..period });
    }
    let larger: Vec<Period> =
        found.iter().enumerate().filter_map(|(at, period)| every_mth(spikes, at, period)).collect();
    found.extend(larger);
    found
}

/// How spikes are looked at.
struct Looked<'a> {
    t0_ns: i64,
    watch: &'a Watch,
    refused: &'a dyn Fn(f64) -> bool,
}

/// What spikes of some height and more were found to have. The largest are often the same again
/// when the spikes of another period were taken out.
struct Tried {
    high: Vec<Spike>,
    found: Option<(Found, Line)>,
}

impl Looked<'_> {
    /// The frequency of spikes, and the line through them.
    fn at(&self, high: &[Spike], spectra: &mut Spectra) -> Option<(Found, Line)> {
        let times = seconds(high, self.t0_ns);
        let found = search(&times, self.watch, SIGNIFICANT, spectra)?;
        let fitted = line(&times, found.frequency, self.watch.resolution)?;
        let vague = fitted.jitter > SCATTER * fitted.period && fitted.jitter > self.watch.resolution;
        (!vague && !(self.refused)(found.frequency)).then_some((found, fitted))
    }
}

/// The surest period of some spikes at any height.
fn surest(
    spikes: &[Spike],
    looked: &Looked<'_>,
    random: &mut ChaCha8Rng,
    spectra: &mut Spectra,
    tried: &mut Vec<Tried>,
) -> Option<Period> {
    let Looked { t0_ns, watch, .. } = *looked;
    let levels = levels(spikes);
    let mut at_level = |level: &i64| {
        let high: Vec<Spike> =
            spikes.iter().copied().filter(|spike| spike.value_ns >= *level).take(4096).collect();
        let times = seconds(&high, t0_ns);
        let at = tried.iter().position(|one| one.high == high).unwrap_or_else(|| {
            let found = looked.at(&high, spectra);
            tried.push(Tried { high, found });
            tried.len() - 1
        });
        let (found, fitted) = tried[at].found.clone()?;
        Some((found, times, *level, fitted))
    };
    let all = levels.iter().filter_map(&mut at_level);
    let (found, times, from_ns, fitted) = all.min_by(|a, b| a.0.p_value.total_cmp(&b.0.p_value))?;
    let p_value = (found.p_value * levels.len() as f64).min(1.0);
    if p_value > SIGNIFICANT {
        return None;
    }
    let shuffled = shuffled_p(&times, watch.span, watch.lowest(), found.frequency, SHUFFLED, random, spectra);
    if shuffled > SHUFFLED {
        return None;
    }
    // The same line through spikes of every height.
    let all = seconds(spikes, t0_ns);
    let reach = (4.0 * fitted.jitter).max(2.0 * watch.resolution).min(0.2 * fitted.period);
    let turn = |time: f64| ((time - fitted.start) / fitted.period).round();
    let on =
        |(_, time): &(usize, &f64)| (**time - fitted.start - turn(**time) * fitted.period).abs() <= reach;
    let on: Vec<(usize, i64)> =
        all.iter().enumerate().filter(on).map(|(at, time)| (at, turn(*time) as i64)).collect();
    let fitted = coarsest(Line { members: on, ..fitted });
    let on = fitted.members.clone();
    let (turns, seen) = covered(on.iter().map(|one| one.1));
    Some(Period {
        line: fitted,
        agreement: found.agreement,
        p_value,
        shuffled_p: Some(shuffled),
        from_ns,
        members: on.into_iter().map(|one| one.0).collect(),
        turns,
        seen,
        of: None,
    })
}

/// The longest multiple of a period of which nearly all of its spikes are: a fraction of it may
/// have been found from a few of them, on which it fits as well.
fn coarsest(line: Line) -> Line {
    for m in (2..=COARSER).rev() {
        let residue = most_common(line.members.iter().map(|one| one.1.rem_euclid(m)));
        let kept: Vec<(usize, i64)> =
            line.members.iter().copied().filter(|one| one.1.rem_euclid(m) == residue).collect();
        if kept.len() >= LEAST && kept.len() as f64 >= NEARLY_ALL * line.members.len() as f64 {
            return Line {
                period: line.period * m as f64,
                half_width: line.half_width * m as f64,
                start: line.start + line.period * residue as f64,
                members: kept.into_iter().map(|(at, turn)| (at, turn.div_euclid(m))).collect(),
                ..line
            };
        }
    }
    line
}

/// Turns from the first to the last, and how many of them have a spike.
fn covered(turns: impl Iterator<Item = i64>) -> (u64, u64) {
    let mut turns: Vec<i64> = turns.collect();
    turns.sort_unstable();
    turns.dedup();
    match (turns.first(), turns.last()) {
        (Some(first), Some(last)) => (first.abs_diff(*last) + 1, turns.len() as u64),
        _ => (0, 0),
    }
}

/// Whether every m-th spike of a period is larger than the others: m·m⁻ⁿ is the probability that n
/// large ones fall on the same of m turns, for each of the m that are tried.
fn every_mth(spikes: &[Spike], of: usize, period: &Period) -> Option<Period> {
    let turns: Vec<(usize, i64)> =
        period.members.iter().copied().zip(period.line.members.iter().map(|one| one.1)).collect();
    let mut heights: Vec<i64> = turns.iter().map(|(at, _)| spikes[*at].value_ns).collect();
    heights.sort_unstable_by_key(|height| std::cmp::Reverse(*height));
    let most = (period.turns / (LEAST as u64 - 1)).min(1_000) as i64;
    let mut best: Option<(f64, i64, i64, i64)> = None;
    let mut counts = Vec::new();
    // From the first one, short numbers are enough, which are divided faster.
    let first = turns.iter().map(|one| one.1).min()?;
    let after = |turn: i64| u32::try_from(turn - first).unwrap_or(u32::MAX);
    for place in gaps(&heights) {
        let level = heights[place - 1];
        let large: Vec<u32> =
            turns.iter().filter(|(at, _)| spikes[*at].value_ns >= level).map(|one| after(one.1)).collect();
        for m in 2..=most {
            let Some((residue, hits)) = most_common_residue(&large, m as u32, &mut counts) else { continue };
            let residue = (first + i64::from(residue)).rem_euclid(m);
            let hits = f64::from(hits);
            if hits < LEAST as f64 || hits < AGREE * large.len() as f64 {
                continue;
            }
            let there = turns.iter().filter(|one| one.1.rem_euclid(m) == residue).count() as f64;
            if hits < AGREE * there {
                continue;
            }
            let p_value = tail(large.len() as f64, hits, m as f64) * (m * most) as f64 * 3.0;
            if best.is_none_or(|known| p_value < known.0) {
                best = Some((p_value, m, residue, level));
            }
        }
    }
    let (p_value, m, residue, from_ns) = best.filter(|one| one.0 < SIGNIFICANT)?;
    let mine = |(at, turn): &(usize, i64)| turn.rem_euclid(m) == residue && spikes[*at].value_ns >= from_ns;
    let members: Vec<(usize, i64)> =
        turns.into_iter().filter(mine).map(|(at, turn)| (at, turn.div_euclid(m))).collect();
    let (covered, seen) = covered(members.iter().map(|one| one.1));
    let fine = &period.line;
    Some(Period {
        line: Line {
            period: fine.period * m as f64,
            half_width: fine.half_width * m as f64,
            start: fine.start + fine.period * residue as f64,
            jitter: fine.jitter,
            members: members.clone(),
        },
        agreement: members.len() as f64 / (members.len() as f64).max(1.0) * period.agreement,
        p_value: p_value.max(period.p_value),
        shuffled_p: None,
        from_ns,
        members: members.into_iter().map(|one| one.0).collect(),
        turns: covered,
        seen,
        of: Some(Multiple { of, times: m as u32 }),
    })
}

/// Probability that `hits` or more of n fall on one turn of m: a bound of the binomial's tail
/// (Chernoff; exact where all do).
fn tail(n: f64, hits: f64, m: f64) -> f64 {
    let (share, chance) = (hits / n, 1.0 / m);
    if share <= chance {
        return 1.0;
    }
    let rest = if share < 1.0 { (1.0 - share) * ((1.0 - share) / (1.0 - chance)).ln() } else { 0.0 };
    (-n * (share * (share / chance).ln() + rest)).exp()
}

/// The residue of turns by m that is the most common, the largest of several, and how often it is
/// there. `counts` is room.
fn most_common_residue(turns: &[u32], m: u32, counts: &mut Vec<u32>) -> Option<(u32, u32)> {
    counts.clear();
    counts.resize(m as usize, 0);
    turns.iter().for_each(|turn| counts[(turn % m) as usize] += 1);
    let (residue, hits) = counts.iter().enumerate().max_by_key(|(_, hits)| **hits)?;
    Some((residue as u32, *hits))
}

fn most_common(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    let longest = values.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    longest.map_or(0, |same| same[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::uniform;

    const MS: i64 = 1_000_000;
    const S: i64 = 1_000 * MS;
    const WATCH: Watch = Watch { span: 180.0, resolution: 0.001, highest: 200.0 };

    fn spike(t_ns: i64, value_ns: i64) -> Spike {
        // As a probe with a release every ms sees it.
        Spike { t_ns: t_ns / MS * MS, value_ns }
    }

    fn periods_of(mut spikes: Vec<Spike>) -> Vec<Period> {
        spikes.sort_unstable_by_key(|spike| spike.t_ns);
        periods(&spikes, 0, &WATCH, &|_| false, &mut generator(9, 0))
    }

    #[test]
    fn nine_small_ones_between_two_large_ones() {
        let mut random = generator(1, 0);
        let mut spikes: Vec<Spike> = (0..60)
            .map(|k| {
                let jitter = (uniform(&mut random) * 400e3) as i64;
                spike(700 * MS + k * 3 * S + jitter, if k % 10 == 4 { 6 * MS } else { 2 * MS } + jitter)
            })
            .collect();
        spikes.extend((0..40).map(|_| spike((uniform(&mut random) * 180e9) as i64, 300_000)));
        let found = periods_of(spikes);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!((found[0].line.period - 3.0).abs() <= found[0].line.half_width, "{:?}", found[0].line);
        assert!((found[1].line.period - 30.0).abs() <= found[1].line.half_width, "{:?}", found[1].line);
        assert_eq!(
            (found[1].of, found[1].members.len(), found[0].seen),
            (Some(Multiple { of: 0, times: 10 }), 6, 60)
        );
        assert!((found[1].line.start.rem_euclid(30.0) - 12.7).abs() < 0.003);
    }

    #[test]
    fn two_sources_that_do_not_go_together_are_two() {
        let mut spikes: Vec<Spike> = (0..60).map(|k| spike(500 * MS + k * 3 * S, 2 * MS + k)).collect();
        spikes.extend((0..8).map(|k| spike(1_900 * MS + k * 22_700 * MS, 9 * MS + k)));
        let mut lengths: Vec<f64> = periods_of(spikes).iter().map(|period| period.line.period).collect();
        lengths.sort_unstable_by(f64::total_cmp);
        assert!(
            lengths.len() == 2 && (lengths[0] - 3.0).abs() < 0.001 && (lengths[1] - 22.7).abs() < 0.001,
            "{lengths:?}"
        );
    }

    #[test]
    fn bursts_at_random_have_no_period() {
        let mut random = generator(5, 0);
        let alarms = (0..12).filter(|_| {
            let mut spikes = Vec::new();
            for _ in 0..25 {
                let at = (uniform(&mut random) * 179e9) as i64;
                spikes.extend((0..4).map(|k| spike(at + k * 7 * MS, 1_000_000 + k)));
            }
            !periods_of(spikes).is_empty()
        });
        assert!(alarms.count() <= 1);
    }

    #[test]
    fn what_the_watch_has_itself_is_not_claimed() {
        let spikes: Vec<Spike> = (0..60).map(|k| spike(k * 3 * S, 2 * MS)).collect();
        assert_eq!(periods(&spikes, 0, &WATCH, &|_| true, &mut generator(9, 0)), []);
    }
}
