//! Signals by name (Linux include/uapi/asm-generic/signal.h; x86 and arm64 have the same numbers).

/// From 1 on.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The first real-time signal of the kernel; the C libraries keep the first two or three for
/// themselves, and so call other ones the first.
const REAL_TIME: i32 = 32;

/// As programs name it: `SIGTERM`.
pub(super) fn name(signal: i32) -> String {
    let place = usize::try_from(signal).ok().and_then(|number| number.checked_sub(1));
    let known = place.and_then(|place| NAMES.get(place));
    match known {
        Some(name) => format!("SIG{name}"),
        None if signal >= REAL_TIME => format!("real-time signal {signal}"),
        None => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn signals_have_the_names_that_programs_use() {
        let names = [1, 9, 15, 17, 31, 34, 0].map(name);
        assert_eq!(
            names,
            ["SIGHUP", "SIGKILL", "SIGTERM", "SIGCHLD", "SIGSYS", "real-time signal 34", "signal 0"]
        );
    }
}
