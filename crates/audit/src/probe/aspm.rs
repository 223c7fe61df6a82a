//! Active-state power management of PCI Express links, read from the devices themselves.
//!
//! The kernel's policy and `pcie_aspm=off` say what the kernel does, not how the links are:
//! firmware may have switched ASPM on, and `off` then keeps the kernel from touching it. The truth
//! is in each device's Link Control register. Sources: PCI Local Bus 3.0 §6.7 (capability list),
//! PCI Express Base §7.5.3.7 (Link Control), Linux `drivers/pci/pcie/aspm.c`.

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::{Outcome, Scene, some_of};
use machine::bracketed;
use model::FindingState;

const POLICY: &str = "sys/module/pcie_aspm/parameters/policy";

/// What a device's configuration space says of its link.
#[derive(Debug, PartialEq, Eq)]
enum Link {
    /// It has none.
    None,
    /// Link power management is off.
    Off,
    /// It is on.
    On,
    /// Users other than root see the first 64 bytes only.
    Hidden,
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let devices = scene.root.names("sys/bus/pci/devices");
    let links: Vec<_> = devices.iter().map(|device| (device, link(&config(scene, device)))).collect();
    let on: Vec<_> =
        links.iter().filter(|(_, link)| *link == Link::On).map(|(device, _)| (*device).clone()).collect();
    let has = |wanted: Link| links.iter().any(|(_, link)| *link == wanted);
    let outcome = if !on.is_empty() {
        switched_on(scene, mechanism, &on).in_effect(format!("on at {}", some_of(&on)))
    } else if has(Link::Hidden) {
        Outcome::unknown("only root may read the link registers of PCI devices")
    } else if has(Link::Off) {
        Outcome::ok("no PCI Express link has it on").in_effect("off")
    } else {
        return Outcome::absent(mechanism);
    };
    match value(scene) {
        Some(policy) => outcome.having(policy),
        None => outcome,
    }
}

/// The kernel's policy.
pub(super) fn value(scene: &Scene) -> Option<String> {
    scene.root.maybe(POLICY).as_deref().and_then(bracketed).map(str::to_owned)
}

fn switched_on(scene: &Scene, mechanism: &Mechanism, on: &[String]) -> Outcome {
    if crate::probe::parameter::value(scene, "pcie_aspm") == Some("off") {
        let reason = "pcie_aspm=off keeps the kernel from touching the links, and firmware left it on";
        return Outcome::new(FindingState::Boot, reason).cured_by(
            "boot with pcie_aspm.policy=performance instead of pcie_aspm=off, or switch it off in the firmware's setup",
        );
    }
    let reason = format!("on at {}: {}", some_of(on), mechanism.harm);
    if scene.root.has(POLICY) {
        propose(scene, mechanism, &[], reason)
    } else {
        let cure = "use a kernel with CONFIG_PCIEASPM=y and boot with pcie_aspm.policy=performance";
        Outcome::new(FindingState::Boot, format!("{reason}; this kernel cannot switch it off")).cured_by(cure)
    }
}

fn config(scene: &Scene, device: &str) -> Vec<u8> {
    scene.root.bytes(&format!("sys/bus/pci/devices/{device}/config")).ok().flatten().unwrap_or_default()
}

/// Reads the Link Control register, bits 1:0.
fn link(config: &[u8]) -> Link {
    const STATUS_HAS_LIST: u8 = 0x10;
    const PCI_EXPRESS: u8 = 0x10;
    // Root complex integrated endpoints and event collectors have no link.
    const WITHOUT_LINK: [u8; 2] = [9, 10];
    let byte = |at: usize| config.get(at).copied();
    let listed = byte(0x06).is_some_and(|status| status & STATUS_HAS_LIST != 0);
    let Some(mut at) = byte(0x34).filter(|_| listed).map(|at| usize::from(at & 0xfc)) else {
        return Link::None;
    };
    // At most 48 capabilities fit: a longer list is a loop.
    for _ in 0..48 {
        match byte(at) {
            _ if at == 0 => return Link::None,
            None => return Link::Hidden,
            Some(PCI_EXPRESS) => {
                let (Some(kind), Some(control)) = (byte(at + 2), byte(at + 0x10)) else {
                    return Link::Hidden;
                };
                return match control & 0b11 {
                    _ if WITHOUT_LINK.contains(&(kind >> 4)) => Link::None,
                    0 => Link::Off,
                    _ => Link::On,
                };
            }
            Some(_) => at = usize::from(byte(at + 1).unwrap_or(0) & 0xfc),
        }
    }
    Link::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A device with a power management capability at 0x40 and a PCI Express one at 0x50.
    fn device(kind: u8, control: u8) -> Vec<u8> {
        let mut config = vec![0; 256];
        config[0x06] = 0x10;
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x01, 0x50]);
        config[0x50] = 0x10;
        config[0x52] = kind << 4 | 2;
        config[0x60] = control;
        config
    }

    #[test]
    fn the_register_decides_and_not_the_policy() {
        assert_eq!(link(&device(0, 0x42)), Link::On);
        assert_eq!(link(&device(4, 0x40)), Link::Off);
        assert_eq!(link(&device(9, 0x02)), Link::None);
        assert_eq!(link(&device(0, 2)[..64]), Link::Hidden);
        assert_eq!(link(&[0; 256]), Link::None);
        assert_eq!(link(&[]), Link::None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_loop(config in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = link(&config);
        }
    }
}
