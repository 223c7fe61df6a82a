//! Class × what ran × source, summed over the last second, the last minute and in all. A fixed
//! number of rows: those that were seen last longest ago make room.

use super::recent::Recent;
use super::view::{Ran, RowView, SECONDS};
use super::worst::Names;
use crate::attribute::section::SourceText;
use crate::attribute::{Cause, Confidence};
use crate::labels::LabelId;
use crate::spans::Span;
use model::EventClass;
use rustc_hash::FxHashMap;

/// The most rows.
const MOST_ROWS: usize = 512;
/// A row that has been silent for so many seconds may make room.
const SILENT: u64 = SECONDS as u64;

/// What distinguishes rows while numbers of texts are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    cpu: u32,
    class: EventClass,
    label: LabelId,
    pid: Option<i32>,
    cause: Option<Cause>,
}

/// CPU, name and number of who caused it, the function that asked, and what it was there for.
type Short = (u32, String, Option<i32>, Option<String>, Option<String>);

/// What a row is about, in texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Name {
    cpu: u32,
    class: EventClass,
    label: String,
    pid: Option<i32>,
    source: Option<Short>,
}

#[derive(Debug)]
struct Row {
    name: Name,
    source: Option<SourceText>,
    confidence: Option<Confidence>,
    recent: Recent,
    count: u64,
    ns: u64,
    max_ns: u64,
    seen_s: u64,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Sums {
    rows: Vec<Row>,
    by_key: FxHashMap<Key, usize>,
    by_name: FxHashMap<Name, usize>,
    now_s: u64,
    /// Rows with something in this second.
    active: Vec<usize>,
    /// When room was last looked for: with thousands of new tasks a second, looking costs too much.
    looked_s: Option<u64>,
}

impl Sums {
    /// Adds a span to the row of each of its sources; its time is shared evenly.
    pub(super) fn add(&mut self, span: &Span, names: &Names<'_>) {
        let task = span.class == EventClass::Switch;
        // Who woke a task is not who takes the time.
        let causes = if task { 0 } else { span.causes.iter().count() };
        let share_ns = span.net_ns / causes.max(1) as u64;
        if causes == 0 {
            let pid = task.then_some(span.task.pid);
            return self.add_to(span, pid, None, span.net_ns, names);
        }
        for cause in span.causes.iter() {
            self.add_to(span, None, Some(cause), share_ns, names);
        }
    }

    fn add_to(&mut self, span: &Span, pid: Option<i32>, cause: Option<Cause>, ns: u64, names: &Names<'_>) {
        let plain = cause.map(|cause| Cause { source: cause.source.plain(), ..cause });
        let key = Key { cpu: span.cpu, class: span.class, label: span.label, pid, cause: plain };
        let at = match self.by_key.get(&key) {
            Some(at) => *at,
            None => self.place(key, cause, names),
        };
        let now_s = self.now_s;
        let Some(row) = self.rows.get_mut(at) else { return };
        if row.recent.at(now_s).is_none() {
            self.active.push(at);
        }
        let now = row.recent.now(now_s);
        now.ns = now.ns.saturating_add(ns);
        row.seen_s = now_s;
        row.ns = row.ns.saturating_add(ns);
        if span.counts {
            now.count = now.count.saturating_add(1);
            row.count += 1;
            row.max_ns = row.max_ns.max(ns);
        }
    }

    /// The row of a key that was not seen under these numbers.
    #[cold]
    fn place(&mut self, key: Key, cause: Option<Cause>, names: &Names<'_>) -> usize {
        let source = cause.map(|cause| names.source(&cause.source));
        let short =
            |one: &SourceText| (one.cpu, one.who.clone(), one.pid, one.site.clone(), one.began.clone());
        let mut name = Name {
            cpu: key.cpu,
            class: key.class,
            label: names.label(key.label),
            pid: key.pid,
            source: source.as_ref().map(short),
        };
        let mut source = source;
        let mut confidence = cause.map(|cause| cause.confidence);
        if let Some(at) = self.by_name.get(&name).copied() {
            // What is known by order once is not exact as a whole.
            let row = &mut self.rows[at];
            row.confidence = row.confidence.max(confidence);
            self.by_key.insert(key, at);
            return at;
        }
        if self.rows.len() >= MOST_ROWS && !self.make_room() {
            name = Name { label: "(others)".to_owned(), pid: None, source: None, ..name };
            (source, confidence) = (None, None);
        }
        let at = *self.by_name.entry(name.clone()).or_insert_with(|| {
            let (recent, seen_s) = (Recent::default(), self.now_s);
            self.rows.push(Row { name, source, confidence, recent, count: 0, ns: 0, max_ns: 0, seen_s });
            self.rows.len() - 1
        });
        // Keys may be many more than rows: short-lived tasks.
        if self.by_key.len() >= 8 * MOST_ROWS {
            self.by_key.clear();
        }
        self.by_key.insert(key, at);
        at
    }

