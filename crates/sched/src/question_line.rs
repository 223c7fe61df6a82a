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
    let supply = supply(system, unit)?;
    let (unit, cores) = (unit.name(), system.cores);
    Some(format!("{{\"unit\":\"{unit}\",\"cores\":{cores}{supply},\"tasks\":[{tasks}]}}"))
}

/// The key of what cores supply, after a comma; nothing where all tasks have whole cores. A core
/// without tasks is whole.
fn supply(system: &System, unit: Unit) -> Option<String> {
    let of = |task: &SystemTask| task.bounds.as_ref().and_then(|bounds| bounds.supply);
    if !system.tasks.iter().any(|task| of(task).is_some()) {
        return Some(String::new());
    }
    let mut supplies = vec![Value::Null; system.cores as usize];
    for task in &system.tasks {
        if let Some(supply) = of(task) {
            let budget = whole(supply.budget_ns, unit)?;
            *supplies.get_mut(task.core as usize)? =
                json!({ "budget": budget, "period": whole(supply.period_ns, unit)? });
        }
    }
    Some(format!(",\"supply\":{}", Value::Array(supplies)))
}

/// A time in the unit, if it is a multiple of it.
fn whole(ns: u64, unit: Unit) -> Option<u64> {
    ns.is_multiple_of(unit.ns()).then(|| ns / unit.ns())
}

fn task(system_task: &SystemTask, cores: u32, unit: Unit) -> Option<Value> {
    let SystemTask {
        task,
        suspension_ns,
        suspensions,
        non_preemptive_ns,
        core,
        lock_priority,
        response_time_ns,
        requests,
        bounds,
    } = system_task;
    let whole = |ns: u64| whole(ns, unit);
    let (intervals_ns, costs_ns) =
        bounds.as_ref().map_or((&[][..], &[][..]), |one| (&one.intervals_ns[..], &one.costs_ns[..]));
    let curve = |times: &[u64]| times.iter().map(|&ns| whole(ns)).collect::<Option<Vec<u64>>>();
    let mut map = Map::new();
    if intervals_ns.is_empty() {
        map.insert("period".to_owned(), json!(whole(task.period_ns)?));
    } else {
        // The curve counts releases.
        (task.jitter_ns == 0).then_some(())?;
        let pairs = curve(intervals_ns)?.into_iter().zip(2u64..).map(|pair| json!(pair)).collect::<Vec<_>>();
        map.insert("arrivals".to_owned(), pairs.into());
        map.insert("deadline".to_owned(), json!(whole(task.deadline_ns)?));
    }
    if costs_ns.is_empty() {
        map.insert("cost".to_owned(), json!(whole(task.cost_ns)?));
    } else {
        map.insert("costs".to_owned(), json!(curve(costs_ns)?));
    }
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
    if *suspensions > 0 {
        map.insert("suspensions".to_owned(), json!(suspensions));
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
                suspensions: more.0 as u32 / 2,
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
                bounds: None,
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
