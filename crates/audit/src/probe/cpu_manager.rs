//! Where the kubelet lets containers run that own no CPUs: the shared pool of its CPU manager,
//! which it writes into their cpusets.
//!
//! Sources: Kubernetes, *Control CPU Management Policies on the Node*;
//! `pkg/kubelet/cm/cpumanager/state/checkpoint.go` (the checkpoint `cpu_manager_state`); KEP-4540
//! (`strict-cpu-reservation`, which takes the reserved CPUs out of the shared pool).

use super::super::catalogue::Mechanism;
use super::remedy::propose;
use super::unread::Unread;
use super::{Outcome, Scene, named};
use machine::KUBELET as STATE;
use model::Cpus;
use serde::Deserialize;

/// What of the checkpoint counts here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checkpoint {
    policy_name: String,
    /// Empty with the policy `none`.
    #[serde(default)]
    default_cpu_set: String,
}

fn read(scene: &Scene) -> Result<Option<Checkpoint>, Unread> {
    let Some(text) = scene.root.text(STATE)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| Unread::NoCheckpoint { file: STATE, error })
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let checkpoint = match read(scene) {
        Ok(Some(checkpoint)) => checkpoint,
        Ok(None) => return Outcome::absent(mechanism),
        Err(reason) => return Outcome::unknown(reason),
    };
    let have = spelled(&checkpoint);
    if checkpoint.policy_name != "static" {
        let reason = format!("the policy is {}: {}", checkpoint.policy_name, mechanism.harm);
        return propose(scene, mechanism, &[], reason).having(have);
    }
    let Ok(shared) = Cpus::parse_list(&checkpoint.default_cpu_set) else {
        return Outcome::unknown(format!("/{STATE} names {:?}, no CPU list", checkpoint.default_cpu_set));
    };
    let hit = shared.and(scene.cpus);
    if hit.is_empty() {
        return Outcome::ok(format!("its shared pool, {shared}, leaves out {}", named(scene.cpus)))
            .having(have);
    }
    let reason = format!("its shared pool, {shared}, has {}: {}", named(&hit), mechanism.harm);
    propose(scene, mechanism, &[], reason).having(have)
}

pub(super) fn value(scene: &Scene) -> Option<String> {
    read(scene).ok().flatten().map(|checkpoint| spelled(&checkpoint))
}

fn spelled(checkpoint: &Checkpoint) -> String {
    format!("{} {}", checkpoint.policy_name, checkpoint.default_cpu_set).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    #[test]
    fn the_shared_pool_decides() {
        let with = |text| judged("kubelet-cpu_manager", &with_cpus(&[(super::STATE, text)]));
        let (state, reason, _) = with(r#"{"policyName":"none","defaultCpuSet":"","checksum":1353318690}"#);
        assert!(state == "fixable" && reason.starts_with("the policy is none"), "{state}: {reason}");
        let pods =
            r#"{"policyName":"static","defaultCpuSet":"0-1","entries":{"u":{"c":"2-3"}},"checksum":1}"#;
        assert_eq!(with(pods).0, "ok");
        let (state, reason, _) = with(r#"{"policyName":"static","defaultCpuSet":"0-2","checksum":1}"#);
        assert!(state == "fixable" && reason.contains("0-2, has CPU 2"), "{state}: {reason}");
        assert_eq!(with("{}").0, "unknown");
        assert_eq!(with(r#"{"policyName":"static","defaultCpuSet":"x"}"#).0, "unknown");
        assert_eq!(judged("kubelet-cpu_manager", &with_cpus(&[])).0, "not-applicable");
    }
}
