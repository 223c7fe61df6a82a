//! Schedulability theory as pure functions over integer nanoseconds: no clock, no file, no machine.
//!
//! One idea a file. A [`TaskSet`] goes in, plain data comes out:
//!
//! | file | idea |
//! |---|---|
//! | `task` | tasks and checked task sets |
//! | `order` | fixed-priority orderings |
//! | `window` | least solution of the busy-window equation, with safe starting bounds |
//! | `verdict` | the shape every test answers in |
//! | `fp_rta` | uniprocessor fixed-priority response times, with release jitter and blocking |
//! | `fp_columns` | the busy-window equation in vector units |
//! | `fp_published` | the same by two published equations that differ, to compare with |
//! | `fp_quick` | the same yes or no, without the response times: bounds first |
//! | `fp_lanes/` | the same for many sets at a time, in vector units |
//! | `fp_suspension` | response times with self-suspension treated as release jitter |
//! | `edf_qpa` | uniprocessor EDF: processor demand, with release jitter |
//! | `fp_curves` | the same with arrival curves, cost curves and the supply of a core |
//! | `bounds` | arrival and cost curves, and what follows from their entries |
//! | `chain` | tasks one after another: what is asked of them |
//! | `chains` | how late the last of them may be |
//! | `executor/` | callbacks in executors of ROS 2, and chains of them |
//! | `supply` | what a reservation supplies at least |
//! | `edf_rta` | uniprocessor EDF: response times, with the same |
//! | `flow` | what a task asks of its core, with curves or without |
//! | `fp_limited` | response times with sections that cannot be preempted |
//! | `global` | tests of global scheduling and the admission of `SCHED_DEADLINE`, one a file |
//! | `fractions` | the sign of a sum of fractions, exactly |
//! | `certificate` | verdicts with numbers that prove them, and their checker |
//! | `overheads/` | tests of one core that count what the kernel costs |
//! | `question` | a system as a line of JSON |
//! | `question_raw` | such a line as it is written, not judged yet |
//! | `question_bounds` | its curves, judged |
//! | `question_rules` | what its numbers mean, and which contradict each other |
//! | `question_line` | the way back |
//! | `simple/` | independent tasks on one core in bulk: read from lines or columns, tested in the same memory |
//! | `locks` | locks between cores: blocking, and response times with it |
//! | `analyze` | one question, one test by name, one answer |
//! | `ask` | the same with cores assigned, locks, overheads: what is asked of every set |
//! | `system` | cores, tasks, requests: a question as a user puts it |
//! | `partition` | which core a task gets |
//! | `generate/` | random task sets, the same on every machine |
//! | `curves/` | shares of random sets that tests accept, compared set by set |
//! | `budget` | what cores together tolerate |
//! | `budget_whole` | the same with locks between cores, and under global tests |
//! | `cost_margin` | the largest factor by which costs may grow |
//! | `jitter_margin` | the largest uniform release jitter a set tolerates |
//! | `probabilistic/` | how probable a late job is, from measured latencies |
//! | `jitter_margin_edf` | the same under EDF |
//! | `jitter_steps` | where along the jitter axis a busy window jumps |
//! | `paper_sets` | published task sets, as data |
//!
//! Everywhere, index is priority: task 0 is the highest.
//!
//! ```
//! use sched::{Limits, jitter_margin, paper_sets, response_times};
//!
//! let set = paper_sets::IEEE_ACCESS_2020.task_set();
//! let verdict = response_times(&set, Limits::default());
//! assert_eq!(verdict.response_times, [Some(3_000_000), Some(8_000_000), Some(29_000_000)]);
//! assert_eq!(jitter_margin(&set, Limits::default()).margin_ns, Some(7_000_000));
//! ```
#![forbid(unsafe_code)]

mod analyze;
mod ask;
pub mod asked;
mod assign;
mod bounds;
mod budget;
mod budget_whole;
pub mod certificate;
mod chain;
mod chains;
mod cost_margin;
pub mod curves;
mod edf_qpa;
mod edf_rta;
mod equals;
mod equals_suspending;
pub mod executor;
mod flow;
mod fp_columns;
mod fp_curves;
mod fp_lanes;
mod fp_limited;
mod fp_published;
mod fp_quick;
mod fp_rta;
mod fp_suspension;
mod fractions;
pub mod generate;
pub mod global;
mod jitter_margin;
mod jitter_margin_edf;
mod jitter_steps;
mod largest;
pub mod locks;
mod order;
pub mod overheads;
mod overheads_error;
pub mod paper_sets;
mod partition;
pub mod probabilistic;
pub mod question;
mod question_bounds;
mod question_line;
mod question_plain;
mod question_raw;
mod question_rules;
pub mod simple;
mod supply;
mod system;
mod task;
mod verdict;
mod window;

pub use analyze::{Refusal, Test, admission, analyze};
pub use ask::{Ask, AskError, EdfJitter};
pub use assign::Order;
pub use bounds::{Bounds, MAX_ENTRIES};
pub use budget::{BudgetTest, CoreBudget, CostBudget, JitterBudget};
pub use budget_whole::{WholeBudget, cost_of_whole, jitter_of_whole};
pub use chain::{Chain, Edge};
pub use chains::{ChainBound, ChainError, ChainVerdict, bound_chains};
pub use cost_margin::{
    CostMargin, UNCHANGED_PPM, cost_margin, cost_margin_edf, cost_margin_where, with_costs,
};
pub use edf_qpa::edf_qpa;
pub use equals::equals;
pub use fp_lanes::{Path, are_generated_schedulable, are_schedulable};
pub use fp_limited::response_times_limited;
pub use fp_published::{Published, response_times_as_published};
pub use fp_quick::is_schedulable;
pub use fp_rta::response_times;
pub use fp_suspension::{SuspensionError, response_times_with_suspension};
pub use jitter_margin::{JitterMargin, jitter_margin};
pub use jitter_margin_edf::jitter_margin_edf;
pub use jitter_steps::{JitterStep, JitterSteps, jitter_steps};
pub use order::{deadline_minus_jitter_monotonic, deadline_monotonic, rate_monotonic};
pub use partition::{Fit, Heuristic, partition, place};
pub use question_line::line as question_line;
pub use supply::Supply;
pub use system::{Access, MAX_CORES, Request, System, SystemTask};
pub use task::{Field, MAX_NS, MAX_TASKS, Task, TaskError, TaskSet};
pub use verdict::Verdict;
pub use window::Limits;
