//! Variables for two roles of linux-system-roles: `kernel_settings` and `bootloader`.
//!
//! Sources: the READMEs of linux-system-roles/kernel_settings and linux-system-roles/bootloader.

use crate::words::{Takes, kept, left, quoted, sysctls, sysfs};
use crate::{Export, File};
use audit::Desired;
use std::fmt::Write;

pub(crate) fn write(desired: &Desired, name: &str) -> Export {
    let mut text = String::from("---\n");
    let named = |text: &mut String, variable: &str, pairs: Vec<(String, &str)>| {
        if pairs.is_empty() {
            return;
        }
        let _ = writeln!(text, "{variable}:");
        for (name, value) in pairs {
            let _ = write!(text, "  - name: {}\n    value: {}\n", quoted(&name), quoted(value));
        }
    };
    named(&mut text, "kernel_settings_sysctl", sysctls(desired));
    let files = sysfs(desired).into_iter().map(|(path, value)| (path.to_owned(), value));
    named(&mut text, "kernel_settings_sysfs", files.collect());
    let housekeeping = quoted(&desired.plan.housekeeping.to_string());
    let _ = writeln!(text, "kernel_settings_systemd_cpu_affinity: {housekeeping}");
    if !desired.parameters.is_empty() {
        text.push_str("bootloader_settings:\n  - kernel: ALL\n    options:\n");
    }
    for word in &desired.parameters {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let _ = writeln!(text, "      - name: {}", quoted(name));
        if !value.is_empty() {
            let _ = writeln!(text, "        value: {}", quoted(value));
        }
        text.push_str("        state: present\n");
    }
    let mut left = left(desired, Takes::default());
    left.extend(kept(desired));
    Export { files: vec![File { path: format!("{name}.yml"), text }], left }
}
