//! The processor's own interrupts: timer, IPIs, NMIs, machine checks. No mask governs them; their
//! causes do.
//!
//! Rows: Linux `arch/x86/kernel/irq.c` (`arch_show_interrupts`), `arch/arm64/kernel/smp.c` (`IPI0`
//! and on, distinguished by their text).

use super::id;
use super::scene::{Scene, unknown};
use super::table::Row;
use model::resource::{Kind, Resource};

/// A row for each; the vectors that drivers hold on this CPU besides, where debugfs shows them.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    match scene.interrupts() {
        Ok(rows) => {
            let own = rows.iter().filter(|row| row.name.parse::<u32>().is_err()).map(row);
            own.chain(firmware(rows)).chain(allocated(scene)).collect()
        }
        Err(why) => vec![unknown(Kind::Vector, "vectors of the processor", why)],
    }
}

fn row(row: &Row) -> Resource {
    let (mechanism, movable, reason) = cause(&row.name, &row.text);
    Resource {
        observed: Some(format!("{} since boot", row.count)),
        count: Some(row.count),
        owner: Some(row.text.clone()).filter(|text| !text.is_empty()),
        may_touch: Some(true),
        in_force: Some(true),
        touched: Some(row.count > 0),
        movable,
        reason: Some(reason.to_owned()),
        mechanism: mechanism.map(str::to_owned),
        ..Resource::new(Kind::Vector, &row.name)
    }
}

const CALLS: &str =
    "another CPU wants a function run here, for reasons of many kinds: see stillcore explain ipi.call";
const SWITCHES: &str =
    "a task was woken for this CPU, or its tick was kicked: see stillcore explain ipi.resched";
const LATER: &str = "work queued where it cannot be done at once, by tracing, perf, printk or RCU: see stillcore explain ipi.irqwork";

/// What brings it about: mechanism, whether that can be kept away at run time, and why.
fn cause(name: &str, text: &str) -> (Option<&'static str>, Option<bool>, &'static str) {
    let says = |part: &str| text.to_ascii_lowercase().contains(part);
    match name {
        "LOC" => (Some(id::NOHZ_FULL), None, "the tick and the timers of this CPU: see the kind timer"),
        "NMI" => (
            Some(id::NMI_WATCHDOG),
            Some(true),
            "the lockup detector, profilers, and backtraces that other CPUs ask for",
        ),
        "PMI" => (
            Some(id::PERF),
            Some(true),
            "performance counters that overflow, the lockup detector's among them",
        ),
        "CAL" => (None, None, CALLS),
        "TLB" => (
            None,
            None,
            "another CPU changed a mapping that this one may have cached: see stillcore explain tlb",
        ),
        "RES" => (Some(id::SCHED_DOMAINS), None, SWITCHES),
        "IWI" => (None, None, LATER),
        "TRM" => (Some(id::THERMALD), None, "the processor crossed a temperature"),
        "MCP" => (Some(id::MCE_CHECK), Some(true), "the timer that polls machine-check banks"),
        "MCE" => (None, Some(false), "the hardware reports an error"),
        "THR" | "DFR" => {
            (Some(id::MCE_CMCI), Some(true), "corrected errors crossed the hardware's threshold")
        }
        "HYP" => (None, None, "the hypervisor has something for this CPU"),
        _ if says("reschedul") => (Some(id::SCHED_DOMAINS), None, SWITCHES),
        _ if says("function call") => (None, None, CALLS),
        _ if says("irq work") => (None, None, LATER),
        _ if says("timer broadcast") => {
            (Some(id::BROADCAST), None, "another CPU wakes this one from deep idle")
        }
        _ => (None, None, "no mask governs it"),
    }
}

/// The firmware's own interrupts, which stop every CPU and pass the kernel by. Its counter is a
/// register of the CPU, and reading that interrupts the CPU.
fn firmware(rows: &[Row]) -> Option<Resource> {
    let x86 = rows.iter().any(|row| row.name == "LOC");
    x86.then(|| Resource {
        owner: Some("firmware".to_owned()),
        reason: Some("the kernel sees none of them; gaps that no event explains may be theirs".to_owned()),
        mechanism: Some(id::SMI.to_owned()),
        ..Resource::new(Kind::Vector, "SMI")
    })
}

/// The vectors in use on this CPU, from the x86 allocator's table (debugfs `irq/domains/VECTOR`,
/// `kernel/irq/matrix.c`).
fn allocated(scene: &Scene) -> Option<Resource> {
    let debugfs = crate::debugfs(scene.root)?;
    let text = scene.root.maybe(&format!("{debugfs}/irq/domains/VECTOR"))?;
    let (count, list) = text.lines().find_map(|line| matrix(line, scene.cpu))?;
    Some(Resource {
        asked: None,
        effective: Some(list),
        observed: Some(format!("{count} allocated now")),
        owner: Some("device drivers".to_owned()),
        may_touch: Some(count > 0),
        in_force: Some(count > 0),
        reason: Some("vectors follow the masks of their interrupts".to_owned()),
        mechanism: Some(id::IRQ.to_owned()),
        ..Resource::new(Kind::Vector, "allocated to devices")
    })
}

/// A line `cpu available managed managed-allocated allocated list` of the table.
fn matrix(line: &str, cpu: u32) -> Option<(u64, String)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let numbers: Vec<u64> = words.iter().take(5).map_while(|word| word.parse().ok()).collect();
    let &[at, _, _, _, count] = numbers.as_slice() else { return None };
    (at == u64::from(cpu)).then(|| (count, words[5..].join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn every_row_of_the_processor_is_there_with_its_cause() {
        let (_dir, root) = tree(&[
            (
                "proc/interrupts",
                "  CPU0 CPU1\n 4: 1 1 IO-APIC x ttyS0\nNMI: 0 0 Non-maskable interrupts\nLOC: 5 6 Local timer interrupts\nMCP: 2 3 Machine check polls\nIPI0: 1 2 Rescheduling interrupts\nXYZ: 0 0 Something new\nERR: 9\n",
            ),
            ("proc/mounts", "d /d debugfs rw 0 0"),
            (
                "d/irq/domains/VECTOR",
                "Online bitmaps: 2\n| CPU | avl | man | mac | act | vectors\n     0 195 1 1 5 33,37\n     1 199 1 1 2 32-33",
            ),
        ]);
        let rows = rows(&Scene::new(&root, 1));
        let seen: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.touched)).collect();
        assert_eq!(
            seen,
            [
                ("NMI", Some(0), Some(false)),
                ("LOC", Some(6), Some(true)),
                ("MCP", Some(3), Some(true)),
                ("IPI0", Some(2), Some(true)),
                ("XYZ", Some(0), Some(false)),
                ("SMI", None, None),
                ("allocated to devices", None, None),
            ]
        );
        assert_eq!(rows[2].mechanism.as_deref(), Some("machinecheck-check_interval"));
        assert_eq!(rows[3].mechanism.as_deref(), Some("sched-domains"), "on arm64 the text decides");
        assert_eq!(rows[6].effective.as_deref(), Some("32-33"));
    }

    #[test]
    fn without_the_table_the_row_says_why() {
        let (_dir, root) = tree(&[("proc/interrupts", "  CPU0\n")]);
        let rows = rows(&Scene::new(&root, 1));
        assert_eq!(rows[0].reason.as_deref(), Some("/proc/interrupts has no column for CPU 1"));
        assert_eq!(rows[0].may_touch, None);
    }
}
