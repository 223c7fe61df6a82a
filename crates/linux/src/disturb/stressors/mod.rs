//! The stressors, one file each: what it does, how often, and how one can tell from outside that it did.

mod calc_pi;
mod fault;
mod llc_thrash;
mod schedstats;
mod sock;
mod timer;
mod tlb_span;
mod u_fork;
mod u_thread;

use super::StressorSpec;

/// All of them, in the order in which reports list them.
pub(super) const ALL: &[StressorSpec] = &[
    u_fork::SPEC,
    u_thread::SPEC,
    timer::SPEC,
    fault::SPEC,
    tlb_span::SPEC,
    sock::SPEC,
    schedstats::SPEC,
    llc_thrash::SPEC,
    calc_pi::SPEC,
];
