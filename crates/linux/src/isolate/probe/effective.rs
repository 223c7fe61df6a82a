//! What is in force, as the kernel itself shows it.
//!
//! Sources: Linux `Documentation/ABI/testing/sysfs-devices-system-cpu`, `kernel/rcu/tree_nocb.h` (names of the offload threads).

use super::super::catalogue::Effective;
use super::Scene;
use model::Cpus;

/// A set of CPUs in force.
pub(super) enum InForce {
    Set(Cpus),
    /// The kernel has no such thing.
    Absent,
    /// It could not be read: the reason.
    Unknown(String),
}

pub(super) fn set(scene: &Scene, effective: &Effective) -> InForce {
    let topology = &scene.machine.topology;
    match effective {
        Effective::IsolatedCpus {} => InForce::Set(topology.isolated.clone()),
        // 5.10 has the file only with the option; 6.1 always. Either way an empty set is the truth.
        Effective::NohzFullCpus {} => InForce::Set(topology.nohz_full.clone()),
        Effective::RcuOffload {} => rcu_offload(scene),
        // Words and numbers are judged by `cmdline`, masks within others by `file`.
        Effective::File { .. } => InForce::Absent,
        Effective::HexmaskFile { path } | Effective::Within { path } => hexmask(scene, path),
        Effective::FairServer {} => {
            InForce::Set(topology.online.iter().filter(|cpu| server(scene, *cpu)).collect())
        }
    }
}

/// The CPUs whose callbacks have a thread of their own: `rcuop/N`, `rcuos/N` (`rcuob/N` before 4.20).
fn rcu_offload(scene: &Scene) -> InForce {
    let threads = &scene.processes().kernel;
    if threads.is_empty() {
        return InForce::Unknown("no kernel threads could be read".to_owned());
    }
    let cpu = |name: &str| {
        let rest = ["rcuop/", "rcuos/", "rcuob/"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
        rest.parse().ok()
    };
    InForce::Set(threads.iter().filter_map(|thread| cpu(&thread.name)).collect())
}

fn hexmask(scene: &Scene, path: &str) -> InForce {
    match scene.root.text(path) {
        Err(error) => InForce::Unknown(error.to_string()),
        Ok(None) => InForce::Absent,
        Ok(Some(text)) => match Cpus::parse_hex(&text) {
            Ok(set) => {
                InForce::Set(set.and(&scene.machine.topology.online.or(&scene.machine.topology.present)))
            }
            Err(error) => InForce::Unknown(format!("/{path}: {error}")),
        },
    }
}

/// Whether the fair server takes time from real-time tasks on the CPU; kernels before 6.12 have none.
pub(super) fn server(scene: &Scene, cpu: u32) -> bool {
    scene.machine.limits.fair_server_runtime_ns.get(&cpu).is_some_and(|runtime| *runtime > 0)
}
