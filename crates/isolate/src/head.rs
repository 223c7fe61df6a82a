//! An isolation in force, as it was requested.

use model::Cpus;
use model::plan::{Placement, Plan};
use serde::{Deserialize, Serialize};

/// The isolation in force, as requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The CPUs that are to be still.
    pub cpus: Cpus,
    /// They and, unless cores were split, their siblings.
    pub isolated: Cpus,
    /// Those for everything else.
    pub housekeeping: Cpus,
    /// How the scheduler was to be kept off; [`Found::placement`] says how it is.
    pub placement: Placement,
    /// The name of the deployment, where one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// When it was begun, in clock ticks since boot: tasks that started later were never touched.
    pub started_ticks: u64,
}

impl Head {
    /// The head of a plan that is about to be carried out.
    pub fn of(plan: &Plan, deployment: Option<&str>) -> Self {
        Self {
            cpus: plan.cpus.clone(),
            isolated: plan.isolated.clone(),
            housekeeping: plan.housekeeping.clone(),
            placement: plan.placement,
            deployment: deployment.map(str::to_owned),
            started_ticks: sys::process::Owner::of_this_process().map_or(0, |owner| owner.start),
        }
    }
}
