//! Exposure: how many interference events one successful operation of a disturbance costs a
//! measured CPU, by class.
//!
//! Rates and latencies of an emulated, shared or slow machine say little of another; events per
//! operation repeat, because what the kernel does for one operation does not depend on how fast the
//! operations come. The idea is from table IV of the RTSS 2024 paper on interference of isolated
//! cores, turned around: not "how many events in a second of that load", but "how many for each
//! thing done".
//!
//! A *cell* is one stressor alone: idle before, disturbed, idle after, as a run directory.
//! [`facts()`] counts what its trace holds while operations ran (`facts`, `changed`);
//! [`conclude()`] makes coefficients of cells and judges the study by its controls (`coefficient`,
//! `conclude`, `ground`, `idle`, `unsteady`). Facts are what a study stores; conclusions can be
//! drawn again. `matrix` compares studies of several kernels, and `graft` puts rows of one such
//! comparison into another.

pub mod changed;
mod coefficient;
mod conclude;
mod facts;
mod graft;
mod ground;
mod idle;
mod matrix;
mod row;
mod unsteady;

pub use crate::exposure::row::{ClassCoefficient, Row, RowState};
pub use changed::changed;
pub use coefficient::{Coefficient, coefficient};
pub use conclude::{Control, Expectation, Exposure, conclude};
pub use facts::{CellFacts, Count, Ground, SourceCount, Stretch, facts};
pub use graft::{NoRow, graft};
pub use matrix::{Change, Column, Direction, changes};
