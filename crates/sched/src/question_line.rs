//! A system as a line of JSON: the inverse of [`crate::question::read`]. Default values are left
//! out.

use crate::asked::Unit;
use crate::system::{Access, Request, System, SystemTask};
use serde_json::{Map, Value, json};

/// The line, without its line end; none where a time is not a multiple of the unit. Tasks keep
/// their order, which is that of priority.
pub fn line(system: &System, unit: Unit) -> Option<String> {
    let tasks = system.tasks.iter().map(|one| task(one, system.cores, unit)).collect::<Option<Vec<_>>>()?;
    let tasks = tasks.iter().map(Value::to_string).collect::<Vec<_>>().join(",");
    Some(format!("{{\"unit\":\"{}\",\"cores\":{},\"tasks\":[{tasks}]}}", unit.name(), system.cores))
}

fn task(system_task: &SystemTask, cores: u32, unit: Unit) -> Option<Value> {
    let SystemTask {
        task,
        suspension_ns,
        non_preemptive_ns,
        core,
        lock_priority,
        response_time_ns,
        requests,
    } = system_task;
    let whole = |ns: u64| ns.is_multiple_of(unit.ns()).then(|| ns / unit.ns());
    let mut map = Map::new();
    map.insert("period".to_owned(), json!(whole(task.period_ns)?));
    map.insert("cost".to_owned(), json!(whole(task.cost_ns)?));
    let mut unless = |key: &str, ns: u64, usual: u64| {
        if ns != usual {
            map.insert(key.to_owned(), json!(whole(ns)?));
        }
        Some(())
    };
    unless("deadline", task.deadline_ns, task.period_ns)?;
    unless("jitter", task.jitter_ns, 0)?;
    unless("blocking", task.blocking_ns, 0)?;
    unless("suspension", *suspension_ns, 0)?;
    unless("non_preemptive", *non_preemptive_ns, 0)?;
    if let Some(response_ns) = response_time_ns {
        map.insert("response_time".to_owned(), json!(whole(*response_ns)?));
    }
    if cores > 1 && *core != 0 {
        map.insert("core".to_owned(), json!(core));
    }
    if let Some(rank) = lock_priority {
        map.insert("lock_priority".to_owned(), json!(rank));
    }
    if !requests.is_empty() {
        let request = |one: &Request| {
            let access = if one.access == Access::Read { "read" } else { "write" };
            let length = whole(one.length_ns)?;
            Some(json!({ "resource": one.resource, "count": one.count, "length": length, "access": access }))
        };
        map.insert("requests".to_owned(), requests.iter().map(request).collect::<Option<Vec<_>>>()?.into());
    }
    Some(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::read;
    use crate::task::Task;
    use proptest::prelude::*;

    fn task() -> impl Strategy<Value = SystemTask> {
        let times = [1u64..999, 1..999, 9..999, 0..3, 0..3];
        let more = (0u64..3, 0u64..3, 0u32..4, prop::option::of(0u32..9), prop::option::of(0u64..99));
        let request = (0u32..5, 1u64..4, 0u64..9, any::<bool>());
        (times, more, prop::collection::vec(request, 0..3)).prop_map(|([t, d, c, j, b], more, requests)| {
            SystemTask {
                task: Task { period_ns: t, deadline_ns: d, cost_ns: c, jitter_ns: j, blocking_ns: b },
                suspension_ns: more.0,
                non_preemptive_ns: more.1,
                core: more.2,
                lock_priority: more.3,
                response_time_ns: more.4,
                requests: requests
                    .into_iter()
                    .map(|(resource, count, length_ns, read)| Request {
                        resource,
                        count,
                        length_ns,
                        access: if read { Access::Read } else { Access::Write },
                    })
                    .collect(),
            }
        })
    }

    proptest! {
        #[test]
        fn reading_a_line_gives_the_system(tasks in prop::collection::vec(task(), 0..6)) {
            let system = System { cores: 4, tasks };
            prop_assert_eq!(&read(line(&system, Unit::Ns).unwrap()).unwrap().system, &system);
        }
    }

    #[test]
    fn units_must_fit() {
        let system = System { cores: 1, tasks: vec![Task::implicit(3_000, 2_000).into()] };
        assert_eq!(
            line(&system, Unit::Us).unwrap(),
            r#"{"unit":"us","cores":1,"tasks":[{"cost":2,"period":3}]}"#
        );
        assert_eq!(line(&system, Unit::Ms), None);
    }
}
