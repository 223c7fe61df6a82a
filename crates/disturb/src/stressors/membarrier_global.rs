//! `membarrier_global`: a memory barrier for all processes, which is a wait for an RCU grace
//! period.
//!
//! `MEMBARRIER_CMD_GLOBAL` (membarrier(2); kernel/sched/membarrier.c) waits until every CPU has
//! passed a quiescent state, for which CPUs that are slow to do so are interrupted. Kernels that
//! run nohz_full CPUs refuse it with EINVAL: calling it there is a fast loop that disturbs nobody
//! and looks like 145,664 operations a second. The kernel says so when it is asked
//! (`MEMBARRIER_CMD_QUERY`).

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::sleeps;
use crate::spec::StressorSpec;
use model::Cpus;
use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};
use sys::sched;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "membarrier_global",
    title: "memory barriers for all processes: waits for RCU grace periods",
    class: "broadcast",
    operation: "MEMBARRIER_CMD_GLOBAL",
    needs: "CONFIG_MEMBARRIER, two CPUs online, no nohz_full CPUs",
    kernel_paths: &["synchronize_rcu", "rcu_gp_kthread", "resched_cpu", "rcu_core"],
    witness: "voluntary context switches of the thread: no grace period passes without a sleep",
    danger: "RCU callbacks run in smaller batches; bounded by one wait at a time",
    default_rate: Some(50.0),
    peer: Some("--membarrier"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    refusal(membarrier_query(), online()).map_or(Ok(()), |why| Err(Error::absent(why)))?;
    let before = job.begin_counting(sleeps()?)?;
    let done = job.repeat(|| Ok(membarrier(MembarrierCommand::Global)?));
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// Why nothing would be waited for, if so.
fn refusal(can: MembarrierQuery, online: usize) -> Option<&'static str> {
    if can.is_empty() {
        return Some("this kernel has no membarrier");
    }
    if !can.contains_command(MembarrierCommand::Global) {
        return Some("this kernel runs nohz_full CPUs, and refuses global memory barriers (EINVAL)");
    }
    (online < 2).then_some("one CPU is online: there is no other to wait for")
}

/// CPUs that are online; at least those that this thread may run on.
fn online() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = text.trim().parse::<Cpus>().or_else(|_| sched::affinity());
    online.map_or(1, |cpus| cpus.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_nohz_full_cpus_is_recognised_by_its_own_answer() {
        // Query and the expedited commands, as such kernels answer; without nohz_full also Global
        // (bit 0).
        let nohz_full = MembarrierQuery::from_bits_retain(0b1_1111_1110);
        assert!(refusal(nohz_full, 4).unwrap().contains("nohz_full"));
        let others = MembarrierQuery::from_bits_retain(0b1_1111_1111);
        assert_eq!(refusal(others, 4), None);
        assert!(refusal(others, 1).unwrap().contains("one CPU"));
        assert!(refusal(MembarrierQuery::empty(), 4).unwrap().contains("no membarrier"));
    }
}
