//! Files that systemd and its neighbours read: where its services run, settings of `/proc/sys` and
//! `/sys`, units to disable. `/etc/kernel/cmdline` is one line with what others put there, so its
//! words are named and no file is written.
//!
//! Sources: systemd-system.conf(5) (`CPUAffinity=`), sysctl.d(5), tmpfiles.d(5) (`w`),
//! systemd.preset(5), kernel-install(8).

use crate::words::{Takes, left, services, sysctls, sysfs};
use crate::{Export, File};
use audit::Desired;

pub(crate) fn write(desired: &Desired, name: &str) -> Export {
    let mut files = vec![File {
        path: format!("etc/systemd/system.conf.d/90-{name}.conf"),
        text: format!("[Manager]\nCPUAffinity={}\n", desired.plan.housekeeping),
    }];
    let mut add = |path: String, lines: Vec<String>| {
        if !lines.is_empty() {
            files.push(File { path, text: lines.join("\n") + "\n" });
        }
    };
    add(
        format!("etc/sysctl.d/90-{name}.conf"),
        sysctls(desired).iter().map(|(name, value)| format!("{name} = {value}")).collect(),
    );
    // `%` begins a specifier there.
    let line = |(path, value): &(&str, &str)| format!("w {path} - - - - {}", value.replace('%', "%%"));
    add(format!("etc/tmpfiles.d/{name}.conf"), sysfs(desired).iter().map(line).collect());
    let stopped = services(desired).into_iter().map(|unit| format!("disable {unit}"));
    add(format!("etc/systemd/system-preset/90-{name}.preset"), stopped.collect());
    let mut left = left(desired, Takes { services: true, ..Takes::default() });
    if !desired.parameters.is_empty() {
        left.push(format!("to be added to /etc/kernel/cmdline: {}", desired.parameters.join(" ")));
    }
    if !services(desired).is_empty() {
        left.push("a preset counts when systemctl preset is called for its unit".to_owned());
    }
    Export { files, left }
}
