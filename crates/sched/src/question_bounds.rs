//! The curves of a task and the supply of cores as a line has them, judged.

use crate::bounds::MAX_ENTRIES;
use serde_json::Value;

/// What is wrong, and where below the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// As in `[3]`; empty for the whole value.
    pub(crate) at: String,
    pub(crate) found: String,
    pub(crate) expected: String,
}

fn misfit<T>(at: String, found: String, expected: impl Into<String>) -> Result<T, Misfit> {
    Err(Misfit { at, found, expected: expected.into() })
}

/// `[[interval, 2], [interval, 3], …]`, in the unit, none above `most`: the intervals.
pub(crate) fn arrivals(value: &Value, most: u64) -> Result<Vec<u64>, Misfit> {
    let mut intervals: Vec<u64> = Vec::new();
    for (place, entry) in entries(value, "pairs of an interval and a count")?.iter().enumerate() {
        let pair = match entry.as_array().map(Vec::as_slice) {
            Some([interval, count]) => (interval, count),
            _ => return misfit(format!("[{place}]"), shown(entry), "a pair of an interval and a count"),
        };
        let least = intervals.last().copied().unwrap_or(0);
        intervals.push(integer(pair.0, least, most, || format!("[{place}][0]"))?);
        let count = place as u64 + 2;
        if pair.1.as_u64() != Some(count) {
            return misfit(format!("[{place}][1]"), shown(pair.1), format!("{count}: counts are 2, 3, …"));
        }
    }
    if intervals.last() == Some(&0) {
        let at = format!("[{}][0]", intervals.len() - 1);
        return misfit(at, "0".to_owned(), "at least 1: else releases have no end");
    }
    Ok(intervals)
}

/// `[c1, c2, …]`, in the unit, none above `most`.
pub(crate) fn costs(value: &Value, most: u64) -> Result<Vec<u64>, Misfit> {
    let mut costs: Vec<u64> = Vec::new();
    for (place, cost) in entries(value, "costs of 1, 2, … jobs in a row")?.iter().enumerate() {
        let least = costs.last().copied().unwrap_or(1);
        costs.push(integer(cost, least, most, || format!("[{place}]"))?);
    }
    Ok(costs)
}

fn entries<'a>(value: &'a Value, of_what: &str) -> Result<&'a [Value], Misfit> {
    match value.as_array() {
        Some(list) if (1..=MAX_ENTRIES).contains(&list.len()) => Ok(list),
        Some(list) => {
            let expected = format!("1 to {MAX_ENTRIES} {of_what}");
            misfit(String::new(), format!("{} of them", list.len()), expected)
        }
        None => misfit(String::new(), shown(value), format!("a list of {of_what}")),
    }
}

