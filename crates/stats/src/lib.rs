//! Statistics of series and groups of numbers: quantiles with intervals, bootstrap, dependence,
//! tails, change-points, drift, periods, groups compared. Pure: numbers in, numbers out. Nothing
//! here knows a run, a trace or a machine.

#![forbid(unsafe_code)]

mod as_array;
pub mod block_length;
pub mod bounds;
pub mod decide;
pub mod dispersion;
pub mod effective;
pub mod extremal;
pub mod judge;
pub mod linear;
pub mod paired;
pub mod peaks;
pub mod permute;
mod quantile;
pub mod random;
pub mod rates;
pub mod resample;
pub mod runs;
pub mod sampled;
pub mod series;
pub mod slots;
pub mod stretches;
pub mod tail;
pub mod time;
pub mod wasserstein;

pub use quantile::nearest_rank;
