//! Sources and tasks that differ only in their number, as one: a program that starts many
//! short-lived children is one disturbance, not seventy.
//!
//! Only for people: JSON has every row.

use attribution::attribute::Confidence;
use attribution::attribute::path_section::PathBox;
use attribution::attribute::section::{AttributedRow, SourceText};
use model::EventClass;
use std::collections::BTreeSet;

/// What sources of one name have caused.
#[derive(Debug, Clone)]
pub(crate) struct SourceGroup {
    /// The class.
    pub(crate) class: EventClass,
    /// What ran.
    pub(crate) label: String,
    /// Who caused it, with the number of its tasks where there are several.
    pub(crate) source: Option<SourceText>,
    /// How sure the least sure row is.
    pub(crate) confidence: Option<Confidence>,
    /// Events.
    pub(crate) count: u64,
    /// Their time, ns.
    pub(crate) net_ns: u64,
    /// Pieces after an interruption that this time has.
    pub(crate) resumed: u64,
    /// Pieces after an interruption beside this time.
    pub(crate) pieces: u64,
    /// Their time, ns.
    pub(crate) pieces_ns: u64,
    /// Of a group with a count of 0: whether several groups may have the first of its pieces.
    pub(crate) begun_in_several: bool,
    /// The longest event, ns.
    pub(crate) max_ns: u64,
    /// Median of an event; `None` where several rows are one.
    pub(crate) p50_ns: Option<u64>,
    tasks: BTreeSet<i32>,
}

impl SourceGroup {
    fn of(row: &AttributedRow) -> Self {
        Self {
            class: row.class,
            label: row.label.clone(),
            source: row.source.clone(),
            confidence: row.confidence,
            count: row.count,
            net_ns: row.net_ns,
            resumed: row.resumed,
            pieces: 0,
            pieces_ns: 0,
            begun_in_several: false,
            max_ns: row.max_ns,
            p50_ns: Some(row.p50_ns),
            tasks: task(row.source.as_ref()).into_iter().collect(),
        }
    }

    fn has(&self, row: &AttributedRow) -> bool {
        let sources = match (&self.source, &row.source) {
            (Some(one), Some(other)) if task(Some(one)).is_some() => same_but_number(one, other),
            (one, other) => {
                one.as_ref().map(key) == other.as_ref().map(key) && self.confidence == row.confidence
            }
        };
        sources && self.is_of(row.class, &row.label)
    }

    fn is_of(&self, class: EventClass, label: &str) -> bool {
        self.class == class && self.label == label
    }

    fn add(&mut self, row: &AttributedRow) {
        self.tasks.extend(task(row.source.as_ref()));
        // `Order` is the less sure one.
        if row.confidence == Some(Confidence::Order) {
            self.confidence = row.confidence;
        }
        self.count = self.count.saturating_add(row.count);
        self.net_ns = self.net_ns.saturating_add(row.net_ns);
        self.resumed = self.resumed.saturating_add(row.resumed);
        self.max_ns = self.max_ns.max(row.max_ns);
        self.p50_ns = None;
    }

    /// All its time, ns.
    fn ns(&self) -> u64 {
        self.net_ns.saturating_add(self.pieces_ns)
    }
}

