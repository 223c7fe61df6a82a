//! Words that several texts of a model share.

use analysis::task_model::verdict::Bound;
use report::format::ns;

/// A time.
pub(super) fn time(value: u64) -> String {
    ns(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Whether a deadline is met.
pub(super) fn in_time(one: &Bound) -> &'static str {
    match one.in_time() {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    }
}
