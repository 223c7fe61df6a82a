//! The end of a guest.

use super::FirstProgram;
use rustix::system::{RebootCommand, reboot};

/// Syncs and powers off; does not return. Where powering off fails, a restart ends the guest too
/// (`-no-reboot`).
pub fn power_off(_: FirstProgram) -> ! {
    rustix::fs::sync();
    for command in [RebootCommand::PowerOff, RebootCommand::Restart] {
        // Returns only on failure.
        let _ = reboot(command);
    }
    loop {
        std::thread::park();
    }
}
