//! Parameters of the kernel command line, as a machine has booted with them.

use crate::probe::Scene;
use machine::{parameters, same_name};
use model::Machine;

pub(crate) fn value<'a>(scene: &'a Scene, name: &str) -> Option<&'a str> {
    parameter(&scene.machine.cmdline, name)
}

/// Whether `nohz=` switches dynticks off. Linux kernel/time/tick-sched.c, `setup_tick_nohz`.
pub(crate) fn without_dynticks(machine: &Machine) -> bool {
    parameter(&machine.cmdline, "nohz").and_then(switch) == Some(false)
}

/// The last value of a parameter; empty for one without.
pub(super) fn parameter<'a>(cmdline: &'a str, name: &str) -> Option<&'a str> {
    parameters(cmdline).filter(|(key, _)| same_name(key, name)).last().map(|(_, value)| value)
}

/// On or off (Linux lib/kstrtox.c, `kstrtobool`: the first letters decide; t and f since 6.3).
pub(super) fn switch(text: &str) -> Option<bool> {
    let mut letters = text.chars().map(|letter| letter.to_ascii_lowercase());
    match letters.next()? {
        'y' | 't' | '1' => Some(true),
        'n' | 'f' | '0' => Some(false),
        'o' => match letters.next()? {
            'n' => Some(true),
            'f' => Some(false),
            _ => None,
        },
        _ => None,
    }
}
