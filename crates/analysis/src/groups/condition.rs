//! Conditions under which a comparison fails: a small grammar for continuous integration.
//!
//! ```text
//! condition  = ["maybe"] figure ("<" | ">") value  |  ["maybe"] (figure | "any") verdict
//!              |  (figure | "any") "not" verdict
//! figure     = "min" | "p50" | "p99.9" | … | "max" | "exceed:100us" | "stolen" | "time"
//! value      = ["+" | "-"] number ["ns" | "us" | "ms" | "s" | "%"]
//! verdict    = "better" | "worse" | "equivalent"
//! ```
//!
//! A value with a sign is of the difference, other less base (in % of the base); one without is of
//! the other group itself. A condition holds where the whole 95 % interval lies beyond the value;
//! with `maybe`, where any of it does: the gate then fails unless the runs exclude it. Of a verdict
//! `maybe` asks the same: it holds where the verdict is that one, or the runs cannot tell.

use super::figures::Figure;
use super::{FigureComparison, GroupComparison, units};
use serde::Serialize;
use stats::decide::Verdict;

/// A condition as given.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As typed.
    pub text: String,
    /// The statistic; none for any.
    pub figure: Option<Figure>,
    /// The question about it.
    pub asked: Asked,
}

/// What a condition asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Asked {
    /// Beyond a value.
    Beyond {
        /// Above it, or below.
        above: bool,
        /// The value.
        limit: Limit,
        /// Whether it holds already where the runs do not exclude it.
        maybe: bool,
    },
    /// A verdict.
    Verdict {
        /// Which.
        verdict: Verdict,
        /// Where it holds.
        holds: Holds,
    },
}

/// The verdicts for which a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The one that it names.
    Only,
    /// Also where the runs cannot tell.
    OrCannotTell,
    /// Every other one.
    Not,
}

/// A value of a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Of the other group, in the statistic's unit.
    Value(f64),
    /// Of the difference, in the statistic's unit.
    Difference(f64),
    /// Of the difference over the base.
    Relative(f64),
}

/// The result of a condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The condition as typed.
    pub condition: String,
    /// Whether it holds, so that the gate fails; none where the runs cannot be judged by it.
    pub holds: Option<bool>,
    /// Whether it does not hold only because the runs cannot tell.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Why, in words.
    pub sentence: String,
}

/// The statistics that conditions name.
pub fn named(conditions: &[Condition]) -> Vec<Figure> {
    conditions.iter().filter_map(|condition| condition.figure).collect()
}

/// Those of which conditions ask for a verdict; none where one asks about any.
pub fn asked(conditions: &[Condition]) -> Vec<Figure> {
    let verdicts = conditions.iter().filter(|condition| matches!(condition.asked, Asked::Verdict { .. }));
    let figures: Option<Vec<Figure>> = verdicts.map(|condition| condition.figure).collect();
    let mut once = Vec::new();
    for figure in figures.unwrap_or_default() {
        if !once.contains(&figure) {
            once.push(figure);
        }
    }
    once
}

