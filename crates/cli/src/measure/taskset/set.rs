//! The task set of `measure taskset`: as typed, or from a TOML or JSON file; checked, in the order
//! of priorities, with its calculated response times.

use model::Error;
use model::quantity::duration;
use sched::deadline_monotonic;
use serde::Deserialize;
use std::path::Path;

/// The priority of the first task where a set gives none.
const FIRST_PRIORITY: u32 = 90;
/// The most tasks: each is a process.
const MOST: usize = 64;

/// One task as declared, ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its name.
    pub(crate) name: String,
    /// Interval between releases.
    pub(crate) period_ns: u64,
    /// Relative deadline.
    pub(crate) deadline_ns: u64,
    /// Execution time.
    pub(crate) cost_ns: u64,
    /// First release after the common one.
    pub(crate) offset_ns: u64,
    /// SCHED_FIFO priority.
    pub(crate) priority: u32,
}

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(alias = "tasks")]
    task: Vec<Row>,
}

/// A task in a file; times with their unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: Option<String>,
    period: String,
    cost: String,
    deadline: Option<String>,
    offset: Option<String>,
    priority: Option<u32>,
}

/// `T:C:PRIORITY,…` in ms; the priorities may be left out, all of them.
pub(crate) fn from_words(text: &str) -> Result<Vec<Task>, Error> {
    let wrong =
        |what: &str| Error::invalid("--tasks", what, "T:C:PRIORITY in milliseconds, such as 10:3:99,20:5:80");
    let ms = |word: Option<&str>, all: &str| {
        let value = word.and_then(|word| word.parse::<f64>().ok()).filter(|ms| (0.0..1e9).contains(ms));
        value.map(|ms| (ms * 1e6).round() as u64).ok_or_else(|| wrong(&format!("{all:?}")))
    };
    let one = |(index, word): (usize, &str)| {
        let mut parts = word.trim().split(':');
        let (period_ns, cost_ns) = (ms(parts.next(), word)?, ms(parts.next(), word)?);
        let priority = parts.next().map(|part| part.parse::<u32>().map_err(|_| wrong(&format!("{word:?}"))));
        let priority = priority.transpose()?;
        if parts.next().is_some() {
            return Err(wrong(&format!("{word:?}")));
        }
        let name = (index + 1).to_string();
        Ok((Task { name, period_ns, deadline_ns: period_ns, cost_ns, offset_ns: 0, priority: 0 }, priority))
    };
    let rows = text.split(',').enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
    finish("--tasks", rows)
}

/// A TOML file, or JSON where its name ends so: an array `task` of tables with `period`, `cost` and
/// more.
pub(crate) fn from_file(path: &Path) -> Result<Vec<Task>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
    let expected = "tasks with period, cost and, if wanted, name, deadline, offset, priority";
    let file: File = if path.extension().is_some_and(|extension| extension == "json") {
        serde_json::from_str(&text).map_err(|error| Error::invalid(path.display(), error, expected))?
    } else {
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            let message = error.message().lines().collect::<Vec<_>>().join(" ");
            Error::invalid(format!("{}: line {line}", path.display()), message, expected)
        })?
    };
    let place = path.display().to_string();
    let one = |(index, row): (usize, Row)| {
        let time = |key: &str, text: &str| {
            let time = duration(text).map_err(|what| {
                Error::invalid(format!("{place}: {key} of task {}", index + 1), what, "a time such as 10ms")
            });
            time.map(|time| time.as_nanos() as u64)
        };
        let period_ns = time("period", &row.period)?;
        let task = Task {
            name: row.name.unwrap_or_else(|| (index + 1).to_string()),
            period_ns,
            cost_ns: time("cost", &row.cost)?,
            deadline_ns: row.deadline.map_or(Ok(period_ns), |text| time("deadline", &text))?,
            offset_ns: row.offset.map_or(Ok(0), |text| time("offset", &text))?,
            priority: 0,
        };
        Ok((task, row.priority))
    };
    let rows = file.task.into_iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
    finish(&place, rows)
}

