//! Processes and kernel threads, as far as isolation cares: names, and where kernel threads may
//! run.
//!
//! Files: proc(5) (`/proc/pid/stat`, `/proc/pid/status`); flags: Linux `include/linux/sched.h`. One
//! pass over `/proc`, because a machine may have thousands of processes and an audit has 100 ms.

use super::Root;
use super::policy::Policy;
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
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Where it may run.
    pub allowed: Cpus,
    /// Whether its affinity can be set from outside.
    pub movable: bool,
    /// Its policy.
    pub policy: Policy,
    /// Its real-time priority, 0 where it has none.
    pub priority: u32,
    /// The CPU it ran on last; a captured `stat` may end before.
    pub last: Option<u32>,
}

/// One thread of user space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserThread {
    /// Its thread number.
    pub tid: u32,
    /// Its process's number.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Where it may run.
    pub allowed: Cpus,
    /// The CPU it ran on last.
    pub last: u32,
    /// Its policy.
    pub policy: Policy,
    /// Its real-time priority, 0 where it has none.
    pub priority: u32,
}

/// One process of user space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// Whether it is stopped (SIGSTOP), and does nothing until it is resumed.
    pub stopped: bool,
}

/// All that runs, by process number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// Kernel threads.
    pub kernel: Vec<KernelThread>,
    /// Processes of user space.
    pub user: Vec<Process>,
}

/// Whose a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lineage {
    /// Its number.
    pub pid: i32,
    /// Its parent's, 0 for the first process.
    pub parent: i32,
    /// Its process group's.
    pub group: i32,
    /// Its session's.
    pub session: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// Reads whose a process is; `None` where it has ended.
pub fn lineage(root: &Root, pid: u32) -> Option<Lineage> {
    let Stat { parent, group, session, start, .. } = stat(root, &pid.to_string())?;
    Some(Lineage { pid: i32::try_from(pid).ok()?, parent, group, session, start: start? })
}

/// The state of a task as proc(5) abbreviates it, such as `T` where it is stopped; `None` where
/// there is no such task.
pub fn task_state(root: &Root, pid: u32) -> Option<char> {
    Some(stat(root, &pid.to_string())?.state)
}

/// Reads what runs. A process that ends meanwhile is left out.
pub fn processes(root: &Root) -> Processes {
    let mut found = Processes::default();
    for pid in root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Some(stat) = stat(root, &pid.to_string()) else { continue };
        if stat.flags & KTHREAD == 0 {
            found.user.push(user(pid, stat));
        } else {
            found.kernel.extend(kernel(root, pid, stat));
        }
    }
    found
}

fn user(pid: u32, stat: Stat) -> Process {
    let Stat { name, state, start, .. } = stat;
    Process { pid, start: start.unwrap_or(0), name, stopped: state == 'T' }
}

/// One process of user space; `None` where it has ended.
pub fn process(root: &Root, pid: u32) -> Option<Process> {
    Some(user(pid, stat(root, &pid.to_string())?))
}

fn kernel(root: &Root, pid: u32, stat: Stat) -> Option<KernelThread> {
    let Stat { name, flags, start, policy, priority, last, .. } = stat;
    let allowed = allowed(root, &pid.to_string())?;
    let (start, movable) = (start.unwrap_or(0), flags & NO_SETAFFINITY == 0);
    Some(KernelThread { pid, name, start, allowed, movable, policy, priority, last })
}

/// One kernel thread; `None` where there is no task of this number, or it is one of user space.
pub fn kernel_thread(root: &Root, pid: u32) -> Option<KernelThread> {
    let stat = stat(root, &pid.to_string()).filter(|stat| stat.flags & KTHREAD != 0)?;
    kernel(root, pid, stat)
}

/// Every thread of these processes. One that ends meanwhile is left out.
pub fn user_threads(root: &Root, processes: &[Process]) -> Vec<UserThread> {
    let of = |process: &Process| {
        let tasks = format!("proc/{}/task", process.pid);
        let tids = root.names(&tasks).into_iter().filter_map(|name| name.parse::<u32>().ok());
        tids.filter_map(|tid| user_thread(root, process.pid, tid)).collect::<Vec<_>>()
    };
    processes.iter().flat_map(of).collect()
}