impl Condition {
    /// Reads a condition; an error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("{why}; expected such as \"p99 > +5us\" or \"any worse\""));
        let spaced = text.replace('>', " > ").replace('<', " < ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let (maybe, words) = match words.split_first() {
            Some((&"maybe", rest)) => (true, rest),
            _ => (false, &words[..]),
        };
        let Some((name, rest)) = words.split_first() else { return wrong("it is empty") };
        let figure = match *name {
            "any" => None,
            name => match Figure::parse(name) {
                Ok(figure) => Some(figure),
                Err(why) => return wrong(&why),
            },
        };
        let asked = match (rest, figure) {
            ([sign @ ("<" | ">"), value @ ..], Some(figure)) if !value.is_empty() => {
                match limit(figure, &value.concat()) {
                    Ok(limit) => Asked::Beyond { above: *sign == ">", limit, maybe },
                    Err(why) => return wrong(&why),
                }
            }
            (["<" | ">", ..], Some(_)) => return wrong("it has no value"),
            (["<" | ">", ..], None) => {
                return wrong("figures have different units, so any cannot be held against a value");
            }
            ([word], _) => match verdict(word) {
                Some(verdict) if maybe => Asked::Verdict { verdict, holds: Holds::OrCannotTell },
                Some(verdict) => Asked::Verdict { verdict, holds: Holds::Only },
                None => return wrong(&format!("{word:?} is no verdict")),
            },
            (["not", word], _) if !maybe => match verdict(word) {
                Some(verdict) => Asked::Verdict { verdict, holds: Holds::Not },
                None => return wrong(&format!("{word:?} is no verdict")),
            },
            (["not", ..], _) => {
                return wrong("not holds already where the runs cannot tell, so maybe does not go with it");
            }
            _ => return wrong("it has no comparison with a value and no verdict"),
        };
        Ok(Self { text: text.trim().to_owned(), figure, asked })
    }

    /// Whether it holds of a comparison.
    pub fn judge(&self, comparison: &GroupComparison) -> Judged {
        self.judge_figures(comparison.windows.iter().flat_map(|window| &window.figures))
    }

    /// The same of statistics that are no run's.
    pub fn judge_figures<'a>(&self, figures: impl Iterator<Item = &'a FigureComparison>) -> Judged {
        let mine = figures.filter(|figure| self.figure.is_none_or(|wanted| wanted == figure.figure));
        // Where one cannot be judged the others still can fail; what `any` withholds is no reason,
        // unless the gate is to fail for want of evidence.
        let strict = matches!(self.asked, Asked::Verdict { holds: Holds::OrCannotTell, .. });
        let mut withheld = Vec::new();
        let mine = mine.inspect(|figure| {
            if figure.verdict == Verdict::Withheld {
                withheld.push(figure.figure.name());
            }
        });
        let judged: Vec<Judged> = mine
            .filter(|figure| strict || self.figure.is_some() || figure.verdict != Verdict::Withheld)
            .map(|figure| self.of(figure))
            .collect();
        let say = |holds: Option<bool>| -> Vec<&str> {
            judged.iter().filter(|one| one.holds == holds).map(|one| one.sentence.as_str()).collect()
        };
        let (failed, unknown, passed) = (say(Some(true)), say(None), say(Some(false)));
        match unknown.first() {
            _ if !failed.is_empty() => self.judged(Some(true), failed.join("; ")),
            Some(why) => self.judged(None, (*why).to_owned()),
            None if passed.is_empty() => {
                self.judged(None, "no measurement that was compared has this figure".to_owned())
            }
            None => {
                let aside = match &withheld[..] {
                    [] => String::new(),
                    names => format!("; not judged, for want of samples: {}", names.join(", ")),
                };
                let undecided = judged.iter().any(|one| one.undecided);
                Judged { undecided, ..self.judged(Some(false), passed.join("; ") + &aside) }
            }
        }
    }

    fn judged(&self, holds: Option<bool>, sentence: String) -> Judged {
        Judged { condition: self.text.clone(), holds, undecided: false, sentence }
    }

    fn of(&self, figure: &FigureComparison) -> Judged {
        let name = figure.figure.name();
        let unknown = |why: &str| self.judged(None, format!("{name}: {why}"));
        if figure.verdict == Verdict::Withheld {
            let why = figure.why.as_deref().unwrap_or("it has no value");
            return self.judged(None, format!("{name} is withheld: {why}"));
        }
        let one_run = "a side of one run says nothing about configurations; at least two a side are needed, five are better";
        match self.asked {
            Asked::Verdict { verdict, holds } => match figure.verdict {
                Verdict::OneRun => unknown(one_run),
                Verdict::CannotTell => {
                    let is = if holds == Holds::OrCannotTell { "may be" } else { "is not shown to be" };
                    // How large a difference the runs leave open: a gate may be blind to it.
                    let signed = |value: f64| {
                        let sign = if value < 0.0 { "-" } else { "+" };
                        format!("{sign}{}", crate::words::figure(value.abs(), figure.unit))
                    };
                    let open = figure.interval.map_or_else(String::new, |[low, high]| {
                        format!(": {} to {} with 95 %", signed(low), signed(high))
                    });
                    // An interval on one side would contradict the verdict without this.
                    let alone = figure.alone().map_or_else(String::new, |alone| {
                        format!(
                            "; {} by itself, but not once the other figures are allowed for",
                            alone.words()
                        )
                    });
                    let sentence = format!("{name} {is} {} (cannot tell{open}{alone})", verdict.words());
                    let undecided = holds == Holds::Only;
                    Judged { undecided, ..self.judged(Some(!undecided), sentence) }
                }
                actual => self.judged(
                    Some((actual == verdict) != (holds == Holds::Not)),
                    format!("{name} is {}", actual.words()),
                ),
            },
            Asked::Beyond { above, limit, maybe } => {
                let (interval, bound) = match limit {
                    // The observation is a fact; `maybe` asks whether it could have been chance.
                    Limit::Value(value) => {
                        let observed = figure.other.map(|value| [value; 2]);
                        (figure.other_interval.filter(|_| maybe).or(observed), value)
                    }
                    _ if figure.verdict == Verdict::OneRun => return unknown(one_run),
                    Limit::Difference(value) => (figure.interval, value),
                    Limit::Relative(share) => match figure.base.filter(|base| *base != 0.0) {
                        Some(base) => (figure.interval, share * base.abs()),
                        None => return unknown("the base is 0, and nothing is a share of it"),
                    },
                };
                let Some([low, high]) = interval else { return unknown("no interval can be given") };
                let holds = match (above, maybe) {
                    (true, false) => low > bound,
                    (true, true) => high > bound,
                    (false, false) => high < bound,
                    (false, true) => low < bound,
                };
                let of = if matches!(limit, Limit::Value(_)) { "" } else { "the difference of " };
                let say = |value: f64| crate::words::figure(value, figure.unit);
                let range = if low.total_cmp(&high).is_eq() {
                    say(low)
                } else {
                    format!("{} to {} with 95 %", say(low), say(high))
                };
                self.judged(Some(holds), format!("{of}{name} is {range}"))
            }
        }
    }
}

