//! What is in force, as the kernel itself shows it.
//!
//! Sources: Linux `Documentation/ABI/testing/sysfs-devices-system-cpu`, `kernel/rcu/tree_nocb.h`
//! (names of the offload threads).

use super::super::catalogue::Effective;
use super::unread::Unread;
use super::{Scene, domains};
use boot::Kernel;
use model::Cpus;

/// The CPUs for which a mechanism is in force; `None` where the kernel has no such thing.
pub(super) fn set(scene: &Scene, effective: &Effective) -> Result<Option<Cpus>, Unread> {
    let topology = &scene.machine.topology;
    Ok(Some(match effective {
        // What cpusets of version 1 have taken out is in no list of the kernel's.
        Effective::IsolatedCpus {} => topology.isolated.or(&domains::taken_out(scene)),
        // 5.10 has the file only with the option; 6.1 always. Either way an empty set is the truth.
        // nohz=off takes full dynticks away, and the file still names the CPUs.
        Effective::NohzFullCpus {} if crate::probe::parameter::without_dynticks(scene.machine) => {
            Cpus::default()
        }
        Effective::NohzFullCpus {} => topology.nohz_full.clone(),
        Effective::RcuOffload {} | Effective::RcuPoll {} => rcu_offload(scene)?,
        // Words and numbers are judged by `cmdline`, masks within others by `file`.
        Effective::File { .. } | Effective::TscWatched {} => return Ok(None),
        Effective::HexmaskFile { path } | Effective::Within { path } => {
            let Some(text) = scene.root.text(path)? else { return Ok(None) };
            let mask =
                Cpus::parse_hex(&text).map_err(|error| Unread::NoCpus { file: path.clone(), error })?;
            mask.and(&topology.online.or(&topology.present))
        }
        Effective::FairServer {} => topology.online.iter().filter(|cpu| server(scene, *cpu)).collect(),
    }))
}

