//! Ubuntu's rt-conf: `config.yaml`, which has the kernel command line, where interrupts are handled
//! and governors of frequency.
//!
//! Source: canonical/rt-conf, `config.yaml` and `src/model/`.

use crate::words::{Takes, kept, left, quoted};
use crate::{Export, File};
use audit::Desired;
use std::fmt::Write;

/// The end of the path of a CPU's governor.
const GOVERNOR: &str = "/cpufreq/scaling_governor";

pub(crate) fn write(desired: &Desired, _name: &str) -> Export {
    let mut text = String::new();
    if !desired.parameters.is_empty() {
        text.push_str("kernel-cmdline:\n  parameters:\n");
        for word in &desired.parameters {
            let _ = writeln!(text, "    - {}", quoted(word));
        }
    }
    if desired.interrupts {
        let housekeeping = quoted(&desired.plan.housekeeping.to_string());
        let _ = write!(
            text,
            "irq-tuning:\n  housekeeping:\n    cpus: {housekeeping}\n    filter:\n      actions: \".*\"\n"
        );
    }
    let governors = desired.files.iter().filter(|(path, _)| path.ends_with(GOVERNOR));
    let governors: Vec<_> = governors.map(|(_, setting)| setting.value.as_str()).collect();
    if let Some(governor) = governors.first() {
        let isolated = quoted(&desired.plan.isolated.to_string());
        let _ = write!(
            text,
            "cpu-governance:\n  isolated:\n    cpus: {isolated}\n    scaling-governor: {}\n",
            quoted(governor)
        );
    }
    let mut left = left(desired, Takes { interrupts: true, ..Takes::default() });
    let settings = desired.files.iter().filter(|(path, _)| !path.ends_with(GOVERNOR));
    left.extend(settings.map(|(path, setting)| format!("{}: {path} = {}", setting.mechanism, setting.value)));
    left.extend(kept(desired));
    Export { files: vec![File { path: "config.yaml".to_owned(), text }], left }
}
