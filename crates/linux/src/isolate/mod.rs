//! What keeps a core still: the catalogue of mechanisms, and the audit that judges a machine by it.

mod audit;
pub mod catalogue;
mod catalogue_check;
mod catalogue_docs;
pub mod journal;
mod probe;
pub mod undo;

pub use audit::{audit, snapshot, values};
pub use catalogue::{Catalogue, Mechanism};
pub use catalogue_docs::mechanisms_page;