fn integer(value: &Value, least: u64, most: u64, at: impl Fn() -> String) -> Result<u64, Misfit> {
    match value.as_u64() {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => misfit(at(), shown(value), format!("an integer from {least} to {most}")),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::bounds::Bounds;
    use crate::question::read;
    use crate::question_line;
    use crate::supply::Supply;
    use crate::{Ask, Heuristic, Limits, Order, Test, certificate};

    const LINE: &str = r#"{"unit":"us","cores":2,"supply":[null,{"budget":3,"period":10}],"tasks":[{"arrivals":[[0,2],[30,3]],"costs":[5,6],"deadline":40,"core":1},{"period":20,"cost":3}]}"#;

    #[test]
    fn curves_and_supplies_are_read_and_written() {
        let question = read(LINE).unwrap();
        let one = &question.system.tasks[0];
        let bounds = Bounds {
            intervals_ns: vec![0, 30_000],
            costs_ns: vec![5_000, 6_000],
            supply: Some(Supply { budget_ns: 3_000, period_ns: 10_000 }),
        };
        assert_eq!(one.bounds.as_deref(), Some(&bounds));
        assert_eq!((one.task.period_ns, one.task.cost_ns, one.task.deadline_ns), (1, 5_000, 40_000));
        assert_eq!(question.system.tasks[1].bounds, None);
        let line = question_line(&question.system, question.unit).unwrap();
        assert_eq!(read(&line).unwrap().system, question.system, "{line}");
        let all =
            read(LINE.replace(r#"[null,{"budget":3,"period":10}]"#, r#"{"budget":3,"period":10}"#)).unwrap();
        assert!(
            all.system.tasks.iter().all(|one| one.bounds.as_ref().is_some_and(|one| one.supply.is_some()))
        );
    }

    #[test]
    fn every_error_names_its_field() {
        let task = |what: &str| format!(r#"{{"tasks":[{{"deadline":9,{what}}}]}}"#);
        let supply = |what: &str| format!(r#"{{"cores":2,"supply":{what},"tasks":[]}}"#);
        for (line, expected) in [
            (
                task(r#""cost":1,"arrivals":[[1,3]]"#),
                "tasks[0].arrivals[0][1]: 3, expected 2: counts are 2, 3, …",
            ),
            (
                task(r#""cost":1,"arrivals":[[4,2],[3,3]]"#),
                "tasks[0].arrivals[1][0]: 3, expected an integer from 4 to",
            ),
            (task(r#""cost":1,"arrivals":[[0,2],[0,3]]"#), "tasks[0].arrivals[1][0]: 0, expected at least 1"),
            (task(r#""cost":1,"arrivals":[5]"#), "tasks[0].arrivals[0]: 5, expected a pair"),
            (task(r#""cost":1,"arrivals":[]"#), "tasks[0].arrivals: 0 of them, expected 1 to 1000 pairs"),
            (task(r#""cost":1,"arrivals":{}"#), "tasks[0].arrivals: an object, expected a list of pairs"),
            (task(r#""cost":1,"arrivals":[[1.5,2]]"#), "tasks[0].arrivals[0][0]: 1.5, expected an integer"),
            (
                task(r#""cost":1,"period":3,"arrivals":[[1,2]]"#),
                "tasks[0].period: 3, expected nothing beside arrivals",
            ),
            (
                task(r#""cost":1,"jitter":3,"arrivals":[[1,2]]"#),
                "tasks[0].jitter: 3, expected nothing beside arrivals",
            ),
            (task(r#""cost":1,"arrivals":[[1,2]],"arrivals":[[1,2]]"#), "tasks[0]: key \"arrivals\" twice"),
            (task(r#""period":9,"cost":1,"costs":[1]"#), "tasks[0].cost: 1, expected nothing beside costs"),
            (task(r#""period":9,"costs":[3,2]"#), "tasks[0].costs[1]: 2, expected an integer from 3 to"),
            (task(r#""period":9,"costs":[0]"#), "tasks[0].costs[0]: 0, expected an integer from 1 to"),
            (
                r#"{"tasks":[{"cost":1,"arrivals":[[1,2]]}]}"#.to_owned(),
                "tasks[0].deadline: nothing, expected a time",
            ),
            (supply("7"), "supply: a number, expected an object, or a list"),
            (supply("[null]"), "supply: 1 of them, expected one for each core, 2"),
            (supply("[null,3]"), "supply[1]: a number, expected an object"),
            (supply(r#"{"budget":11,"period":10}"#), "supply.budget: 11, expected an integer from 1 to 10"),
            (supply(r#"{"budget":0,"period":10}"#), "supply.budget: 0, expected an integer from 1 to 10"),
            (supply(r#"{"period":10}"#), "supply.budget: nothing, expected a time"),
            (
                supply(r#"{"budget":1,"period":10,"deadline":3}"#),
                "supply: unknown key \"deadline\", expected some of budget",
            ),
            (supply(r#"[null,{"budget":1,"budget":1,"period":10}]"#), "supply[1]: key \"budget\" twice"),
        ] {
            let error = read(&line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }

    /// Every way to an answer knows them or refuses them.
    #[test]
    fn nothing_but_response_times_takes_them() {
        let lines = [
            r#"{"tasks":[{"arrivals":[[4,2]],"cost":1,"deadline":4}]}"#,
            r#"{"tasks":[{"period":4,"costs":[1]}]}"#,
            r#"{"supply":{"budget":9,"period":10},"tasks":[{"period":40,"cost":1}]}"#,
        ];
        let fp = Ask::of(Test::FpRta);
        let locks = crate::locks::Protocol::ALL.into_iter().map(|one| Ask { locks: Some(one.into()), ..fp });
        let once = Ask {
            locks: Some(crate::locks::Protocol::FifoNp.into()),
            blocking_only: Some(crate::locks::Semantics::Sound),
            ..fp
        };
        let others = [
            once,
            Ask { overheads: Some(crate::overheads::Overheads::default()), ..fp },
            Ask { partition: Heuristic::by_name("ffd"), ..fp },
            Ask { edf_jitter: crate::EdfJitter::PeriodsToo, ..Ask::of(Test::EdfQpa) },
        ];
        let tests =
            Test::ALL.into_iter().filter(|test| !matches!(test, Test::FpRta | Test::EdfRta)).map(Ask::of);
        let orders = Order::ALL.into_iter().map(|order| Ask { order: Some(order), ..fp });
        let asks: Vec<Ask> = tests.chain(orders).chain(locks).chain(others).collect();
        for line in lines {
            let answer = |ask: &Ask| ask.answer(&mut read(line).unwrap(), Limits::default());
            assert!(answer(&fp).unwrap().schedulable, "{line}");
            assert!(answer(&Ask::of(Test::EdfRta)).unwrap().schedulable, "{line}");
            for ask in &asks {
                let refusal = answer(ask).expect_err(line).to_string();
                assert!(refusal.contains("curves") || refusal.contains("supply"), "{ask:?}: {refusal}");
            }
            let system = read(line).unwrap().system;
            assert!(system.beyond_independent().is_some());
            assert!(certificate::certify(&system, Test::FpRta, None, Limits::default()).is_err());
            assert!(crate::order_that_holds(&read(line).unwrap(), Test::FpRta, Limits::default()).is_none());
            let admission = crate::global::sched_deadline::Admission::LINUX;
            assert!(crate::admission(&system, false, admission).is_err());
        }
        let suspends = r#"{"tasks":[{"arrivals":[[4,2]],"cost":1,"deadline":4,"suspension":1}]}"#;
        let refusal = fp.answer(&mut read(suspends).unwrap(), Limits::default()).unwrap_err().to_string();
        assert!(refusal.contains("self-suspension beside curves"), "{refusal}");
    }
}
