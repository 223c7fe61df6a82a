//! What a trace shows of sources at all: by default what limits the answer above it, else every
//! class.

use attribution::attribute::Confidence;
use attribution::attribute::path_section::{PathSection, SamplePath};
use attribution::attribute::section::{AttributedRow, BlockingCoverage, Coverage};
use model::EventClass;
use std::fmt::Write;

/// The words for a class without events in a recording of ours.
pub(crate) const NOT_RECORDED: &str = "not recorded";
/// The same in any trace, of which it is unknown what was recorded.
pub(crate) const NONE_SEEN: &str = "none seen";

/// What a trace can show of sources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shows<'t> {
    /// `this trace`, `this kernel`.
    pub(crate) of: &'t str,
    /// The words for a class without events.
    pub(crate) absent: &'t str,
    /// The classes.
    pub(crate) classes: &'t [Coverage],
    /// Waits in which nothing else ran.
    pub(crate) waits: &'t [BlockingCoverage],
}

/// What the answer above names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// Classes that ran.
    pub(crate) classes: Vec<EventClass>,
    /// Whether latencies were taken apart.
    pub(crate) steps: bool,
}

/// What rows and paths name.
pub(crate) fn answer<'t>(
    rows: impl Iterator<Item = &'t AttributedRow>,
    paths: impl Iterator<Item = &'t PathSection>,
) -> Answer {
    let mut classes: Vec<EventClass> = rows.map(|row| row.class).collect();
    let mut steps = false;
    for path in paths {
        steps |= path.samples > 0;
        classes.extend(path.boxes.iter().filter_map(|one| one.class));
    }
    classes.sort();
    classes.dedup();
    Answer { classes, steps }
}

/// What single samples name.
pub(crate) fn answer_of<'t>(samples: impl Iterator<Item = &'t SamplePath>) -> Answer {
    let mut answer = Answer::default();
    for sample in samples {
        answer.steps = true;
        answer.classes.extend(sample.parts.iter().filter_map(|part| part.class));
    }
    answer.classes.sort();
    answer.classes.dedup();
    answer
}

impl Answer {
    /// Whether the trace shows nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.classes.is_empty() && !self.steps
    }
}

impl Shows<'_> {
    /// Every class.
    pub(crate) fn all(self) -> String {
        if self.classes.is_empty() {
            return String::new();
        }
        let mut text = format!("What {} shows of sources:\n", self.of);
        self.classes.iter().for_each(|line| text.push_str(&self.class(line)));
        for line in self.waits {
            let seen = match (line.seen, line.needs.is_empty()) {
                (true, _) => "its time",
                (false, false) => self.absent,
                (false, true) => "not known",
            };
            let _ = writeln!(text, "  {:<27} {seen:<12} {}", line.blocking.words(), line.how);
        }
        text.push('\n');
        text
    }

    /// What limits the answer: classes that ran and whose sources are not shown, or only by order,
    /// and waits that no event would show. `more`: what else `--sources` prints.
    pub(crate) fn limits(self, answer: &Answer, more: &str) -> String {
        if self.classes.is_empty() {
            return String::new();
        }
        let unsure = |line: &&Coverage| {
            // A tick is its CPU's own.
            let ran = line.class != EventClass::TimerTick && answer.classes.contains(&line.class);
            ran && line.sources != Some(Confidence::Exact)
        };
        let mut lines: String = self.classes.iter().filter(unsure).map(|line| self.class(line)).collect();
        let unseen: Vec<&str> =
            self.waits.iter().filter(|line| !line.seen).map(|line| line.blocking.words()).collect();
        if answer.steps && !unseen.is_empty() {
            lines.push_str(&crate::folded::folded(
                &format!("  not shown, so its time stays in the step: {}", unseen.join(", ")),
                "    ",
            ));
        }
        let head = if lines.is_empty() { String::new() } else { "What limits this answer:\n".to_owned() };
        format!("{head}{lines}(--sources: what {} shows of every class{more})\n\n", self.of)
    }

    fn class(self, line: &Coverage) -> String {
        let sources = match (line.seen, line.sources) {
            (false, _) => self.absent,
            (true, Some(Confidence::Exact)) => "exact",
            (true, Some(Confidence::Order)) => "by order",
            (true, None) => "not at all",
        };
        format!("  {:<27} {sources:<12} {}\n", line.class.name(), line.how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_and_is_not_exact_limits_an_answer() {
        let line = |class, sources| Coverage {
            class,
            seen: true,
            sources,
            how: "how".to_owned(),
            needs: Vec::new(),
        };
        let classes = [
            line(EventClass::IpiResched, Some(Confidence::Order)),
            line(EventClass::Switch, Some(Confidence::Exact)),
            line(EventClass::Irq, None),
            line(EventClass::Work, None),
            line(EventClass::TimerTick, None),
        ];
        let shows = Shows { of: "this trace", absent: NONE_SEEN, classes: &classes, waits: &[] };
        let ran =
            [EventClass::IpiResched, EventClass::Switch, EventClass::Irq, EventClass::TimerTick].to_vec();
        let text = shows.limits(&Answer { classes: ran, steps: true }, "");
        let names: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("  "))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(names, ["ipi.resched", "irq"], "{text}");
        assert!(text.contains("--sources"), "{text}");
        assert_eq!(shows.all().lines().filter(|line| line.starts_with("  ")).count(), 5);
        let sure = shows.limits(&Answer { classes: vec![EventClass::Switch], steps: false }, "");
        assert!(!sure.contains("limits") && sure.contains("--sources"), "{sure}");
    }
}
