//! A profile of TuneD: `tuned.conf`, to be put into `/etc/tuned/profiles/NAME` (from 2.23 on) or
//! `/etc/tuned/NAME`.
//!
//! Sources: TuneD 2.20 and 2.25, `tuned/plugins/plugin_*.py` (what sections and options there are),
//! tuned-profiles(7).

use crate::words::{Takes, kept, latency, left, services, sysctls, sysfs};
use crate::{Export, File};
use audit::Desired;
use std::fmt::Write;

pub(crate) fn write(desired: &Desired, name: &str) -> Export {
    let isolated = &desired.plan.isolated;
    let mut text = format!("[main]\nsummary=CPUs {isolated} still, as stillcore plans it\n");
    text.push_str(&settings(desired));
    if let Some(us) = latency(desired) {
        let _ = write!(text, "\n[cpu]\nforce_latency={us}\n");
    }
    if desired.tasks {
        // It moves tasks, kernel threads and interrupts, and sets default_smp_affinity.
        let _ = write!(text, "\n[scheduler]\nisolated_cores={isolated}\n");
        let spared: Vec<String> = spared(desired).collect();
        if !spared.is_empty() {
            let _ = writeln!(text, "ps_blacklist={}", spared.join(";"));
        }
        if !desired.interrupts {
            text.push_str("irq_process=false\ndefault_irq_smp_affinity=ignore\n");
        }
    }
    if !desired.parameters.is_empty() {
        let _ = write!(
            text,
            "\n[bootloader]\ncmdline_{}=+{}\n",
            name.replace('-', "_"),
            desired.parameters.join(" ")
        );
    }
    let takes =
        Takes { tasks: true, interrupts: desired.tasks, services: true, latency: true, ..Takes::default() };
    let mut left = left(desired, takes);
    left.extend(dotted(desired));
    left.extend(kept(desired).filter(|line| !line.starts_with("keep comm:")));
    Export { files: vec![File { path: format!("{name}/tuned.conf"), text }], left }
}

/// The sections of settings and services.
pub(crate) fn settings(desired: &Desired) -> String {
    let mut text = String::new();
    section(
        &mut text,
        "sysctl",
        sysctls(desired)
            .iter()
            .filter(|(name, _)| !name.contains('/'))
            .map(|(name, value)| format!("{name}={value}")),
    );
    section(&mut text, "sysfs", sysfs(desired).iter().map(|(path, value)| format!("{path}={value}")));
    let stopped = services(desired).into_iter();
    section(
        &mut text,
        "service",
        stopped.map(|unit| format!("service.{}=stop,disable", unit.strip_suffix(".service").unwrap_or(unit))),
    );
    text
}

/// Names that the section `sysctl` cannot spell: it takes every dot for a slash.
pub(crate) fn dotted(desired: &Desired) -> Vec<String> {
    let names = sysctls(desired).into_iter().filter(|(name, _)| name.contains('/'));
    names.map(|(name, value)| format!("/proc/sys/{name}: {value}")).collect()
}

fn section(text: &mut String, name: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        let _ = write!(text, "\n[{name}]\n{}\n", lines.join("\n"));
    }
}

/// Regular expressions of the processes that stay: the whole name, `*` for any part.
fn spared(desired: &Desired) -> impl Iterator<Item = String> {
    desired.plan.keep.iter().filter_map(|what| what.strip_prefix("comm:")).map(|name| {
        let mut pattern = String::from(r"(^|/)");
        for letter in name.chars() {
            match letter {
                '*' => pattern.push_str(".*"),
                plain if plain.is_ascii_alphanumeric() || "_-/".contains(plain) => pattern.push(plain),
                special => pattern.extend(['\\', special]),
            }
        }
        pattern + r"(\s|$)"
    })
}