fn verdict(word: &str) -> Option<Verdict> {
    match word {
        "better" => Some(Verdict::Better),
        "worse" => Some(Verdict::Worse),
        "equivalent" => Some(Verdict::Equivalent),
        _ => None,
    }
}

fn limit(figure: Figure, text: &str) -> Result<Limit, String> {
    let (sign, digits) = match text.split_at_checked(1) {
        Some(("+", rest)) => (Some(1.0), rest),
        Some(("-", rest)) => (Some(-1.0), rest),
        _ => (None, text),
    };
    let number = |text: &str| -> Result<f64, String> {
        let plain =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b".e-+".contains(&byte));
        text.parse()
            .ok()
            .filter(|value: &f64| plain && value.is_finite())
            .ok_or_else(|| format!("{text:?} is no number"))
    };
    let timed = matches!(figure, Figure::Min | Figure::Max | Figure::Quantile(_) | Figure::Time);
    if let Some(percent) = digits.strip_suffix('%') {
        let share = number(percent)? / 100.0;
        return match sign {
            Some(sign) => Ok(Limit::Relative(sign * share)),
            None if timed => Err(format!("{text:?} is a share of nothing: a difference has a sign, as +5%")),
            None => Ok(Limit::Value(share)),
        };
    }
    let value = if timed {
        units::time_ns(digits).ok_or_else(|| format!("{text:?} is no time with a unit"))? as f64
    } else {
        number(digits)?
    };
    Ok(sign.map_or(Limit::Value(value), |sign| Limit::Difference(sign * value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        Condition::parse(text).unwrap().asked
    }

    #[test]
    fn a_sign_makes_a_difference() {
        let beyond = |above, limit, maybe| Asked::Beyond { above, limit, maybe };
        assert_eq!(asked("p99 > +5us"), beyond(true, Limit::Difference(5_000.0), false));
        assert_eq!(asked("p99>+5us"), asked("p99 > + 5us"));
        assert_eq!(asked("max > 100us"), beyond(true, Limit::Value(100_000.0), false));
        assert_eq!(asked("maybe p99.9 > +10%"), beyond(true, Limit::Relative(0.1), true));
        assert_eq!(asked("p50 < -2us"), beyond(false, Limit::Difference(-2_000.0), false));
        assert_eq!(asked("exceed:50us > 1e-6"), beyond(true, Limit::Value(1e-6), false));
        assert_eq!(asked("stolen > 0.5%"), beyond(true, Limit::Value(0.005), false));
        assert_eq!(asked("stolen > +0.5%"), beyond(true, Limit::Relative(0.005), false));
        let of = |verdict, holds| Asked::Verdict { verdict, holds };
        assert_eq!(asked("any worse"), of(Verdict::Worse, Holds::Only));
        assert_eq!(asked("maybe any worse"), of(Verdict::Worse, Holds::OrCannotTell));
        assert_eq!(asked("p50 not equivalent"), of(Verdict::Equivalent, Holds::Not));
    }

    #[test]
    fn what_is_no_condition_is_refused_in_words() {
        let wrong = [
            ("", "empty"),
            ("maybe", "empty"),
            ("p99", "no comparison"),
            ("p99 >", "no value"),
            ("p99 > 5", "no time with a unit"),
            ("p99 > 5%", "share of nothing"),
            ("any > 5us", "different units"),
            ("p99 = 5us", "no comparison"),
            ("mean > 5us", "no figure"),
            ("any bad", "no verdict"),
            ("maybe any not worse", "maybe does not go with it"),
            ("maybe any > 5us", "different units"),
            ("exceed:50us > nan", "no number"),
            ("p99 > +-5us", "no time"),
        ];
        for (text, expected) in wrong {
            let why = Condition::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text:?}: {why}");
        }
    }
}
