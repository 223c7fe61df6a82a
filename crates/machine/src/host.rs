//! The rest of what a machine is: CPU model, memory, hypervisor, clock sources, tracing.
//!
//! Sources: Linux `Documentation/ABI/stable/sysfs-hypervisor-xen`, `…/sysfs-firmware-dmi-tables`,
//! `Documentation/trace/ftrace.rst`, kernel_lockdown(7).

use super::{Root, mounts};
use model::machine::{Clocksource, Tracing};

/// The CPU model as the kernel names it; arm64 kernels name implementer and part instead.
pub(super) fn cpu_model(root: &Root) -> Option<String> {
    let info = root.maybe("proc/cpuinfo")?;
    let field = |name: &str| {
        let fields = info.lines().filter_map(|line| line.split_once(':'));
        fields.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let part = || Some(format!("implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(part)
}

/// `MemTotal` in KiB.
pub(super) fn memory_kib(root: &Root) -> Option<u64> {
    let info = root.maybe("proc/meminfo")?;
    info.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
}

/// The hypervisor that the machine runs under: from the hypervisor's own files, else the firmware's
/// product name, else a clock source that only guests have. The CPU flag shows that there is one,
/// without a name.
pub(super) fn hypervisor(root: &Root) -> Option<String> {
    if let Some(kind) = root.maybe("sys/hypervisor/type") {
        return Some(kind);
    }
    let vendor = root.maybe("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = root.maybe("sys/class/dmi/id/product_name").unwrap_or_default();
    // Vendors that also make real machines count only with the product name of their virtual ones.
    let known = [
        ("QEMU", "", "qemu"),
        ("KVM", "", "kvm"),
        ("VMware", "", "vmware"),
        ("innotek", "", "virtualbox"),
        ("Xen", "", "xen"),
        ("Microsoft Corporation", "Virtual Machine", "hyper-v"),
        ("Google", "Google Compute Engine", "google compute engine"),
        ("Amazon EC2", "", "amazon ec2"),
        ("", "KVM", "kvm"),
        ("", "Bochs", "bochs"),
    ];
    let named = known.iter().find(|(v, p, _)| vendor.starts_with(v) && product.starts_with(p));
    let flagged = || {
        let info = root.maybe("proc/cpuinfo")?;
        let flags = info.lines().find(|line| line.starts_with("flags"))?;
        flags.split_whitespace().any(|flag| flag == "hypervisor").then(|| "unnamed".to_owned())
    };
    let clocks = clocksource(root).available;
    let clocks = [("kvm-clock", "kvm"), ("hyperv_clocksource", "hyper-v"), ("xen", "xen")]
        .into_iter()
        .find(|(prefix, _)| clocks.iter().any(|clock| clock.starts_with(prefix)));
    let named = named.map(|(_, _, name)| *name).or(clocks.map(|(_, name)| name));
    named.map(str::to_owned).or_else(flagged)
}

/// The clock source in use, and those there are.
pub fn clocksource(root: &Root) -> Clocksource {
    let file = |name| root.maybe(&format!("sys/devices/system/clocksource/clocksource0/{name}"));
    Clocksource {
        current: file("current_clocksource"),
        available: file("available_clocksource").map(|text| words(&text)).unwrap_or_default(),
    }
}

/// Whether tracing can be used.
pub(super) fn tracing(root: &Root) -> Tracing {
    let mounted_at = mounts::tracefs(root);
    let tracers = mounted_at.as_ref().and_then(|place| root.maybe(&format!("{place}/available_tracers")));
    Tracing {
        tracefs: mounted_at.is_some() || mounts::is_known(root, "tracefs"),
        lockdown: root
            .maybe("sys/kernel/security/lockdown")
            .as_deref()
            .and_then(bracketed)
            .map(str::to_owned),
        tracers: tracers.map(|text| words(&text)).unwrap_or_default(),
        mounted_at,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The word in brackets: `none [integrity] confidentiality` → `integrity`.
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

/// Whether a list of words has a flag, on as its name or off as `NO_` and its name; `None` where it
/// has neither.
pub fn flag(text: &str, name: &str) -> Option<bool> {
    text.split_whitespace().find_map(|word| match word.strip_prefix("NO_") {
        Some(off) if off == name => Some(false),
        _ if word == name => Some(true),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn a_hypervisor_is_named_by_the_best_sign() {
        let info = ("proc/cpuinfo", "model name : A\nflags\t\t: fpu hypervisor\n");
        let vendor = ("sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n");
        let clock = ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock\n");
        let laptop = ("sys/class/dmi/id/product_name", "Surface\n");
        let guest = ("sys/class/dmi/id/product_name", "Virtual Machine\n");
        for (files, wanted) in [
            (vec![info], Some("unnamed")),
            (vec![info, vendor, guest], Some("hyper-v")),
            (vec![vendor, laptop], None),
            (vec![info, ("sys/hypervisor/type", "xen\n")], Some("xen")),
            (vec![info, clock], Some("kvm")),
            (vec![], None),
        ] {
            let (_dir, root) = tree(&files);
            assert_eq!(hypervisor(&root).as_deref(), wanted, "{files:?}");
        }
    }

    #[test]
    fn tracing_is_seen_without_a_mount() {
        let (_dir, root) = tree(&[
            ("proc/filesystems", "nodev\tsysfs\nnodev\ttracefs\n\text4\n"),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
        ]);
        let tracing = tracing(&root);
        assert!(tracing.tracefs && tracing.mounted_at.is_none() && tracing.tracers.is_empty());
        assert_eq!(tracing.lockdown.as_deref(), Some("integrity"));
    }

    #[test]
    fn arm64_names_its_part() {
        let (_dir, root) = tree(&[
            ("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n"),
            ("proc/meminfo", "MemTotal:       2048 kB\n"),
        ]);
        assert_eq!(cpu_model(&root).as_deref(), Some("implementer 0x41 part 0xd08"));
        assert_eq!(memory_kib(&root), Some(2048));
    }
}
