//! Executors as a line of JSON.
//!
//! `{"unit":"us","order":"registered","executors":[{"budget":3000,"period":10000},null],"callbacks":[…],
//! "chains":[{"callbacks":[0,1],"limit":50000}]}`. A callback has a `kind`, a `cost` or `costs`,
//! and what activates it: `period` with `jitter`, or `arrivals`, from outside; `after`, the
//! callbacks that do. The order of the list is that of registration. Numbers are integers in the
//! unit.

use super::{Callback, CallbackChain, CallbackKind, ExecutorSystem, External, ReadyOrder};
use crate::asked::Unit;
use crate::question::QuestionError;
use crate::question_bounds::{self, Fields, Misfit, integer, list, misfit};
use crate::question_raw::Tree;
use crate::task::MAX_NS;

/// Most callbacks of a system.
const MOST_CALLBACKS: usize = 10_000;
/// Most ways to a callback from what activates it first.
const MOST_WAYS: u64 = 1_000;

/// A system, with the unit in which it is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorQuestion {
    /// The unit of its times.
    pub unit: Unit,
    /// The system, ns.
    pub system: ExecutorSystem,
}

/// Reads a line.
pub fn read_executors(line: impl AsRef<[u8]>) -> Result<ExecutorQuestion, QuestionError> {
    let line: Tree = crate::question::parse(line.as_ref())?;
    judge(&line).map_err(|Misfit { at, found, expected }| {
        let field = if at.is_empty() { "the line" } else { at.trim_start_matches('.') }.to_owned();
        QuestionError { field, found, expected }
    })
}

fn judge(line: &Tree) -> Result<ExecutorQuestion, Misfit> {
    let fields = Fields::of(line, "", &["unit", "order", "executors", "callbacks", "chains"])?;
    let units = [Unit::Ns, Unit::Us, Unit::Ms];
    let unit = fields.word("unit", &units, Unit::name)?.unwrap_or_default();
    let order = fields.word("order", &ReadyOrder::ALL, ReadyOrder::name)?.unwrap_or_default();
    let executors = match fields.value("executors") {
        None => vec![None],
        Some(value) => {
            let all = list(value, "executors", "supplies, null for a whole core", MOST_CALLBACKS)?;
            let each = all.iter().enumerate().map(|(place, one)| match one {
                Tree::Other(serde_json::Value::Null) => Ok(None),
                one => question_bounds::supply(one, &format!("executors[{place}]"), unit).map(Some),
            });
            each.collect::<Result<_, _>>()?
        }
    };
    let Some(value) = fields.value("callbacks") else {
        return misfit("callbacks", "nothing", "a list of callbacks");
    };
    let given = list(value, "callbacks", "callbacks", MOST_CALLBACKS)?;
    let room = Room { unit, executors: executors.len(), callbacks: given.len() };
    let callbacks: Vec<Callback> =
        given.iter().enumerate().map(|(place, one)| room.callback(place, one)).collect::<Result<_, _>>()?;
    check_ways(&callbacks)?;
    let chains = match fields.value("chains") {
        None => Vec::new(),
        Some(value) => {
            let all = list(value, "chains", "chains", MOST_CALLBACKS)?.iter().enumerate();
            all.map(|(place, one)| room.chain(place, one, &callbacks)).collect::<Result<_, _>>()?
        }
    };
    Ok(ExecutorQuestion { unit, system: ExecutorSystem { order, executors, callbacks, chains } })
}

/// What the parts of a line may name.
struct Room {
    unit: Unit,
    executors: usize,
    callbacks: usize,
}

