//! Softirqs: what interrupts left to do, on the CPU that took the interrupt or that was asked.
//!
//! File: proc(5), `/proc/softirqs`, with a column for every possible CPU.

use super::id;
use super::scene::{Scene, unknown};
use super::table::{self, Row};
use model::resource::{Kind, Resource};

/// A row for each softirq.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    match table::read(scene.root, scene.cpu, "proc/softirqs") {
        Ok(rows) => rows.into_iter().map(row).collect(),
        Err(why) => vec![unknown(Kind::Softirq, "softirqs", why)],
    }
}

fn row(row: Row) -> Resource {
    let (mechanism, owner, reason) = cause(&row.name);
    Resource {
        observed: Some(format!("{} since boot", row.count)),
        count: Some(row.count),
        owner: Some(owner.to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        touched: Some(row.count > 0),
        movable: None,
        reason: Some(reason.to_owned()),
        mechanism: mechanism.map(str::to_owned),
        ..Resource::new(Kind::Softirq, row.name)
    }
}

/// Mechanism, subsystem, and what brings it to a CPU.
fn cause(name: &str) -> (Option<&'static str>, &'static str, &'static str) {
    match name {
        "HI" | "TASKLET" => (Some(id::IRQ), "drivers", "runs where the driver's interrupt came in"),
        "TIMER" => {
            (Some(id::TIMER_MIGRATION), "timer wheel", "runs where the timer was armed, or migrated to")
        }
        "NET_TX" => (Some(id::NET_XPS), "network", "runs where a packet was sent, or its completion came in"),
        "NET_RX" => (
            Some(id::NET_RPS),
            "network",
            "runs where the queue's interrupt came in, or RPS steered the packet",
        ),
        "BLOCK" => (
            Some(id::BLK_RQ_AFFINITY),
            "block layer",
            "runs where the queue's interrupt came in, or on the CPU that asked",
        ),
        "IRQ_POLL" => (Some(id::IRQ), "block layer", "runs where the queue's interrupt came in"),
        "SCHED" => {
            (Some(id::SCHED_DOMAINS), "scheduler", "balances load between the CPUs of a scheduling domain")
        }
        "HRTIMER" => (Some(id::TIMER_MIGRATION), "high-resolution timers", "runs where the timer was armed"),
        "RCU" => (Some(id::RCU_NOCBS), "RCU", "runs callbacks of this CPU unless these are offloaded"),
        _ => (None, "kernel", "no mask governs it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn each_softirq_has_its_count_and_its_cause() {
        let (_dir, root) = tree(&[("proc/softirqs", "   CPU0 CPU1\n  HI: 0 0\n RCU: 4 9\n")]);
        let rows = rows(&Scene::new(&root, 1));
        assert_eq!((rows[0].touched, rows[0].count), (Some(false), Some(0)));
        assert_eq!((rows[1].touched, rows[1].count), (Some(true), Some(9)));
        assert_eq!(rows[1].mechanism.as_deref(), Some("rcu_nocbs"));
    }

    #[test]
    fn no_table_is_not_no_softirqs() {
        let (_dir, root) = tree(&[("proc/x", "")]);
        let rows = rows(&Scene::new(&root, 1));
        assert_eq!((rows.len(), rows[0].may_touch), (1, None));
        assert_eq!(rows[0].reason.as_deref(), Some("there is no /proc/softirqs"));
    }
}
