//! `stillcore.sched`: task sets as NumPy arrays, tests by the command's names, studies in pieces.
//!
//! | file | idea |
//! |---|---|
//! | `sets` | many task sets, from arrays, JSON or a generator |
//! | `arrays` | what is known of tasks as a matrix, a row a set |
//! | `answers` | analyze: a verdict a set |
//! | `columns` | analyze: columns that Python holds, without copies |
//! | `budgets` | how much more jitter or cost sets tolerate |
//! | `likely` | how probable a late job is |
//! | `study` | a declared study: one piece, and the conclusions from all |

mod answers;
mod arrays;
mod budgets;
mod columns;
mod likely;
mod sets;
mod study;

pub(crate) use answers::{analyze, check_certificate};
pub(crate) use budgets::{budget_cost, budget_jitter};
pub(crate) use columns::analyze_columns;
pub(crate) use likely::probabilistic;
pub(crate) use sets::{TaskSets, generate, names, read_time, sets_from_arrays, sets_from_jsonl};
pub(crate) use study::{analyse_batch, read_declaration, study_conclude};
