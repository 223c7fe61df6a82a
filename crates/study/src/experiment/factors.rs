//! Factors with a meaning of their own.

/// The factor that kernels are: those of the lab, or the one that a machine runs.
pub const KERNEL: &str = "kernel";

/// The factor that settings are, where results have several.
pub const SETTING: &str = "setting";
