//! An adversary: it looks for a job that is late, or later than its bound, in a system that a test
//! has accepted.
//!
//! A simulation in whole nanoseconds of what the tests speak of, which shares no formula with the
//! library: jobs are stretches of execution, suspension, sections without preemption and critical
//! sections; cores take the most urgent of them. Sets are drawn in ticks of [`TICK_NS`], and jobs
//! arrive, are delayed and request locks at any nanosecond between, as real time has it. Where jobs
//! come and when they ask is drawn near the worst cases that are known, and then changed step by
//! step towards later jobs.
//!
//! | file | what |
//! |---|---|
//! | `job` | jobs and their stretches |
//! | `simulate` | who runs when |
//! | `serve` | who gets a lock next |
//! | `suspending` | locks whose waiters suspend |
//! | `donation` | locks under which a job gives its priority away when it is released |
//! | `two_queues` | locks with any task on any core: first come, first served, after an order by priority |
//! | `script` | when jobs come and what they do: drawn, and changed |
//! | `search` | from one script to a worse one |
//! | `sets` | systems to ask the tests about |
//! | `supplies` | when cores supply nothing |
//! | `chains` | data that goes from task to task |
//! | `executor_sets` | systems of callbacks in executors of ROS 2 |
//! | `executors` | callbacks in executors of ROS 2 |
//! | `campaign` | every test and protocol |

pub(crate) mod campaign;
pub(crate) mod chains;
pub(crate) mod donation;
pub(crate) mod executor_sets;
pub(crate) mod executors;
pub(crate) mod job;
pub(crate) mod script;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod sets;
pub(crate) mod simulate;
pub(crate) mod supplies;
pub(crate) mod suspending;
pub(crate) mod two_queues;

use super::numbers::Numbers;

/// A tick of drawn sets; jobs arrive at quarters of it.
pub(crate) const TICK_NS: u64 = 4;
