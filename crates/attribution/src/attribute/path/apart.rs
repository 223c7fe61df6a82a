//! One sample taken apart: each step's time to what held it up, the rest to the step itself.

use super::marks::{Marks, Stage};
use super::waits::Waits;
use super::{Part, Path, Piece, Taken, Taker, stopped};
use crate::attribute::blocking::Stretch;
use crate::attribute::cause::{Causes, Confidence};
use crate::attribute::delay::Blocking;
use crate::attribute::step::Step;
use crate::prio::Prio;
use crate::spans::{Known, Span};
use crate::view::Level;
use model::EventClass;

/// Something that takes time from a step while it lasts.
struct Stay {
    t0_ns: i64,
    t1_ns: i64,
    /// Of overlapping stays, the one that began last is the innermost; a stay with this flag is
    /// outside all others.
    around: bool,
    taken: Taken,
}

/// What was on the CPU where the path ends, and the task `tid` that waited for it.
pub(super) struct Local<'s> {
    pub(super) cpu: u32,
    pub(super) tid: i32,
    pub(super) prio: Prio,
    pub(super) known: Known,
    pub(super) spans: &'s [Span],
    pub(super) stretches: &'s [Stretch],
    /// When the scheduler passed over the task.
    pub(super) without_budget: &'s [[i64; 2]],
}

impl Local<'_> {
    /// The boxes of a sample.
    pub(super) fn apart(&self, marks: &Marks) -> Path {
        let value_ns = marks.ran_ns - marks.release_ns;
        let thread = Waits::Thread { pid: self.tid, prio: self.prio };
        let stages = marks.stages(self.cpu, thread, self.known.rt);
        let (parts, pieces) = (Vec::with_capacity(stages.len()), Vec::with_capacity(stages.len()));
        let replaced = marks.replaced.filter(|task| task.pid != self.tid);
        let mut path = Path { t_ns: marks.release_ns, value_ns, parts, pieces, replaced };
        let mut from_ns = marks.release_ns;
        let stopped = stopped::stretch(marks, self.cpu, self.prio, self.known);
        for stage in stages {
            let until_ns = stage.until_ns.clamp(from_ns, marks.ran_ns);
            let stays = if stage.cpu == self.cpu {
                self.during(&stage, [from_ns, until_ns], stopped.as_ref())
            } else {
                Vec::new()
            };
            let mark = marks.expiry.filter(|_| stage.step == Step::TimerLate).map(|(_, known)| known);
            fill(&mut path, (stage.step, stage.cpu, mark), [from_ns, until_ns], &stays);
            from_ns = until_ns;
        }
        path
    }

    /// What touches a step and may take its time.
    fn during(&self, stage: &Stage, [from_ns, until_ns]: [i64; 2], stopped: Option<&Stretch>) -> Vec<Stay> {
        let may = |span: &&Span| stage.waits.held_up_by(span, stage.step, from_ns, self.known.rt);
        let spans = self.spans.iter().filter(may).map(|span| Stay {
            t0_ns: span.t0_ns,
            t1_ns: span.t1_ns,
            around: false,
            taken: Taken {
                taker: Taker::Event(span.class),
                label: span.label,
                task: (span.level == Level::Task).then_some(span.task),
                causes: span.causes,
            },
        });
        let explaining = self
            .stretches
            .iter()
            .chain(stopped)
            .filter(|one| one.explains(stage.step, stage.waits.is_interrupt(), until_ns, self.tid));
        let stretches = explaining.map(|one| Stay {
            t0_ns: one.t0_ns,
            t1_ns: one.t1_ns,
            // What ran inside it has its own box.
            around: matches!(
                one.blocking,
                Blocking::KernelCode
                    | Blocking::ProbedFunction
                    | Blocking::NotExecuting
                    | Blocking::FrequencyChange
            ),
            taken: Taken {
                taker: Taker::Blocking(one.blocking),
                label: one.label,
                task: None,
                causes: one.causes,
            },
        });
        let without = self.without_budget.iter().map(|stretch| self.passed_over(*stretch));
        let without = without.filter(|_| stage.waits.is_thread(self.tid));
        spans
            .chain(stretches)
            .chain(without)
            .filter(|stay| stay.t0_ns < until_ns && stay.t1_ns > from_ns)
            .collect()
    }

    /// The scheduler passed over the task: the part of that time that nothing else took.
    fn passed_over(&self, [t0_ns, t1_ns]: [i64; 2]) -> Stay {
        let (taker, label) = (Taker::Event(EventClass::Throttle), self.known.out_of_budget);
        let taken = Taken { taker, label, task: None, causes: Causes::default() };
        Stay { t0_ns, t1_ns, around: true, taken }
    }
}

/// Puts the time of a step into boxes: each moment belongs to the innermost stay, which began last.
fn fill(
    path: &mut Path,
    (step, cpu, mark): (Step, u32, Option<Confidence>),
    [from_ns, until_ns]: [i64; 2],
    stays: &[Stay],
) {
    // Nothing delays most steps.
    if stays.is_empty() {
        if from_ns < until_ns {
            add(path, (step, cpu, mark), [from_ns, until_ns], None);
        }
        return;
    }
    let mut cuts: Vec<i64> = stays.iter().flat_map(|stay| [stay.t0_ns, stay.t1_ns]).collect();
    cuts.retain(|cut| from_ns < *cut && *cut < until_ns);
    cuts.extend([from_ns, until_ns]);
    cuts.sort_unstable();
    cuts.dedup();
    for pair in cuts.windows(2) {
        let (t0_ns, t1_ns) = (pair[0], pair[1]);
        let inside = stays.iter().filter(|stay| stay.t0_ns <= t0_ns && stay.t1_ns >= t1_ns);
        let innermost = inside.max_by_key(|stay| (!stay.around, stay.t0_ns, std::cmp::Reverse(stay.t1_ns)));
        add(path, (step, cpu, mark), [t0_ns, t1_ns], innermost.map(|stay| stay.taken));
    }
}

/// Puts a piece of time of a step into the box of what took it.
fn add(
    path: &mut Path,
    (step, cpu, mark): (Step, u32, Option<Confidence>),
    [t0_ns, t1_ns]: [i64; 2],
    taken: Option<Taken>,
) {
    let ns = t1_ns.abs_diff(t0_ns);
    let known = path.parts.iter().position(|part| part.step == step && part.taken == taken);
    let at = known.unwrap_or(path.parts.len());
    match known {
        Some(at) => path.parts[at].ns += ns,
        None => path.parts.push(Part { step, cpu, taken, mark, ns }),
    }
    match path.pieces.last_mut() {
        Some(last) if last.part == at => last.t1_ns = t1_ns,
        _ => path.pieces.push(Piece { t0_ns, t1_ns, part: at }),
    }
}
