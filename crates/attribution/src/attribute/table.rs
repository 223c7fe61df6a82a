//! Class × what ran × source × call site, summed for one window on one CPU.
//!
//! An event that serves several senders counts for each of them, and its time is shared evenly.
//! Times add up to the class's time, counts to at least its count.

use super::cause::{Cause, Confidence, Source, Who};
use super::spread::Spread;
use crate::attribute::section::{AttributedRow, SourceText};
use crate::instants::Instants;
use crate::labels::{LabelId, Labels};
use crate::spans::Span;
use crate::stacks::{INSIDE, OUTSIDE};
use model::EventClass;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};

/// The most rows; later ones are summed in one row per class.
const MOST_ROWS: usize = 1024;
/// The most rows reported for a window.
const MOST_LISTED: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    class: u32,
    /// None beyond [`MOST_ROWS`].
    label: Option<LabelId>,
    /// Without its stack.
    cause: Option<Cause>,
}

impl Key {
    fn words(&self) -> Words {
        Words::of(self.class, self.label, self.cause.as_ref())
    }

    /// The source, with a stack of it.
    fn source(&self, row: &Row) -> Option<Source> {
        self.cause.map(|cause| Source { frames: row.frames, ..cause.source })
    }
}

/// A [`Key`] in three words: it is looked up for every span, and one that is derived is hashed and
/// compared field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words([u64; 3]);

impl Words {
    /// The words of a cause without its stack.
    #[inline(always)]
    fn of(class: u32, label: Option<LabelId>, cause: Option<&Cause>) -> Self {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let head = class << 8 | u32::from(label.is_some());
        let label = label.unwrap_or_default();
        let Some(Cause { source, confidence }) = cause else {
            return Self([pair(head, 0), pair(label, 0), 0]);
        };
        let Source { cpu, who, site, began, .. } = *source;
        let (kind, who) = match who {
            Who::Task(pid) => (0, pid.cast_unsigned()),
            Who::Interrupt(label) => (1, label),
            Who::SomeInterrupt => (2, 0),
            Who::Device(label) => (3, label),
        };
        let some = u32::from(site.is_some()) << 5 | u32::from(began.is_some()) << 6;
        let head = head | 1 << 1 | kind << 2 | (*confidence as u32) << 4 | some;
        let [site, began] = [site, began].map(Option::unwrap_or_default);
        Self([pair(head, cpu), pair(label, who), pair(site, began)])
    }
}

impl Hash for Words {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.into_iter().for_each(|word| state.write_u64(word));
    }
}

/// One row.
#[derive(Debug, Clone)]
struct Row {
    key: Key,
    count: u64,
    resumed: u64,
    ns: u64,
    /// The stack of the first source that had one.
    frames: Option<LabelId>,
    lengths: Spread,
    /// Only in a table that keeps instants.
    instants: Option<Box<Instants>>,
}

/// The number of rows that are found without a hash, by some bits of their words.
const RECENT: usize = 64;

#[inline(always)]
fn recent(Words([_, label, site]): &Words) -> usize {
    (label >> 32 ^ label ^ site) as usize % RECENT
}

/// What is to be added to a row.
#[derive(Debug, Clone, Copy)]
struct Entry {
    row: u32,
    counts: bool,
    ns: u64,
}

/// Entries that are added together: rows lie apart, and a processor fetches many at once, but
/// waits for each one that it needs alone.
const TOGETHER: usize = 256;

/// When the events of one row happened.
#[derive(Debug)]
pub struct Timed<'t> {
    /// Their class.
    pub class: EventClass,
    /// What ran.
    pub label: &'t str,
    /// Their source, and its confidence.
    pub source: Option<(SourceText, Confidence)>,
    /// When they happened.
    pub instants: &'t Instants,
}

/// The rows of one window on one CPU.
#[derive(Debug, Clone, Default)]
pub struct Table {
    places: FxHashMap<Words, u32>,
    /// The place of the last row with these bits, if there is one.
    recent: Vec<(Words, u32)>,
    rows: Vec<Row>,
    /// To be added to them.
    entries: Vec<Entry>,
    /// Whether rows keep when their events happened.
    timed: bool,
    /// Senders dropped because their event had too many.
    pub more_senders: u64,
}

impl Table {
    /// A table that keeps when the events of each row happened.
    pub fn timed() -> Self {
        Self { timed: true, ..Self::default() }
    }

    /// Adds a span of which `net_ns` lie in the counted time.
    #[inline(always)]
    pub fn add(&mut self, span: &Span, net_ns: u64) {
        if span.causes.are_several() {
            self.add_shared(span, net_ns);
        } else {
            self.add_one(span, span.causes.first(), net_ns);
        }
    }

    #[inline(never)]
    fn add_shared(&mut self, span: &Span, net_ns: u64) {
        self.more_senders += u64::from(span.causes.more);
        let senders = span.causes.iter().count() as u64;
        let share = net_ns / senders.max(1);
        for (at, cause) in span.causes.iter().enumerate() {
            let rest = if at == 0 { net_ns % senders } else { 0 };
            self.add_one(span, Some(&cause), share + rest);
        }
    }

