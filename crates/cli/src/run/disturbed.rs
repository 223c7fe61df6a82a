//! Running disturbances: control groups for the whole run, stressors while they are wanted.
//!
//! The first and last cpuset of a machine flip static keys, which sends an IPI to every CPU. So a
//! measurement makes the groups before the first idle control and removes them after the last.

use super::interrupted::Interrupted;
use disturb::changes::Cgroup;
use disturb::leaving::Leaving;
use disturb::{Disturbance, Order, Status, available, catalogue, confine};
use journal::session::{Session, Ticket};
use model::Cpus;
use model::stressor::StressorRecord;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sys::signals::EndSignals;

/// How long stressors get to begin, and to end before they are killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Poll interval for a signal while waiting.
const SLICE: Duration = Duration::from_millis(50);
/// Time for what the stressors leave to the kernel, such as the end of a network namespace, before
/// the next idle control.
const SETTLE: Duration = Duration::from_secs(1);

/// The control groups of a run.
pub(crate) struct Groups {
    made: confine::Confinement,
    tickets: Vec<Ticket>,
}

impl Groups {
    /// Makes what this machine allows; what it does not allow is among `limits` afterwards.
    pub(crate) fn make(
        orders: &[Order],
        measured: &Cpus,
        session: &mut Session,
        limits: &mut Vec<String>,
    ) -> anyhow::Result<Self> {
        let mut cpus: Cpus = orders.iter().flat_map(|order| order.cpus.iter()).collect();
        for order in orders {
            if catalogue::find(&order.name)?.colocated {
                cpus = cpus.iter().chain(measured.iter()).collect();
            }
        }
        let mut room = confine::Room::of(orders)?;
        match available::check(Path::new("/"), orders)? {
            // Memory beyond what the stressors are known to take is exhausted in their group, not
            // on the machine.
            Some(available) => room.memory_bytes = room.memory_bytes.min(available.bytes),
            None => limits.push(
                "whether there is memory enough for the stressors is not known: /proc/meminfo does not say"
                    .to_owned(),
            ),
        }
        let planned = confine::plan(Path::new("/"), std::process::id(), &cpus, room);
        // Written down as a whole before any is made: those that cannot be made are left out, and
        // undoing them finds nothing.
        let groups = planned.directories().into_iter().map(|path| session.foresee(Arc::new(Cgroup { path })));
        let tickets = groups.collect::<Result<_, _>>()?;
        let made = confine::create(&planned);
        limits.extend(
            made.lacking.iter().map(|what| format!("stressors are not confined by a control group: {what}")),
        );
        Ok(Self { made, tickets })
    }

    /// Removes them.
    pub(crate) fn remove(self, session: &mut Session) -> anyhow::Result<()> {
        Ok(self.tickets.iter().rev().try_for_each(|group| session.take_back(*group))?)
    }
}

/// Running stressors.
pub(crate) struct Disturbed {
    disturbance: Disturbance,
    children: Vec<Ticket>,
    /// Values to restore.
    kept: Vec<Ticket>,
    /// What the stressors themselves may leave.
    leaves: Vec<Ticket>,
}

impl Disturbed {
    /// Starts stressors and waits until they disturb. `longest`: they end by themselves after that
    /// time. `measured`: for those that need a thread there.
    pub(crate) fn start(
        orders: &[Order],
        longest: Duration,
        measured: &Cpus,
        groups: &Groups,
        session: &mut Session,
        signals: &EndSignals,
    ) -> anyhow::Result<Self> {
        let options =
            disturb::Options { duration: longest, measured: measured.clone(), ..disturb::Options::default() };
        Self::with(orders, options, groups, session, signals)
    }

    /// The same with further options; groups and tracefs are filled in. Held ones wait for
    /// [`go`](Self::go).
    pub(crate) fn with(
        orders: &[Order],
        options: disturb::Options,
        groups: &Groups,
        session: &mut Session,
        signals: &EndSignals,
    ) -> anyhow::Result<Self> {
        let leaves = foresee(orders, session)?;
        let options = disturb::Options {
            groups: groups.made.groups.clone(),
            tracefs: tracefs(orders, session)?,
            dir: Some(session.state().to_owned()),
            ..options
        };
        let mut files: Vec<&str> = Vec::new();
        for order in orders {
            for path in catalogue::find(&order.name)?.writes {
                if !files.contains(path) {
                    files.push(path);
                }
            }
        }
        let kept = files.into_iter().filter_map(|path| session.keep(path).transpose());
        let kept = kept.collect::<Result<_, _>>()?;
        let program = session.program().to_owned();
        let disturbance = Disturbance::start(&program, orders, &options)?;
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
        Ok(Self { disturbance, children, kept, leaves })
    }

    /// Lets held ones begin.
    pub(crate) fn go(&self) {
        self.disturbance.go();
    }

    /// Whether all have ended by themselves.
    pub(crate) fn over(&self) -> bool {
        self.disturbance.status().iter().all(|child| child.ended)
    }

    /// The stressors as of now.
    pub(crate) fn status(&self) -> Vec<Status> {
        self.disturbance.status()
    }

    /// Ends them and waits until the machine has settled.
    pub(crate) fn stop(self, session: &mut Session) -> anyhow::Result<Vec<StressorRecord>> {
        let records = self.disturbance.stop(PATIENCE);
        self.leaves.iter().rev().try_for_each(|leaving| session.take_back(*leaving))?;
        self.kept.iter().rev().try_for_each(|value| session.take_back(*value))?;
        self.children.iter().try_for_each(|child| session.forget(*child))?;
        std::thread::sleep(SETTLE);
        Ok(records)
    }
}

/// Where tracefs is, mounted for the call if need be; nothing where no stressor wants it or this
/// kernel lacks it.
fn tracefs(orders: &[Order], session: &mut Session) -> anyhow::Result<Option<PathBuf>> {
    let wanted = |order: &Order| catalogue::find(&order.name).map(|spec| spec.tracing);
    let wanted = orders.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
    Ok(wanted.contains(&true).then(|| session.tracefs().ok()).flatten())
}

/// Writes down what the stressors may leave, before there is any of it.
fn foresee(orders: &[Order], session: &mut Session) -> anyhow::Result<Vec<Ticket>> {
    let tracefs = tracefs(orders, session)?;
    let mut leaves = Vec::new();
    for (number, order) in orders.iter().enumerate() {
        leaves.extend(disturb::foreseen::of(order, number, tracefs.as_deref())?);
    }
    let changes = leaves.iter().filter_map(Leaving::change);
    Ok(changes.map(|change| session.foresee(change)).collect::<Result<_, _>>()?)
}
