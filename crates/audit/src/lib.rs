//! What keeps CPUs still: the catalogue of mechanisms, the audit that judges a machine by it, and
//! the plan that would change the machine. Facts in, findings and plans out; nothing is changed,
//! and a captured machine is as good as a live one.

#![forbid(unsafe_code)]

mod answer;
mod booted;
pub mod catalogue;
pub mod deployment;
pub mod desired;
pub mod fixes;
mod in_force;
mod judge;
pub mod keep;
mod lost_workers;
mod narrow;
mod next_boot;
pub mod placed;
pub mod placement;
mod plan;
mod probe;
pub mod profile;
pub mod program;
pub mod purpose;
mod residents;
mod smt;
pub mod stray;
mod tenants;

pub use answer::{Answer, SCHEMA, answer, answer_for};
pub use booted::booted;
pub use catalogue::{Catalogue, Count, Mechanism, mechanisms_page};
pub use desired::{Desired, desired};
pub use in_force::{Means, Setting};
pub use judge::{Audit, Requested, audit, audit_requested, audit_with_line, snapshot, values};
pub use plan::{Request, plan};
pub use profile::Profile;
pub use purpose::Purpose;
