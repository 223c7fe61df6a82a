//! The curves of a task, the supply of cores and the chains of tasks as a line has them, judged.

use crate::asked::Unit;
use crate::bounds::MAX_ENTRIES;
use crate::chain::{Chain, Edge};
use crate::question_raw::Tree;
use crate::supply::Supply;
use crate::task::{MAX_NS, MAX_TASKS};

/// What is wrong, and where below the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// As in `[3]`; empty for the whole value.
    pub(crate) at: String,
    pub(crate) found: String,
    pub(crate) expected: String,
}

pub(crate) fn misfit<T>(
    at: &str,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> Result<T, Misfit> {
    Err(Misfit { at: at.to_owned(), found: found.into(), expected: expected.into() })
}

/// `[[interval, 2], [interval, 3], …]`: the intervals, ns.
pub(crate) fn arrivals(value: &Tree, unit: Unit) -> Result<Vec<u64>, Misfit> {
    let mut intervals: Vec<u64> = Vec::new();
    for (place, entry) in list(value, "", "pairs of an interval and a count", MAX_ENTRIES)?.iter().enumerate()
    {
        let at = format!("[{place}]");
        let Tree::List(pair) = entry else {
            return misfit(&at, entry.shown(), "a pair of an interval and a count");
        };
        let [interval, count] = &pair[..] else {
            return misfit(&at, format!("{} of them", pair.len()), "a pair of an interval and a count");
        };
        let least = intervals.last().copied().unwrap_or(0);
        intervals.push(integer(interval, &format!("{at}[0]"), least, MAX_NS / unit.ns())?);
        let expected = place as u64 + 2;
        if *count != Tree::Integer(expected) {
            let counts = format!("{expected}: counts are 2, 3, …");
            return misfit(&format!("{at}[1]"), count.shown(), counts);
        }
    }
    if intervals.last() == Some(&0) {
        let at = format!("[{}][0]", intervals.len() - 1);
        return misfit(&at, "0", "at least 1: else releases have no end");
    }
    Ok(intervals.into_iter().map(|interval| interval * unit.ns()).collect())
}

/// `[c1, c2, …]`, ns.
pub(crate) fn costs(value: &Tree, unit: Unit) -> Result<Vec<u64>, Misfit> {
    let mut costs: Vec<u64> = Vec::new();
    for (place, cost) in list(value, "", "costs of 1, 2, … jobs in a row", MAX_ENTRIES)?.iter().enumerate()
    {
        let least = costs.last().copied().unwrap_or(1);
        costs.push(integer(cost, &format!("[{place}]"), least, MAX_NS / unit.ns())?);
    }
    Ok(costs.into_iter().map(|cost| cost * unit.ns()).collect())
}

/// What each core supplies, none for a whole core.
pub(crate) fn supplies(value: &Tree, unit: Unit, cores: u32) -> Result<Vec<Option<Supply>>, Misfit> {
    match value {
        Tree::Object(_) => Ok(vec![Some(supply(value, "", unit)?); cores as usize]),
        Tree::List(list) if list.len() == cores as usize => {
            let each = list.iter().enumerate().map(|(core, value)| match value {
                Tree::Other(serde_json::Value::Null) => Ok(None),
                value => supply(value, &format!("[{core}]"), unit).map(Some),
            });
            each.collect()
        }
        Tree::List(list) => {
            misfit("", format!("{} of them", list.len()), format!("one for each core, {cores}"))
        }
        other => misfit("", other.shown(), "an object, or a list of one for each core"),
    }
}

/// A reservation.
pub(crate) fn supply(value: &Tree, at: &str, unit: Unit) -> Result<Supply, Misfit> {
    let fields = Fields::of(value, at, &["budget", "period"])?;
    let period = fields.needed("period", 1, MAX_NS / unit.ns())?;
    let budget = fields.needed("budget", 1, period)?;
    Ok(Supply { budget_ns: budget * unit.ns(), period_ns: period * unit.ns() })
}

/// `[{"tasks": [0, 2, 1], "edges": ["time", "event"], "reaction": 30, "age": 20}, …]`.
pub(crate) fn chains(value: &Tree, unit: Unit, tasks: usize) -> Result<Vec<Chain>, Misfit> {
    let chain = |(place, value): (usize, &Tree)| {
        let at = format!("[{place}]");
        let fields = Fields::of(value, &at, &["tasks", "edges", "reaction", "age"])?;
        let below = format!("{at}.tasks");
        let Some(listed) = fields.value("tasks") else { return misfit(&below, "nothing", "a list of tasks") };
        let mut places: Vec<usize> = Vec::new();
        for (step, task) in list(listed, &below, "tasks", MAX_TASKS)?.iter().enumerate() {
            let at = format!("{below}[{step}]");
            let task = integer(task, &at, 0, (tasks as u64).saturating_sub(1))? as usize;
            if places.contains(&task) {
                return misfit(&at, task.to_string(), "every task once at most");
            }
            places.push(task);
        }
        let below = format!("{at}.edges");
        let edges = match fields.value("edges") {
            None => vec![Edge::Time; places.len() - 1],
            Some(Tree::List(edges)) if edges.len() == places.len() - 1 => {
                let edge = |(step, edge): (usize, &Tree)| match edge {
                    Tree::Other(word) if word == "time" => Ok(Edge::Time),
                    Tree::Other(word) if word == "event" => Ok(Edge::Event),
                    other => misfit(&format!("{below}[{step}]"), other.shown(), "\"time\" or \"event\""),
                };
                edges.iter().enumerate().map(edge).collect::<Result<_, _>>()?
            }
            Some(Tree::List(edges)) => {
                let expected = format!("one between two tasks, {}", places.len() - 1);
                return misfit(&below, format!("{} of them", edges.len()), expected);
            }
            Some(other) => return misfit(&below, other.shown(), "a list of \"time\" and \"event\""),
        };
        let limit = |key| Ok(fields.integer(key, 1, MAX_NS / unit.ns())?.map(|limit| limit * unit.ns()));
        Ok(Chain { tasks: places, edges, reaction_ns: limit("reaction")?, age_ns: limit("age")? })
    };
    list(value, "", "chains", MAX_TASKS)?.iter().enumerate().map(chain).collect()
}

/// The fields of an object, each once.
pub(crate) struct Fields<'a> {
    at: &'a str,
    entries: &'a [(String, Tree)],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Tree, at: &'a str, keys: &[&str]) -> Result<Self, Misfit> {
        let Tree::Object(entries) = value else { return misfit(at, value.shown(), "an object") };
        for (place, (key, _)) in entries.iter().enumerate() {
            if !keys.contains(&&key[..]) {
                return misfit(at, format!("unknown key {key:?}"), format!("some of {}", keys.join(", ")));
            }
            if entries[..place].iter().any(|(before, _)| before == key) {
                return misfit(at, format!("key {key:?} twice"), "every key once at most");
            }
        }
        Ok(Self { at, entries })
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'a Tree> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn integer(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Misfit> {
        self.value(key).map(|value| integer(value, &self.path(key), least, most)).transpose()
    }

    /// One of these, by name.
    pub(crate) fn word<T: Copy>(
        &self,
        key: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<Option<T>, Misfit> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let named = |one: &T| matches!(value, Tree::Other(word) if word == name(*one));
        if let Some(one) = all.iter().copied().find(named) {
            return Ok(Some(one));
        }
        let names: Vec<String> = all.iter().map(|&one| format!("{:?}", name(one))).collect();
        misfit(&self.path(key), value.shown(), format!("one of {}", names.join(", ")))
    }

    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.at)
    }

    fn needed(&self, key: &str, least: u64, most: u64) -> Result<u64, Misfit> {
        self.integer(key, least, most)?.map_or_else(|| misfit(&self.path(key), "nothing", "a time"), Ok)
    }
}

