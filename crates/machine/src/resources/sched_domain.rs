//! Scheduling domains that hold the CPU: among their CPUs the scheduler balances, which moves tasks
//! here and takes locks of this CPU's queue.

use super::id;
use super::scene::{Scene, unknown};
use crate::{Domain, domains};
use model::resource::{Kind, Resource};

/// A row for each domain, or one that says that there is none.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let Some(all) = domains(scene.root) else {
        let why = "this kernel does not report them (CONFIG_SCHEDSTATS)";
        return vec![unknown(Kind::SchedDomain, "domains", why)];
    };
    match all.get(&scene.cpu).map(Vec::as_slice) {
        None | Some([]) => vec![Resource {
            effective: Some("in none".to_owned()),
            may_touch: Some(false),
            in_force: Some(false),
            movable: Some(true),
            reason: Some("the scheduler brings no task here by balancing".to_owned()),
            mechanism: Some(id::SCHED_DOMAINS.to_owned()),
            ..Resource::new(Kind::SchedDomain, "domains")
        }],
        Some(domains) => domains.iter().enumerate().map(row).collect(),
    }
}

fn row((at, domain): (usize, &Domain)) -> Resource {
    let name =
        domain.name.as_ref().map_or_else(|| format!("domain {at}"), |name| format!("domain {at} {name}"));
    Resource {
        effective: Some(domain.cpus.to_string()),
        owner: Some("scheduler".to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        movable: Some(true),
        reason: Some("an isolated partition, or isolcpus= at boot, takes the CPU out".to_owned()),
        mechanism: Some(id::SCHED_DOMAINS.to_owned()),
        ..Resource::new(Kind::SchedDomain, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_row_a_domain_or_one_that_says_there_is_none() {
        let (_dir, root) = tree(&[(
            "proc/schedstat",
            "version 17\ncpu0 0\ndomain0 MC 3 1\ncpu1 0\ndomain0 MC 3 1\ncpu2 0\n",
        )]);
        let rows = |cpu| rows(&Scene::new(&root, cpu));
        let seen = |cpu| {
            rows(cpu).into_iter().map(|row| (row.name, row.effective, row.may_touch)).collect::<Vec<_>>()
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(seen(1), [("domain 0 MC".to_owned(), text("0,1"), Some(true))]);
        assert_eq!(seen(2), [("domains".to_owned(), text("in none"), Some(false))]);
    }
}