/// The rows, most time first. A row of pieces alone joins the one row of the same name that has
/// the first piece; where there are several or none, it stays a group with a count of 0.
pub(crate) fn sources(rows: &[AttributedRow]) -> Vec<SourceGroup> {
    let mut groups: Vec<SourceGroup> = Vec::new();
    for row in rows.iter().filter(|row| row.class != EventClass::SelfCaused && row.count > 0) {
        match groups.iter_mut().find(|group| group.has(row)) {
            Some(group) => group.add(row),
            None => groups.push(SourceGroup::of(row)),
        }
    }
    for group in &mut groups {
        let tasks = group.tasks.len();
        if let Some(source) = group.source.as_mut().filter(|_| tasks > 1) {
            (source.who, source.pid) = (several(&source.who, tasks), None);
        }
    }
    let begun = groups.len();
    let alone =
        |row: &&AttributedRow| row.count == 0 && row.resumed > 0 && row.class != EventClass::SelfCaused;
    for row in rows.iter().filter(alone) {
        let mut first = groups.iter_mut().take(begun).filter(|group| group.is_of(row.class, &row.label));
        match (first.next(), first.next().is_some()) {
            (Some(group), false) => {
                group.pieces = group.pieces.saturating_add(row.resumed);
                group.pieces_ns = group.pieces_ns.saturating_add(row.net_ns);
            }
            (_, begun_in_several) => {
                let (pieces, pieces_ns) = (row.resumed, row.net_ns);
                let of_row = SourceGroup::of(row);
                groups.push(SourceGroup {
                    pieces,
                    pieces_ns,
                    begun_in_several,
                    net_ns: 0,
                    resumed: 0,
                    ..of_row
                });
            }
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.ns()));
    groups
}

/// Boxes of tasks of one name.
#[derive(Debug, Clone)]
pub(crate) struct BoxGroup {
    /// The box; with several tasks it has no task, and their name in its label.
    pub(crate) part: PathBox,
    /// Boxes in it.
    pub(crate) boxes: u64,
}

/// The boxes of a section, most time first.
pub(crate) fn boxes(boxes: &[PathBox]) -> Vec<BoxGroup> {
    struct Growing<'b> {
        first: &'b PathBox,
        sum: PathBox,
        boxes: u64,
        tasks: BTreeSet<i32>,
        sources: BTreeSet<i32>,
    }
    let mut groups: Vec<Growing<'_>> = Vec::new();
    for one in boxes {
        let numbers = (one.task.as_ref().map(|task| task.pid), task(one.source.as_ref()));
        if let Some(group) = groups.iter_mut().find(|group| same_box(group.first, one)) {
            let sum = &mut group.sum;
            sum.count = sum.count.saturating_add(one.count);
            sum.ns = sum.ns.saturating_add(one.ns);
            sum.max_ns = sum.max_ns.max(one.max_ns);
            group.boxes += 1;
            group.tasks.extend(numbers.0);
            group.sources.extend(numbers.1);
        } else {
            let (tasks, sources) = (numbers.0.into_iter().collect(), numbers.1.into_iter().collect());
            groups.push(Growing { first: one, sum: one.clone(), boxes: 1, tasks, sources });
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.sum.ns));
    let finished = |group: Growing<'_>| {
        let mut part = group.sum;
        let tasks = group.tasks.len();
        if let Some(ran) = part.task.take_if(|_| tasks > 1) {
            let words = ran.words();
            let prio = words.strip_prefix(&format!("{}[{}]", ran.comm, ran.pid)).unwrap_or_default();
            let name = format!("{}{prio}", several(&ran.comm, tasks));
            part.label = Some(match part.label.filter(|label| *label != ran.comm) {
                Some(label) => format!("{label} in {name}"),
                None => name,
            });
        }
        let sources = group.sources.len();
        if let Some(source) = part.source.as_mut().filter(|_| sources > 1) {
            (source.who, source.pid) = (several(&source.who, sources), None);
        }
        BoxGroup { part, boxes: group.boxes }
    };
    groups.into_iter().map(finished).collect()
}

fn several(name: &str, tasks: usize) -> String {
    format!("{name} ({tasks} tasks)")
}

/// The number of a task that is a source; the idle task is one a CPU.
fn task(source: Option<&SourceText>) -> Option<i32> {
    source?.pid.filter(|pid| *pid > 0)
}

type SourceKey<'s> = (u32, &'s str, Option<i32>, &'s Option<String>, &'s Option<String>, &'s Option<String>);

fn key(source: &SourceText) -> SourceKey<'_> {
    (source.cpu, &source.who, source.pid, &source.site, &source.began, &source.group)
}

fn same_but_number(one: &SourceText, other: &SourceText) -> bool {
    let of_tasks = task(Some(one)).is_some() && task(Some(other)).is_some();
    let (mut left, mut right) = (key(one), key(other));
    if of_tasks {
        (left.2, right.2) = (None, None);
    }
    left == right
}

