//! The disturbed phase: control groups for the whole run, stressors for the one phase.
//!
//! The first and last cpuset of a machine flip static keys, which sends an IPI to every CPU. The groups are therefore made before the
//! first idle control and removed after the last.

use super::plan::Plan;
use crate::run::interrupted::Interrupted;
use linux::disturb::{self, Disturbance, confine};
use linux::isolate::undo::Transient;
use linux::session::Session;
use linux::sys::signals::EndSignals;
use model::stressor::StressorRecord;
use std::path::Path;
use std::time::Duration;

/// How long stressors get to begin, and to end before they are killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks for a signal while waiting.
const SLICE: Duration = Duration::from_millis(50);
/// Time for what the stressors leave to the kernel, such as the end of a network namespace, before the next idle control.
const SETTLE: Duration = Duration::from_secs(1);

/// The control groups of a run.
pub(crate) struct Groups {
    made: confine::Confinement,
    targets: Vec<String>,
}

impl Groups {
    /// Makes what this machine allows; what it does not allow is among `limits` afterwards.
    pub(crate) fn make(plan: &Plan, session: &mut Session, limits: &mut Vec<String>) -> anyhow::Result<Self> {
        let planned = confine::plan(Path::new("/"), std::process::id(), &plan.place.housekeeping);
        let targets: Vec<_> = planned.directories().iter().map(|dir| dir.display().to_string()).collect();
        // Written down as a whole before any is made: those that cannot be made are left out, and undoing them finds nothing.
        targets.iter().try_for_each(|target| session.change(Transient::Cgroup, target, || Ok(())))?;
        let made = confine::create(&planned);
        limits.extend(
            made.lacking.iter().map(|what| format!("stressors are not confined by a control group: {what}")),
        );
        Ok(Self { made, targets })
    }

    /// Removes them.
    pub(crate) fn remove(self, session: &mut Session) -> anyhow::Result<()> {
        Ok(self.targets.iter().rev().try_for_each(|target| session.take_back(Transient::Cgroup, target))?)
    }
}

/// Running stressors.
pub(crate) struct Disturbed {
    disturbance: Disturbance,
    children: Vec<String>,
}

impl Disturbed {
    /// Starts the plan's stressors and waits until they disturb.
    pub(crate) fn start(
        plan: &Plan,
        groups: &Groups,
        session: &mut Session,
        signals: &EndSignals,
    ) -> anyhow::Result<Self> {
        let options = disturb::Options {
            duration: plan.window * 3 + Duration::from_secs(60),
            groups: groups.made.groups.clone(),
            ..disturb::Options::default()
        };
        let disturbance =
            Disturbance::start(&plan.place.program, &plan.stressors, &plan.place.housekeeping, &options)?;
        let pids = disturbance.status().into_iter().map(|child| child.pid as u32);
        let children = pids.map(|pid| session.adopt(pid)).collect::<Result<_, _>>()?;
        // One that never begins says so in its record.
        let slices = PATIENCE.as_millis() / SLICE.as_millis();
        for _ in 0..slices {
            if disturbance.wait_ready(SLICE) {
                break;
            }
            if let Some(name) = signals.arrived() {
                return Err(Interrupted(name).into());
            }
        }
        Ok(Self { disturbance, children })
    }

    /// Ends them and waits until the machine has settled.
    pub(crate) fn stop(self, session: &mut Session) -> anyhow::Result<Vec<StressorRecord>> {
        let records = self.disturbance.stop(PATIENCE);
        self.children.iter().try_for_each(|target| session.forget(Transient::Process, target))?;
        std::thread::sleep(SETTLE);
        Ok(records)
    }
}
