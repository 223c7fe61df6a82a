//! A question as a line of JSON: a system in a unit of the user's choice.
//!
//! `{"unit":"us","cores":2,"tasks":[{"period":10000,"cost":300,…}]}`. All but period and cost may be left out: the deadline is then the
//! period, the core 0, and the order of the list is the order of priority. Numbers are integers in the unit. An error names the field, as
//! in `tasks[3].cost`.

use crate::system::{Access, MAX_CORES, Request, System, SystemTask};
use crate::task::{MAX_NS, MAX_TASKS, Task};
use serde_json::{Map, Value};
use thiserror::Error;

/// The unit of the times of a question and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// 1 ns.
    #[default]
    Ns,
    /// 1,000 ns.
    Us,
    /// 1,000,000 ns.
    Ms,
}

impl Unit {
    /// Its length, ns.
    pub const fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
        }
    }

    /// As written in questions and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
        }
    }
}

/// What is wrong with a question.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {found}, expected {expected}")]
pub struct QuestionError {
    /// Which field, as in `tasks[3].cost`; `the line` for the whole.
    pub field: String,
    /// What is there.
    pub found: String,
    /// What should be.
    pub expected: String,
}

fn wrong(field: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> QuestionError {
    QuestionError { field: field.into(), found: found.into(), expected: expected.into() }
}

/// A question, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The unit of its times.
    pub unit: Unit,
    /// The system, in ns, in priority order.
    pub system: System,
    /// For each task of the system its place in the question.
    pub places: Vec<usize>,
    /// Whether any task names its core.
    pub placed: bool,
}

impl Question {
    /// Values by priority, in the order of the question.
    pub fn in_order<T: Clone>(&self, values: &[T]) -> Vec<T> {
        let mut ordered: Vec<_> = self.places.iter().zip(values).collect();
        ordered.sort_by_key(|(place, _)| **place);
        ordered.into_iter().map(|(_, value)| value.clone()).collect()
    }

    /// A time in the unit of the question. Times of a question are whole units, and so are sums of them.
    pub fn in_unit(&self, ns: u64) -> u64 {
        ns.div_ceil(self.unit.ns())
    }
}

const UNITS: [Unit; 3] = [Unit::Ns, Unit::Us, Unit::Ms];
const KEYS: [&str; 3] = ["unit", "cores", "tasks"];
const TASK_KEYS: [&str; 12] = [
    "period",
    "deadline",
    "cost",
    "jitter",
    "blocking",
    "suspension",
    "non_preemptive",
    "core",
    "priority",
    "lock_priority",
    "response_time",
    "requests",
];
const REQUEST_KEYS: [&str; 4] = ["resource", "count", "length", "access"];

/// Reads a line.
pub fn read(line: &str) -> Result<Question, QuestionError> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| wrong("the line", error.to_string(), "one JSON object a line"))?;
    let object = Fields::of(&value, "the line", &KEYS)?;
    let unit = match object.get("unit") {
        None => Unit::Ns,
        Some(value) => {
            let known = value.as_str().and_then(|name| UNITS.into_iter().find(|unit| unit.name() == name));
            known.ok_or_else(|| wrong("unit", value.to_string(), "\"ns\", \"us\" or \"ms\""))?
        }
    };
    let cores = object.integer("cores", 1, u64::from(MAX_CORES))?.unwrap_or(1) as u32;
    let given = object.list("tasks")?.ok_or_else(|| wrong("tasks", "nothing", "a list of tasks"))?;
    if given.len() > MAX_TASKS {
        return Err(wrong("tasks", format!("{} tasks", given.len()), format!("at most {MAX_TASKS}")));
    }
    let mut ranked = Vec::with_capacity(given.len());
    for (place, value) in given.iter().enumerate() {
        let fields = Fields::of(value, &format!("tasks[{place}]"), &TASK_KEYS)?;
        let priority = fields.integer("priority", 0, u64::from(u32::MAX))?;
        ranked.push((priority, place, task(&fields, unit, cores)?));
    }
    let (some, none) = (ranked.iter().any(|one| one.0.is_some()), ranked.iter().find(|one| one.0.is_none()));
    if let (true, Some((_, place, _))) = (some, none) {
        let expected = "a priority for every task, 0 the highest, or for none";
        return Err(wrong(format!("tasks[{place}].priority"), "nothing", expected));
    }
    ranked.sort_by_key(|(priority, place, _)| (*priority, *place));
    let places = ranked.iter().map(|(_, place, _)| *place).collect();
    let tasks = ranked.into_iter().map(|(_, _, task)| task).collect();
    let placed = given.iter().any(|task| task.get("core").is_some_and(|core| !core.is_null()));
    Ok(Question { unit, system: System { cores, tasks }, places, placed })
}

fn task(fields: &Fields<'_>, unit: Unit, cores: u32) -> Result<SystemTask, QuestionError> {
    let time = |key: &'static str, least: u64| {
        let most = MAX_NS / unit.ns();
        Ok::<_, QuestionError>(fields.integer(key, least, most)?.map(|value| value * unit.ns()))
    };
    let needed =
        |key: &'static str| time(key, 1)?.ok_or_else(|| wrong(fields.path(key), "nothing", "a time"));
    let period_ns = needed("period")?;
    let cost_ns = needed("cost")?;
    let requests = fields.list("requests")?.map_or(&[][..], Vec::as_slice);
    let request =
        |(place, value): (usize, &Value)| request(value, &fields.path(&format!("requests[{place}]")), unit);
    Ok(SystemTask {
        task: Task {
            period_ns,
            deadline_ns: time("deadline", 1)?.unwrap_or(period_ns),
            cost_ns,
            jitter_ns: time("jitter", 0)?.unwrap_or(0),
            blocking_ns: time("blocking", 0)?.unwrap_or(0),
        },
        suspension_ns: time("suspension", 0)?.unwrap_or(0),
        non_preemptive_ns: time("non_preemptive", 0)?.unwrap_or(0),
        core: fields.integer("core", 0, u64::from(cores) - 1)?.unwrap_or(0) as u32,
        lock_priority: fields.integer("lock_priority", 0, u64::from(u32::MAX))?.map(|rank| rank as u32),
        response_time_ns: time("response_time", 0)?,
        requests: requests.iter().enumerate().map(request).collect::<Result<_, _>>()?,
    })
}

