//! CPUs for which a mechanism is in force.

use model::Cpus;

/// A set of CPUs in force.
pub(crate) enum InForce {
    Set(Cpus),
    /// The kernel has no such thing.
    Absent,
    /// It could not be read: the reason.
    Unknown(String),
}
