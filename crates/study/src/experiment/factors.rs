//! Factors with a meaning of their own.

/// The factor that kernels are: those of the lab, or the one that a machine runs.
pub const KERNEL: &str = "kernel";

/// The factor that settings are, where results have several.
pub const SETTING: &str = "setting";

/// The version of a kernel, such as `6.1`: in statements, as if it were a factor.
pub(super) const VERSION: &str = "version";

/// What kind of kernel it is, `stock`, `rt` or a vendor: in statements, as if it were a factor.
pub(super) const FLAVOUR: &str = "flavour";

/// The value of a group of a statement, where it is another than the statement's: as if it were a
/// factor.
pub(super) const VALUE: &str = "value";

/// Names of statements, which no factor may have.
pub(super) const OF_STATEMENTS: [&str; 3] = [VERSION, FLAVOUR, VALUE];

/// Of a kernel by the lab's name.
pub(super) fn version(kernel: &str) -> &str {
    kernel.split('-').next().unwrap_or_default()
}

/// Of a kernel by the lab's name; empty for an empty one.
pub(super) fn flavour(kernel: &str) -> &str {
    match kernel.split_once('-') {
        Some((_, flavour)) => flavour,
        None if kernel.is_empty() => "",
        None => "stock",
    }
}