fn request(value: &Value, path: &str, unit: Unit) -> Result<Request, QuestionError> {
    let fields = Fields::of(value, path, &REQUEST_KEYS)?;
    let needed = |key: &'static str, least, most| {
        fields.integer(key, least, most)?.ok_or_else(|| wrong(fields.path(key), "nothing", "a number"))
    };
    let access = match fields.get("access").map(Value::as_str) {
        None | Some(Some("write")) => Access::Write,
        Some(Some("read")) => Access::Read,
        Some(_) => return Err(wrong(fields.path("access"), fields.shown("access"), "\"read\" or \"write\"")),
    };
    Ok(Request {
        resource: needed("resource", 0, u64::from(u32::MAX))? as u32,
        count: fields.integer("count", 0, 1 << 32)?.unwrap_or(1),
        length_ns: needed("length", 0, MAX_NS / unit.ns())? * unit.ns(),
        access,
    })
}

/// The fields of one object, with where it is.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    at: String,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value, at: &str, keys: &[&str]) -> Result<Self, QuestionError> {
        let map = value.as_object().ok_or_else(|| wrong(at, kind(value), "an object"))?;
        match map.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => {
                Err(wrong(at, format!("unknown key {key:?}"), format!("some of {}", keys.join(", "))))
            }
            None => Ok(Self { map, at: if at == "the line" { String::new() } else { format!("{at}.") } }),
        }
    }

    fn path(&self, key: &str) -> String {
        format!("{}{key}", self.at)
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn shown(&self, key: &str) -> String {
        self.get(key).map_or_else(|| "nothing".to_owned(), Value::to_string)
    }

    fn integer(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, QuestionError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_u64().filter(|value| (least..=most).contains(value)) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(wrong(self.path(key), value.to_string(), format!("an integer from {least} to {most}")))
            }
        }
    }

    fn list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, QuestionError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_array().map(Some).ok_or_else(|| wrong(self.path(key), kind(value), "a list"))
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_usual_meaning() {
        let question =
            read(r#"{"unit":"us","tasks":[{"period":20,"cost":3},{"period":10,"cost":1,"deadline":7}]}"#)
                .unwrap();
        assert_eq!((question.system.cores, question.places), (1, vec![0, 1]));
        assert_eq!(question.system.tasks[0], Task::implicit(20_000, 3_000).into());
        assert_eq!(question.system.tasks[1].task.deadline_ns, 7_000);
    }

    #[test]
    fn priorities_order_the_tasks_and_equal_ones_keep_the_order_given() {
        let line = r#"{"cores":2,"tasks":[{"period":9,"cost":1,"priority":5},{"period":8,"cost":1,"priority":1,"core":1},
            {"period":7,"cost":1,"priority":5}]}"#;
        assert_eq!(read(line).unwrap().places, [1, 0, 2]);
    }

    #[test]
    fn every_error_names_its_field() {
        let task = |text: &str| {
            format!(
                "{{\"cores\":2,\"tasks\":[{{\"period\":10,\"cost\":1}},{{\"period\":10,\"cost\":1,{text}}}]}}"
            )
        };
        for (line, told) in [
            (task("\"cost\":-3"), "tasks[1].cost: -3, expected an integer from 1 to 9007199254740991"),
            (task("\"period\":0"), "tasks[1].period: 0, expected an integer from 1 to"),
            (task("\"jitter\":1.5"), "tasks[1].jitter: 1.5, expected"),
            (task("\"core\":2"), "tasks[1].core: 2, expected an integer from 0 to 1"),
            (task("\"priority\":2"), "tasks[0].priority: nothing, expected a priority for every task"),
            (task("\"jiter\":2"), "tasks[1]: unknown key \"jiter\", expected some of period"),
            (
                task("\"requests\":[{\"resource\":0,\"length\":1,\"access\":\"lock\"}]"),
                "tasks[1].requests[0].access: \"lock\"",
            ),
            (task("\"requests\":[{\"resource\":0}]"), "tasks[1].requests[0].length: nothing"),
            (task("\"deadline\":NaN"), "the line: expected value at line 1 column"),
            ("{\"tasks\":[".to_owned(), "the line: EOF while parsing"),
            ("[]".to_owned(), "the line: a list, expected an object"),
            ("{\"unit\":\"min\",\"tasks\":[]}".to_owned(), "unit: \"min\", expected \"ns\""),
            ("{\"cores\":0,\"tasks\":[]}".to_owned(), "cores: 0, expected an integer from 1 to 4096"),
            ("{}".to_owned(), "tasks: nothing, expected a list of tasks"),
        ] {
            let error = read(&line).unwrap_err().to_string();
            assert!(error.starts_with(told), "{line}: {error}");
        }
    }

    #[test]
    fn a_time_that_only_fits_before_it_is_scaled_is_refused() {
        let line = format!("{{\"unit\":\"ms\",\"tasks\":[{{\"period\":{MAX_NS},\"cost\":1}}]}}");
        assert!(read(&line).unwrap_err().to_string().starts_with("tasks[0].period: 9007199254740991"));
    }
}
