//! One flag of a file that lists many: the scheduler's features in debugfs.
//!
//! Source: Linux `kernel/sched/debug.c`, `kernel/sched/features.h`. The file is `sched/features`
//! from 5.13 on, `sched_features` before.

use super::super::catalogue::{Mechanism, Want};
use super::file::unmounted;
use super::remedy::{Off, propose};
use super::{Outcome, Scene, always};
use machine::flag;
use model::Error;
use model::plan::StepKind;

/// The file that has the flag, and whether it is on; `None` where no file has it. Under kernel
/// lockdown even root may not read a file of debugfs that can be written.
fn find(scene: &Scene, paths: &[String], name: &str) -> Result<Option<(String, bool)>, Error> {
    for file in paths.iter().flat_map(|path| scene.expand(path)) {
        let text = scene.root.text(&file)?.unwrap_or_default();
        if let Some(on) = flag(&text, name) {
            return Ok(Some((file, on)));
        }
    }
    Ok(None)
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, paths: &[String], name: &str) -> Outcome {
    let (file, on) = match find(scene, paths, name) {
        Ok(Some(found)) => found,
        Ok(None) => return unmounted(scene, mechanism, paths),
        Err(error) => return Outcome::unknown(error),
    };
    let have = spelled(on);
    let outcome = match &mechanism.want {
        Want::Literal { value } if value != have => {
            let reason = format!("{name} is {have}: {}", mechanism.harm);
            let off = Off { kind: StepKind::Flag, target: format!("/{file}#{name}"), old: have.to_owned() };
            propose(scene, mechanism, &[off], reason)
        }
        Want::Literal { .. } => Outcome::ok(format!("{name} is {have}, as isolation wants")),
        _ => Outcome::ok(always(mechanism).map_or_else(|| format!("{name} is {have}"), str::to_owned)),
    };
    outcome.having(have)
}

pub(super) fn value(scene: &Scene, paths: &[String], name: &str) -> Option<String> {
    find(scene, paths, name).ok().flatten().map(|(_, on)| spelled(on).to_owned())
}

fn spelled(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const DEBUGFS: (&str, &str) = ("proc/mounts", "none /sys/kernel/debug debugfs rw 0 0");

    #[test]
    fn a_feature_is_read_where_the_kernel_has_it() {
        let with = |file, text| judged("rt_runtime_share", &with_cpus(&[DEBUGFS, (file, text)]));
        let (new, old) = ("sys/kernel/debug/sched/features", "sys/kernel/debug/sched_features");
        assert_eq!(with(new, "START_DEBIT NO_RT_RUNTIME_SHARE").0, "ok");
        let (state, reason, remedy) = with(old, "START_DEBIT RT_RUNTIME_SHARE NO_HRTICK");
        assert_eq!(state, "fixable", "{reason}");
        assert_eq!(remedy, "echo NO_RT_RUNTIME_SHARE > /sys/kernel/debug/sched_features");
        assert_eq!(with(new, "START_DEBIT").0, "not-applicable", "this kernel has no such feature");
        // A directory in its place cannot be read by anybody, as a file of debugfs under lockdown.
        let (state, reason, _) = with("sys/kernel/debug/sched/features/x", "");
        assert!(state == "unknown" && reason.starts_with("cannot read "), "{state}: {reason}");
        let (state, reason, _) = judged("rt_runtime_share", &with_cpus(&[DEBUGFS]));
        assert!(state == "unknown" && reason.contains("debug shows nothing"), "{state}: {reason}");
        let (state, reason, _) = judged("rt_runtime_share", &with_cpus(&[]));
        assert!(state == "unknown" && reason.contains("debugfs is not mounted"), "{state}: {reason}");
    }
}
