//! A buffer of a trace file: which bytes belong to which CPU.

use crate::compress::Codec;

/// One ring buffer in a file: the top one, whose name is empty, or an instance.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Name of the instance.
    pub name: String,
    /// Clock of its timestamps, as "mono".
    pub clock: Option<String>,
    /// Bytes of a sub-buffer.
    pub page_size: u32,
    /// Where each CPU's data is, empty ones included.
    pub cpus: Vec<CpuData>,
    pub(crate) codec: Codec,
    pub(crate) compressed: bool,
}

/// Where one CPU's data is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuData {
    /// The CPU.
    pub cpu: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes in the file (compressed ones, where the file is compressed).
    pub size: u64,
}
