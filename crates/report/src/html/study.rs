//! The page of a study: published beside measured results, its figures, tables and conditions.

use super::{environment, render, value};
use crate::Error;
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
    /// Published values and statements.
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
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// A published value or statement, and its judgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// What it is of.
    pub what: String,
    /// As published.
    pub published: Option<String>,
    /// As measured.
    pub measured: Option<String>,
    /// `agrees`, `differs`, …
    pub word: String,
    /// `good`, `bad`, `warn` or `dim`.
    pub class: &'static str,
    /// Why.
    pub why: String,
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

/// The whole page.
pub fn study_page(page: &StudyPage) -> Result<String, Error> {
    let figure = |figure: &StudyFigure| {
        let panel = |(svg, caption): &(String, String)| {
            context! { svg => Value::from_safe_string(svg.clone()), caption => caption.clone() }
        };
        context! { title => figure.title.clone(), half => figure.half, panels => figure.panels.iter().map(panel).collect::<Vec<_>>() }
    };
    let figures: Vec<Value> = page.figures.iter().map(figure).collect();
    // Statements alone have no numbers beside them.
    let numbers = page.judged.iter().any(|one| one.published.is_some() || one.measured.is_some());
    render(&environment()?, "study", context! { study => value(page), figures, numbers })
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
            judged: vec![Judged {
                what: hostile.clone(),
                class: "dim",
                why: hostile.clone(),
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
            notes: vec![hostile],
        };
        let text = study_page(&page).unwrap();
        assert!(text.contains("<svg class=\"chart\"></svg>"));
        assert!(!text.contains("<script>"), "{text}");
        assert!(!text.contains(">measured<"), "no column without a number");
        assert!(study_page(&StudyPage::default()).unwrap().contains("Nothing of it was published"));
    }
}
