//! `trace_event`: a tracepoint switched on and off in a tracing instance of its own.
//!
//! A tracepoint is a static call behind a static key (kernel/tracepoint.c: `tracepoint_add_func`,
//! `tracepoint_remove_func`); switching it patches kernel text, the key and the call's trampoline
//! and site: on x86 nine broadcasts for on, and nine for off. What anybody traces elsewhere is not
//! touched, and nothing of it is recorded here but the operation itself.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::witness::Counter;
use model::Cpus;
use record::changes::TraceInstance;
use record::instance::Instance;
use std::path::{Path, PathBuf};
use std::{fs, io};

const EVENT: &str = "events/task/task_rename";
/// Ours record one event an operation.
const BUFFER_KIB: u64 = 64;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "trace_event",
    title: "a tracepoint switched on and off in a tracing instance of its own",
    class: "poke",
    operation: "the event switched on, provoked once, and switched off",
    privilege: "root",
    needs: "tracefs with CONFIG_EVENT_TRACING; instances",
    kernel_paths: &[
        "tracepoint_probe_register",
        "static_call_update",
        "static_key_enable",
        "text_poke_bp",
        "on_each_cpu(do_sync_core)",
    ],
    witness: "events that the kernel has recorded in the instance: one an operation",
    cleanup: "the instance is removed",
    danger: "buffers of 1.4 MiB for each CPU that is not its own",
    default_rate: Some(10.0),
    leaves: |mark| instance(mark).into_iter().collect(),
    tracing: true,
    work,
    ..StressorSpec::PLAIN
};

/// The instance that a stressor of this mark makes.
pub(super) fn instance(mark: &Mark<'_>) -> Option<Leaving> {
    let path = Instance::path_of(mark.tracefs.as_deref()?, &format!("stillcore-stress-{}", mark.id));
    Some(Leaving::TraceInstance(TraceInstance { path }))
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let Some(path) = job.leaves.first().map(PathBuf::from) else {
        return Err(Error::absent("tracefs is mounted nowhere that this user may look"));
    };
    let instance = OwnInstance::create(&path, &job.cpus)?;
    let enable = instance.0.path.join(EVENT).join("enable");
    if !enable.exists() {
        return Err(Error::absent("this kernel has no event task:task_rename"));
    }
    let cpus = job.cpus.clone();
    let before =
        job.begin_counting(Counter::read("events recorded in the instance", || instance.recorded(&cpus))?)?;
    let done = job.repeat(|| {
        fs::write(&enable, "1")?;
        let renamed = rustix::thread::set_name(c"trace_event");
        fs::write(&enable, "0")?;
        Ok(renamed?)
    });
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// A tracing instance that goes with its owner.
pub(super) struct OwnInstance(pub(super) Instance);

impl OwnInstance {
    pub(super) fn create(path: &Path, cpus: &Cpus) -> Result<Self, Error> {
        if !path.parent().is_some_and(Path::is_dir) {
            return Err(Error::absent("tracefs is not to be seen, or has no instances"));
        }
        let instance = Self(Instance::create(path.to_owned(), cpus, BUFFER_KIB).map_err(refused)?);
        instance.0.record(true).map_err(refused)?;
        Ok(instance)
    }

    /// Events recorded so far on these CPUs, kept or overwritten.
    pub(super) fn recorded(&self, cpus: &Cpus) -> Result<u64, Error> {
        let of = |cpu| self.0.account(cpu).map(|account| account.left + account.overrun);
        cpus.iter().map(of).sum::<Result<u64, _>>().map_err(refused)
    }
}

impl Drop for OwnInstance {
    fn drop(&mut self) {
        // The supervisor removes what is left.
        let _ = self.0.remove();
    }
}

pub(super) fn refused(error: sys::Error) -> Error {
    Error::refused("trace in an instance of its own")(io::Error::other(error))
}
