//! Loaders whose files hold the command line itself.

use super::form::{self, Form};
use super::{Loader, Place, Way, command};
use crate::once::ENTRY;
use machine::Root;

const CMDLINE: &str = "etc/kernel/cmdline";
/// What makes `cmdline.txt` in Debian's raspi-firmware, and what it puts at its end.
const RASPI_HOOK: &str = "etc/kernel/postinst.d/z50-raspi-firmware";
const RASPI_EXTRA: &str = "etc/default/raspi-extra-cmdline";

pub(super) fn place(path: impl Into<String>, form: Form) -> Place {
    Place { path: path.into(), form }
}

/// Deployments of rpm-ostree: each has its own entry, written by `rpm-ostree kargs`.
pub(super) fn ostree(root: &Root) -> Option<Loader> {
    let found = root.has("usr/bin/rpm-ostree") && (root.has("run/ostree-booted") || root.has("ostree/repo"));
    found.then(|| Loader {
        name: "rpm-ostree",
        way: Way::Kargs,
        generated: None,
        after: Vec::new(),
        next: vec!["the earlier deployment stays in the boot menu; rpm-ostree rollback boots it".to_owned()],
    })
}

/// `config.txt` beside it distinguishes a Raspberry Pi's boot partition from other files of that
/// name.
pub(super) fn raspberry(root: &Root) -> Option<Loader> {
    let folder = ["boot/firmware", "boot"].into_iter().find(|folder| {
        root.has(&format!("{folder}/cmdline.txt")) && root.has(&format!("{folder}/config.txt"))
    })?;
    let mut places = vec![place(format!("{folder}/cmdline.txt"), Form::Whole)];
    // Debian makes cmdline.txt anew with each kernel, and this file is the end of it.
    if root.maybe(RASPI_HOOK).is_some_and(|text| text.contains(RASPI_EXTRA)) {
        places.push(place(RASPI_EXTRA, Form::End));
    }
    Some(Loader {
        name: "the Raspberry Pi's firmware",
        way: Way::Files(places),
        generated: None,
        after: Vec::new(),
        next: vec![format!(
            "the firmware has no entry to fall back on: should it not boot, copy the backup over {folder}/cmdline.txt on another machine"
        )],
    })
}

/// Entries of the Boot Loader Specification, read by systemd-boot and by GRUB of Fedora and its
/// kin.
pub(super) fn entries(root: &Root) -> Option<Loader> {
    let folder = ["boot/loader", "efi/loader", "boot/efi/loader"]
        .into_iter()
        .find(|folder| !root.glob(&format!("{folder}/entries/*.conf")).is_empty())?;
    let kernels = root.glob(&format!("{folder}/entries/*.conf")).into_iter().filter(|path| {
        let text = root.maybe(path).unwrap_or_default();
        let starts_linux = text.lines().any(|line| line.split_whitespace().next() == Some("linux"));
        starts_linux && !path.contains("-0-rescue") && !path.ends_with(ENTRY)
    });
    let mut places: Vec<_> = kernels.map(|path| place(path, Form::Options)).collect();
    let grub =
        ["boot/grub2", "boot/grub", "usr/sbin/grubby", "usr/bin/grubby"].iter().any(|path| root.has(path));
    let name = if grub { "GRUB with entries in /boot/loader" } else { "systemd-boot" };
    let variables = places.iter().any(|place| {
        form::change(place.form, &root.maybe(&place.path).unwrap_or_default(), &str::to_owned).is_err()
    });
    if variables {
        let way = Way::Grubby;
        return Some(Loader { name, way, generated: None, after: Vec::new(), next: Vec::new() });
    }
    if root.has(CMDLINE) {
        places.push(place(CMDLINE, Form::Blanks));
    }
    let mut next = vec![
        "every entry but rescue gets the words: a rescue entry, if there is one, is left to fall back on"
            .to_owned(),
    ];
    if !root.has(CMDLINE) {
        next.push("kernels installed before the next boot get their line from elsewhere: call persist again after installing one".to_owned());
    }
    Some(Loader { name, way: Way::Files(places), generated: None, after: Vec::new(), next })
}

/// Unified kernel images, whose line is inside; built from kernel-install's.
pub(super) fn kernel_install(root: &Root) -> Option<Loader> {
    if !root.has(CMDLINE) {
        return None;
    }
    let images = ["boot/EFI/Linux/*.efi", "efi/EFI/Linux/*.efi", "boot/efi/EFI/Linux/*.efi"];
    let images: Vec<_> = images.iter().flat_map(|pattern| root.glob(pattern)).collect();
    let next = if images.is_empty() {
        "kernel-install uses the line for kernels installed from now on; those that are installed keep theirs"
            .to_owned()
    } else {
        format!(
            "the line is inside the unified kernel images ({}): rebuild them, kernel-install add-all does",
            images.join(", ")
        )
    };
    Some(Loader {
        name: "kernel-install",
        way: Way::Files(vec![place(CMDLINE, Form::Blanks)]),
        generated: None,
        after: if images.is_empty() { Vec::new() } else { vec![command(&["kernel-install", "add-all"])] },
        next: vec![next],
    })
}
