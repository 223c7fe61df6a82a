//! The preemption model in force: from debugfs, else from the command line and the build options.
//!
//! Source: Linux `kernel/Kconfig.preempt`, `Documentation/admin-guide/kernel-parameters.txt`
//! (`preempt=`).

use super::super::catalogue::{Mechanism, Want};
use super::remedy::at_boot;
use super::{Outcome, Scene};

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let Some(model) = &scene.machine.kernel.preempt else {
        return Outcome::unknown("neither debugfs nor the build options show the preemption model");
    };
    let wanted = matches!(&mechanism.want, Want::OneOf { values } if values.contains(model));
    if wanted {
        return Outcome::ok(format!("the model in force is {model}")).having(model.clone());
    }
    at_boot(scene, mechanism, format!("the model in force is {model}: {}", mechanism.harm))
        .having(model.clone())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    #[test]
    fn what_is_in_force_counts_and_not_what_was_asked() {
        let debugfs = ("proc/mounts", "d /d debugfs rw 0 0");
        let state = |shown| {
            let files = [debugfs, ("d/sched/preempt", shown), ("proc/cmdline", "preempt=full")];
            judged("preempt-mode", &with_cpus(&files)).0
        };
        assert_eq!(state("none voluntary (full)"), "ok");
        assert_eq!(state("none (voluntary) full"), "boot");
        assert_eq!(judged("preempt-mode", &with_cpus(&[("sys/kernel/realtime", "1")])).0, "ok");
    }
}
