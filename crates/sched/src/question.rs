//! A question as a line of JSON: a system in a unit of the user's choice.
//!
//! `{"unit":"us","cores":2,"tasks":[{"period":10000,"cost":300,…}]}`. All but period and cost may
//! be left out: the deadline is then the period, the core 0, and the order of the list is the order
//! of priority. Numbers are integers in the unit. An error names the field, as in `tasks[3].cost`.
//!
//! `"arrivals":[[0,2],[30,3],…]` in place of a period: the shortest interval in which 2, 3, … jobs
//! are released. `"costs":[5,6,…]` in place of a cost: the most execution of 1, 2, … jobs in a row.
//! `"supply":{"budget":3,"period":10}` of the line: what every core supplies, or a list with that
//! of each core, `null` for a whole one.
//!
//! Priorities are ranks, 0 first; with `"policy":"linux"` they are those of `SCHED_FIFO`, 1 to 99
//! and 99 first.

use crate::asked::{Question, Unit};
use crate::bounds::Bounds;
use crate::chain::Chain;
use crate::equals::equals;
use crate::question_bounds::{self, Misfit};
use crate::question_plain;
use crate::question_raw::{Kind, Object, Scalar, Shape, Tree};
use crate::question_rules::{Policy, TooLong, too_long};
use crate::supply::Supply;
use crate::system::{Access, MAX_CORES, Request, System, SystemTask};
use crate::task::{MAX_NS, MAX_TASKS, Task};
use serde::de::IgnoredAny;
use thiserror::Error;

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

fn unfit(key: &str, misfit: Misfit) -> QuestionError {
    wrong(format!("{key}{}", misfit.at), misfit.found, misfit.expected)
}

/// A line.
struct Whole;
impl Kind for Whole {
    const KEYS: &'static [&'static str] = &["unit", "cores", "policy", "tasks", "supply", "chains"];
    type Item = Shape<Object<OneTask, 12>>;
}

/// A task of it.
struct OneTask;
impl Kind for OneTask {
    const KEYS: &'static [&'static str] = &[
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
        "suspensions",
        "requests",
        "arrivals",
        "costs",
    ];
    type Item = Shape<Object<OneRequest, 4>>;
}

/// A request of a task.
struct OneRequest;
impl Kind for OneRequest {
    const KEYS: &'static [&'static str] = &["resource", "count", "length", "access"];
    type Item = IgnoredAny;
}

/// Reads a line.
pub fn read(line: impl AsRef<[u8]>) -> Result<Question, QuestionError> {
    let line = line.as_ref();
    question_plain::read(line).map_or_else(|| judge(line), Ok)
}

/// Reads any line without chains; for an invalid question, says what is wrong.
pub(crate) fn judge(line: &[u8]) -> Result<Question, QuestionError> {
    match judge_all(line)? {
        (question, chains) if chains.is_empty() => Ok(question),
        (_, chains) => {
            let expected = "none here: sched chains bounds them";
            Err(wrong("chains", format!("{} of them", chains.len()), expected))
        }
    }
}

/// Reads a line with the chains of its tasks.
pub fn read_with_chains(line: impl AsRef<[u8]>) -> Result<(Question, Vec<Chain>), QuestionError> {
    judge_all(line.as_ref())
}

