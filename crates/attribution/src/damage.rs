//! What of a trace could not be read or understood, in words.

use crate::decode::Decoder;

/// Where a trace is damaged, as far as it was read, one sentence each.
pub fn damage(stream: &ftrace::EventStream) -> impl Iterator<Item = String> {
    stream.damage().map(|at| format!("the trace is damaged: {at}"))
}

/// What could not be understood of a trace, one sentence each; `unknown`: events without a format.
pub fn remarks(decoder: &Decoder, unknown: u64) -> Vec<String> {
    let unreadable = decoder.unreadable().iter();
    let mut remarks: Vec<String> =
        unreadable.map(|what| format!("{what} on this kernel: its class is not observed")).collect();
    if unknown > 0 {
        remarks.push(format!("{unknown} events of the trace have no format and are in no class"));
    }
    if !decoder.has_symbols() {
        remarks.push(
            "the trace has no kernel symbols (kptr_restrict?): functions are shown as addresses, and the tick is counted as a timer"
                .into(),
        );
    }
    remarks
}
