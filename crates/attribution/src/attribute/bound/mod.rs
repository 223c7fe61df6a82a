//! How late a wake-up could have come, put together from what one recording shows: the longest of
//! each step, and the most interference that met in any stretch of that length.
//!
//! Every latency is cut in two. *Interference* is the time in which interrupts, softirqs, and tasks
//! with precedence ran on the thread's CPU ([`demand`]). The rest belongs to the steps of the path
//! ([`super::path`]): what the timer, the hardware, the scheduler, and code that cannot be
//! preempted took. Let `C` be the sum over the steps of a path of the longest rest of each, and
//! `D(x)` the most interference in any stretch of length `x` on that CPU. The bound is the smallest
//! `R` with `R = C + D(R)`, as in the analysis of response times.
//!
//! No latency of the same recording is longer: had a wake-up not ended `R` after its release, less
//! than `C` of that time would be steps and at most `D(R)` interference. So `R` holds for what was
//! recorded; it speaks of another run only as far as that one has no longer pieces. Stretches with
//! interrupts or preemption off count wherever they were, with a wake-up waiting or not, on kernels
//! that record them (`preemptirq` events); elsewhere only as far as they delayed a wake-up.
//!
//! The pieces are those of de Oliveira, Casini, de Oliveira, Cucinotta, "Demystifying the Real-Time
//! Linux Scheduling Latency" (ECRTS 2020, §5), from the stock kernel's events.

mod demand;
mod gather;
pub mod shape;
#[cfg(test)]
mod tests;

pub use gather::Gathered;
pub(super) use gather::Gathering;