impl Room {
    fn callback(&self, place: usize, value: &Tree) -> Result<Callback, Misfit> {
        let at = format!("callbacks[{place}]");
        let keys = [
            "kind", "executor", "period", "jitter", "arrivals", "after", "delay", "cost", "costs", "deadline",
        ];
        let fields = Fields::of(value, &at, &keys)?;
        let within = |key: &str| format!("{at}.{key}");
        let time = |key, least| {
            let time = fields.integer(key, least, MAX_NS / self.unit.ns())?;
            Ok::<_, Misfit>(time.map(|time| time * self.unit.ns()))
        };
        let Some(kind) = fields.word("kind", &CallbackKind::ALL, CallbackKind::name)? else {
            let names = CallbackKind::ALL.map(CallbackKind::name).join(", ");
            return misfit(&within("kind"), "nothing", format!("one of {names}"));
        };
        let curve = |key: &str, read: fn(&Tree, Unit) -> Result<Vec<u64>, Misfit>| {
            let entries = fields.value(key).map_or(Ok(Vec::new()), |value| read(value, self.unit));
            entries.map_err(|misfit| Misfit { at: within(key) + &misfit.at, ..misfit })
        };
        let intervals_ns = curve("arrivals", question_bounds::arrivals)?;
        let costs_ns = curve("costs", question_bounds::costs)?;
        let (period_ns, jitter_ns) = (time("period", 1)?, time("jitter", 0)?);
        if period_ns.is_some() && !intervals_ns.is_empty() {
            return misfit(&within("period"), "a time", "nothing beside arrivals");
        }
        let external = match (period_ns, intervals_ns.first()) {
            (None, None) => None,
            (period_ns, _) => Some(External {
                period_ns: period_ns.unwrap_or(1),
                intervals_ns,
                jitter_ns: jitter_ns.unwrap_or(0),
            }),
        };
        if external.is_none() && jitter_ns.is_some() {
            return misfit(&within("jitter"), "a time", "a period or arrivals beside it");
        }
        let after = match fields.value("after") {
            None => Vec::new(),
            Some(value) => self.places(value, &within("after"))?,
        };
        match (kind, &external, after.is_empty()) {
            (CallbackKind::Timer, _, false) => {
                return misfit(&within("after"), "a list", "nothing: time alone activates a timer");
            }
            (_, None, true) => {
                return misfit(&at, "nothing that activates it", "period, arrivals or after");
            }
            _ => {}
        }
        let delay_ns = time("delay", 0)?;
        if delay_ns.is_some() && after.is_empty() {
            return misfit(&within("delay"), "a time", "after beside it");
        }
        let cost_ns = match (time("cost", 1)?, costs_ns.first()) {
            (Some(_), Some(_)) => return misfit(&within("cost"), "a time", "nothing beside costs"),
            (None, None) => return misfit(&within("cost"), "nothing", "a time"),
            (Some(cost_ns), None) | (None, Some(&cost_ns)) => cost_ns,
        };
        let executor = match fields.integer("executor", 0, self.executors as u64 - 1)? {
            Some(executor) => executor as usize,
            None if self.executors == 1 => 0,
            None => {
                let expected = format!("an integer from 0 to {}", self.executors - 1);
                return misfit(&within("executor"), "nothing", expected);
            }
        };
        let (delay_ns, deadline_ns) = (delay_ns.unwrap_or(0), time("deadline", 1)?);
        Ok(Callback { kind, executor, cost_ns, costs_ns, external, after, delay_ns, deadline_ns })
    }

    fn chain(&self, place: usize, value: &Tree, callbacks: &[Callback]) -> Result<CallbackChain, Misfit> {
        let at = format!("chains[{place}]");
        let fields = Fields::of(value, &at, &["callbacks", "limit"])?;
        let below = format!("{at}.callbacks");
        let Some(value) = fields.value("callbacks") else {
            return misfit(&below, "nothing", "a list of callbacks");
        };
        let listed = self.places(value, &below)?;
        for (step, pair) in listed.windows(2).enumerate() {
            if !callbacks[pair[1]].after.contains(&pair[0]) {
                let found = format!("callback {}, which callback {} does not activate", pair[1], pair[0]);
                return misfit(&format!("{below}[{}]", step + 1), found, "each in the after of the next");
            }
        }
        let limit = fields.integer("limit", 1, MAX_NS / self.unit.ns())?;
        Ok(CallbackChain { callbacks: listed, limit_ns: limit.map(|limit| limit * self.unit.ns()) })
    }

    /// Callbacks by place, each once.
    fn places(&self, value: &Tree, at: &str) -> Result<Vec<usize>, Misfit> {
        let mut places = Vec::new();
        for (step, one) in list(value, at, "callbacks", self.callbacks)?.iter().enumerate() {
            let at = format!("{at}[{step}]");
            let place = integer(one, &at, 0, self.callbacks as u64 - 1)? as usize;
            if places.contains(&place) {
                return misfit(&at, place.to_string(), "every callback once at most");
            }
            places.push(place);
        }
        Ok(places)
    }
}

