//! The statements of the papers, quoted, each with what decides it: the paper's own numbers, its
//! own counts, an experiment, or what is missing.
//!
//! | file | idea |
//! |---|---|
//! | `statement` | the list, as read from TOML |
//! | `own` | a text against the numbers of its own paper |
//! | `answered` | every statement with its verdicts, and how many are decided |

mod answered;
mod own;
mod statement;

#[cfg(test)]
mod tests;

pub use answered::{Answered, Answers, Found, Source, Tally, Verdict, answers};
pub use own::{Own, OwnFinding};
pub use statement::{Missing, Open, Statement, StatementKind, StatementOf, Statements};
