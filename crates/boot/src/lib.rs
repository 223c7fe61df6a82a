//! The kernel command line of the next boot: computed for one kernel and one line, and written
//! where this machine's boot loader keeps it, with a way back.
//!
//! `effects` reads a line as a kernel does, `merge` puts the wanted words into it; both are pure.
//! `loader` knows where boot loaders keep the line and which kernels they start, `once` makes an
//! entry for one boot, `record` knows what was written and what stood there before.

#![forbid(unsafe_code)]

mod at_hand;
mod draft;
mod edit;
mod effects;
mod housekeeping;
mod installed;
mod limit;
mod line;
pub mod list;
mod loader;
mod merge;
mod once;
mod record;
pub mod store;
mod target;
mod wish;
mod write;

pub use crate::draft::{NewFile, Writing};
pub use at_hand::{AtHand, at_hand};
pub use edit::Edit;
pub use effects::offloaded;
pub use effects::{Dropped, Effects, effects};
pub use installed::{Installed, installed, line_with, same_line};
pub use merge::{Lines, merge};
pub use once::writing_once;
pub use target::{Kernel, Reported};
pub use wish::Wanted;
pub use write::{Undone, undo, undo_once, write, writing};
