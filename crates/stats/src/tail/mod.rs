//! The tail of a series: laws of extremes fitted to it, thresholds, and checks of what the fits
//! assume.

pub mod checks;
pub mod goodness;
pub mod law;
pub mod lmoments;
mod simplex;
pub mod threshold;
