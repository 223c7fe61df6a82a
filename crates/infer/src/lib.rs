//! Task models from what was observed: when jobs were released, how long they executed. Pure:
//! numbers in, numbers out; streams of any length in constant memory.
//!
//! Arrival models as in LiME (Brandenburg, Courtaud, Marković, Ye: "LiME: The Linux Real-Time Task
//! Model Extractor", RTAS 2025), whose authors' reference implementation (`rt-model-inference`
//! 1.0.1) the tests compare with value by value. [`regular`] goes beyond it: releases that were
//! left out, and whether a period is there at all.
//!
//! A model describes the observed releases; it bounds later ones only as far as they resemble
//! them.

#![forbid(unsafe_code)]

pub mod bucket;
pub mod cost;
pub mod delta_max;
pub mod delta_min;
mod description;
mod hull;
pub mod periodic;
pub mod regular;
mod window;

pub use window::{Disorder, Window};