fn judge_all(line: &[u8]) -> Result<(Question, Vec<Chain>), QuestionError> {
    let shape: Shape<Object<Whole, 3>> = parse(line)?;
    let mut object = Fields::of(shape, || "the line".to_owned())?;
    let known = match object.value("unit") {
        Scalar::Absent => Some(Unit::Ns),
        Scalar::Integer(_) => None,
        Scalar::Other(value) => value.as_str().and_then(Unit::by_name),
    };
    let unit = known.ok_or_else(|| wrong("unit", object.shown("unit"), "\"ns\", \"us\" or \"ms\""))?;
    let cores = object.integer("cores", 1, u64::from(MAX_CORES))?.unwrap_or(1) as u32;
    let policy = match object.value("policy") {
        Scalar::Absent => Policy::Ranks,
        Scalar::Other(value) if value.as_str() == Some("linux") => Policy::Linux,
        _ => return Err(wrong("policy", object.shown("policy"), "\"linux\", or none for ranks")),
    };
    let supplies = object.take_more("supply").map_or(Ok(Vec::new()), |value| {
        question_bounds::supplies(&value, unit, cores).map_err(|misfit| unfit("supply", misfit))
    })?;
    let chains = object.take_more("chains");
    let given = object.list("tasks")?.ok_or_else(|| wrong("tasks", "nothing", "a list of tasks"))?;
    let chains = chains.map_or(Ok(Vec::new()), |value| {
        question_bounds::chains(&value, unit, given.len()).map_err(|misfit| unfit("chains", misfit))
    })?;
    if given.len() > MAX_TASKS {
        return Err(wrong("tasks", format!("{} tasks", given.len()), format!("at most {MAX_TASKS}")));
    }
    let mut ranked = Vec::with_capacity(given.len());
    let (mut first_without, mut placed) = (None, false);
    for (place, value) in given.into_iter().enumerate() {
        let fields = Fields::of(value, || format!("tasks[{place}]"))?;
        let (least, most) = policy.priorities();
        let priority = fields.integer("priority", least, most)?.map(|priority| policy.rank(priority));
        placed |= *fields.value("core") != Scalar::Absent;
        first_without = first_without.or(priority.is_none().then_some(place));
        ranked.push((priority, place, task(fields, unit, cores, &supplies)?));
    }
    let needed = policy == Policy::Linux || ranked.iter().any(|one| one.0.is_some());
    if let (true, Some(place)) = (needed, first_without) {
        let expected = match policy {
            Policy::Ranks => "a priority for every task, 0 the highest, or for none",
            Policy::Linux => "a priority for every task, 99 the highest",
        };
        return Err(wrong(format!("tasks[{place}].priority"), "nothing", expected));
    }
    ranked.sort_by_key(|(priority, place, _)| (*priority, *place));
    let priorities: Vec<u64> = ranked.iter().filter_map(|one| one.0).collect();
    let equals = equals(&priorities);
    let places = ranked.iter().map(|(_, place, _)| *place).collect();
    let tasks = ranked.into_iter().map(|(_, _, task)| task).collect();
    Ok((Question { unit, system: System { cores, tasks }, places, placed, equals }, chains))
}

/// Takes a line apart.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(line: &'a [u8]) -> Result<T, QuestionError> {
    serde_json::from_slice(line.trim_ascii_end())
        .map_err(|error| wrong("the line", broken(&error), "one JSON object a line"))
}

/// What is wrong with a line, and where in it.
fn broken(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.split_once(" at line ") {
        Some((what, _)) if error.line() == 1 => format!("{what} at byte {}", error.column()),
        _ => message,
    }
}

fn task<P: Fn() -> String>(
    mut fields: Fields<OneTask, 12, P>,
    unit: Unit,
    cores: u32,
    supplies: &[Option<Supply>],
) -> Result<SystemTask, QuestionError> {
    let (arrivals, costs) = (fields.take_more("arrivals"), fields.take_more("costs"));
    let time = |key: &'static str, least: u64| {
        let most = MAX_NS / unit.ns();
        Ok::<_, QuestionError>(fields.integer(key, least, most)?.map(|value| value * unit.ns()))
    };
    let needed =
        |key: &'static str| time(key, 1)?.ok_or_else(|| wrong(fields.path(key), "nothing", "a time"));
    let not_beside = |key: &str, other: &str| match fields.value(key) {
        Scalar::Absent => Ok(()),
        _ => Err(wrong(fields.path(key), fields.shown(key), format!("nothing beside {other}"))),
    };
    let curve = |value: Option<Tree>, key: &'static str, read: ReadCurve| {
        let entries = value.map_or(Ok(Vec::new()), |value| read(&value, unit));
        entries.map_err(|misfit| unfit(&fields.path(key), misfit))
    };
    let intervals_ns = curve(arrivals, "arrivals", question_bounds::arrivals)?;
    let costs_ns = curve(costs, "costs", question_bounds::costs)?;
    let (period_ns, deadline_ns) = if let Some(shortest) = intervals_ns.first() {
        not_beside("period", "arrivals")?;
        not_beside("jitter", "arrivals")?;
        (*shortest.max(&1), needed("deadline")?)
    } else {
        let period_ns = needed("period")?;
        (period_ns, time("deadline", 1)?.unwrap_or(period_ns))
    };
    let cost_ns = if let Some(cost_ns) = costs_ns.first() {
        not_beside("cost", "costs")?;
        *cost_ns
    } else {
        needed("cost")?
    };
    let task = Task {
        period_ns,
        deadline_ns,
        cost_ns,
        jitter_ns: time("jitter", 0)?.unwrap_or(0),
        blocking_ns: time("blocking", 0)?.unwrap_or(0),
    };
    let mut system_task = SystemTask {
        task,
        suspension_ns: time("suspension", 0)?.unwrap_or(0),
        suspensions: fields.integer("suspensions", 0, u64::from(u32::MAX))?.unwrap_or(0) as u32,
        non_preemptive_ns: time("non_preemptive", 0)?.unwrap_or(0),
        core: fields.integer("core", 0, u64::from(cores) - 1)?.unwrap_or(0) as u32,
        lock_priority: fields.integer("lock_priority", 0, u64::from(u32::MAX))?.map(|rank| rank as u32),
        response_time_ns: time("response_time", 0)?,
        requests: Vec::new(),
        bounds: None,
    };
    let supply = supplies.get(system_task.core as usize).copied().flatten();
    let bounds = Bounds { intervals_ns, costs_ns, supply };
    system_task.bounds = (!bounds.is_empty()).then(|| Box::new(bounds));
    let at = fields.at;
    let requests = list(fields.object.list, || format!("{}.requests", at()))?.unwrap_or_default();
    let request =
        |(place, value)| request(Fields::of(value, || format!("{}.requests[{place}]", at()))?, unit);
    system_task.requests = requests.into_iter().enumerate().map(request).collect::<Result<_, _>>()?;
    if let Some((which, length_ns)) = too_long(&system_task) {
        let field = match which {
            TooLong::Section => format!("{}.non_preemptive", at()),
            TooLong::Request(place) => format!("{}.requests[{place}].length", at()),
        };
        let expected = format!("at most the cost, {}, of which it is a part", cost_ns / unit.ns());
        return Err(wrong(field, (length_ns / unit.ns()).to_string(), expected));
    }
    Ok(system_task)
}

