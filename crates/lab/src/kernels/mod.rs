//! From the name of a kernel to its image and modules.
//!
//! - `names`: what a name like `6.1-rt` means in Debian, and which packages answer to it;
//! - `store`: unpacked kernels in the cache, each with a manifest of SHA-256 sums;
//! - `fetch`: name → package → store, falling back down the list where a version is gone from the
//!   mirrors;
//! - `given`: a kernel image given by path;
//! - `config`: what it was built with.

mod config;
mod fetch;
mod given;
mod names;
mod store;

pub use fetch::{NoteSink, fetch};
pub use given::given;
pub use names::{KernelName, candidates};
pub use store::{Kernel, Manifest};
