//! Conclusions to bytes: what stillcore says of a run, as text, JSON, one HTML file and SVG charts.
//! Pure functions.
//!
//! [`Document::conclude`] draws the last conclusions from the facts of a run; every renderer takes
//! the document it returns:
//!
//! | file | idea |
//! |---|---|
//! | `document` | everything a renderer gets, and what of it goes to `analysis.json` |
//! | `heading`, `conditions` | what the run was; when, by whom, with what policy, clock, kernel and losses |
//! | `responses` | calculated response times beside measured ones |
//! | `jobs`, `clocks` | sentences about periodic jobs and about clocks |
//! | `guarantee` | response times with the observed maximum as release jitter |
//! | `advice/` | what is wrong, in order of cost, and the next command |
//! | `lint`, `locks` | mistakes of real-time programs, and waits for locks, in words |
//! | `worst` | the largest sample, its cause, what is known against it |
//! | `outcome` | pass or finding: the exit status |
//! | `distribution` | quantiles and maxima, missed releases charged |
//! | `certainty`, `tail` | how sure statistics are; what may lie beyond the largest sample |
//! | `pooled` | event counts over all measured CPUs |
//! | `opening/` | what a page or screen says first: a sentence, at most three numbers |
//! | `format`, `words` | numbers with their units, classes in words |
//! | `precision` | how many digits of an estimate its interval leaves certain |
//! | `text/` | the terminal summary |
//! | `json` | the one object of `--json` |
//! | `trace_answer` | that of `trace explain` |
//! | `html/`, `templates/` | one offline page: a file and a partial a section |
//! | `svg/` | static charts |
//! | `exposure/` | a study of exposure: a table, JSON, and a page of its own |
//! | `matrix/` | studies of exposure of several kernels side by side |
//! | `export/` | events one by one, for other tools: Perfetto, Chrome trace events, Parquet |
#![forbid(unsafe_code)]

pub mod advice;
pub mod bound;
pub mod breach;
mod certainty;
mod clocks;
mod conditions;
pub mod distribution;
mod document;
mod error;
pub mod every_lock;
mod explained;
pub mod export;
mod exposure;
#[cfg(test)]
mod fixture;
pub mod format;
mod guarantee;
mod heading;
mod html;
mod jobs;
mod json;
pub mod lint;
pub mod locks;
mod matrix;
pub mod off;
mod opening;
mod outcome;
mod over_time;
mod pooled;
pub mod precision;
pub mod responses;
pub mod stopped;
pub mod svg;
mod tail;
pub mod task_model;
mod text;
mod thieves;
pub mod trace_answer;
mod verdict;
mod words;

// The fixture is shared with the demo, which sees this crate from outside.
#[cfg(test)]
extern crate self as report;

pub use advice::{Advice, NextStep};
pub use certainty::exceedance as exceedance_line;
pub use document::{Conclusions, Document};
pub use error::Error;
pub use exposure::{ExposureStudy, exposure_line, exposure_text};
pub use guarantee::Guarantee;
pub use heading::verb;
pub use html::{Compared, TaskModelPage, page_of_model, task_model_page};
pub use html::{Judged, JudgedVerdict, PageNext, StudyFigure, StudyPage, StudySheet, Times};
pub use html::{comparison_page, exposure_page, matrix_page, notebook, page, study_page, study_sentence};
pub use json::{assess_json, assess_value};
pub use matrix::{MATRIX_SCHEMA, Matrix, MatrixKernel, matrix_markdown, matrix_text};
pub use opening::{Card, Cause, Opening, PhaseValue, opening};
pub use outcome::{Outcome, Status};
pub use text::fit;
pub use text::{Page, TextOptions, measured, screen, summary, verdict_text};
pub use thieves::{Thieves, thieves};
pub use verdict::{Facts, Known, Place, Verdict, of_sample, replaced, verdicts};
pub use words::class_title;
