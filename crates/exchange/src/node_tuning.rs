//! OpenShift's Node Tuning Operator: a `PerformanceProfile` for what it has fields for, and a
//! `Tuned` that includes the profile which the operator makes of that, for the settings.
//!
//! Sources: openshift/cluster-node-tuning-operator, `manifests/20-performance-profile.crd.yaml`
//! (fields), `assets/performanceprofile/tuned/openshift-node-performance` (what its own profile
//! has on the kernel command line).

use crate::tuned::{dotted, settings};
use crate::words::{Takes, kept, left, quoted};
use crate::{Export, File};
use audit::Desired;
use std::fmt::Write;

/// Parameters that the operator's own profile has, some of them by its fields.
const ITS_OWN: [&str; 5] = ["isolcpus", "nohz", "nohz_full", "rcu_nocbs", "skew_tick"];
/// Those that it has with the hint `realTime`.
const OF_HINT: [&str; 1] = ["nosoftlockup"];

/// The role of the machines that it is for.
const ROLE: &str = "worker-cnf";

pub(crate) fn write(desired: &Desired, name: &str) -> Export {
    let plan = &desired.plan;
    let mut text = format!(
        "# The role {ROLE} is to be that of your machines.\napiVersion: performance.openshift.io/v2\n\
         kind: PerformanceProfile\nmetadata:\n  name: {name}\nspec:\n  cpu:\n    isolated: {}\n    reserved: {}\n    \
         balanceIsolated: false\n  globallyDisableIrqLoadBalancing: {}\n",
        quoted(&plan.isolated.to_string()),
        quoted(&plan.housekeeping.to_string()),
        desired.interrupts,
    );
    let realtime = desired.options.get("CONFIG_PREEMPT_RT").is_some_and(|value| value == "y");
    let unlimited = desired
        .files
        .get("/proc/sys/kernel/sched_rt_runtime_us")
        .is_some_and(|setting| setting.value == "-1");
    // The operator refuses a real-time kernel without the hint.
    let hint = realtime || unlimited;
    let own = |word: &&String| {
        let name = word.split('=').next().unwrap_or_default();
        ITS_OWN.contains(&name) || hint && OF_HINT.contains(&name)
    };
    let further: Vec<_> = desired.parameters.iter().filter(|word| !own(word)).collect();
    if !further.is_empty() {
        text.push_str("  additionalKernelArgs:\n");
        for word in further {
            let _ = writeln!(text, "    - {}", quoted(word));
        }
    }
    if realtime {
        text.push_str("  realTimeKernel:\n    enabled: true\n");
    }
    let _ = write!(
        text,
        "  workloadHints:\n    realTime: {hint}\n  nodeSelector:\n    node-role.kubernetes.io/{ROLE}: \"\"\n"
    );
    let _ = write!(
        text,
        "---\napiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata:\n  name: {name}-settings\n  namespace: \
         openshift-cluster-node-tuning-operator\nspec:\n  profile:\n    - name: {name}-settings\n      data: |\n        \
         [main]\n        summary=Settings for CPUs {}, as stillcore plans them\n        \
         include=openshift-node-performance-{name}\n",
        plan.isolated
    );
    for line in settings(desired).lines() {
        let indent = if line.is_empty() { "" } else { "        " };
        let _ = writeln!(text, "{indent}{line}");
    }
    let _ = write!(
        text,
        "  recommend:\n    - machineConfigLabels:\n        machineconfiguration.openshift.io/role: {ROLE}\n      \
         priority: 19\n      profile: {name}-settings\n"
    );
    let takes = Takes { tasks: true, interrupts: true, placement: true, services: true, latency: false };
    let mut left = left(desired, takes);
    if hint && !unlimited {
        left.push("realTime makes the operator set kernel.sched_rt_runtime_us to -1".to_owned());
    }
    left.extend(dotted(desired));
    left.extend(kept(desired));
    Export { files: vec![File { path: format!("{name}.yaml"), text }], left }
}