fn same_box(one: &PathBox, other: &PathBox) -> bool {
    let tasks = match (&one.task, &other.task) {
        (Some(one), Some(other)) => {
            (&one.comm, one.prio, &one.group) == (&other.comm, other.prio, &other.group)
        }
        (one, other) => one.is_none() && other.is_none(),
    };
    let sources = match (&one.source, &other.source) {
        (Some(one), Some(other)) => same_but_number(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    let same = |part: &PathBox| (part.step, part.cpu, part.class, part.blocking, part.confidence);
    tasks && sources && same(one) == same(other) && one.label == other.label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        label: &str,
        source: Option<i32>,
        confidence: Confidence,
        count: u64,
        resumed: u64,
    ) -> AttributedRow {
        AttributedRow {
            class: EventClass::Switch,
            label: label.to_owned(),
            source: source.map(|pid| SourceText::new(2, "busybox", Some(pid))),
            confidence: source.map(|_| confidence),
            count,
            resumed,
            net_ns: 10 * (count + resumed),
            p50_ns: 10,
            p99_ns: 10,
            max_ns: 10 + count,
        }
    }

    #[test]
    fn sources_of_one_name_are_one_as_sure_as_the_least_sure() {
        let rows = [
            row("telemetryd", Some(202), Confidence::Exact, 1, 0),
            row("telemetryd", Some(203), Confidence::Order, 2, 0),
            row("other", Some(204), Confidence::Exact, 1, 0),
        ];
        let groups = sources(&rows);
        assert_eq!(groups.len(), 2, "{groups:?}");
        let first = &groups[0];
        assert_eq!((first.count, first.net_ns, first.max_ns, first.p50_ns), (3, 30, 12, None));
        assert_eq!(first.confidence, Some(Confidence::Order));
        assert_eq!(first.source.as_ref().map(SourceText::name).as_deref(), Some("busybox (2 tasks)"));
        assert_eq!(groups[1].source.as_ref().map(SourceText::name).as_deref(), Some("busybox[204]"));
    }

    #[test]
    fn pieces_join_the_row_of_their_first_piece() {
        let pieces = row("telemetryd", None, Confidence::Exact, 0, 16);
        let first = row("telemetryd", Some(202), Confidence::Exact, 1, 0);
        let joined = sources(&[pieces.clone(), first.clone()]);
        assert_eq!(joined.len(), 1, "{joined:?}");
        assert_eq!(
            (joined[0].count, joined[0].net_ns, joined[0].pieces, joined[0].pieces_ns),
            (1, 10, 16, 160)
        );
        // Of two it is not known which; of none, that it began before.
        let apart = sources(&[pieces.clone(), first, row("telemetryd", None, Confidence::Exact, 3, 0)]);
        let of_pieces: Vec<bool> =
            apart.iter().filter(|group| group.count == 0).map(|group| group.begun_in_several).collect();
        assert_eq!(of_pieces, [true], "{apart:?}");
        let alone = sources(&[pieces]);
        assert_eq!((alone.len(), alone[0].begun_in_several), (1, false));
    }

    #[test]
    fn boxes_of_tasks_of_one_name_are_one() {
        let part = |pid| {
            let task = serde_json::json!({ "pid": pid, "comm": "busybox", "prio": 120 });
            let part = serde_json::json!({ "step": "switch", "cpu": 2, "class": "switch", "label": "busybox", "task": task,
                "source": null, "confidence": null, "count": 1, "ns": 10, "max_ns": pid });
            serde_json::from_value::<PathBox>(part).unwrap()
        };
        let groups = boxes(&[part(5), part(7), part(6)]);
        assert_eq!((groups.len(), groups[0].boxes), (1, 3));
        let sum = &groups[0].part;
        assert_eq!((sum.count, sum.ns, sum.max_ns), (3, 30, 7));
        assert_eq!(sum.what().as_deref(), Some("switch busybox (3 tasks) (nice 0)"));
        assert_eq!(boxes(&[part(5)])[0].part, part(5));
    }
}
