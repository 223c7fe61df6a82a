//! The threads of a program and what their descriptors stand for, from `/proc` (proc(5)).
//!
//! Processes come and go while they are looked at: what is gone is left out, never an error.

use model::Cpus;
use model::syscalls::{self, Wait};
use model::watch::{Descriptor, InCall, KernelThreadName, LintFacts, LockWords, TaskSettings, WatchedTask};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use sys::Error;

/// The most descriptors that are looked at in one process.
const MOST_DESCRIPTORS: usize = 4096;

/// The threads of the chosen processes seen so far, and their descriptors as last seen.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By thread id.
    pub tasks: BTreeMap<i32, WatchedTask>,
    /// By process and number.
    descriptors: BTreeMap<(i32, u64), Descriptor>,
    /// Processes all of whose threads belong to the program.
    whole: BTreeSet<i32>,
    /// Processes that use the GNU C library.
    glibc: BTreeSet<i32>,
    /// By thread id.
    settings: BTreeMap<i32, TaskSettings>,
    /// Whether recording has begun: who is new from then on was not there before.
    pub recording: bool,
}

impl Tasks {
    /// What descriptors stood for when they were last seen, by process and number.
    pub fn descriptors(&self) -> impl Iterator<Item = &Descriptor> {
        self.descriptors.values()
    }

    /// Processes that were seen to use the GNU C library.
    pub fn glibc(&self) -> impl Iterator<Item = i32> {
        self.glibc.iter().copied()
    }

    /// The threads of a process and of its children.
    pub fn of_process(pid: i32) -> Result<Self, Error> {
        let mut tasks = Self { whole: BTreeSet::from([pid]), ..Self::default() };
        tasks.look();
        if tasks.tasks.is_empty() {
            return Err(Error::failed(format!("watching process {pid}"), "there is none with this id"));
        }
        Ok(tasks)
    }

    /// The threads of this name, and all threads of processes of this name.
    pub fn of_name(name: &str) -> Result<Self, Error> {
        // The kernel keeps 15 bytes of a name.
        let kept = &name.as_bytes()[..name.len().min(15)];
        let mut tasks = Self::default();
        let own = rustix::process::getpid().as_raw_nonzero().get();
        for pid in numbers(Path::new("/proc")).into_iter().filter(|pid| *pid != own) {
            for tid in numbers(Path::new(&format!("/proc/{pid}/task"))) {
                let Some(task) = task(pid, tid) else { continue };
                if task.comm.as_bytes() != kept {
                    continue;
                }
                if tid == pid {
                    tasks.whole.insert(pid);
                }
                tasks.tasks.insert(tid, task);
            }
        }
        tasks.look();
        if tasks.tasks.is_empty() {
            return Err(Error::failed(format!("watching {name:?}"), "no thread has this name"));
        }
        Ok(tasks)
    }

    /// Looks again: new threads, children, and what descriptors stand for now.
    pub fn look(&mut self) {
        let mut left: Vec<i32> = self.whole.iter().copied().collect();
        while let Some(pid) = left.pop() {
            for tid in numbers(Path::new(&format!("/proc/{pid}/task"))) {
                if let Some(now) = task(pid, tid) {
                    let (before, syscall) = self
                        .tasks
                        .get(&tid)
                        .map_or((!self.recording, now.syscall), |known| (known.before, known.syscall));
                    self.tasks.insert(tid, WatchedTask { before, syscall, ..now });
                }
                left.extend(children(pid, tid).into_iter().filter(|child| self.whole.insert(*child)));
            }
        }
        for task in self.tasks.values() {
            if let Some(settings) = settings(task) {
                self.settings.insert(task.tid, settings);
            }
        }
        let processes: BTreeSet<i32> = self.tasks.values().map(|task| task.tgid).collect();
        for tgid in processes {
            // One that has just begun has not loaded it yet.
            if !self.glibc.contains(&tgid) && uses_glibc(tgid) {
                self.glibc.insert(tgid);
            }
            let dir = format!("/proc/{tgid}/fd");
            for fd in numbers(Path::new(&dir)).into_iter().take(MOST_DESCRIPTORS) {
                if let (Ok(target), Ok(fd)) = (fs::read_link(format!("{dir}/{fd}")), u64::try_from(fd)) {
                    let target = target.display().to_string();
                    self.descriptors.insert((tgid, fd), Descriptor { tgid, fd, target });
                }
            }
        }
    }