    #[inline(always)]
    fn add_one(&mut self, span: &Span, cause: Option<&Cause>, ns: u64) {
        let words = Words::of(span.class as u32, Some(span.label), cause);
        // Nearly every span has a row already.
        let row = match self.recent.get(recent(&words)) {
            Some((other, row)) if *other == words => *row,
            _ => self.find(words, span, cause),
        };
        let frames = cause.and_then(|cause| cause.source.frames);
        if frames.is_some() || self.timed {
            self.note(row, frames, span, ns);
        }
        self.entries.push(Entry { row, counts: span.counts, ns });
        if self.entries.len() >= TOGETHER {
            add_all(&mut self.rows, &self.entries);
            self.entries.clear();
        }
    }

    #[inline(never)]
    fn find(&mut self, words: Words, span: &Span, cause: Option<&Cause>) -> u32 {
        let row = match self.places.get(&words) {
            Some(row) => *row,
            None => self.new_row(span, cause),
        };
        // No class has so many bits.
        self.recent.resize(RECENT, (Words([u64::MAX; 3]), 0));
        self.recent[recent(&words)] = (words, row);
        row
    }

    #[inline(never)]
    fn note(&mut self, row: u32, frames: Option<LabelId>, span: &Span, ns: u64) {
        let Some(row) = self.rows.get_mut(row as usize) else { return };
        row.frames = row.frames.or(frames);
        if let Some(instants) = &mut row.instants {
            instants.add(span.t0_ns, span.t1_ns, ns);
        }
    }

    /// The number of a new row, or of the row of the class for what exceeds [`MOST_ROWS`].
    #[cold]
    fn new_row(&mut self, span: &Span, cause: Option<&Cause>) -> u32 {
        let class = span.class as u32;
        let plain = |cause: &Cause| Cause { source: cause.source.plain(), ..*cause };
        let full = self.rows.len() >= MOST_ROWS;
        let key = if full {
            Key { class, label: None, cause: None }
        } else {
            Key { class, label: Some(span.label), cause: cause.map(plain) }
        };
        let Self { places, rows, timed, .. } = self;
        *places.entry(key.words()).or_insert_with(|| {
            let instants = timed.then(Box::default);
            let lengths = Spread::default();
            rows.push(Row { key, count: 0, resumed: 0, ns: 0, frames: None, lengths, instants });
            rows.len() as u32 - 1
        })
    }

    /// The rows, with the pending entries added.
    fn rows(&self) -> Cow<'_, [Row]> {
        let mut rows = Cow::Borrowed(&self.rows[..]);
        if !self.entries.is_empty() {
            add_all(rows.to_mut(), &self.entries);
        }
        rows
    }

    /// The rows, most time first, with texts for numbers; `comm` names a task.
    pub fn attributed_rows(
        &self,
        labels: &Labels,
        comm: &dyn Fn(i32) -> Option<String>,
    ) -> Vec<AttributedRow> {
        let rows = self.rows();
        let mut sorted: Vec<&Row> = rows.iter().collect();
        sorted.sort_by_key(|row| (std::cmp::Reverse((row.ns, row.count)), row.key));
        let shown = sorted.into_iter().take(MOST_LISTED).map(|row| {
            let (key, lengths) = (&row.key, row.lengths.histogram());
            AttributedRow {
                class: EventClass::ALL[key.class as usize],
                label: key.label.map_or_else(|| "(others)".to_owned(), |label| labels.text(label).to_owned()),
                source: key.source(row).map(|source| source_text(&source, labels, comm)),
                confidence: key.cause.map(|cause| cause.confidence),
                count: row.count,
                resumed: row.resumed,
                net_ns: row.ns,
                p50_ns: lengths.value_at_quantile(0.5),
                p99_ns: lengths.value_at_quantile(0.99),
                max_ns: row.lengths.max_ns(),
            }
        });
        shown.collect()
    }

    /// When the events of each row happened, where that was kept, most time first; rows of what the
    /// probe itself causes left out.
    pub fn instants<'t>(
        &'t self,
        labels: &'t Labels,
        comm: &'t dyn Fn(i32) -> Option<String>,
    ) -> Vec<Timed<'t>> {
        let timed = |row: &'t Row| {
            let key = &row.key;
            let class = EventClass::ALL[key.class as usize];
            let label = key.label.filter(|_| class != EventClass::SelfCaused)?;
            let source = key.cause.map(|cause| (source_text(&cause.source, labels, comm), cause.confidence));
            let (label, instants) = (labels.text(label), row.instants.as_deref()?);
            Some(Timed { class, label, source, instants })
        };
        let ns: Vec<u64> = self.rows().iter().map(|row| row.ns).collect();
        let rows = self.rows.iter().zip(ns).filter_map(|(row, ns)| Some((ns, timed(row)?)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(ns, row)| (std::cmp::Reverse(*ns), row.class, row.label));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// The number of events whose source is known exactly, by order, and not at all; without
    /// classes `self` and tick, which need none.
    pub fn known(&self) -> [u64; 3] {
        let mut known = [0; 3];
        let none = [EventClass::SelfCaused as u32, EventClass::TimerTick as u32];
        for row in self.rows().iter().filter(|row| !none.contains(&row.key.class)) {
            let at = match row.key.cause.map(|cause| cause.confidence) {
                Some(Confidence::Exact) => 0,
                Some(Confidence::Order) => 1,
                None => 2,
            };
            known[at] += row.count;
        }
        known
    }
}