/// What reads a curve.
type ReadCurve = fn(&Tree, Unit) -> Result<Vec<u64>, Misfit>;

fn request<P: Fn() -> String>(
    fields: Fields<OneRequest, 4, P>,
    unit: Unit,
) -> Result<Request, QuestionError> {
    let needed = |key: &'static str, least, most| {
        fields.integer(key, least, most)?.ok_or_else(|| wrong(fields.path(key), "nothing", "a number"))
    };
    let access = match fields.value("access") {
        Scalar::Absent => Access::Write,
        Scalar::Other(value) if value.as_str() == Some("write") => Access::Write,
        Scalar::Other(value) if value.as_str() == Some("read") => Access::Read,
        _ => return Err(wrong(fields.path("access"), fields.shown("access"), "\"read\" or \"write\"")),
    };
    Ok(Request {
        resource: needed("resource", 0, u64::from(u32::MAX))? as u32,
        count: fields.integer("count", 0, 1 << 32)?.unwrap_or(1),
        length_ns: needed("length", 0, MAX_NS / unit.ns())? * unit.ns(),
        access,
    })
}

const NESTED: &str = "requests one after another, which all bounds assume, or one resource in place of both";

/// The fields of one object, with where it is.
struct Fields<K: Kind, const N: usize, P> {
    object: Object<K, N>,
    at: P,
}

impl<K: Kind, const N: usize, P: Fn() -> String> Fields<K, N, P> {
    fn of(shape: Shape<Object<K, N>>, at: P) -> Result<Self, QuestionError> {
        let object = match shape {
            Shape::Is(object) => object,
            Shape::Not(name) => return Err(wrong(at(), name, "an object")),
        };
        if let Some(key) = &object.unknown {
            // Only a request has a length, and a request within it would be its own.
            if &**key == "requests" && K::KEYS.contains(&"length") {
                return Err(wrong(at(), "a request within a request", NESTED));
            }
            let keys = K::KEYS.join(", ");
            return Err(wrong(at(), format!("unknown key {key:?}"), format!("some of {keys}")));
        }
        if let Some(key) = object.repeated {
            return Err(wrong(at(), format!("key {key:?} twice"), "every key once at most"));
        }
        Ok(Self { object, at })
    }

    fn path(&self, key: &str) -> String {
        match (self.at)() {
            whole if whole == "the line" => key.to_owned(),
            at => format!("{at}.{key}"),
        }
    }

    /// The value of a key after that of the list.
    fn take_more(&mut self, key: &str) -> Option<Tree> {
        let at = self.object.more.iter().position(|(place, _)| K::KEYS[*place] == key)?;
        Some(self.object.more.swap_remove(at).1)
    }

    fn value(&self, key: &str) -> &Scalar {
        let at = K::KEYS.iter().position(|one| *one == key);
        at.and_then(|at| self.object.values.get(at)).unwrap_or(&Scalar::Absent)
    }