    /// What is set for the threads, as last seen. `isolated`: the CPUs that are.
    pub fn settings(&self, isolated: &Cpus, kernel_threads: Vec<KernelThreadName>) -> LintFacts {
        let tasks = self.settings.values().cloned().collect();
        LintFacts { isolated: isolated.clone(), tasks, kernel_threads }
    }

    /// The memory of the futexes that threads wait for at this moment.
    pub fn lock_words(&self) -> Vec<LockWords> {
        let of = |task: &WatchedTask| {
            let text = fs::read_to_string(format!("/proc/{}/task/{}/syscall", task.tgid, task.tid)).ok()?;
            let InCall { number, argument: word } = parse_syscall(&text)?;
            let call = syscalls::by_number(std::env::consts::ARCH, number)?;
            let words = (call.wait == Wait::Futex).then(|| five_words(task.tgid, word))??;
            Some(LockWords { tid: task.tid, word, words })
        };
        self.tasks.values().filter_map(of).collect()
    }

    /// The CPUs that any of the threads may run on.
    pub fn cpus(&self) -> Cpus {
        let sets: Vec<Cpus> = self.tasks.values().filter_map(allowed).collect();
        sets.iter().flat_map(Cpus::iter).collect()
    }

    /// Whether any of the threads is still there.
    pub fn alive(&self) -> bool {
        let there =
            |task: &WatchedTask| Path::new(&format!("/proc/{}/task/{}", task.tgid, task.tid)).exists();
        self.tasks.values().any(there)
    }

    /// Their processes.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.tasks.values().filter_map(|task| u32::try_from(task.tgid).ok()).collect()
    }

    /// The thread ids.
    pub fn tids(&self) -> Vec<i32> {
        self.tasks.keys().copied().collect()
    }
}

