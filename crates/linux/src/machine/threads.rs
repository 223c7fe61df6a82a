//! Processes and kernel threads, as far as isolation cares: names, and where kernel threads may run.
//!
//! Files: proc(5) (`/proc/pid/stat`, `/proc/pid/status`); flags: Linux `include/linux/sched.h`. One pass over `/proc`, because a
//! machine may have thousands of processes and an audit has 100 ms.

use super::Root;
use model::Cpus;

/// `PF_KTHREAD`: a kernel thread.
const KTHREAD: u64 = 0x0020_0000;
/// `PF_NO_SETAFFINITY`: sched_setaffinity(2) refuses this thread.
const NO_SETAFFINITY: u64 = 0x0400_0000;

/// One kernel thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelThread {
    /// Its process number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Where it may run.
    pub allowed: Cpus,
    /// Whether its affinity can be set from outside.
    pub movable: bool,
}

/// One process of user space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
}

/// All that runs, by process number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// Kernel threads.
    pub kernel: Vec<KernelThread>,
    /// Processes of user space.
    pub user: Vec<Process>,
}

/// Reads what runs. A process that ends meanwhile is left out.
pub fn processes(root: &Root) -> Processes {
    let mut found = Processes::default();
    for pid in root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Some((name, flags)) = root.maybe(&format!("proc/{pid}/stat")).and_then(|stat| parse_stat(&stat))
        else {
            continue;
        };
        if flags & KTHREAD == 0 {
            found.user.push(Process { pid, name });
        } else if let Some(allowed) = allowed(root, pid) {
            found.kernel.push(KernelThread { pid, name, allowed, movable: flags & NO_SETAFFINITY == 0 });
        }
    }
    found
}

/// The name stands in parentheses and may itself hold any; the flags are the seventh field after it.
fn parse_stat(stat: &str) -> Option<(String, u64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    Some((name, tail.split_whitespace().nth(6)?.parse().ok()?))
}

fn allowed(root: &Root, pid: u32) -> Option<Cpus> {
    let status = root.maybe(&format!("proc/{pid}/status"))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Cpus::parse_list(list).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_parentheses_and_blanks() {
        let stat = "7 (a) b (c)) S 2 0 0 0 -1 2129984 0 0";
        assert_eq!(parse_stat(stat), Some(("a) b (c)".to_owned(), 2_129_984)));
        assert_eq!(parse_stat("7 (a S 2"), None);
        assert_eq!(parse_stat("7 (a) S 2 0"), None);
    }

    #[test]
    fn kernel_threads_are_told_by_their_flag() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.path().join("proc").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("1/stat", "1 (init) S 0 1 1 0 -1 4194560 0");
        write("9/stat", &format!("9 (kswapd0) S 2 0 0 0 -1 {KTHREAD} 0"));
        write("9/status", "Name:\tkswapd0\nCpus_allowed_list:\t0-3\n");
        write("10/stat", &format!("10 (cpuhp/1) S 2 0 0 0 -1 {} 0", KTHREAD | NO_SETAFFINITY));
        write("10/status", "Cpus_allowed_list:\t1\n");
        write("11/comm", "gone");
        let found = processes(&Root::open(dir.path()).unwrap());
        assert_eq!(found.user, [Process { pid: 1, name: "init".into() }]);
        let kernel: Vec<_> =
            found.kernel.iter().map(|t| (t.name.as_str(), t.allowed.to_string(), t.movable)).collect();
        assert_eq!(kernel, [("kswapd0", "0-3".to_owned(), true), ("cpuhp/1", "1".to_owned(), false)]);
    }
}
