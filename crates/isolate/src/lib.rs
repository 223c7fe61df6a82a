//! Isolation applied as planned, verified, held, made to last over boots, and undone. What stands
//! is in a journal that outlives the call (`standing`).

#![forbid(unsafe_code)]

pub mod apply;
pub mod changers;
pub mod head;
pub mod heal;
mod heirs;
pub mod hold_unit;
pub mod monitor_unit;
mod notes;
pub mod pace;
pub mod persist;
pub mod placed;
pub mod resume;
pub mod revert;
pub mod setting;
pub mod standing;
pub mod undone;
mod unit;
mod unknown;
pub mod verify;
pub mod watch;
mod watched;

pub use unknown::unknown_group;

use journal::Owner;
use std::sync::LazyLock;

/// How each kind of line in a journal of standing isolation is read.
pub fn owners() -> &'static [Owner] {
    static ALL: LazyLock<Vec<Owner>> =
        LazyLock::new(|| [notes::OWNERS, journal::affinities::OWNERS, setting::OWNERS].concat());
    &ALL
}
