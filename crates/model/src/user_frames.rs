//! Where programs were in user space when they did what a trace shows: the names of its addresses.
//!
//! Addresses mean something only in the process that had them, and as long as that lives. So the
//! recorder names those that the trace has, and keeps the names beside it.

use serde::{Deserialize, Serialize};

/// In the run directory.
pub const FILE: &str = "user-frames.json";
/// Of that file.
pub const SCHEMA: &str = "stillcore.user-frames/1";

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserFrames {
    /// [`SCHEMA`].
    pub schema: String,
    /// By process and address.
    pub frames: Vec<UserFrame>,
}

/// A place in a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UserFrame {
    /// The process.
    pub tgid: u32,
    /// Where its instruction was in the memory of the process.
    pub address: u64,
    /// The function and the file it is of, as `worker (server)`; a file and a place in it, as
    /// `libc.so.6+0x11e0f5`, where the file names no function.
    pub function: String,
}
