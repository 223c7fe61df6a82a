//! Results of benches, lab matrices and studies as data (`stillcore.result/1`): one row a measured
//! number.
//!
//! A bench fills [`Row`]s and hands them to a [`Sink`]; `cargo xtask` adds commit, profile, program
//! and machine, and stores one [`Stored`] a name under `docs/results`. Both sides render with
//! [`text`], so the terminal shows what the file holds. Depends on serde alone, because `cargo
//! xtask` must compile within seconds.
#![forbid(unsafe_code)]

pub mod apart;
pub mod effect;
pub mod row;
pub mod sink;
pub mod stored;
pub mod text;

pub use row::{Budget, Limit, Of, Peer, Ratio, Row, Verdict};
pub use sink::Sink;
pub use stored::{SCHEMA, Stored};
