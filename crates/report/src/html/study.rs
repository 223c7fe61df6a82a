//! The page of a study: what was reproduced and what was not, published beside measured results;
//! folded below its statements by group, its figures, tables and conditions.

use super::front::{Front, PageNext, single};
use super::plot::rooms;
use super::{environment, render, value};
use crate::Error;
use crate::opening::study::{self, Counts, Outcome};
use crate::svg::{IntervalAxis, IntervalRow, Room, StackedRow, intervals, micro, stacked};
use minijinja::{Value, context};
use serde::Serialize;

/// A study as its page shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StudyPage {
    /// Its name on the command line.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// The command that made it, without its options.
    pub made_by: String,
    /// Cells with a result, and all of the plan.
    pub cells: [usize; 2],
    /// Published values and statements, those of a group one after the other.
    pub judged: Vec<Judged>,
    /// What mechanisms are worth, in sentences.
    pub worth: Vec<String>,
    /// Figures.
    #[serde(skip)]
    pub figures: Vec<StudyFigure>,
    /// Tables.
    pub sheets: Vec<StudySheet>,
    /// Name and value: kernels, scale, seed, repetitions.
    pub conditions: Vec<(String, String)>,
    /// What weakens all of it.
    pub warnings: Vec<String>,
    /// What a reader has to know besides.
    pub notes: Vec<String>,
    /// What to do next.
    pub next: Option<PageNext>,
}

/// A published value or statement, and its judgements.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Judged {
    /// What it is of.
    pub what: String,
    /// What it is listed under: a paper, a kind of statement.
    pub group: String,
    /// As published.
    pub published: Option<String>,
    /// As measured.
    pub measured: Option<String>,
    /// How many times the published value was measured.
    #[serde(skip)]
    pub times: Option<Times>,
    /// One a condition and experiment.
    pub verdicts: Vec<JudgedVerdict>,
}

/// How many times the published value was measured: the median of the repetitions, from the lowest
/// to the highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Median.
    pub median: f64,
    /// Lowest and highest.
    pub range: [f64; 2],
}

/// A judgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JudgedVerdict {
    /// `agrees`, `differs`, …
    pub word: String,
    /// `good`, `bad`, `warn` where these results do not decide, `dim` where there are none.
    pub class: &'static str,
    /// Why.
    pub why: String,
    /// Whether it is of the paper's own numbers, and of no experiment.
    pub own: bool,
}

