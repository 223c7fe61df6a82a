//! U-Boot: `extlinux.conf`, written by hand or made by Debian's `u-boot-update`, and Armbian's boot
//! script.
//!
//! Sources: u-boot-update(8) and the package's README (configuration files, in their order);
//! Armbian's documentation, "U-Boot and boot environment".

use super::form::Form;
use super::places::place;
use super::{Loader, MARK, Way, command, without_words};
use crate::edit::Edit;
use machine::Root;

/// What makes `extlinux.conf` anew with each kernel.
const UPDATE: &str = "usr/sbin/u-boot-update";
/// Our own file for it.
const DROP_IN: &str = "etc/u-boot-menu/conf.d/90-stillcore.conf";
const ARMBIAN: &str = "boot/armbianEnv.txt";

pub(super) fn extlinux(root: &Root) -> Option<Loader> {
    let found = ["boot/extlinux/extlinux.conf", "boot/extlinux.conf", "extlinux/extlinux.conf"];
    let path = found.into_iter().find(|path| root.has(path))?;
    let mut next = vec!["every label gets the words: none is left to fall back on".to_owned()];
    let update = root.maybe(UPDATE);
    let reads_folder = update.as_ref().is_some_and(|text| text.contains("/etc/u-boot-menu/conf.d"));
    if update.is_some() && !reads_folder {
        next.push(
            "u-boot-update writes this file anew: put the words into U_BOOT_PARAMETERS of /etc/default/u-boot as well".to_owned(),
        );
    }
    Some(Loader {
        name: "extlinux or U-Boot",
        way: Way::Files(vec![place(path, Form::Append)]),
        generated: reads_folder.then_some((DROP_IN, drop_in as fn(&[Edit]) -> String)),
        after: if reads_folder { vec![command(&[&format!("/{UPDATE}")])] } else { Vec::new() },
        next,
    })
}

/// Where the parameters are not set, `u-boot-update` takes those of kernel-install, else its own;
/// so does this file, because a value of its own would keep it from that.
fn drop_in(edits: &[Edit]) -> String {
    let (function, words) = without_words(edits);
    format!(
        "{MARK}\n\
         {function}\
         if [ -z \"$U_BOOT_PARAMETERS\" ] && [ -f /etc/kernel/cmdline ]; then\n    \
         U_BOOT_PARAMETERS=\"$(sed -e 's/root=[^[:space:]]*//' -e 's/^[[:space:]]*//' /etc/kernel/cmdline)\"\n    \
         U_BOOT_ROOT=\"${{U_BOOT_ROOT:-$(sed -E 's/.*(root=[^[:space:]]*).*/\\1/' /etc/kernel/cmdline)}}\"\n\
         fi\n\
         U_BOOT_PARAMETERS=\"$(stillcore_without \"${{U_BOOT_PARAMETERS:-ro quiet}}\") {words}\"\n"
    )
}

/// Armbian's script adds the variable `extraargs` to the line that it makes itself.
pub(super) fn armbian(root: &Root) -> Option<Loader> {
    if !root.has(ARMBIAN) {
        return None;
    }
    // The script that U-Boot runs is made of boot.cmd; a board without it has another one.
    let reads_it = ["boot/boot.cmd", "boot/boot.scr"].iter().any(|script| {
        let bytes = root.bytes(script).ok().flatten().unwrap_or_default();
        bytes.windows(12).any(|bytes| bytes == b"${extraargs}")
    });
    let name = "U-Boot of Armbian";
    let next = vec![format!(
        "U-Boot has no entry to fall back on: should it not boot, copy the backup over /{ARMBIAN} on another machine"
    )];
    let way = if reads_it {
        Way::Files(vec![place(ARMBIAN, Form::Extraargs)])
    } else {
        Way::Paste(format!("the boot script in /boot does not read extraargs of /{ARMBIAN}"))
    };
    Some(Loader { name, way, generated: None, after: Vec::new(), next })
}
