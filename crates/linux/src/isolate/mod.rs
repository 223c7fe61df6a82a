//! What keeps a core still: the catalogue of mechanisms, and the audit that judges a machine by it.

pub mod apply;
mod audit;
mod booted;
pub mod catalogue;
pub mod change;
pub mod deployment;
mod enter;
pub mod fixes;
mod heirs;
pub mod journal;
mod next_boot;
pub mod persist;
pub mod placed;
mod placement;
mod plan;
mod probe;
pub mod program;
mod remember;
pub mod revert;
mod smt;
pub mod standing;
mod stray;
pub mod undo;
pub mod verify;
pub mod watch;

pub use audit::{Audit, audit, audit_with_line, snapshot, values};
pub use booted::booted;
pub use catalogue::{Catalogue, Mechanism, mechanisms_page};
pub use enter::enter;
pub(crate) use enter::place;
pub use placement::unknown_group;
pub use plan::{Request, plan};