/// Gives priorities where there are none, checks the rest, and sorts: highest priority first.
fn finish(place: &str, rows: Vec<(Task, Option<u32>)>) -> Result<Vec<Task>, Error> {
    let refuse = |what: String, expected: &str| Err(Error::invalid(place, what, expected));
    if rows.is_empty() || rows.len() > MOST {
        return refuse(format!("{} tasks", rows.len()), &format!("1 to {MOST}"));
    }
    let given = rows.iter().filter(|(_, priority)| priority.is_some()).count();
    if given != 0 && given != rows.len() {
        return refuse("some tasks have a priority and some have none".to_owned(), "all or none");
    }
    let mut tasks: Vec<Task> =
        rows.into_iter().map(|(task, priority)| Task { priority: priority.unwrap_or(0), ..task }).collect();
    for task in &tasks {
        if task.period_ns < 100_000 || task.period_ns > 3_600_000_000_000 {
            return refuse(
                format!("the period of task {} is {} ns", task.name, task.period_ns),
                "100us to 1h",
            );
        }
        if task.cost_ns == 0 || task.cost_ns > task.period_ns {
            return refuse(
                format!("the execution time of task {} is {} ns", task.name, task.cost_ns),
                "more than 0 and at most its period",
            );
        }
        if task.deadline_ns == 0 || task.deadline_ns > task.period_ns {
            return refuse(
                format!("the deadline of task {} is {} ns", task.name, task.deadline_ns),
                "more than 0 and at most its period",
            );
        }
        if given > 0 && !(1..=99).contains(&task.priority) {
            return refuse(format!("the priority of task {} is {}", task.name, task.priority), "1 to 99");
        }
    }
    if given == 0 {
        let order = deadline_monotonic(&tasks.iter().map(in_theory).collect::<Vec<_>>());
        for (rank, index) in order.into_iter().enumerate() {
            tasks[index].priority = FIRST_PRIORITY - rank as u32;
        }
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.priority));
    Ok(tasks)
}

fn in_theory(task: &Task) -> sched::Task {
    sched::Task { deadline_ns: task.deadline_ns, ..sched::Task::implicit(task.period_ns, task.cost_ns) }
}

/// Share of the CPU that the set requires.
pub(crate) fn utilization(tasks: &[Task]) -> f64 {
    tasks.iter().map(|task| in_theory(task).utilization()).sum()
}

/// The calculated response time of each task, ns, when all are released together; none where it
/// exceeds the deadline.
pub(crate) fn bounds(tasks: &[Task]) -> Result<Vec<Option<u64>>, sched::TaskError> {
    let tasks: Vec<_> = tasks.iter().map(|task| (task.priority, in_theory(task))).collect();
    report::responses::bounds(&tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_papers_set_answers_in_3_8_and_29_ms() {
        let tasks = from_words("40:10:50,10:3:99,20:5:80").unwrap();
        let priorities: Vec<_> = tasks.iter().map(|task| task.priority).collect();
        assert_eq!(priorities, [99, 80, 50]);
        assert_eq!(bounds(&tasks).unwrap(), [Some(3 * MS), Some(8 * MS), Some(29 * MS)]);
        assert!((utilization(&tasks) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn without_priorities_the_shortest_deadline_comes_first() {
        let tasks = from_words("40:10,10:3,20:5").unwrap();
        let priorities: Vec<_> = tasks.iter().map(|task| (task.period_ns / MS, task.priority)).collect();
        assert_eq!(priorities, [(10, 90), (20, 89), (40, 88)]);
    }

    #[test]
    fn equals_may_wait_for_one_another() {
        let tasks = from_words("10:2:50,10:3:50").unwrap();
        assert_eq!(bounds(&tasks).unwrap(), [Some(5 * MS), Some(5 * MS)]);
    }

    #[test]
    fn what_is_no_task_set_is_one_sentence() {
        let cases = [
            ("", "\"\""),
            ("10", "\"10\""),
            ("10:3:99:1", "10:3:99:1"),
            ("10:3:0", "1 to 99"),
            ("10:3:99,20:5", "all or none"),
            ("10:11:9", "at most its period"),
            ("10:0:9", "more than 0"),
            ("0.01:0.005:9", "100us"),
            ("nan:1:9", "\"nan:1:9\""),
        ];
        for (text, expected) in cases {
            let error = from_words(text).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn files_say_the_same_in_both_formats() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let toml = "[[task]]\nname = \"control\"\nperiod = \"10ms\"\ncost = \"3ms\"\ndeadline = \"8ms\"\npriority = 99\n";
        let json =
            r#"{"tasks":[{"name":"control","period":"10ms","cost":"3ms","deadline":"8ms","priority":99}]}"#;
        let (toml, json) =
            (from_file(&write("a.toml", toml)).unwrap(), from_file(&write("a.json", json)).unwrap());
        assert_eq!(toml, json);
        assert_eq!((toml[0].name.as_str(), toml[0].deadline_ns), ("control", 8 * MS));
        for (name, text, expected) in [
            ("b.toml", "[[task]]\nperiod = \"10ms\"\ncots = \"3ms\"\n", "line 3"),
            ("c.json", "{\"task\":[{]}", "line 1"),
            ("d.toml", "[[task]]\nperiod = \"10\"\ncost = \"3ms\"\n", "period of task 1"),
            ("e.toml", "task = []\n", "0 tasks"),
        ] {
            let error = from_file(&write(name, text)).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }
}
