//! The limit on the latency of leaving idle states, for this CPU.
//!
//! File: Linux `Documentation/admin-guide/pm/cpuidle.rst` (`power/pm_qos_resume_latency_us`): `0`
//! is no limit, `n/a` the strictest one.

use super::id;
use super::scene::Scene;
use model::resource::{Kind, Resource};

/// The limit, where the kernel has it.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let Some(value) = scene.root.maybe(&scene.own("power/pm_qos_resume_latency_us")) else {
        return Vec::new();
    };
    let (effective, may) = match (value.as_str(), value.parse::<u64>()) {
        ("0", _) => ("no limit".to_owned(), Some(true)),
        ("n/a", _) => ("no latency at all".to_owned(), Some(false)),
        (_, Ok(us)) => (format!("at most {us} us"), Some(true)),
        (_, Err(_)) => ("not understood".to_owned(), None),
    };
    vec![Resource {
        asked: Some(value),
        effective: Some(effective),
        owner: Some("cpuidle".to_owned()),
        may_touch: may,
        in_force: may,
        movable: Some(true),
        reason: Some("it can be set for this CPU; idle states may be deep while it sets no limit".to_owned()),
        mechanism: Some(id::PM_QOS.to_owned()),
        ..Resource::new(Kind::PmQos, "resume latency")
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn nothing_is_no_limit_and_not_applicable_the_strictest() {
        let judged = |text: &str| {
            let (_dir, root) = tree(&[("sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us", text)]);
            let row = super::rows(&Scene::new(&root, 3)).remove(0);
            (row.effective.unwrap(), row.may_touch)
        };
        assert_eq!(judged("0"), ("no limit".to_owned(), Some(true)));
        assert_eq!(judged("n/a"), ("no latency at all".to_owned(), Some(false)));
        assert_eq!(judged("5"), ("at most 5 us".to_owned(), Some(true)));
        assert_eq!(judged("-5").1, None);
    }
}
