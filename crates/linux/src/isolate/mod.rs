//! What keeps a core still: the catalogue of mechanisms, and the audit that judges a machine by it.

pub mod apply;
mod audit;
mod booted;
pub mod catalogue;
pub mod deployment;
pub mod fixes;
mod heirs;
pub mod keep;
mod lost_workers;
mod narrow;
mod next_boot;
pub(crate) mod notes;
pub mod persist;
pub mod placed;
mod placement;
mod plan;
mod probe;
pub mod program;
mod purpose;
pub mod remember;
mod residents;
pub mod revert;
pub mod setting;
mod smt;
pub mod standing;
mod stray;
mod tenants;
pub mod verify;
pub mod watch;

pub use audit::{Audit, audit, audit_with_line, snapshot, values};
pub use booted::booted;
pub use catalogue::{Catalogue, Count, Mechanism, mechanisms_page};
pub use placement::unknown_group;
pub use plan::{Request, plan};
pub use purpose::Purpose;