/// The children of a thread (`CONFIG_PROC_CHILDREN`; without it those are known from the trace
/// alone).
fn children(pid: i32, tid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// What is set for a thread that is still there.
fn settings(task: &WatchedTask) -> Option<TaskSettings> {
    let limits = fs::read_to_string(format!("/proc/{}/task/{}/limits", task.tgid, task.tid)).ok()?;
    // The soft limit, which is what the kernel watches.
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    let has_rttime = limit.split_whitespace().next()? != "unlimited";
    let status = status(task)?;
    let of = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let allowed = of("Cpus_allowed_list:")?.parse().ok()?;
    let locked_kib = of("VmLck:").and_then(|kib| kib.parse().ok());
    Some(TaskSettings { tid: task.tid, allowed, has_rttime, locked_kib })
}

/// Five words of a process's memory.
fn five_words(tgid: i32, address: u64) -> Option<[u32; 5]> {
    let memory = fs::File::open(format!("/proc/{tgid}/mem")).ok()?;
    let mut bytes = [0; 20];
    memory.read_exact_at(&mut bytes, address).ok()?;
    let (words, _) = bytes.as_chunks::<4>();
    let mut all = [0; 5];
    all.iter_mut().zip(words).for_each(|(word, bytes)| *word = u32::from_ne_bytes(*bytes));
    Some(all)
}

/// Whether a process has the GNU C library mapped: `libc.so.6`, or `libc-2.31.so` and others before
/// 2.34.
fn uses_glibc(tgid: i32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{tgid}/maps")).unwrap_or_default();
    let file = |line: &str| line.rsplit('/').next().map(str::to_owned).unwrap_or_default();
    let mut files = maps.lines().filter(|line| line.contains('/')).map(file);
    files.any(|name| name == "libc.so.6" || name.starts_with("libc-2."))
}

/// Where a thread may run, from `/proc/PID/task/TID/status`.
fn allowed(task: &WatchedTask) -> Option<Cpus> {
    status(task)?.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
}

fn status(task: &WatchedTask) -> Option<String> {
    fs::read_to_string(format!("/proc/{}/task/{}/status", task.tgid, task.tid)).ok()
}

/// The entries of a directory that are numbers; none where it is gone.
fn numbers(dir: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut all: Vec<i32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all
}

fn task(tgid: i32, tid: i32) -> Option<WatchedTask> {
    let dir = format!("/proc/{tgid}/task/{tid}");
    let stat = fs::read_to_string(format!("{dir}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(") ")?;
    let comm = before.split_once('(')?.1.to_owned();
    // Fields 40 and 41 of stat: real-time priority and policy; the first after the name is field 3.
    let mut words = after.split_whitespace().skip(37);
    let priority = words.next().unwrap_or_default();
    let policy = policy_text(words.next().unwrap_or_default(), priority);
    let syscall = fs::read_to_string(format!("{dir}/syscall")).ok();
    let syscall = syscall.as_deref().and_then(parse_syscall);
    let reservation = sys::sched::reservation(tid);
    Some(WatchedTask { tid, tgid, comm, policy, reservation, before: true, syscall })
}

/// Policies of include/uapi/linux/sched.h.
fn policy_text(policy: &str, priority: &str) -> String {
    match policy {
        "0" => "SCHED_OTHER".to_owned(),
        "1" => format!("SCHED_FIFO {priority}"),
        "2" => format!("SCHED_RR {priority}"),
        "3" => "SCHED_BATCH".to_owned(),
        "5" => "SCHED_IDLE".to_owned(),
        "6" => "SCHED_DEADLINE".to_owned(),
        other => format!("policy {other}"),
    }
}

/// Number and first argument from `/proc/PID/task/TID/syscall`: `running`, or a number, six
/// arguments and two addresses.
fn parse_syscall(text: &str) -> Option<InCall> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let argument = words.next()?.strip_prefix("0x")?;
    Some(InCall { number, argument: u64::from_str_radix(argument, 16).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_a_thread_sleeps_in_is_read() {
        let futex = InCall { number: 202, argument: 0x7ffd0 };
        assert_eq!(parse_syscall("202 0x7ffd0 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f00\n"), Some(futex));
        assert_eq!((parse_syscall("running\n"), parse_syscall("-1 0x7ffe 0x7f00\n")), (None, None));
        assert_eq!(policy_text("1", "80"), "SCHED_FIFO 80");
    }

    #[test]
    fn the_words_of_a_process_are_read() {
        let words = [2u32, 0, 77, 1, 0];
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        assert_eq!(five_words(pid, words.as_ptr().addr() as u64), Some(words));
        assert_eq!(five_words(pid, 8), None);
    }

    #[test]
    fn all_threads_of_a_process_and_its_descriptors_are_found() {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = std::thread::Builder::new().name("a thread".to_owned()).spawn(move || stopped.recv());
        let file = fs::File::open("/proc/self/stat").unwrap();
        let mut tasks = Tasks::of_process(pid).unwrap();
        while !tasks.tasks.values().any(|task| task.comm == "a thread") {
            std::thread::yield_now();
            tasks = Tasks::of_process(pid).unwrap();
        }
        assert!(tasks.tasks.values().all(|task| task.tgid == pid));
        assert!(tasks.descriptors.values().any(|one| one.target.ends_with("/stat")), "{file:?}");
        drop(stop);
        let _ = other.unwrap().join();
        assert!(Tasks::of_process(i32::MAX).is_err() && Tasks::of_name("no such name").is_err());
    }
}