/// A figure: panels under each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StudyFigure {
    /// What it shows.
    pub title: String,
    /// Chart and caption of each panel.
    pub panels: Vec<(String, String)>,
    /// Charts made to share a row.
    pub half: bool,
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StudySheet {
    /// What its values are.
    pub title: String,
    /// Headings.
    pub head: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

/// Rows of the plot of published beside measured values, and of that of statements.
const DRAWN: usize = 12;

/// The verdict of a study in one sentence, as its page opens with it.
pub fn study_sentence(page: &StudyPage) -> String {
    study::opening(page).sentence
}

/// The whole page.
pub fn study_page(page: &StudyPage) -> Result<String, Error> {
    let environment = environment()?;
    let (word, tone) = study::word(page);
    let front = Front {
        word: word.to_owned(),
        tone,
        opening: study::opening(page),
        lines: Vec::new(),
        warnings: page.warnings.clone(),
        plot: plot(page),
        next: page.next.clone(),
    };
    let front = render(&environment, "front", context! { x => front.values() })?;
    let figure = |figure: &StudyFigure| {
        let panel = |(svg, caption): &(String, String)| {
            context! { svg => Value::from_safe_string(svg.clone()), caption => caption.clone() }
        };
        context! { title => figure.title.clone(), half => figure.half, panels => figure.panels.iter().map(panel).collect::<Vec<_>>() }
    };
    let group = |(name, judged): &(&str, Vec<&Judged>)| {
        // Statements alone have no numbers beside them.
        let numbers = judged.iter().any(|one| one.published.is_some() || one.measured.is_some());
        let gist = Counts::of(judged.iter().copied()).words();
        context! { name => *name, numbers => numbers, gist => gist, judged => value(judged) }
    };
    let values = context! {
        study => value(page),
        front => Value::from_safe_string(front),
        groups => study::groups(page).iter().map(group).collect::<Vec<_>>(),
        figures => page.figures.iter().map(figure).collect::<Vec<_>>(),
    };
    render(&environment, "study", values)
}

/// Published beside measured values; else the study's first figure; else its statements.
fn plot(page: &StudyPage) -> Value {
    let mut rows: Vec<(&Judged, Times)> = page
        .judged
        .iter()
        .filter_map(|one| Some((one, one.times.filter(|times| times.median > 0.0)?)))
        .collect();
    if !rows.is_empty() {
        rows.sort_by(|a, b| far(b.1).total_cmp(&far(a.1)));
        return beside(&rows);
    }
    if let Some((svg, caption)) = page.figures.first().and_then(|figure| figure.panels.first()) {
        return single(&again(svg), caption);
    }
    statements(page)
}

/// The drawing of a figure that is on the page once more: its names have to be unique.
fn again(svg: &str) -> String {
    let Some(id) = svg.split("aria-labelledby=\"").nth(1).and_then(|rest| rest.split("-t ").next()) else {
        return svg.to_owned();
    };
    svg.replace(&format!("\"{id}-t"), &format!("\"o-{id}-t"))
        .replace(&format!(" {id}-d\""), &format!(" o-{id}-d\""))
        .replace(&format!("\"{id}-d\""), &format!("\"o-{id}-d\""))
}

/// How far from what was published, in either direction.
fn far(times: Times) -> f64 {
    times.median.ln().abs()
}

fn beside(rows: &[(&Judged, Times)]) -> Value {
    let row = |(one, times): &(&Judged, Times)| {
        let verdict = one.verdicts.first();
        let numbers = one.measured.as_deref().zip(one.published.as_deref());
        let numbers = numbers.map(|(measured, published)| format!("{measured}, published {published}"));
        IntervalRow {
            label: one.what.clone(),
            point: Some(times.median),
            interval: (times.range[0] < times.range[1]).then_some(times.range),
            class: verdict.map_or("dim", |verdict| verdict.class).to_owned(),
            note: micro(&numbers.unwrap_or_default()),
        }
    };
    let drawn: Vec<IntervalRow> = rows.iter().take(DRAWN).map(row).collect();
    let mut caption =
        "How many times the published value was measured, farthest first; at the line both are the \
                       same. Whiskers are the lowest and highest repetition; green agrees, red differs."
            .to_owned();
    let more = rows.len().saturating_sub(drawn.len());
    if more > 0 {
        caption = format!("{caption} {more} nearer ones below.");
    }
    let axis = IntervalAxis { name: "measured / published", mark: Some(1.0) };
    let draw = |room| {
        let id = if room == Room::Desk { "bd" } else { "bh" };
        intervals(id, "Measured beside published values", axis, &drawn, room)
    };
    rooms(draw, caption)
}

/// Statements by group, as bars on one scale.
fn statements(page: &StudyPage) -> Value {
    let row = |(name, judged): &(&str, Vec<&Judged>)| {
        let counts = Counts::of(judged.iter().copied());
        let parts = Outcome::ALL.map(|outcome| (outcome.class(), counts.count(outcome)));
        let (label, note) = ((*name).to_owned(), counts.words());
        StackedRow { label, parts: parts.to_vec(), note }
    };
    let rows: Vec<StackedRow> = study::groups(page).iter().take(DRAWN).map(row).collect();
    let draw =
        |room| stacked(if room == Room::Desk { "sd" } else { "sh" }, "Statements by outcome", &rows, room);
    let all = Counts::of(page.judged.iter());
    let some = Outcome::ALL.into_iter().filter(|outcome| all.count(*outcome) > 0);
    let key = some.map(|outcome| context! { class => outcome.class(), label => outcome.words() });
    let key: Vec<Value> = key.collect();
    let plot = rooms(draw, "Statements by what became of them; all bars have one scale.".to_owned());
    if plot.is_undefined() {
        plot
    } else {
        context! { key => key, ..plot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_charts_are_charts() {
        let hostile = "<script>alert(1)</script>".to_owned();
        let page = StudyPage {
            name: hostile.clone(),
            title: hostile.clone(),
            source: hostile.clone(),
            made_by: hostile.clone(),
            cells: [1, 1],
            judged: vec![Judged {
                what: hostile.clone(),
                group: hostile.clone(),
                verdicts: vec![JudgedVerdict {
                    word: hostile.clone(),
                    class: "dim",
                    why: hostile.clone(),
                    own: false,
                }],
                ..Judged::default()
            }],
            figures: vec![StudyFigure {
                title: hostile.clone(),
                panels: vec![("<svg class=\"chart\"></svg>".to_owned(), hostile.clone())],
                half: true,
            }],
            sheets: vec![StudySheet {
                title: hostile.clone(),
                head: vec![hostile.clone()],
                rows: vec![vec![hostile.clone()]],
            }],
            worth: vec![hostile.clone()],
            conditions: vec![(hostile.clone(), hostile.clone())],
            warnings: vec![hostile.clone()],
            notes: vec![hostile.clone()],
            next: Some(PageNext { command: hostile.clone(), why: hostile }),
        };
        let text = study_page(&page).unwrap();
        assert!(text.contains("<svg class=\"chart\"></svg>"));
        assert!(!text.contains("<script>"), "{text}");
        assert!(!text.contains(">measured<"), "no column without a number");
        crate::html::tests::assert_balanced(&text);
        assert!(study_page(&StudyPage::default()).unwrap().contains("Nothing of it was published"));
    }

    fn opening_of(page: &StudyPage) -> String {
        let text = study_page(page).unwrap();
        crate::html::tests::assert_balanced(&text);
        let opening = text.split("class=\"opening\"").nth(1).unwrap();
        opening.split("</section>").next().unwrap().replace('\u{a0}', " ")
    }

    #[test]
    fn published_values_stand_beside_measured_ones_on_one_axis() {
        let opening = opening_of(&crate::fixture::pages::study());
        for part in [
            "Of 6 published values and statements 2 are reproduced, 2 refuted, 1 not decided and 1 not tested.",
            "farthest: observed maximum (6.1), 3.4 times the published value",
            "410 us, published 120 us",
            "measured / published",
            "emulated",
            "<span>study</span> <span>run</span> <span>demo</span>",
        ] {
            assert!(
                opening.contains(&part.replace(" us", " µs")) || opening.contains(part),
                "{part}: {opening}"
            );
        }
        // A value each, on a desk and in a hand.
        assert_eq!(opening.matches("<circle").count(), 6);
    }

    #[test]
    fn statements_alone_are_bars_by_group_and_a_figure_goes_before_them() {
        let mut page = crate::fixture::pages::statements();
        let opening = opening_of(&page);
        assert!(opening.contains("class=\"st good\"") && opening.contains("class=\"sq bad\""), "{opening}");
        page.judged.truncate(4);
        let by_own = page.judged[1].verdicts.first_mut().unwrap();
        by_own.own = true;
        let opening = opening_of(&page);
        assert!(opening.contains("Of 4 statements 2 are reproduced and 2 refuted."), "{opening}");
        assert!(opening.contains("of 4; 1 by the paper&#x27;s own numbers alone"), "{opening}");
        page.figures = crate::fixture::pages::study().figures;
        assert!(!opening_of(&page).contains("class=\"st good\""));
        let text = study_page(&page).unwrap();
        let ids: Vec<&str> = text.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "{ids:?}");
    }
}
