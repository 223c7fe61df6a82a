//! Other programs that set what isolation sets: named when holding begins and when one is not
//! fought any longer. Whether they change anything is seen, not supposed.

use machine::{Root, processes};

/// What they are called.
const KNOWN: [&str; 8] =
    ["tuned", "irqbalance", "tuned-ppd", "power-profiles-", "thermald", "numad", "cpufreqd", "ksmtuned"];

/// Those that run, as `NAME (process PID)`.
pub(super) fn running(root: &Root) -> Vec<String> {
    let own = std::process::id();
    let all = processes(root).user;
    let known = all.iter().filter(|process| {
        let another_hold = process.name == "stillcore" && is_hold(root, process.pid);
        process.pid != own && (KNOWN.contains(&process.name.as_str()) || another_hold)
    });
    known.map(|process| format!("{} (process {})", process.name, process.pid)).collect()
}

/// Whether a stillcore holds an isolation, with another state directory.
fn is_hold(root: &Root, pid: u32) -> bool {
    let line = root.maybe(&format!("proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split('\0').collect();
    words.windows(2).any(|two| two == ["isolate", "hold"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn known_programs_and_other_holds_are_found() {
        let machine = tempfile::tempdir().unwrap();
        let holds = "stillcore\0isolate\0hold\0--json\0";
        for (pid, name, line) in
            [(7, "tuned", ""), (8, "sh", ""), (9, "stillcore", holds), (10, "stillcore", "stillcore\0top\0")]
        {
            let process = machine.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&process).unwrap();
            let stat = format!("{pid} ({name}) S 1 7 7 0 -1 64 {}5 0", "0 ".repeat(12));
            fs::write(process.join("stat"), stat).unwrap();
            fs::write(process.join("cmdline"), line).unwrap();
        }
        let root = Root::open(machine.path()).unwrap();
        assert_eq!(running(&root), ["tuned (process 7)", "stillcore (process 9)"]);
    }
}
