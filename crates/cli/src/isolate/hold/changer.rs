//! Who has changed a setting, in words and as JSON: never a guess.

use super::names::Names;
use isolate::changers::{Changer, Changers, Writer};
use isolate::setting::Setting;
use journal::settings::Task;
use model::plan::StepKind;
use serde_json::{Value, json};

/// Who has changed a setting, or why that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Who {
    /// The last one first.
    Processes(Vec<Writer>),
    Unknown(String),
}

impl Who {
    /// Of what the kernel has shown.
    pub(super) fn of(setting: &Setting, changers: &Changers, names: &Names) -> Self {
        if setting.kind == StepKind::Task {
            return Self::of_affinity(setting, names);
        }
        match changers.of(setting) {
            Changer::Writers(writers) => {
                Self::Processes(writers.into_iter().map(|one| named(one, names)).collect())
            }
            Changer::Unknown(why) => Self::Unknown(why),
        }
    }

    fn of_affinity(setting: &Setting, names: &Names) -> Self {
        let by = Task::of(&setting.target).and_then(|task| names.pinned_by(task.id));
        match by.filter(|by| *by != std::process::id()) {
            Some(pid) => Self::Processes(vec![named(Writer::of(pid), names)]),
            None if names.sees_affinities() => Self::Unknown(
                "nobody has called sched_setaffinity for it: the kernel has done it, or the trace has lost it"
                    .to_owned(),
            ),
            None => {
                let why = names.why_not().unwrap_or("this kernel has no probe of sched_setaffinity");
                Self::Unknown(format!("who sets affinities is not seen: {why}"))
            }
        }
    }

    /// Whether any process is.
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Processes(_))
    }

    /// Whether it is known, by number and name.
    pub(super) fn is_named(&self) -> bool {
        matches!(self, Self::Processes(all) if all.first().is_some_and(|one| one.name.is_some()))
    }

    /// As the end of a sentence.
    pub(super) fn clause(&self) -> String {
        match self {
            Self::Processes(all) => {
                let each: Vec<_> = all.iter().map(process).collect();
                let (last, before) = each.split_first().map_or(("", &[][..]), |(last, rest)| (last, rest));
                let before = match before {
                    [] => String::new(),
                    rest => format!(", after {}", rest.join(", ")),
                };
                format!("changed by {last}{before}")
            }
            Self::Unknown(why) => format!("who changed it is not known: {why}"),
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Processes(all) => {
                let one = |one: &Writer| json!({ "pid": one.pid, "comm": one.name });
                let mut value = all.first().map_or(Value::Null, one);
                if all.len() > 1 {
                    value["before"] = all[1..].iter().map(one).collect();
                }
                value
            }
            Self::Unknown(_) => Value::Null,
        }
    }

    pub(super) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Processes(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

/// With the name that the trace has of it, where it had ended.
fn named(writer: Writer, names: &Names) -> Writer {
    let name = writer.name.or_else(|| names.of(writer.pid).map(str::to_owned));
    Writer { name, ..writer }
}

fn process(writer: &Writer) -> String {
    match (writer.pid, &writer.name) {
        (0, _) => "a process outside of this PID namespace".to_owned(),
        (pid, Some(name)) => format!("{name} (process {pid})"),
        (pid, None) => format!("process {pid}, which has ended and whose name is not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(pid: u32, name: Option<&str>) -> Writer {
        Writer { pid, name: name.map(str::to_owned) }
    }

    #[test]
    fn what_is_not_known_is_said_so() {
        let gone = Who::Processes(vec![writer(7, None)]);
        assert!(!gone.is_named() && gone.clause().contains("whose name is not known"));
        let outside = Who::Processes(vec![writer(0, None)]);
        assert!(!outside.is_named() && outside.clause().contains("outside of this PID namespace"));
        let two = Who::Processes(vec![writer(7, Some("tuned")), writer(8, Some("sh"))]);
        assert_eq!(two.clause(), "changed by tuned (process 7), after sh (process 8)");
        assert_eq!(two.json(), json!({ "pid": 7, "comm": "tuned", "before": [{ "pid": 8, "comm": "sh" }] }));
        let unknown = Who::Unknown("no reason".to_owned());
        assert_eq!((unknown.json(), unknown.why_not()), (Value::Null, Some("no reason")));
        assert!(unknown.clause().contains("not known"));
    }
}
