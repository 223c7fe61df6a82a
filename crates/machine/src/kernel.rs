//! Which kernel runs: release, real-time or not, preemption model, build options.
//!
//! Preemption: Linux `kernel/Kconfig.preempt`, `Documentation/admin-guide/kernel-parameters.txt`
//! (`preempt=`).

use super::{Root, kconfig, mounts};
use model::machine::Kernel;
use std::collections::BTreeMap;

pub(super) fn read(root: &Root, cmdline: &str) -> Kernel {
    let (release, version, arch) = names(root);
    let (config_source, config) = kconfig::read(root, &release).unzip();
    let config = config.unwrap_or_default();
    let realtime = is_realtime(root, &version, &config);
    Kernel {
        preempt: if realtime { Some("rt".to_owned()) } else { preempt(root, &version, cmdline, &config) },
        release,
        version,
        arch,
        realtime,
        config_source,
        config,
        tainted: root.number("proc/sys/kernel/tainted"),
    }
}

/// Release, version and architecture; uname(2) knows them of the running kernel only.
fn names(root: &Root) -> (String, String, String) {
    if root.is_live() {
        let uname = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        return (text(uname.release()), text(uname.version()), text(uname.machine()));
    }
    let text = |file| root.maybe(file).unwrap_or_default();
    (text("proc/sys/kernel/osrelease"), text("proc/sys/kernel/version"), text("proc/sys/kernel/arch"))
}

/// `/sys/kernel/realtime` came with the patch set and is missing from mainline's PREEMPT_RT: any of
/// the three signs will do.
fn is_realtime(root: &Root, version: &str, config: &BTreeMap<String, String>) -> bool {
    root.maybe("sys/kernel/realtime").as_deref() == Some("1")
        || version.split_whitespace().any(|word| word == "PREEMPT_RT")
        || config.get("CONFIG_PREEMPT_RT").is_some_and(|value| value == "y")
}

/// The model in force: as debugfs shows it, else as the command line asks, else as built.
fn preempt(root: &Root, version: &str, cmdline: &str, config: &BTreeMap<String, String>) -> Option<String> {
    let shown = mounts::debugfs(root).and_then(|debugfs| root.maybe(&format!("{debugfs}/sched/preempt")));
    if let Some(shown) =
        shown.as_deref().and_then(|text| text.split_once('(')).and_then(|(_, t)| t.split_once(')'))
    {
        return Some(shown.0.to_owned());
    }
    let dynamic = version.split_whitespace().any(|word| word == "PREEMPT_DYNAMIC");
    let asked = cmdline.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back();
    if let Some(asked) = asked.filter(|_| dynamic) {
        return Some(asked.to_owned());
    }
    let built = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
    ];
    let set = |option: &str| config.get(option).is_some_and(|value| value == "y");
    built.iter().find(|(option, _)| set(option)).map(|(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn each_sign_of_a_real_time_kernel_counts_alone() {
        for (file, text) in [
            ("sys/kernel/realtime", "1\n"),
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12\n"),
            ("boot/config-6.12", "CONFIG_PREEMPT_RT=y\n"),
        ] {
            let (_dir, root) = tree(&[("proc/sys/kernel/osrelease", "6.12"), (file, text)]);
            let kernel = read(&root, "");
            assert!(kernel.realtime && kernel.preempt.as_deref() == Some("rt"), "{file}");
        }
        let (_dir, plain) = tree(&[("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC")]);
        assert!(!read(&plain, "").realtime);
    }

    #[test]
    fn preemption_in_force_beats_asked_beats_built() {
        let config = ("boot/config-6.1", "CONFIG_PREEMPT_VOLUNTARY=y\n");
        let release = ("proc/sys/kernel/osrelease", "6.1");
        let version = ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC");
        let (_dir, built) = tree(&[release, config, version]);
        assert_eq!(read(&built, "").preempt.as_deref(), Some("voluntary"));
        assert_eq!(read(&built, "quiet preempt=full").preempt.as_deref(), Some("full"));
        let (_dir, shown) = tree(&[
            release,
            config,
            version,
            ("proc/mounts", "debugfs /sys/kernel/debug debugfs rw 0 0\n"),
            ("sys/kernel/debug/sched/preempt", "none (voluntary) full\n"),
        ]);
        assert_eq!(read(&shown, "preempt=full").preempt.as_deref(), Some("voluntary"));
    }
}