    fn shown(&self, key: &str) -> String {
        match self.value(key) {
            Scalar::Absent => "nothing".to_owned(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Other(value) if value.is_array() => "a list".to_owned(),
            Scalar::Other(value) if value.is_object() => "an object".to_owned(),
            Scalar::Other(value) => value.to_string(),
        }
    }

    fn integer(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, QuestionError> {
        match self.value(key) {
            Scalar::Absent => Ok(None),
            Scalar::Integer(value) if (least..=most).contains(value) => Ok(Some(*value)),
            _ => {
                let expected = format!("an integer from {least} to {most}");
                Err(wrong(self.path(key), self.shown(key), expected))
            }
        }
    }

    fn list(self, key: &str) -> Result<Option<Vec<K::Item>>, QuestionError> {
        let path = self.path(key);
        list(self.object.list, || path.clone())
    }
}

fn list<T>(shape: Option<Shape<Vec<T>>>, at: impl Fn() -> String) -> Result<Option<Vec<T>>, QuestionError> {
    match shape {
        None => Ok(None),
        Some(Shape::Is(list)) => Ok(Some(list)),
        Some(Shape::Not(name)) => Err(wrong(at(), name, "a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Heuristic, Refusal};

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
        for (line, expected) in [
            (
                task("\"deadline\":-3"),
                "tasks[1].deadline: -3, expected an integer from 1 to 9007199254740991",
            ),
            (task("\"deadline\":0"), "tasks[1].deadline: 0, expected an integer from 1 to"),
            (task("\"jitter\":1.5"), "tasks[1].jitter: 1.5, expected"),
            (task("\"core\":2"), "tasks[1].core: 2, expected an integer from 0 to 1"),
            (task("\"priority\":2"), "tasks[0].priority: nothing, expected a priority for every task"),
            (task("\"jiter\":2"), "tasks[1]: unknown key \"jiter\", expected some of period"),
            (
                task("\"requests\":[{\"resource\":0,\"length\":1,\"access\":\"lock\"}]"),
                "tasks[1].requests[0].access: \"lock\"",
            ),
            (task("\"requests\":[{\"resource\":0}]"), "tasks[1].requests[0].length: nothing"),
            (task("\"deadline\":NaN"), "the line: expected value at byte 7"),
            ("{\"tasks\":[".to_owned(), "the line: EOF while parsing a list at byte 10"),
            ("[]".to_owned(), "the line: a list, expected an object"),
            ("{\"unit\":\"min\",\"tasks\":[]}".to_owned(), "unit: \"min\", expected \"ns\""),
            ("{\"cores\":0,\"tasks\":[]}".to_owned(), "cores: 0, expected an integer from 1 to 4096"),
            ("{}".to_owned(), "tasks: nothing, expected a list of tasks"),
            ("{\"tasks\":{\"period\":3}}".to_owned(), "tasks: an object, expected a list"),
            (
                "{\"tasks\":[],\"tasks\":[]}".to_owned(),
                "the line: key \"tasks\" twice, expected every key once",
            ),
            ("{\"unit\":7,\"tasks\":[]}".to_owned(), "unit: 7, expected \"ns\""),
            (task("\"cost\":2"), "tasks[1]: key \"cost\" twice"),
            (
                task("\"jitter\":18446744073709551616"),
                "tasks[1].jitter: 1.8446744073709552e+19, expected an integer",
            ),
            (task("\"jitter\":[[1],{}]"), "tasks[1].jitter: a list, expected an integer"),
            (task("\"requests\":3"), "tasks[1].requests: a number, expected a list"),
            (task("\"requests\":[7]"), "tasks[1].requests[0]: a number, expected an object"),
            ("{\"tasks\":[[]]}".to_owned(), "tasks[0]: a list, expected an object"),
            ("{\"tasks\":[null]}".to_owned(), "tasks[0]: null, expected an object"),
            ("{\"tasks\":[]} []".to_owned(), "the line: trailing characters at byte 14"),
        ] {
            let error = read(&line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }

    #[test]
    fn a_time_that_only_fits_before_it_is_scaled_is_refused() {
        let line = format!("{{\"unit\":\"ms\",\"tasks\":[{{\"period\":{MAX_NS},\"cost\":1}}]}}");
        assert!(read(&line).unwrap_err().to_string().starts_with("tasks[0].period: 9007199254740991"));
    }

    #[test]
    fn named_cores_are_not_overruled() {
        let heuristic = Heuristic::by_name("ffd").unwrap();
        let line = |core: &str| {
            format!(r#"{{"cores":2,"tasks":[{{"period":10,"cost":7{core}}},{{"period":10,"cost":7}}]}}"#)
        };
        let mut free = read(line("")).unwrap();
        assert_eq!(free.place(heuristic), Ok(true));
        assert_eq!(free.system.tasks.iter().map(|one| one.core).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(read(line(r#","core":0"#)).unwrap().place(heuristic), Err(Refusal::Placed));
    }
}
