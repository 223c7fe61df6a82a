//! The longest wake-ups or interference events, each with its parts: a fixed number.

use super::view::{PartView, WorstView};
use crate::attribute::Source;
use crate::attribute::path::{Part, Path, Taken, Taker};
use crate::attribute::section::SourceText;
use crate::attribute::table::source_text;
use crate::decode::Decoder;
use crate::labels::LabelId;
use crate::spans::Span;
use std::collections::VecDeque;

/// How many are kept.
const MOST: usize = 12;
/// Spans that may lie inside one that has not ended, kept for all CPUs.
const RECENT: usize = 256;
/// The most parts of one.
const MOST_PARTS: usize = 16;

/// Texts for numbers.
pub(super) struct Names<'d> {
    pub(super) decoder: Option<&'d Decoder>,
}

impl<'d> Names<'d> {
    pub(super) fn of(decoder: &'d Decoder) -> Self {
        Self { decoder: Some(decoder) }
    }

    /// Numbers as texts, for tests.
    #[cfg(test)]
    pub(super) fn of_numbers() -> Self {
        Self { decoder: None }
    }

    pub(super) fn label(&self, id: LabelId) -> String {
        self.decoder.map_or_else(|| id.to_string(), |decoder| decoder.labels().text(id).to_owned())
    }

    fn comm(&self, pid: i32) -> Option<String> {
        self.decoder?.comm(pid).map(str::to_owned)
    }

    pub(super) fn source(&self, source: &Source) -> SourceText {
        match self.decoder {
            Some(decoder) => source_text(source, decoder.labels(), &|pid| self.comm(pid)),
            None => SourceText::new(source.cpu, &format!("{:?}", source.who), None),
        }
    }
}

/// The list.
#[derive(Debug, Default)]
pub(super) struct Worst {
    all: Vec<WorstView>,
    recent: VecDeque<Span>,
}

impl Worst {
    /// The longest first.
    pub(super) fn all(&self) -> &[WorstView] {
        &self.all
    }

    fn wants(&self, ns: u64) -> bool {
        self.all.len() < MOST || self.all.last().is_some_and(|last| last.ns < ns)
    }

    fn keep(&mut self, one: WorstView) {
        let at = self.all.partition_point(|other| other.ns >= one.ns);
        self.all.insert(at, one);
        self.all.truncate(MOST);
    }

    /// A span that may lie inside another.
    pub(super) fn remember(&mut self, span: &Span) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(*span);
    }

    /// An interference event from its begin to its end, with what interrupted it meanwhile.
    pub(super) fn event(&mut self, span: &Span, names: &Names<'_>) {
        let ns = span.t0_ns.abs_diff(span.t1_ns);
        if !self.wants(ns) {
            return;
        }
        let part = |span: &Span| {
            let cause = span.causes.iter().next();
            PartView {
                step: span.class.name().to_owned(),
                cpu: span.cpu,
                taken: Some(names.label(span.label)),
                class: Some(span.class),
                source: cause.map(|cause| names.source(&cause.source)),
                confidence: cause.map(|cause| cause.confidence),
                ns: span.net_ns,
            }
        };
        let inside = self.recent.iter().filter(|one| {
            let same = (one.cpu, one.t0_ns, one.label) == (span.cpu, span.t0_ns, span.label);
            one.cpu == span.cpu && one.t0_ns >= span.t0_ns && one.t1_ns <= span.t1_ns && !same
        });
        let mut parts: Vec<_> = std::iter::once(part(span)).chain(inside.map(part)).collect();
        parts.truncate(MOST_PARTS);
        let known: u64 = parts.iter().map(|part| part.ns).sum();
        if known < ns {
            let step = "(other, or a sleep)".to_owned();
            parts.push(PartView {
                step,
                cpu: span.cpu,
                taken: None,
                class: None,
                source: None,
                confidence: None,
                ns: ns - known,
            });
        }
        let what = format!("{} {}", span.class, names.label(span.label));
        self.keep(WorstView { cpu: span.cpu, t_ns: span.t0_ns, ns, is_wakeup: false, what, parts });
    }

    /// A wake-up that took too long to be taken apart.
    pub(super) fn without_parts(&mut self, cpu: u32, tid: i32, t_ns: i64, ns: i64, names: &Names<'_>) {
        let ns = ns.unsigned_abs();
        if self.wants(ns) {
            let name = names.comm(tid).unwrap_or_default();
            let what = format!("wake-up of {name}[{tid}], too long to be taken apart");
            self.keep(WorstView { cpu, t_ns, ns, is_wakeup: true, what, parts: Vec::new() });
        }
    }

    /// A wake-up of a followed thread.
    pub(super) fn wakeup(&mut self, cpu: u32, tid: i32, path: &Path, names: &Names<'_>) {
        let ns = path.value_ns.unsigned_abs();
        if !self.wants(ns) {
            return;
        }
        let part = |part: &Part| {
            let cause = part.taken.and_then(|taken| taken.causes.iter().next());
            PartView {
                step: part.step.words().to_owned(),
                cpu: part.cpu,
                taken: part.taken.map(|taken| taken_text(&taken, names)),
                class: part.taken.and_then(|taken| taken.taker.class()),
                source: cause.map(|cause| names.source(&cause.source)),
                confidence: cause.map(|cause| cause.confidence),
                ns: part.ns,
            }
        };
        let mut parts: Vec<_> = path.parts.iter().map(part).collect();
        if parts.len() > MOST_PARTS {
            parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
            let rest: u64 = parts.drain(MOST_PARTS - 1..).map(|part| part.ns).sum();
            let step = "(other parts)".to_owned();
            parts.push(PartView {
                step,
                cpu,
                taken: None,
                class: None,
                source: None,
                confidence: None,
                ns: rest,
            });
        }
        let name = names.comm(tid).unwrap_or_default();
        let what = format!("wake-up of {name}[{tid}]");
        self.keep(WorstView { cpu, t_ns: path.t_ns, ns, is_wakeup: true, what, parts });
    }
}

fn taken_text(taken: &Taken, names: &Names<'_>) -> String {
    let what = match taken.taker {
        Taker::Event(class) => class.name(),
        Taker::Blocking(blocking) => blocking.words(),
    };
    let label = names.label(taken.label);
    match taken.task {
        Some(task) => format!("{what} {}[{}]", names.label(task.comm), task.pid),
        None => format!("{what} {label}"),
    }
}
