//! The opening of pages that are not of one run: a word, the sentence, three numbers, the plot that
//! matters and the next command; the same shape as that of a run.

use minijinja::{Value, context};
use serde::Serialize;

use super::opening::card;
use crate::Opening;

/// What a reader does next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageNext {
    /// One line for a shell.
    pub command: String,
    /// Why, as a sentence without its end.
    pub why: String,
}

/// What the opening of such a page shows.
pub(super) struct Front {
    /// The outcome in a word, and the class of its colour: `good`, `bad`, `plain`.
    pub(super) word: String,
    pub(super) tone: &'static str,
    pub(super) opening: Opening,
    /// More to the verdict, a line each.
    pub(super) lines: Vec<String>,
    /// What weakens it.
    pub(super) warnings: Vec<String>,
    pub(super) plot: Value,
    pub(super) next: Option<PageNext>,
}

impl Front {
    /// What the partial `front` gets.
    pub(super) fn values(self) -> Value {
        context! {
            word => self.word,
            tone => self.tone,
            sentence => self.opening.sentence.as_str(),
            lines => self.lines,
            warnings => self.warnings,
            cards => self.opening.cards.iter().map(|one| card(one, |_| 0)).collect::<Vec<_>>(),
            plot => self.plot,
            next => super::value(&self.next),
        }
    }
}

/// A plot of one size, scaled to the window.
pub(super) fn single(svg: &str, caption: &str) -> Value {
    context! { svg => Value::from_safe_string(svg.to_owned()), caption => caption }
}
