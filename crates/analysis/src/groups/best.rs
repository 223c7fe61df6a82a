//! Which of several configurations is best by the user's loss, and which cannot be distinguished
//! from it.
//!
//! The probability of being best is the share of draws in which a group's statistic is the lowest
//! ([`super::draws`]). The set of possible best ones holds every group that is not shown to be
//! worse than another, with probabilities adjusted over all pairs (Holm 1979). So it holds the
//! truly best with 95 %, in the spirit of subset selection (Gupta, Technometrics 7 (1965)).

use super::draws::{self, GroupFigure};
use super::figures::Figure;
use super::measured::{MeasuredRun, MeasuredWindow};
use super::{Question, admitted, of_group};
use model::sample::ProbeKind;
use serde::Serialize;
use stats::rates::holm;

/// Groups by their loss.
#[derive(Debug, Clone, Serialize)]
pub struct Ranking {
    /// What is to be low.
    pub loss: Figure,
    /// Unit of the values.
    pub unit: &'static str,
    /// The probe that it comes from.
    pub probe: ProbeKind,
    /// The phase.
    pub phase: String,
    /// Best first.
    pub groups: Vec<Ranked>,
    /// Pairs whose probabilities were adjusted together.
    pub family: usize,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
}

/// One group.
#[derive(Debug, Clone, Serialize)]
pub struct Ranked {
    /// Its place among the groups as given, from 0.
    pub group: usize,
    /// Its name.
    pub name: String,
    /// Runs.
    pub runs: Vec<f64>,
    /// Mean of the loss over the runs.
    pub value: f64,
    /// 95 % interval of that.
    pub interval: Option<[f64; 2]>,
    /// Probability of having the least loss; none where a group is one run.
    pub p_best: Option<f64>,
    /// The smallest adjusted probability, over all others, of not being worse; none where a group
    /// is one run.
    pub p_worse: Option<f64>,
    /// Letters shared with every group that it cannot be distinguished from; empty where a group is
    /// one run.
    pub letters: String,
    /// Whether it may be the best: not shown to be worse than any other.
    pub may_be_best: bool,
}

/// Ranks groups of runs, each with its name.
pub fn best(
    groups: &[(String, Vec<MeasuredRun>)],
    loss: Figure,
    question: &Question,
) -> Result<Ranking, String> {
    let runs: Vec<&[MeasuredRun]> = groups.iter().map(|(_, runs)| &runs[..]).collect();
    let (matched, mut warnings) = admitted(&runs, question)?;
    let wanted = |probe: ProbeKind| match loss {
        Figure::Stolen => probe == ProbeKind::Noise,
        Figure::Quantile(_) => probe != ProbeKind::Noise,
        _ => true,
    };
    let mut fitting = matched.iter().filter(|one| wanted(one.probe));
    let Some(one) = fitting.next() else {
        return Err(format!("no measurement that the runs share has the figure {}", loss.name()));
    };
    if let Some(more) = fitting.next() {
        warnings.push(format!(
            "{} was ranked; {} can be chosen by --probe",
            one.probe.name(),
            more.probe.name()
        ));
    }
    let figure = |(at, windows): (usize, &Vec<&MeasuredWindow>)| {
        let name = &groups[at].0;
        of_group(loss, windows, 500_000 + at as u64)
            .map_err(|why| format!("{} of {name}: {why}", loss.name()))
    };
    let figures = one.groups.iter().enumerate().map(figure).collect::<Result<Vec<_>, _>>()?;
    let judged = figures.iter().all(|figure| figure.runs.len() > 1);
    let family = figures.len() * figures.len().saturating_sub(1) / 2;
    let pairs = if judged { p_pairs(&figures) } else { Vec::new() };
    let worse = if judged { p_worse(&figures, &pairs) } else { vec![None; figures.len()] };
    let different = pairs.iter().filter(|(_, _, p)| *p <= stats::decide::ALPHA);
    let apart: Vec<(usize, usize)> = different.map(|(a, b, _)| (*a, *b)).collect();
    let p_best = if judged { p_best(&figures) } else { vec![None; figures.len()] };
    let mut ranked: Vec<Ranked> = figures
        .into_iter()
        .enumerate()
        .map(|(group, figure)| Ranked {
            group,
            name: groups[group].0.clone(),
            interval: super::own_interval(&figure),
            value: figure.value,
            runs: figure.runs,
            p_best: p_best[group],
            p_worse: worse[group],
            letters: String::new(),
            may_be_best: worse[group].is_none_or(|p| p > stats::decide::ALPHA),
        })
        .collect();
    ranked.sort_by(|a, b| a.value.total_cmp(&b.value));
    if judged {
        let order: Vec<usize> = ranked.iter().map(|one| one.group).collect();
        let letters = letters(&order, &apart);
        ranked.iter_mut().zip(letters).for_each(|(one, letters)| one.letters = letters);
    }
    let unit = loss.unit(one.probe);
    Ok(Ranking {
        loss,
        unit,
        probe: one.probe,
        phase: one.phase.to_owned(),
        groups: ranked,
        family,
        warnings,
    })
}

