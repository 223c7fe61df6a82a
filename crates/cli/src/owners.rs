//! The list of owners: every kind of change that a journal may hold, with its version and its
//! reader, as each crate brings them.
//!
//! A new kind is a type that implements [`Change`](journal::Change) beside what makes the change,
//! and a row of its crate's `OWNERS`. A field that comes, goes or means something else is a new
//! version: the old one keeps its row as long as its journals may still be about.

use journal::Owner;
use std::sync::LazyLock;

/// Every owner, one row a kind and version.
pub(crate) fn all() -> &'static [Owner] {
    static ALL: LazyLock<Vec<Owner>> = LazyLock::new(|| {
        [
            journal::session::changes::OWNERS,
            record::changes::OWNERS,
            disturb::changes::OWNERS,
            isolate::owners(),
        ]
        .concat()
    });
    &ALL
}
