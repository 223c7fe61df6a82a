//! In which control groups the threads of a machine were, and which containers those are.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Threads of one control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskGroup {
    /// Its path below the top of the hierarchy, as `/proc/PID/cgroup` gives it (cgroups(7)).
    pub path: String,
    /// The container that it is, or lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Threads that were in it and, as far as was seen, in no other; ascending.
    pub tids: Vec<i32>,
}

/// A container, as its runtime names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Container {
    /// Its number or name in the path of the group.
    pub id: String,
    /// Its name; absent where no file of its runtime names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The pod that it belongs to, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The pod's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Kinds of systemd units that have processes of their own (systemd.service(5), systemd.scope(5)).
const UNITS: [&str; 2] = ["service", "scope"];

/// Characters of a number that distinguish containers for people.
const SHORT_ID: usize = 12;

impl Container {
    /// As people know it: `container web of pod shop/front-0`, `container 4f1c6a0b9d2e`.
    pub fn words(&self) -> String {
        let id: String = self.id.chars().take(SHORT_ID).collect();
        let name = self.name.as_deref().unwrap_or(&id);
        let pod = self.pod.as_ref().map(|pod| match &self.namespace {
            Some(namespace) => format!(" of pod {namespace}/{pod}"),
            None => format!(" of pod {pod}"),
        });
        format!("container {name}{}", pod.unwrap_or_default())
    }
}

impl TaskGroup {
    /// As people know it: the container, the service or scope, or the whole path.
    pub fn words(&self) -> String {
        if let Some(container) = &self.container {
            return container.words();
        }
        let unit = |part: &&str| part.rsplit_once('.').is_some_and(|(_, kind)| UNITS.contains(&kind));
        self.path.rsplit('/').find(unit).unwrap_or(&self.path).to_owned()
    }
}

/// The group of each thread by its number.
pub fn by_tid(groups: &[TaskGroup]) -> BTreeMap<i32, &TaskGroup> {
    groups.iter().flat_map(|group| group.tids.iter().map(move |tid| (*tid, group))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_as_people_know_them() {
        let group = |path: &str| TaskGroup { path: path.to_owned(), container: None, tids: vec![1] };
        assert_eq!(group("/system.slice/cron.service").words(), "cron.service");
        assert_eq!(group("/system.slice/docker.service/supervisor").words(), "docker.service");
        assert_eq!(group("/batch/7").words(), "/batch/7");
        let id = "4f1c6a0b9d2e77aa".to_owned();
        let mut container = Container { id, ..Container::default() };
        assert_eq!(container.words(), "container 4f1c6a0b9d2e");
        container.name = Some("web".to_owned());
        container.pod = Some("front-0".to_owned());
        assert_eq!(container.words(), "container web of pod front-0");
        container.namespace = Some("shop".to_owned());
        let inside = TaskGroup { container: Some(container), ..group("/kubepods.slice/x") };
        assert_eq!(inside.words(), "container web of pod shop/front-0");
    }
}
