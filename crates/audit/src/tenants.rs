//! Kept tasks as a placement must know them: a cpuset partition takes its CPUs from everybody
//! outside of it, so what is kept there must be in it. A partition takes whole processes, and no
//! kernel threads.

use super::purpose::Purpose;
use machine::{Root, UserThread, group_of, processes, user_threads};
use model::Cpus;

/// Who is kept on the CPUs to isolate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tenants {
    pub(super) processes: Vec<Tenant>,
    /// Kernel threads, by name.
    pub(super) kernel: Vec<String>,
}

/// A process with a kept thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tenant {
    /// `PID/STARTTIME/NAME`.
    pub(super) target: String,
    /// Its control group of version 2, from the root of the hierarchy.
    pub(super) group: Option<String>,
    /// A thread of it that may run on other CPUs, number and name.
    pub(super) roamer: Option<String>,
}

impl Tenants {
    pub(super) fn of(root: &Root, isolated: &Cpus, purpose: &Purpose) -> Self {
        if *purpose == Purpose::default() {
            return Self::default();
        }
        let all = processes(root);
        let meets = |cpus: &Cpus| !cpus.and(isolated).is_empty();
        let kept = |thread: &UserThread| {
            meets(&thread.allowed)
                && (purpose.placed.has(root, thread.pid) || purpose.keeps_thread(root, thread))
        };
        let mut tenants = Self::default();
        for process in &all.user {
            let threads = user_threads(root, std::slice::from_ref(process));
            if threads.iter().any(kept) {
                let roamer = threads.iter().find(|thread| !thread.allowed.is_subset(isolated));
                tenants.processes.push(Tenant {
                    target: format!("{}/{}/{}", process.pid, process.start, process.name),
                    group: group_of(root, process.pid),
                    roamer: roamer.map(|thread| format!("{} {}", thread.tid, thread.name)),
                });
            }
        }
        let kernel = all.kernel.into_iter().filter(|thread| meets(&thread.allowed) && thread.movable);
        tenants.kernel =
            kernel.filter(|thread| purpose.keeps_kernel_thread(thread)).map(|thread| thread.name).collect();
        tenants
    }

    /// Why a partition would not leave all of them where they are.
    pub(super) fn hindrance(&self) -> Option<String> {
        if let Some(name) = self.kernel.first() {
            return Some(format!("the kernel thread {name} is kept, which no partition can take"));
        }
        let of = |tenant: &Tenant| Some((tenant.target.clone(), tenant.roamer.clone()?));
        let (process, thread) = self.processes.iter().find_map(of)?;
        let (pid, name) = process.split_once('/').unwrap_or((&process, ""));
        let name = name.split_once('/').map_or("", |(_, name)| name);
        Some(format!(
            "process {pid} {name} is kept, and a partition would confine its thread {thread} to these CPUs"
        ))
    }
}
