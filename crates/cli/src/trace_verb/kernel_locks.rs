//! `trace watch`: who owns the kernel's locks that the program's threads wait for.

use model::events::EventSpec;
use model::kernel_locks;

/// The event that shows it; `None` where the kernel does not say where its locks have their owner.
/// Without event probes the recorder leaves it out.
pub(super) fn owners() -> Option<EventSpec> {
    let offsets = machine::btf::lock_offsets(&machine::Root::live())?;
    kernel_locks::probe(&offsets)
}