/// The CPUs whose callbacks are offloaded. Since 5.17 the kernel creates the threads of all CPUs
/// once one CPU is offloaded, so a thread proves nothing; a CPU without one is not offloaded. The
/// requested CPUs are computed as the kernel does; its boot log takes precedence. Linux
/// kernel/rcu/tree_nocb.h, `rcu_nocb_setup`, `rcu_init_nohz`.
pub(crate) fn rcu_offload(scene: &Scene) -> Result<Cpus, Unread> {
    let threads = &scene.processes().kernel;
    if threads.is_empty() {
        return Err(Unread::NoThreads);
    }
    let cpu = |name: &str| {
        let rest = ["rcuop/", "rcuos/", "rcuob/"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
        rest.parse().ok()
    };
    let served: Cpus = threads.iter().filter_map(|thread| cpu(&thread.name)).collect();
    if served.is_empty() {
        return Ok(served);
    }
    let offloaded = machine::rcu_offloaded(scene.root).map_or_else(|| rcu_asked(scene), Ok)?;
    Ok(offloaded.and(&served))
}

/// The CPUs whose callbacks the kernel was to offload as it booted, by its command line.
fn rcu_asked(scene: &Scene) -> Result<Cpus, Unread> {
    let kernel = Kernel::running(scene.root, scene.machine);
    // The kernel's own report of full dynticks takes precedence over the requested list.
    let implied = &scene.machine.topology.nohz_full;
    if implied.is_empty()
        && kernel.config.is_none()
        && crate::probe::parameter::value(scene, "rcu_nocbs").is_none()
    {
        return Err(Unread::Unlisted);
    }
    boot::offloaded(&kernel, &scene.machine.cmdline, implied).map_err(Unread::Unlogged)
}

/// Whether the fair server takes time from real-time tasks on the CPU; kernels before 6.12 have
/// none.
pub(super) fn server(scene: &Scene, cpu: u32) -> bool {
    scene.machine.limits.fair_server_runtime_ns.get(&cpu).is_some_and(|runtime| *runtime > 0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const SAID: &str = "stillcore-boot-log";

    /// A kernel since 5.17, which makes threads of all four CPUs whichever are offloaded.
    fn offloading(cmdline: &str, nohz_full: &str, log: &str) -> (String, String) {
        finding("rcu_nocbs", &[], cmdline, nohz_full, log)
    }

    fn finding(
        id: &str,
        kernel: &[(&str, &str)],
        cmdline: &str,
        nohz_full: &str,
        log: &str,
    ) -> (String, String) {
        let stat =
            |name: &str, pid: u32| format!("{pid} ({name}) S 2 0 0 0 -1 2129984 {}0 0", "0 ".repeat(28));
        let files_of = |cpu: u32| {
            let pid = 20 + cpu;
            let status = "Cpus_allowed_list:\t0-3".to_owned();
            [
                (format!("proc/{pid}/stat"), stat(&format!("rcuop/{cpu}"), pid)),
                (format!("proc/{pid}/status"), status),
            ]
        };
        let threads: Vec<(String, String)> = (0..4).flat_map(files_of).collect();
        let mut files = with_cpus(&[
            ("sys/devices/system/cpu/possible", "0-3"),
            ("sys/devices/system/cpu/nohz_full", nohz_full),
            ("proc/cmdline", cmdline),
        ]);
        files.extend_from_slice(kernel);
        files.extend(threads.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        if !log.is_empty() {
            files.push((SAID, log));
        }
        let (state, reason, _) = judged(id, &files);
        (state, reason)
    }

    #[test]
    fn threads_for_every_cpu_do_not_mean_that_every_cpu_is_offloaded() {
        let state = |cmdline: &str, nohz_full: &str, log: &str| offloading(cmdline, nohz_full, log).0;
        // The wrong half: the audit was green for it.
        let (wrong, reason) = offloading("rcu_nocbs=0-1", "", "");
        assert_eq!(wrong, "boot", "{reason}");
        assert!(reason.contains("names CPUs 0,1, not CPUs 2,3"), "{reason}");
        assert_eq!(state("rcu_nocbs=2-3", "", ""), "ok");
        assert_eq!(state("rcu_nocbs=all", "", ""), "ok");
        // nohz_full= implies it for its own CPUs, and for no others.
        assert_eq!(state("quiet", "2-3", ""), "ok");
        assert_eq!(state("nohz_full=1", "1", ""), "boot");
        assert_eq!(state("rcu_nocbs=2 nohz_full=3", "3", ""), "ok");
        // Without a list it only makes ready.
        assert_eq!(state("rcu_nocbs nohz_full=1", "1", ""), "boot");
        assert_eq!(state("rcu_nocbs=", "", ""), "boot");
    }

    /// Each was read in another way by the plan than by the audit.
    #[test]
    fn a_list_that_cannot_be_read_is_what_the_boot_line_takes_it_for() {
        let (old, new) = (["6.0.0", "boot/config-6.0.0"], ["6.12.0", "boot/config-6.12.0"]);
        let built = |[release, name]: [&'static str; 2], option: &'static str| {
            [("proc/sys/kernel/osrelease", release), (name, option)]
        };
        let fixed = built(old, "CONFIG_RCU_NOCB_CPU=y\nCONFIG_NR_CPUS=256\n");
        let offstack = built(old, "CONFIG_RCU_NOCB_CPU=y\nCONFIG_CPUMASK_OFFSTACK=y\n");
        let all = built(new, "CONFIG_RCU_NOCB_CPU=y\nCONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n");
        for (kernel, line, nohz_full, expected) in [
            // CPU 3 of it is there; or all are taken.
            (&fixed, "rcu_nocbs=3-9", "", "boot"),
            (&offstack, "rcu_nocbs=3-9", "", "ok"),
            (&all, "rcu_nocbs=3-9", "", "ok"),
            (&fixed, "rcu_nocbs=3-300", "", "ok"),
            (&offstack, "rcu_nocbs=0x3", "", "ok"),
            // Every CPU by default, unless nohz_full= names some.
            (&all, "quiet", "", "ok"),
            (&all, "nohz_full=1", "1", "boot"),
            (&all, "rcu_nocbs=1", "", "boot"),
        ] {
            let (state, reason) = finding("rcu_nocbs", kernel, line, nohz_full, "");
            assert_eq!(state, expected, "{kernel:?} {line}: {reason}");
        }
    }

    #[test]
    fn the_boot_log_takes_precedence_over_the_command_line() {
        let log = |cpus: &str| format!("[    0.0] rcu: \tOffload RCU callbacks from CPUs: {cpus}.");
        assert_eq!(offloading("rcu_nocbs=2-3", "", &log("2")).0, "boot");
        assert_eq!(offloading("rcu_nocbs=2-9", "", &log("0-3")).0, "ok");
        let (state, reason) = offloading("rcu_nocbs=2-9", "", "");
        assert_eq!(state, "unknown", "{reason}");
    }

    /// Without a list of CPUs the parameter does nothing; the audit was green for it.
    #[test]
    fn threads_poll_only_where_there_are_some() {
        let state = |cmdline: &str| finding("rcu_nocb_poll", &[], cmdline, "", "");
        assert_eq!(state("rcu_nocbs=2-3 rcu_nocb_poll").0, "ok");
        let (wrong, reason) = state("rcu_nocbs=0-1 rcu_nocb_poll");
        assert_eq!(wrong, "boot", "{reason}");
        assert!(reason.contains("not offloaded"), "{reason}");
        assert_eq!(state("rcu_nocbs=2-3").0, "boot");
    }

    #[test]
    fn threads_alone_say_nothing() {
        let (state, reason) = offloading("quiet", "", "");
        assert_eq!(state, "unknown", "{reason}");
    }
}