/// Refuses callbacks that activate themselves, and those that are activated in very many ways.
fn check_ways(callbacks: &[Callback]) -> Result<(), Misfit> {
    let mut ways: Vec<Option<u64>> = vec![None; callbacks.len()];
    let mut left: Vec<usize> = (0..callbacks.len()).collect();
    while !left.is_empty() {
        let mut waiting = Vec::new();
        for &callback in &left {
            let one = &callbacks[callback];
            let before: Option<u64> = one.after.iter().map(|&before| ways[before]).sum();
            let Some(before) = before else {
                waiting.push(callback);
                continue;
            };
            let all = before + u64::from(one.external.is_some());
            if all > MOST_WAYS {
                let at = format!("callbacks[{callback}].after");
                return misfit(&at, format!("activated in {all} ways"), format!("at most {MOST_WAYS}"));
            }
            ways[callback] = Some(all);
        }
        if waiting.len() == left.len() {
            let at = format!("callbacks[{}].after", waiting[0]);
            return misfit(&at, "activated in a circle", "activations that begin outside");
        }
        left = waiting;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"unit":"us","order":"registered","executors":[{"budget":3,"period":5},null],"callbacks":[
        {"kind":"timer","executor":0,"period":20,"cost":2,"jitter":3},
        {"kind":"subscription","executor":0,"after":[0],"costs":[2,3]},
        {"kind":"client","executor":1,"after":[0,1],"delay":1,"arrivals":[[0,2],[90,3]],"cost":4,"deadline":50}],
        "chains":[{"callbacks":[0,1,2],"limit":60}]}"#;

    #[test]
    fn a_line_is_read() {
        let question = read_executors(LINE.replace('\n', "")).unwrap();
        let system = &question.system;
        assert_eq!((question.unit, system.order), (Unit::Us, ReadyOrder::Registered));
        assert_eq!(system.executors[0].map(|one| (one.budget_ns, one.period_ns)), Some((3_000, 5_000)));
        assert_eq!(system.executors[1], None);
        let [timer, subscription, client] = &system.callbacks[..] else { panic!("three callbacks") };
        let external = External { period_ns: 20_000, intervals_ns: Vec::new(), jitter_ns: 3_000 };
        assert_eq!((&timer.external, timer.cost_ns), (&Some(external), 2_000));
        assert_eq!((&subscription.after[..], &subscription.costs_ns[..]), (&[0][..], &[2_000, 3_000][..]));
        assert_eq!((client.executor, client.delay_ns, client.deadline_ns), (1, 1_000, Some(50_000)));
        assert_eq!(client.external.as_ref().map(|one| &one.intervals_ns[..]), Some(&[0, 90_000][..]));
        assert_eq!(system.chains[0].limit_ns, Some(60_000));
        let least = read_executors(r#"{"callbacks":[{"kind":"timer","period":9,"cost":1}]}"#).unwrap();
        assert_eq!((least.unit, least.system.order), (Unit::Ns, ReadyOrder::Any));
        assert_eq!((&least.system.executors[..], least.system.callbacks[0].executor), (&[None][..], 0));
    }

    #[test]
    fn every_error_names_its_field() {
        let one =
            |what: &str| format!(r#"{{"callbacks":[{{"kind":"timer","period":9,"cost":1}},{{{what}}}]}}"#);
        let ok = r#""kind":"subscription","after":[0],"cost":1"#;
        let chain = |what: &str| one(ok).replace("}]}", &format!(r#"}}],"chains":[{{{what}}}]}}"#));
        for (line, expected) in [
            ("7".to_owned(), "the line: 7, expected an object"),
            ("{".to_owned(), "the line: EOF while parsing an object at byte 1, expected one JSON object"),
            ("{}".to_owned(), "callbacks: nothing, expected a list of callbacks"),
            (r#"{"tasks":[]}"#.to_owned(), "the line: unknown key \"tasks\", expected some of unit, order"),
            (r#"{"unit":"s"}"#.to_owned(), "unit: \"s\", expected one of \"ns\", \"us\", \"ms\""),
            (r#"{"order":"fifo"}"#.to_owned(), "order: \"fifo\", expected one of \"timers-first\""),
            (r#"{"executors":[]}"#.to_owned(), "executors: 0 of them, expected 1 to"),
            (r#"{"executors":[7]}"#.to_owned(), "executors[0]: 7, expected an object"),
            (
                r#"{"executors":[{"budget":3,"period":2}]}"#.to_owned(),
                "executors[0].budget: 3, expected an integer from 1 to 2",
            ),
            (r#"{"callbacks":[]}"#.to_owned(), "callbacks: 0 of them, expected 1 to"),
            (one(""), "callbacks[1].kind: nothing, expected one of timer, subscription"),
            (one(r#""kind":"action""#), "callbacks[1].kind: \"action\", expected one of \"timer\""),
            (one(r#""kind":"timer","cost":1"#), "callbacks[1]: nothing that activates it, expected period"),
            (one(r#""kind":"timer","after":[0],"cost":1"#), "callbacks[1].after: a list, expected nothing"),
            (one(r#""kind":"client","after":[2],"cost":1"#), "callbacks[1].after[0]: 2, expected an integer"),
            (one(r#""kind":"client","after":[0,0],"cost":1"#), "callbacks[1].after[1]: 0, expected every"),
            (one(r#""kind":"client","after":[1],"cost":1"#), "callbacks[1].after: activated in a circle"),
            (one(r#""kind":"client","after":[0]"#), "callbacks[1].cost: nothing, expected a time"),
            (
                one(r#""kind":"client","after":[0],"cost":0"#),
                "callbacks[1].cost: 0, expected an integer from 1",
            ),
            (
                one(&format!(r#"{ok},"costs":[1]"#)),
                "callbacks[1].cost: a time, expected nothing beside costs",
            ),
            (one(&format!(r#"{ok},"cost":1"#)), "callbacks[1]: key \"cost\" twice"),
            (one(&format!(r#"{ok},"jitter":1"#)), "callbacks[1].jitter: a time, expected a period"),
            (
                one(&format!(r#"{ok},"executor":1"#)),
                "callbacks[1].executor: 1, expected an integer from 0 to 0",
            ),
            (
                one(r#""kind":"client","period":3,"arrivals":[[0,2],[3,3]],"cost":1"#),
                "callbacks[1].period: a time, expected nothing beside arrivals",
            ),
            (
                one(r#""kind":"client","arrivals":[[0,2],[0,3]],"cost":1"#),
                "callbacks[1].arrivals[1][0]: 0, expected at least 1",
            ),
            (
                one(r#""kind":"client","period":3,"delay":2,"cost":1"#),
                "callbacks[1].delay: a time, expected after beside it",
            ),
            (
                one(ok).replacen('{', r#"{"executors":[null,null],"#, 1),
                "callbacks[0].executor: nothing, expected an integer from 0 to 1",
            ),
            (chain(""), "chains[0].callbacks: nothing, expected a list of callbacks"),
            (
                chain(r#""callbacks":[1,0]"#),
                "chains[0].callbacks[1]: callback 0, which callback 1 does not activate",
            ),
            (chain(r#""callbacks":[0,1],"limit":0"#), "chains[0].limit: 0, expected an integer from 1"),
        ] {
            let error = read_executors(&line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
        assert!(read_executors(chain(r#""callbacks":[0,1],"limit":9"#)).is_ok());
    }

    #[test]
    fn callbacks_with_too_many_ways_are_refused() {
        let mut callbacks = vec![r#"{"kind":"timer","period":9,"cost":1}"#.to_owned()];
        for layer in 0..11 {
            let before = if layer == 0 { "0".to_owned() } else { format!("{},{}", 2 * layer - 1, 2 * layer) };
            for _ in 0..2 {
                callbacks.push(format!(r#"{{"kind":"client","after":[{before}],"cost":1}}"#));
            }
        }
        let error = read_executors(format!(r#"{{"callbacks":[{}]}}"#, callbacks.join(","))).unwrap_err();
        let expected = "callbacks[21].after: activated in 1024 ways, expected at most 1000";
        assert_eq!(error.to_string(), expected);
    }
}