/// Of every pair the probability of no difference, adjusted over all.
fn p_pairs(figures: &[GroupFigure]) -> Vec<(usize, usize, f64)> {
    let pairs: Vec<(usize, usize)> =
        (0..figures.len()).flat_map(|a| (a + 1..figures.len()).map(move |b| (a, b))).collect();
    let p = |&(a, b): &(usize, usize)| draws::p_differs(&draws::differences(&figures[a], &figures[b]));
    let adjusted = holm(&pairs.iter().map(p).collect::<Vec<_>>());
    pairs.into_iter().zip(adjusted).map(|((a, b), p)| (a, b, p)).collect()
}

/// Letters for groups in the order given, so that two share one exactly where they cannot be
/// distinguished: H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
/// comparisons", Journal of Computational and Graphical Statistics 13 (2004).
fn letters(order: &[usize], apart: &[(usize, usize)]) -> Vec<String> {
    let mut columns: Vec<Vec<usize>> = vec![order.to_vec()];
    for (a, b) in apart {
        let mut next: Vec<Vec<usize>> = Vec::new();
        for column in columns {
            if column.contains(a) && column.contains(b) {
                next.extend(
                    [a, b].map(|out| column.iter().copied().filter(|one| one != out).collect::<Vec<_>>()),
                );
            } else {
                next.push(column);
            }
        }
        // A column within another says nothing more; of equal ones the first stays.
        let within = |one: &[usize], other: &[usize]| one.iter().all(|group| other.contains(group));
        columns = (0..next.len())
            .filter(|&at| {
                !next.iter().enumerate().any(|(other, column)| {
                    other != at && within(&next[at], column) && (column.len() > next[at].len() || other < at)
                })
            })
            .map(|at| next[at].clone())
            .collect();
    }
    let first = |column: &Vec<usize>| order.iter().position(|group| column.contains(group));
    columns.sort_by_key(first);
    let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
    let of =
        |group: &usize| (0..columns.len()).filter(|&at| columns[at].contains(group)).map(letter).collect();
    order.iter().map(of).collect()
}

/// Of each group the least adjusted probability, over all pairs, that it is no worse than another
/// with a lower value.
fn p_worse(figures: &[GroupFigure], pairs: &[(usize, usize, f64)]) -> Vec<Option<f64>> {
    let mut least = vec![Some(1.0); figures.len()];
    for &(a, b, p) in pairs {
        let worse = if figures[a].value > figures[b].value { a } else { b };
        least[worse] = least[worse].map(|least: f64| least.min(p));
    }
    least
}

fn p_best(figures: &[GroupFigure]) -> Vec<Option<f64>> {
    let draws = figures.iter().map(|figure| figure.deviations.len()).min().unwrap_or(0);
    let mut wins = vec![0.0; figures.len()];
    for draw in 0..draws {
        let values: Vec<f64> = figures.iter().map(|figure| figure.value + figure.deviations[draw]).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let equal: Vec<usize> = (0..values.len()).filter(|&at| values[at] <= least).collect();
        equal.iter().for_each(|&at| wins[at] += 1.0 / equal.len() as f64);
    }
    wins.into_iter().map(|wins| (draws > 0).then(|| wins / draws as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::letters;
    use proptest::prelude::*;

    #[test]
    fn groups_share_a_letter_where_they_cannot_be_distinguished() {
        assert_eq!(letters(&[2, 0, 1], &[]), ["a", "a", "a"]);
        assert_eq!(letters(&[0, 1, 2], &[(0, 2)]), ["a", "ab", "b"]);
        assert_eq!(letters(&[0, 1, 2], &[(0, 1), (0, 2), (1, 2)]), ["a", "b", "c"]);
    }

    proptest! {
        #[test]
        fn letters_say_every_pair(differs in proptest::collection::vec(any::<bool>(), 15)) {
            let pairs: Vec<(usize, usize)> = (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))).collect();
            let apart: Vec<(usize, usize)> = pairs.iter().zip(&differs).filter(|(_, differs)| **differs).map(|(pair, _)| *pair).collect();
            let letters = letters(&[0, 1, 2, 3, 4, 5], &apart);
            for (a, b) in pairs {
                let shared = letters[a].chars().any(|letter| letters[b].contains(letter));
                prop_assert_eq!(shared, !apart.contains(&(a, b)), "{:?} {} {}", letters, a, b);
            }
        }
    }
}
