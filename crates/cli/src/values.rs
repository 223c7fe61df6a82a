//! Values of options that several verbs take.

use clap::ValueEnum;

/// Recording of kernel events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceMode {
    /// Record if possible.
    Auto,
    /// Record; fail if not possible.
    On,
    /// Do not record.
    Off,
}