/// Adds to rows.
#[inline(never)]
fn add_all(rows: &mut [Row], entries: &[Entry]) {
    for entry in entries {
        let Some(row) = rows.get_mut(entry.row as usize) else { continue };
        // A damaged trace may span all of time, again and again.
        row.ns = row.ns.saturating_add(entry.ns);
        if entry.counts {
            row.count += 1;
            row.lengths.add(entry.ns);
        } else {
            row.resumed += 1;
        }
    }
}

/// Who a task is whose name the recording does not have.
pub const UNNAMED: &str = "a task";

/// A source in words.
pub fn source_text(source: &Source, labels: &Labels, comm: &dyn Fn(i32) -> Option<String>) -> SourceText {
    let (who, pid) = match source.who {
        Who::Task(0) => ("idle".to_owned(), Some(0)),
        Who::Task(pid) => (comm(pid).unwrap_or_else(|| UNNAMED.to_owned()), Some(pid)),
        Who::Interrupt(label) => (format!("interrupt: {}", labels.text(label)), None),
        Who::SomeInterrupt => ("an interrupt".to_owned(), None),
        Who::Device(label) => (format!("device: {}", labels.text(label)), None),
    };
    let text = |id: Option<LabelId>| id.map(|id| labels.text(id).to_owned());
    let whole = source.frames.map_or("", |frames| labels.text(frames));
    let (kernel, program) = whole.split_once(OUTSIDE).unwrap_or((whole, ""));
    let functions = |way: &str| way.split(INSIDE).filter(|one| !one.is_empty()).map(str::to_owned).collect();
    let (site, began, frames, users) =
        (text(source.site), text(source.began), functions(kernel), functions(program));
    SourceText { cpu: source.cpu, who, pid, site, began, frames, users, group: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Causes;
    use crate::testing;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn span(class: EventClass, label: LabelId, senders: &[u32]) -> Span {
        let mut causes = Causes::default();
        for cpu in senders {
            causes.add(Cause::exact(Source::new(*cpu, Who::Task(5))));
        }
        Span { label, causes, ..testing::span(2, class, [0, 10]) }
    }

    #[test]
    fn an_event_of_two_senders_counts_for_both_and_its_time_is_shared() {
        let mut labels = Labels::default();
        let label = labels.id("call");
        let mut table = Table::default();
        table.add(&span(EventClass::IpiCall, label, &[0, 1]), 11);
        let rows = table.attributed_rows(&labels, &|_| Some("bash".to_owned()));
        let seen: Vec<_> = rows.iter().map(|row| (row.count, row.net_ns)).collect();
        assert_eq!(seen, [(1, 6), (1, 5)]);
        assert_eq!(rows[0].source.as_ref().map(|source| source.who.as_str()), Some("bash"));
        assert_eq!(table.known(), [2, 0, 0]);
        assert_eq!((rows[0].p50_ns, rows[0].max_ns), (6, 6));
    }

    proptest! {
        #[test]
        fn no_time_is_lost_whatever_the_rows(
            spans in proptest::collection::vec((0u32..3000, 0u64..1000, proptest::collection::vec(0u32..5, 0..5)), 0..1500),
        ) {
            let mut table = Table::default();
            for (label, ns, senders) in &spans {
                table.add(&span(EventClass::Work, *label, senders), *ns);
            }
            let total: u64 = table.rows().iter().map(|row| row.ns).sum();
            prop_assert_eq!(total, spans.iter().map(|(_, ns, _)| ns).sum::<u64>());
            prop_assert!(table.rows.len() <= MOST_ROWS + 1);
        }

        /// Many labels share the bits by which rows are found.
        #[test]
        fn each_row_has_what_is_its_own(
            spans in proptest::collection::vec((0u32..300, 0u64..1000, 0u32..3), 0..1500),
        ) {
            let (mut table, mut expected) = (Table::default(), BTreeMap::<_, (u64, u64)>::new());
            for (label, ns, sender) in spans {
                table.add(&span(EventClass::Work, label, &[sender]), ns);
                let sum = expected.entry((label, sender)).or_default();
                *sum = (sum.0 + 1, sum.1 + ns);
            }
            let key = |row: &Row| (row.key.label.unwrap(), row.key.cause.unwrap().source.cpu);
            let rows = table.rows();
            let rows: BTreeMap<_, _> = rows.iter().map(|row| (key(row), (row.count, row.ns))).collect();
            prop_assert_eq!(rows, expected);
        }
    }
}