    /// Removes the rows that have been silent; whether there were any.
    fn make_room(&mut self) -> bool {
        let now_s = self.now_s;
        if self.looked_s.replace(now_s) == Some(now_s) {
            return false;
        }
        let before = self.rows.len();
        self.rows.retain(|row| row.seen_s + SILENT > now_s);
        self.by_key.clear();
        let now = |row: &Row| row.recent.at(now_s).is_some();
        self.active = (0..).zip(&self.rows).filter(|(_, row)| now(row)).map(|(at, _)| at).collect();
        self.by_name = (0..).zip(&self.rows).map(|(at, row)| (row.name.clone(), at)).collect();
        self.rows.len() < before
    }

    /// Numbers of texts and tasks are not valid any more.
    pub(super) fn forget_numbers(&mut self) {
        self.by_key.clear();
    }

    pub(super) fn reset_maxima(&mut self) {
        self.rows.iter_mut().for_each(|row| row.max_ns = 0);
    }

    /// The next second begins.
    pub(super) fn second(&mut self) {
        self.now_s += 1;
        self.active.clear();
    }

    /// What there was in this second. Rows without anything are not even looked at: there may be
    /// hundreds, of which a still CPU needs a few.
    pub(super) fn each_of_now(&self, each: &mut dyn FnMut(Ran<'_>)) {
        for row in self.active.iter().filter_map(|at| self.rows.get(*at)) {
            let Name { cpu, class, label, .. } = &row.name;
            let now = row.recent.at(self.now_s).unwrap_or_default();
            each(Ran {
                cpu: *cpu,
                class: *class,
                label,
                source: row.source.as_ref(),
                confidence: row.confidence,
                count: now.count.into(),
                ns: now.ns,
            });
        }
    }

    /// All rows, this second's sums among theirs.
    pub(super) fn rows(&self) -> Vec<RowView> {
        let view = |row: &Row| {
            let now = row.recent.at(self.now_s).unwrap_or_default();
            let (minute_count, minute_ns) = row.recent.sum(self.now_s);
            RowView {
                cpu: row.name.cpu,
                class: row.name.class,
                label: row.name.label.clone(),
                pid: row.name.pid,
                source: row.source.clone(),
                confidence: row.confidence,
                count: now.count.into(),
                ns: now.ns,
                minute_count,
                minute_ns,
                total_count: row.count,
                total_ns: row.ns,
                max_ns: row.max_ns,
            }
        };
        self.rows.iter().map(view).collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Source, Who};
    use crate::testing;

    #[test]
    fn a_row_has_this_second_the_last_minute_and_all() {
        let (mut sums, names) = (Sums::default(), Names::of_numbers());
        let tick = testing::span(2, EventClass::TimerTick, [0, 20]);
        for _ in 0..SECONDS + 10 {
            // What went on after an interruption is no event of its own, and may be short.
            sums.add(&crate::spans::Span { counts: false, net_ns: 0, ..tick }, &names);
            sums.add(&tick, &names);
            sums.add(&tick, &names);
            let mut seen = Vec::new();
            sums.each_of_now(&mut |ran| seen.push((ran.count, ran.ns)));
            assert_eq!(seen, [(2, 40)]);
            let rows = sums.rows();
            assert_eq!((rows.len(), rows[0].count, rows[0].ns), (1, 2, 40));
            sums.second();
        }
        let row = &sums.rows()[0];
        assert_eq!((row.count, row.minute_count, row.max_ns), (0, 2 * (SECONDS as u64 - 1), 20));
        assert_eq!(row.total_ns, 40 * (SECONDS as u64 + 10));
    }

    #[test]
    fn a_row_is_as_sure_as_its_least_sure_event() {
        let (mut sums, names) = (Sums::default(), Names::of_numbers());
        let source = Source::new(0, Who::Task(7));
        for confidence in [Confidence::Exact, Confidence::Order, Confidence::Exact] {
            let key = Key {
                cpu: 2,
                class: EventClass::IpiCall,
                label: 1,
                pid: None,
                cause: Some(Cause { source, confidence }),
            };
            sums.place(key, key.cause, &names);
        }
        let rows = sums.rows();
        assert_eq!((rows.len(), rows[0].confidence), (1, Some(Confidence::Order)));
    }

    #[test]
    fn rows_are_bounded_no_time_is_lost_and_silent_ones_make_room() {
        let (mut sums, names) = (Sums::default(), Names::of_numbers());
        let mut total = 0;
        for label in 0..4 * MOST_ROWS as u32 {
            let span = crate::spans::Span { label, ..testing::span(1, EventClass::Work, [0, 7]) };
            sums.add(&span, &names);
            total += 7;
        }
        assert!(sums.len() <= MOST_ROWS + 1);
        assert_eq!(sums.rows().iter().map(|row| row.total_ns).sum::<u64>(), total);
        assert!(sums.rows().iter().any(|row| row.label == "(others)"));
        let mut now = 0;
        sums.each_of_now(&mut |ran| now += ran.ns);
        assert_eq!(now, total, "all of it was in this second");
        sums.second();
        sums.each_of_now(&mut |ran| panic!("{ran:?}"));
        (0..SILENT).for_each(|_| sums.second());
        sums.add(&testing::span(1, EventClass::Irq, [0, 7]), &names);
        assert_eq!(sums.len(), 1);
    }
}
