//! Kernel code that could not be preempted and delays a wake-up.

use super::*;
use crate::attribute::cause::{Source, Who};

const RETURNED: Way = Way { began: None, site: None, frames: None };
const WRITE: Way = Way { began: Some(40), site: Some(41), frames: Some(42) };

/// The box of kernel code: its length, label, task and functions.
fn kernel_code(path: &Path) -> Option<(u64, LabelId, Source)> {
    let of = |part: &Part| part.taken.filter(|taken| taken.taker == Taker::Blocking(Blocking::KernelCode));
    path.parts.iter().find_map(|part| {
        let taken = of(part)?;
        Some((part.ns, taken.label, taken.causes.iter().next()?.source))
    })
}

#[test]
fn a_task_in_kernel_code_that_is_not_preempted_holds_up_the_switch() {
    let low = task(5, fair());
    let woken = [
        between(10, idle(), false, victim()),
        between(50, victim(), false, low),
        expiry(200, 2),
        wake(210, 2, false),
        wake(220, 2, true),
    ];
    let source = |frames| Source { frames, ..Source::new(2, Who::Task(5)) };
    let path_of = |after: &[KernelEvent], spans: &[Span]| {
        let events: Vec<_> = woken.iter().chain(after).copied().collect();
        paths_of(&[(100, 900)], &events, spans).remove(0)
    };
    // The interrupt found it in a system call, which ends before the switch; a softirq inside has
    // its own box.
    let after = [
        stack(221, 5, false, Some(WRITE)),
        between(900, low, true, victim()),
        stack(901, 5, true, Some(RETURNED)),
    ];
    let path = path_of(&after, &[span(EventClass::Softirq, 150, 400)]);
    assert_eq!(kernel_code(&path), Some((500, 40, source(Some(42)))));
    assert!(boxes(&path).contains(&(Step::Switch, 2, Some(EventClass::Softirq), 180)), "{path:?}");
    let known = |path: &Path| {
        let taken = path.parts.iter().filter_map(|part| part.taken);
        let cause = |taken: Taken| taken.causes.iter().next();
        taken
            .filter(|taken| taken.taker == Taker::Blocking(Blocking::KernelCode))
            .find_map(cause)
            .unwrap()
            .confidence
    };
    // If both ends name the call, the task was in it all the time.
    let whole = path_of(&[after[0], after[1], stack(901, 5, true, Some(WRITE))], &[]);
    assert_eq!([known(&path), known(&whole)], [Confidence::Order, Confidence::Exact]);
    // Nothing shows its name.
    let path = path_of(&[after[1], after[2]], &[]);
    assert_eq!(kernel_code(&path), Some((680, KNOWN.system_call, source(None))));
    // It was in user space, or preemptible: that did not hold the CPU.
    let path = path_of(&[after[0], after[1], stack(901, 5, true, None)], &[]);
    assert_eq!(kernel_code(&path), None);
    // It has been in user space since: it is in another system call.
    let other = Way { began: Some(43), ..WRITE };
    let path = path_of(&[after[0], after[1], stack(901, 5, true, Some(other))], &[]);
    assert_eq!(kernel_code(&path), None);
    // The interrupt that brought the wake-up found it in user space, and it kept running: its
    // later kernel code did not hold the CPU.
    let user = What::Stack {
        at_switch: false,
        code: None,
        in_user_space: true,
        high_resolution: true,
        act: Way::default(),
    };
    let found = KernelEvent { pid: 5, ..event(221, 2, user) };
    let path = path_of(&[found, after[1], stack(901, 5, true, Some(WRITE))], &[]);
    assert_eq!(kernel_code(&path), None);
    assert!(boxes(&path).contains(&(Step::Switch, 2, None, 680)), "{path:?}");
    // It had inherited a priority with precedence, and returned it in that system call.
    let inherited = ran(task(5, fifo(FIFO + 1)), 50, 890);
    let path = path_of(&[after[1], stack(901, 5, true, Some(WRITE))], &[inherited]);
    assert_eq!(kernel_code(&path), Some((10, 40, source(Some(42)))));
    assert!(boxes(&path).contains(&(Step::Switch, 2, Some(EventClass::Switch), 670)), "{path:?}");
    // The stack of another task says nothing about it.
    let path = path_of(&[after[1], stack(901, 6, true, Some(WRITE))], &[]);
    assert_eq!(kernel_code(&path), None);
    // A task of unknown priority may have precedence.
    let unknown = task(5, Prio::UNKNOWN);
    let path = path_of(&[between(900, unknown, true, victim()), after[2]], &[]);
    assert_eq!(kernel_code(&path), None);
    // A task of higher priority has precedence anyway.
    let high = task(7, fifo(FIFO + 1));
    let path = path_of(
        &[
            between(600, low, true, high),
            between(900, high, false, victim()),
            stack(901, 7, true, Some(WRITE)),
        ],
        &[ran(high, 600, 900)],
    );
    assert_eq!(kernel_code(&path), None);
    assert!(boxes(&path).contains(&(Step::Switch, 2, Some(EventClass::Switch), 300)), "{path:?}");
    // It held the CPU until that one came, which has precedence.
    let path = path_of(
        &[
            between(600, low, true, high),
            stack(601, 5, true, Some(WRITE)),
            between(900, high, false, victim()),
        ],
        &[ran(high, 600, 900)],
    );
    assert_eq!(kernel_code(&path), Some((380, 40, source(Some(42)))));
    assert!(boxes(&path).contains(&(Step::Switch, 2, Some(EventClass::Switch), 300)), "{path:?}");
    // It was out of budget: no task that ran meanwhile delayed it, in any code.
    let path = path_of(
        &[
            between(400, low, true, idle()),
            between(600, idle(), false, low),
            between(900, low, true, victim()),
            stack(901, 5, true, Some(WRITE)),
        ],
        &[],
    );
    assert_eq!(kernel_code(&path), None);
    assert!(boxes(&path).contains(&(Step::Switch, 2, Some(EventClass::Throttle), 680)), "{path:?}");
}