/// A thread of user space by its own number; `None` where it has ended. A capture does not name
/// its process, and has no threads but the first under their own number.
pub fn thread(root: &Root, tid: u32) -> Option<UserThread> {
    let pid = match status(root, &tid.to_string(), "Tgid") {
        Some(pid) => pid.parse().ok()?,
        None if root.is_live() => return None,
        None => root.glob(&format!("proc/*/task/{tid}/stat")).first()?.split('/').nth(1)?.parse().ok()?,
    };
    user_thread(root, pid, tid)
}

/// One thread; `None` where it has ended.
pub fn user_thread(root: &Root, pid: u32, tid: u32) -> Option<UserThread> {
    let own = format!("{pid}/task/{tid}");
    let Stat { name, start, last, policy, priority, .. } = stat(root, &own)?;
    let (start, last) = (start.unwrap_or(0), last.unwrap_or(0));
    Some(UserThread { tid, pid, name, start, allowed: allowed(root, &own)?, last, policy, priority })
}

/// What is read of a task's `stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    state: char,
    parent: i32,
    group: i32,
    session: i32,
    flags: u64,
    start: Option<u64>,
    last: Option<u32>,
    policy: Policy,
    priority: u32,
}

/// `task` is `PID` or `PID/task/TID`.
fn stat(root: &Root, task: &str) -> Option<Stat> {
    parse_stat(&root.maybe(&format!("proc/{task}/stat"))?)
}

/// The name stands in parentheses and may itself hold any. Counted after it, parent, group and
/// session are the 2nd to 4th field, the flags the 7th, the start the 20th, the last CPU the 37th,
/// priority and policy the 38th and 39th. A capture may end after the flags.
fn parse_stat(stat: &str) -> Option<Stat> {
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<_> = tail.split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let id = |at: usize| fields.get(at).and_then(|field| field.parse::<i32>().ok());
    Some(Stat {
        name,
        state: fields.first()?.chars().next()?,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        flags: field(6)?,
        start: field(19),
        last: field(36).map(|cpu| cpu as u32),
        policy: Policy::of_number(field(38).unwrap_or(0)),
        priority: field(37).unwrap_or(0) as u32,
    })
}

/// A line of a task's `status`, such as `PPid`; `task` is `PID` or `PID/task/TID`.
pub fn status(root: &Root, task: &str, name: &str) -> Option<String> {
    let status = root.maybe(&format!("proc/{task}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Where a task may run, as the kernel spells it.
pub const ALLOWED: &str = "Cpus_allowed_list";

fn allowed(root: &Root, task: &str) -> Option<Cpus> {
    Cpus::parse_list(&status(root, task, ALLOWED)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_parentheses_and_blanks() {
        let stat = "7 (a) b (c)) S 2 0 0 0 -1 2129984 0 0";
        let expected = Stat {
            name: "a) b (c)".to_owned(),
            state: 'S',
            parent: 2,
            group: 0,
            session: 0,
            flags: 2_129_984,
            start: None,
            last: None,
            policy: Policy::Other,
            priority: 0,
        };
        assert_eq!(parse_stat(stat), Some(expected));
        let zeros = "0 ".repeat(12);
        let whole = parse_stat(&format!("7 (x) S 2 0 0 0 -1 64 {zeros}815 {}3 0", "0 ".repeat(16))).unwrap();
        assert_eq!((whole.start, whole.last), (Some(815), Some(3)));
        let real = format!("7 (x) S 2 0 0 0 -1 64 {zeros}815 {}3 50 1 0", "0 ".repeat(16));
        let real = parse_stat(&real).unwrap();
        assert_eq!((real.last, real.policy, real.priority), (Some(3), Policy::Fifo, 50));
        assert_eq!(parse_stat("7 (a S 2"), None);
        assert_eq!(parse_stat("7 (a) S 2 0"), None);
    }

    #[test]
    fn kernel_threads_are_recognised_by_their_flag() {
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
        assert_eq!(found.user, [Process { pid: 1, start: 0, name: "init".into(), stopped: false }]);
        let kernel: Vec<_> =
            found.kernel.iter().map(|t| (t.name.as_str(), t.allowed.to_string(), t.movable)).collect();
        assert_eq!(kernel, [("kswapd0", "0-3".to_owned(), true), ("cpuhp/1", "1".to_owned(), false)]);
    }
}