/// A list of 1 to `most` things.
pub(crate) fn list<'a>(value: &'a Tree, at: &str, of_what: &str, most: usize) -> Result<&'a [Tree], Misfit> {
    match value {
        Tree::List(list) if (1..=most).contains(&list.len()) => Ok(list),
        Tree::List(list) => misfit(at, format!("{} of them", list.len()), format!("1 to {most} {of_what}")),
        other => misfit(at, other.shown(), format!("a list of {of_what}")),
    }
}

pub(crate) fn integer(value: &Tree, at: &str, least: u64, most: u64) -> Result<u64, Misfit> {
    match value {
        Tree::Integer(number) if (least..=most).contains(number) => Ok(*number),
        other => misfit(at, other.shown(), format!("an integer from {least} to {most}")),
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
            (supply("7"), "supply: 7, expected an object, or a list"),
            (supply("[null]"), "supply: 1 of them, expected one for each core, 2"),
            (supply("[null,3]"), "supply[1]: 3, expected an object"),
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
        let inherits = Ask { locks: Some(crate::locks::Protocol::Pip.into()), ..fp };
        let others =
            crate::locks::Protocol::ALL.into_iter().filter(|one| *one != crate::locks::Protocol::Pip);
        let locks = others.map(|one| Ask { locks: Some(one.into()), ..fp });
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
            // Locks that stay on a core block for a time that no curve changes.
            assert_eq!(answer(&inherits).unwrap(), answer(&fp).unwrap(), "{line}");
            for ask in &asks {
                let refusal = answer(ask).expect_err(line).to_string();
                assert!(refusal.contains("curves") || refusal.contains("supply"), "{ask:?}: {refusal}");
            }
            let system = read(line).unwrap().system;
            assert!(system.beyond_independent().is_some());
            assert!(certificate::certify(&system, Test::FpRta, None, Limits::default()).is_err());
            assert!(fp.other_order(&read(line).unwrap(), Limits::default()).is_none());
            let admission = crate::global::sched_deadline::Admission::LINUX;
            assert!(crate::admission(&system, false, admission).is_err());
        }
        let suspends = r#"{"tasks":[{"arrivals":[[4,2]],"cost":1,"deadline":4,"suspension":1}]}"#;
        let refusal = fp.answer(&mut read(suspends).unwrap(), Limits::default()).unwrap_err().to_string();
        assert!(refusal.contains("self-suspension beside curves"), "{refusal}");
    }
}
