//! The Python package: runs as Arrow and NumPy, the analysis, schedulability, the audit of captured
//! machines. No machine is changed and nothing needs Linux.
//!
//! Here are the functions as Python's interpreter calls them (`stillcore._native`); what users
//! import, with names, defaults and documentation, is in `python/stillcore`. Everything long runs
//! without the interpreter's lock. pyo3's macros expand to `unsafe` of their own, which the line
//! below lets pass: it holds for what is written here.
//!
//! | file | idea |
//! |---|---|
//! | `error` | one exception: what, where, what was expected |
//! | `table` | Arrow record batches, shared with whoever asks; columns as NumPy arrays |
//! | `samples`, `events` | what a run holds, as tables |
//! | `run` | a run's own words, and its conclusions |
//! | `describe`, `compare`, `exposure` | the analysis: statistics of samples, groups of runs, events per operation |
//! | `audit` | a machine, captured or this one, judged by the catalogue |
//! | `sched/` | task sets, tests, studies |
//! | `parallel` | many sets at once |
#![forbid(unsafe_code)]

mod audit;
mod compare;
mod describe;
mod error;
mod events;
mod exposure;
mod parallel;
mod run;
mod samples;
mod sched;
mod table;

use pyo3::prelude::*;

/// `stillcore._native`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::audit::audit_machine;
    #[pymodule_export]
    use super::compare::{Runs, compare, compare_chi2, load_runs, rank};
    #[pymodule_export]
    use super::describe::{describe, share_bound};
    #[pymodule_export]
    use super::exposure::{exposure_facts, exposure_table};
    #[pymodule_export]
    use super::run::{Conclusions, conclude, read_events, read_run, read_samples};
    #[pymodule_export]
    use super::sched::{
        TaskSets, analyse_batch, analyze, analyze_columns, budget_cost, budget_jitter, check_certificate,
        generate, names, probabilistic, read_declaration, read_time, sets_from_arrays, sets_from_jsonl,
        study_conclude,
    };
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
