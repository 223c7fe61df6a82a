//! How late a wake-up could have come, in words.

use attribution::attribute::bound::shape::WakeBound;
use attribution::attribute::delay::Blocking;

use crate::format;
use crate::words::step_name;

/// The bound beside what was seen, or why there is none.
pub fn sentence(bound: &WakeBound) -> String {
    let Some(ns) = bound.ns else {
        let why = bound.withheld.as_deref().unwrap_or("not known");
        return format!("could have come later than was seen; by how much is not known: {why}");
    };
    format!(
        "could have been {} late; {} was seen ({:.1} times as long)",
        format::ns(ns as i64),
        format::ns(bound.seen_ns as i64),
        ns as f64 / bound.seen_ns.max(1) as f64
    )
}

/// What it is put together from, the longest first: a time in ns and what it is.
pub fn pieces(bound: &WakeBound) -> Vec<(u64, String)> {
    if bound.ns.is_none() {
        return Vec::new();
    }
    let mut pieces: Vec<(u64, String)> =
        bound.steps.iter().map(|one| (one.ns, step_name(one.step).to_owned())).collect();
    pieces.extend(bound.stretches.iter().map(|one| {
        let by = one.label.as_ref().map(|label| format!(", by {label}")).unwrap_or_default();
        (one.ns, format!("{}{by}", one.blocking.words()))
    }));
    let most = format!("the most interference in {}", format::ns(bound.within_ns as i64));
    pieces.push((bound.interference_ns, most));
    pieces.retain(|(ns, _)| *ns > 0);
    pieces.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    pieces
}

/// What it does not cover; `None` where nothing is left out.
pub fn limits(bound: &WakeBound) -> Option<String> {
    let names: Vec<&str> = bound.not_recorded.iter().copied().map(Blocking::words).collect();
    let shown = !names.is_empty() && bound.ns.is_some();
    shown.then(|| format!("not recorded: {} while no wake-up waited", names.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::attribute::bound::shape::{BoundStep, BoundStretch};
    use attribution::attribute::step::Step;

    fn bound() -> WakeBound {
        WakeBound {
            ns: Some(84_000),
            withheld: None,
            seen_ns: 31_000,
            seen_t_ns: 5,
            steps: vec![BoundStep { step: Step::TimerLate, ns: 12_000, t_ns: 5 }],
            stretches: vec![BoundStretch {
                blocking: Blocking::InterruptsOff,
                ns: 32_000,
                t_ns: 1,
                label: Some("flush_tlb_func".to_owned()),
            }],
            interference_ns: 40_000,
            within_ns: 98_304,
            not_recorded: vec![Blocking::PreemptionOff],
        }
    }

    #[test]
    fn a_bound_is_said_beside_what_was_seen_with_its_pieces_and_limits() {
        assert_eq!(
            sentence(&bound()),
            "could have been 84.00 us late; 31.00 us was seen (2.7 times as long)"
        );
        let pieces: Vec<_> = pieces(&bound()).into_iter().map(|(ns, what)| format!("{ns} {what}")).collect();
        assert_eq!(
            pieces,
            [
                "40000 the most interference in 98.30 us",
                "32000 interrupts off, by flush_tlb_func",
                "12000 until the timer expired"
            ]
        );
        assert_eq!(limits(&bound()).as_deref(), Some("not recorded: preemption off while no wake-up waited"));
    }

    #[test]
    fn one_that_is_withheld_says_why_and_has_no_pieces() {
        let mut none = bound();
        none.withhold("events of the CPU are missing");
        assert!(sentence(&none).ends_with("is not known: events of the CPU are missing"));
        assert_eq!((pieces(&none), limits(&none)), (Vec::new(), None));
    }
}
