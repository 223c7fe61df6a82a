//! Where to measure and where everything else runs: arguments resolved against this machine. It
//! refuses what can be refused before anything is written or changed.

use super::progress::Reporter;
use crate::owners;
use anyhow::Context;
use audit::Catalogue;
use journal::{enter, guardian, session};
use machine::Root;
use model::{Cpus, Error, Machine};
use std::path::{Path, PathBuf};
use sys::sched;

/// This machine and the parts of it that a measurement uses.
pub(crate) struct Place {
    /// This program.
    pub(crate) program: PathBuf,
    /// The machine as read.
    pub(crate) machine: Machine,
    /// What to measure.
    pub(crate) measured: Cpus,
    /// Where everything else runs.
    pub(crate) housekeeping: Cpus,
    /// Where the journal is.
    pub(crate) state: PathBuf,
    /// The mechanisms.
    pub(crate) mechanisms: Catalogue,
    /// What cannot be done, known before the start.
    pub(crate) limits: Vec<String>,
}

/// What the user asked for.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    /// CPUs to measure; the isolated ones, else the highest.
    pub(crate) cpus: Option<&'a Cpus>,
    /// Where the journal is to be.
    pub(crate) state: Option<&'a Path>,
    /// The mechanisms, if not the built-in ones.
    pub(crate) catalogue: Option<&'a Path>,
    /// Whether every CPU may be measured: the probes sleep most of the time.
    pub(crate) all_cpus: bool,
}

impl Place {
    /// Resolves, after undoing what a killed stillcore may have left.
    pub(crate) fn resolve(asked: &Asked) -> anyhow::Result<Self> {
        let state = state(asked.state)?;
        let mut limits = Vec::new();
        let restored = guardian::recover(&state, owners::all())?;
        if !restored.undone.is_empty() {
            Reporter::say(&format!(
                "note: took back what a killed run had left: {}",
                restored.undone.join(", ")
            ));
        }
        limits.extend(
            restored.failed.iter().map(|what| format!("left by an earlier run and still there: {what}")),
        );
        let mechanisms = match asked.catalogue {
            Some(dir) => Catalogue::load(dir)?,
            None => Catalogue::embedded()?,
        };
        let mut machine = machine::read(&Root::live())?;
        machine.limits.fifo_allowed = Some(sys::policy::fifo_allowed());
        let reachable = enter::reachable(&machine.topology.online).context("cannot ask for CPUs")?;
        let measured = match asked.cpus {
            Some(cpus) => cpus.clone(),
            None => machine::cpus_default(&machine, &reachable)?,
        };
        if asked.all_cpus {
            machine::check_online(&machine, &measured)?;
        } else {
            machine::check_cpus(&machine, &measured)?;
        }
        machine::check_reachable(&measured, &reachable)?;
        let housekeeping = match machine::housekeeping(&machine, &measured) {
            Err(_) if asked.all_cpus => {
                limits.push(
                    "no core is left for everything else: the process that stores the samples ran on the measured CPUs".to_owned(),
                );
                machine.topology.online.clone()
            }
            // A machine with isolated CPUs gives a process the others only, and these are all
            // measured.
            Ok(others) if asked.all_cpus && others.and(&sched::affinity()?).is_empty() => {
                limits.push(format!("this process may run on none of CPUs {others}, which are not measured: what stores the samples ran on the measured ones"));
                sched::affinity()?
            }
            result => result?,
        };
        check_reachable(&housekeeping, "housekeeping")?;
        let housekeeping = housekeeping.and(&reachable);
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(Self { program, machine, measured, housekeeping, state, mechanisms, limits })
    }
}

impl Place {
    /// Has everything but the probes run on these CPUs, which the user named; says so where they
    /// share a core with measured ones.
    pub(crate) fn run_on(&mut self, cpus: &Cpus) -> anyhow::Result<()> {
        machine::check_online(&self.machine, cpus)?;
        check_reachable(cpus, "named")?;
        let measured = &self.measured;
        let (shared, near) = (cpus.and(measured), cpus.and(&machine::cores(&self.machine, measured)));
        let place = if shared.is_empty() { "a core with measured CPUs, by its CPU" } else { "measured CPU" };
        if !near.is_empty() {
            let which = if shared.is_empty() { &near } else { &shared };
            self.limits.push(format!(
                "the command's main thread, which stores the samples, shared {place} {which} with a probe (--main-cpus {cpus}): its own \
                 work is in the figures"
            ));
        }
        self.housekeeping = cpus.clone();
        Ok(())
    }
}

/// Where a journal would be, of a user who has no home.
pub(crate) const NO_HOME: &str =
    "no place for the journal: HOME is not set, or is not this user's; set it, or give --state DIR";

fn state(asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    let state = asked.map(Path::to_owned).or_else(|| session::default_state(session::home().as_deref()));
    state.context(NO_HOME)
}

/// A container may withhold CPUs that the machine has.
fn check_reachable(cpus: &Cpus, what: &str) -> anyhow::Result<()> {
    let allowed = sched::affinity()?;
    if cpus.and(&allowed).is_empty() {
        let found = format!("this process may only run on CPUs {allowed}, the {what} CPUs are {cpus}");
        return Err(Error::invalid("CPU affinity", found, "at least one of them in common").into());
    }
    Ok(())
}

/// Name of a run's directory where none is given; a number is added where a run of the same second
/// has taken it.
pub(crate) fn default_out() -> PathBuf {
    let name = format!("stillcore-{}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
    let numbered = (2..).map(|number| PathBuf::from(format!("{name}-{number}")));
    let mut names = std::iter::once(PathBuf::from(&name)).chain(numbered);
    names.find(|path| !path.exists()).unwrap_or_else(|| name.into())
}
