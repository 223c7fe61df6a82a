//! Who caused an interference event: CPU, task or interrupt, call site; and how that is known.

use crate::labels::LabelId;
use crate::view::Way;
use serde::{Deserialize, Serialize};

/// Who acted, on the CPU where it acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// A task, by its number; idle is 0.
    Task(i32),
    /// An interrupt, softirq or timer, by what ran in it.
    Interrupt(LabelId),
    /// Some interrupt whose entry was not recorded.
    SomeInterrupt,
    /// A device, by the name of its handler.
    Device(LabelId),
}

/// The source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    /// Where it acted.
    pub cpu: u32,
    /// Who.
    pub who: Who,
    /// The function of the kernel that asked, by its stack, else by the event; of irq_work the
    /// function that it runs.
    pub site: Option<LabelId>,
    /// What it was in the kernel for, by its stack: `system call munmap`, `kernel thread`,
    /// `interrupt`.
    pub began: Option<LabelId>,
    /// The functions on that stack.
    pub frames: Option<LabelId>,
}

impl Source {
    /// A source of which nothing more is known.
    pub fn new(cpu: u32, who: Who) -> Self {
        Self { cpu, who, site: None, began: None, frames: None }
    }

    /// The same by its stack: the helper that an event names is no site, even where the stack has
    /// no better one.
    #[must_use]
    pub fn by_way(self, Way { began, site, frames }: Way) -> Self {
        if frames.is_none() { self } else { Self { site, began, frames, ..self } }
    }

    /// The same without its stack, for sums: stacks may be many.
    #[must_use]
    pub fn plain(self) -> Self {
        Self { frames: None, ..self }
    }

    /// Whether both may be the same act: same actor, same CPU, and not two places in the kernel.
    fn is(&self, other: &Self) -> bool {
        let same = |a: Option<LabelId>, b: Option<LabelId>| a == b || a.is_none() || b.is_none();
        (self.cpu, self.who) == (other.cpu, other.who)
            && same(self.site, other.site)
            && same(self.began, other.began)
    }
}

/// How a source is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Both ends name the same object: a request, a timer, a work item, a task.
    Exact,
    /// The order in time fits, and nothing else that was seen fits.
    Order,
}

impl Confidence {
    /// In a word, for people and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Order => "by order",
        }
    }
}

/// A source, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause {
    /// Who.
    pub source: Source,
    /// How that is known.
    pub confidence: Confidence,
}

impl Cause {
    /// Known by what both ends name.
    pub fn exact(source: Source) -> Self {
        Self { source, confidence: Confidence::Exact }
    }

    /// Known by order in time.
    pub fn order(source: Source) -> Self {
        Self { source, confidence: Confidence::Order }
    }
}

/// The most causes kept of one event.
const MOST: usize = 3;

/// The causes of one event: an IPI may serve several senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Causes {
    kept: [Option<Cause>; MOST],
    /// Further causes without a place.
    pub more: u32,
}

impl Causes {
    /// One cause.
    pub fn one(cause: Cause) -> Self {
        Self::of(Some(cause))
    }

    /// At most one.
    #[inline(always)]
    pub fn of(cause: Option<Cause>) -> Self {
        Self { kept: [cause, None, None], more: 0 }
    }

    /// Adds a cause; the same source counts once, by its better confidence. A source without
    /// a call site equals one on the same CPU with a call site: a wake-up by IPI shows its task to
    /// both ends of the request.
    pub fn add(&mut self, cause: Cause) {
        for place in &mut self.kept {
            match place {
                Some(known) if known.source.is(&cause.source) => {
                    known.confidence = known.confidence.min(cause.confidence);
                    let Source { site, began, frames, .. } = cause.source;
                    known.source = Source {
                        site: known.source.site.or(site),
                        began: known.source.began.or(began),
                        frames: known.source.frames.or(frames),
                        ..known.source
                    };
                    return;
                }
                Some(_) => {}
                None => {
                    *place = Some(cause);
                    return;
                }
            }
        }
        self.more = self.more.saturating_add(1);
    }

    /// Adds all of another's.
    pub fn join(&mut self, other: &Self) {
        other.iter().for_each(|cause| self.add(cause));
        self.more = self.more.saturating_add(other.more);
    }

    /// Those that are kept.
    pub fn iter(&self) -> impl Iterator<Item = Cause> + '_ {
        self.kept.iter().flatten().copied()
    }

    /// The first.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&Cause> {
        self.kept[0].as_ref()
    }

    /// Whether there are several.
    #[inline(always)]
    pub(crate) fn are_several(&self) -> bool {
        self.kept[1].is_some() || self.more > 0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept[0].is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(cpu: u32) -> Source {
        Source::new(cpu, Who::Task(7))
    }

    #[test]
    fn who_is_seen_with_a_site_and_without_counts_once() {
        let at = |site| Cause::exact(Source { site, ..source(0) });
        for order in [[at(Some(4)), at(None)], [at(None), at(Some(4))]] {
            let mut causes = Causes::default();
            order.into_iter().for_each(|cause| causes.add(cause));
            assert_eq!(causes.iter().collect::<Vec<_>>(), [at(Some(4))]);
            causes.add(at(Some(5)));
            assert_eq!(causes.iter().count(), 2, "two places are two acts");
        }
    }

    #[test]
    fn the_same_source_counts_once_and_the_better_word_stays() {
        let mut causes = Causes::one(Cause::order(source(0)));
        causes.add(Cause::exact(source(0)));
        assert_eq!(causes.iter().collect::<Vec<_>>(), [Cause::exact(source(0))]);
        (1..5).for_each(|cpu| causes.add(Cause::order(source(cpu))));
        assert_eq!((causes.iter().count(), causes.more), (3, 2));
    }
}
