//! The opening of a study: how many of its published values and statements were reproduced, how
//! many refuted, and how many are open.

use super::{Card, Opening};
use crate::format;
use crate::html::{Judged, StudyPage};

/// What became of a published value or statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Reproduced,
    Refuted,
    /// Measured, and these results do not decide.
    Undecided,
    /// Not measured, or not to be compared.
    Open,
}

impl Outcome {
    pub(crate) const ALL: [Self; 4] = [Self::Reproduced, Self::Refuted, Self::Undecided, Self::Open];

    /// Of several judgements one that refutes decides, then one that reproduces.
    fn of(judged: &Judged) -> Self {
        let has = |class| judged.verdicts.iter().any(|verdict| verdict.class == class);
        match () {
            () if has("bad") => Self::Refuted,
            () if has("good") => Self::Reproduced,
            () if has("warn") => Self::Undecided,
            () => Self::Open,
        }
    }

    /// The class of its colour.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Reproduced => "good",
            Self::Refuted => "bad",
            Self::Undecided => "warn",
            Self::Open => "dim",
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Refuted => "refuted",
            Self::Undecided => "not decided",
            Self::Open => "not tested",
        }
    }
}

/// How many of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    by: [u64; 4],
}

impl Counts {
    pub(crate) fn of<'a>(judged: impl Iterator<Item = &'a Judged>) -> Self {
        let mut counts = Self::default();
        judged.for_each(|one| counts.by[Outcome::of(one) as usize] += 1);
        counts
    }

    pub(crate) fn count(self, outcome: Outcome) -> u64 {
        self.by[outcome as usize]
    }

    fn all(self) -> u64 {
        self.by.iter().sum()
    }

    /// `2 reproduced, 1 refuted`: those that there are.
    pub(crate) fn words(self) -> String {
        let some = Outcome::ALL.into_iter().filter(|one| self.count(*one) > 0);
        some.map(|one| format!("{} {}", self.count(one), one.words())).collect::<Vec<_>>().join(", ")
    }
}

/// Groups in the order of the page, each with what it judges.
pub(crate) fn groups(page: &StudyPage) -> Vec<(&str, Vec<&Judged>)> {
    let mut groups: Vec<(&str, Vec<&Judged>)> = Vec::new();
    for one in &page.judged {
        match groups.iter_mut().find(|(name, _)| *name == one.group) {
            Some((_, all)) => all.push(one),
            None => groups.push((&one.group, vec![one])),
        }
    }
    groups
}

/// The outcome in a word, and the class of its colour.
pub(crate) fn word(page: &StudyPage) -> (&'static str, &'static str) {
    let counts = Counts::of(page.judged.iter());
    let [reproduced, refuted, ..] = counts.by;
    match (reproduced, refuted) {
        _ if counts.all() == 0 => ("measured", "plain"),
        (0, 0) => ("not decided", "plain"),
        (_, 0) if reproduced == counts.all() => ("reproduced", "good"),
        (_, 0) => ("reproduced in part", "good"),
        (0, _) => ("refuted", "bad"),
        _ => ("refuted in part", "bad"),
    }
}

pub(crate) fn opening(page: &StudyPage) -> Opening {
    let counts = Counts::of(page.judged.iter());
    let [with, all] = page.cells.map(|cells| format::count(cells as u64));
    let cells = (page.cells[1] > 0).then(|| Card::of_one("Cells with a result", with, format!("of {all}")));
    if counts.all() == 0 {
        let tables = format::plural(page.sheets.len() as u64, "table");
        let sentence = format!("Nothing of it was published elsewhere: {tables} of its own values.");
        return Opening { sentence, cause: None, cards: cells.into_iter().collect() };
    }
    let all = format!("of {}", format::count(counts.all()));
    // Papers that contradict or confirm themselves are no experiment.
    let of = |outcome: Outcome| match own_alone(page, outcome) {
        0 => all.clone(),
        own => format!("{all}; {} by the paper's own numbers alone", format::count(own)),
    };
    let card = |what: &str, outcome: Outcome, note: String| {
        Card::of_one(what, format::count(counts.count(outcome)), note)
    };
    let open = counts.count(Outcome::Undecided) + counts.count(Outcome::Open);
    let (undecided, untested) = (counts.count(Outcome::Undecided), counts.count(Outcome::Open));
    let open_note = match open {
        0 => all.clone(),
        _ => format!("{all}: {undecided} measured without a decision, {untested} not tested"),
    };
    let refuted = of(Outcome::Refuted);
    let refuted = farthest(page).map_or(refuted.clone(), |far| format!("{refuted}; {far}"));
    let cards = vec![
        card("Reproduced", Outcome::Reproduced, of(Outcome::Reproduced)),
        card("Refuted", Outcome::Refuted, refuted),
        Card::of_one("Open", format::count(open), open_note),
    ];
    Opening { sentence: sentence(page, counts), cause: None, cards }
}

fn sentence(page: &StudyPage, counts: Counts) -> String {
    let numbers = page.judged.iter().any(|one| one.published.is_some());
    let words = page.judged.iter().any(|one| one.published.is_none());
    let what = match (numbers, words) {
        (true, true) => "published values and statements",
        (true, false) => "published values",
        _ => "statements",
    };
    let some = Outcome::ALL.into_iter().filter(|one| counts.count(*one) > 0);
    let mut each: Vec<String> = some.map(|one| format!("{} {}", counts.count(one), one.words())).collect();
    if let Some(first) = each.first_mut() {
        let verb = if first.starts_with("1 ") { " is " } else { " are " };
        *first = first.replacen(' ', verb, 1);
    }
    let last = each.pop().unwrap_or_default();
    let before = if each.is_empty() { String::new() } else { format!("{} and ", each.join(", ")) };
    format!("Of {} {what} {before}{last}.", format::count(counts.all()))
}

/// How many have this outcome by their paper's own numbers alone.
fn own_alone(page: &StudyPage, outcome: Outcome) -> u64 {
    let ours = page.judged.iter().filter(|one| Outcome::of(one) == outcome);
    let by_own = |one: &&Judged| {
        let deciding = one.verdicts.iter().filter(|verdict| verdict.class == outcome.class());
        deciding.clone().next().is_some() && deciding.into_iter().all(|verdict| verdict.own)
    };
    ours.filter(by_own).count() as u64
}

/// The value that differs most from what was published.
fn farthest(page: &StudyPage) -> Option<String> {
    let refuted = page.judged.iter().filter(|one| Outcome::of(one) == Outcome::Refuted);
    let far = refuted.filter_map(|one| Some((one, one.times?.median))).filter(|(_, times)| *times > 0.0);
    let (one, times) = far.max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()))?;
    Some(format!("farthest: {}, {} times the published value", one.what, format::significant(times, 2)))
}
