//! What the kernel's counters say without root: /proc/interrupts, /proc/softirqs, /proc/stat,
//! /proc/schedstat, and which tasks run. How often, and on which CPU; not for how long, nor who
//! caused it.

use attribution::live::view::{CpuView, LiveView, RowView, Running, SECONDS};
use machine::Root;
use model::{Cpus, EventClass};
use std::collections::{BTreeMap, VecDeque};

/// Counters of a class, by CPU and name.
type Counts = BTreeMap<(u32, EventClass, String), u64>;

/// The counters, and what they were in the last minute.
pub(crate) struct Counters {
    root: Root,
    cpus: Cpus,
    first: Counts,
    /// Newest last.
    seconds: VecDeque<Counts>,
    began_ns: i64,
    ended_ns: i64,
}

impl Counters {
    /// Begins to count.
    pub(crate) fn new(root: Root, cpus: &Cpus, now_ns: i64) -> Self {
        let first = read(&root, cpus);
        let seconds = VecDeque::from([first.clone()]);
        Self { root, cpus: cpus.clone(), first, seconds, began_ns: now_ns, ended_ns: now_ns }
    }

    /// A second has ended.
    pub(crate) fn second(&mut self, now_ns: i64) -> LiveView {
        let now = read(&self.root, &self.cpus);
        let before = self.seconds.back().cloned().unwrap_or_default();
        let minute = self.seconds.front().cloned().unwrap_or_default();
        let grown =
            |key, count: u64, since: &Counts| count.saturating_sub(since.get(key).copied().unwrap_or(count));
        let rows = now.iter().filter_map(|(key, count)| {
            let total_count = grown(key, *count, &self.first);
            let (cpu, class, label) = key.clone();
            (total_count > 0).then(|| RowView {
                cpu,
                class,
                label,
                pid: None,
                source: None,
                confidence: None,
                count: grown(key, *count, &before),
                ns: 0,
                minute_count: grown(key, *count, &minute),
                minute_ns: 0,
                total_count,
                total_ns: 0,
                max_ns: 0,
            })
        });
        let rows = rows.collect();
        if self.seconds.len() > SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(now);
        let second_ns = now_ns - std::mem::replace(&mut self.ended_ns, now_ns);
        let tasks = running(&self.root, &self.cpus);
        let cpus = self.cpus.iter().map(|cpu| CpuView {
            cpu,
            running: tasks.get(&cpu).cloned(),
            ..CpuView::default()
        });
        let cpus = cpus.collect();
        LiveView { t_ns: now_ns, began_ns: self.began_ns, second_ns, cpus, rows, ..LiveView::default() }
    }
}

/// Steal time by CPU, in ticks of 1/100 s.
pub(crate) fn steal(root: &Root, cpus: &Cpus) -> BTreeMap<u32, u64> {
    let text = root.maybe("proc/stat").unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        let cpu = words.next()?.parse().ok().filter(|cpu| cpus.contains(*cpu))?;
        Some((cpu, words.nth(7)?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn read(root: &Root, cpus: &Cpus) -> Counts {
    let mut counts = Counts::new();
    for (file, softirqs) in [("proc/interrupts", false), ("proc/softirqs", true)] {
        let text = root.maybe(file).unwrap_or_default();
        let mut lines = text.lines();
        let columns: Vec<Option<u32>> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .map(|word| word.strip_prefix("CPU")?.parse().ok())
            .collect();
        for line in lines {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let mut words = rest.split_whitespace();
            let values: Vec<Option<u64>> =
                words.by_ref().take(columns.len()).map(|word| word.parse().ok()).collect();
            let last = rest.split_whitespace().skip(columns.len()).collect::<Vec<_>>().join(" ");
            let (class, label) = if softirqs {
                (EventClass::Softirq, name.trim().to_owned())
            } else {
                named(name.trim(), &last)
            };
            for (cpu, value) in columns.iter().zip(&values) {
                if let (Some(cpu), Some(value)) = (cpu, value)
                    && cpus.contains(*cpu)
                {
                    *counts.entry((*cpu, class, label.clone())).or_default() += value;
                }
            }
        }
    }
    // cpuN, then: yields, an unused 0, calls of schedule()
    // (Documentation/scheduler/sched-stats.rst).
    for line in root.maybe("proc/schedstat").unwrap_or_default().lines() {
        let mut words = line.split_whitespace();
        let cpu = words.next().and_then(|word| word.strip_prefix("cpu")?.parse().ok());
        if let (Some(cpu), Some(calls)) = (cpu, words.nth(2).and_then(|word| word.parse().ok()))
            && cpus.contains(cpu)
        {
            counts
                .insert((cpu, EventClass::Switch, "calls of the scheduler, idle included".to_owned()), calls);
        }
    }
    counts
}

/// Class and name of a row of /proc/interrupts. Those of architectures have letters, and the text
/// behind the counts.
fn named(name: &str, text: &str) -> (EventClass, String) {
    let class = match name {
        "RES" | "IPI0" => EventClass::IpiResched,
        "CAL" | "IPI1" => EventClass::IpiCall,
        "TLB" => EventClass::Tlb,
        "IWI" | "IPI5" => EventClass::IpiIrqwork,
        "NMI" => EventClass::Nmi,
        _ => EventClass::Irq,
    };
    (class, format!("{name} {text}").trim_end().to_owned())
}

/// The tasks that run, or are ready to, by the CPU where they did last.
pub(crate) fn running(root: &Root, cpus: &Cpus) -> BTreeMap<u32, Running> {
    let mut running: BTreeMap<u32, Running> = BTreeMap::new();
    for task in tasks(root).filter(|task| task.state == 'R' && cpus.contains(task.cpu)) {
        // Of several that are ready the real-time one runs.
        let policy = task.policy();
        let known = running.get(&task.cpu).is_some_and(|other| other.policy.starts_with(['F', 'D']));
        if !known {
            let (pid, comm) = (task.tid, task.comm);
            running.insert(task.cpu, Running { pid, comm, policy, since_ns: 0 });
        }
    }
    running
}

/// A thread as `/proc/PID/task/TID/stat` has it (proc_pid_stat(5)).
pub(crate) struct TaskStat {
    pub(crate) tid: i32,
    pub(crate) comm: String,
    state: char,
    pub(crate) cpu: u32,
    pub(crate) rt_priority: u32,
    nice: i32,
    policy: u32,
}

impl TaskStat {
    fn policy(&self) -> String {
        match self.policy {
            6 => "D".to_owned(),
            1 | 2 => format!("F{}", self.rt_priority),
            _ => format!("N{}", self.nice),
        }
    }

    /// A name may hold parentheses and spaces: the last one ends it.
    fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.rsplit_once(')')?;
        let (tid, comm) = head.split_once(" (")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| words.get(field - 3);
        Some(Self {
            tid: tid.parse().ok()?,
            comm: comm.to_owned(),
            state: number(3)?.chars().next()?,
            nice: number(19)?.parse().ok()?,
            cpu: number(39)?.parse().ok()?,
            rt_priority: number(40)?.parse().ok()?,
            policy: number(41)?.parse().ok()?,
        })
    }
}

/// All threads of the machine.
pub(crate) fn tasks(root: &Root) -> impl Iterator<Item = TaskStat> + '_ {
    let numbers = |directory: &str| {
        let mut names = root.names(directory);
        names.retain(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        names
    };
    let pids = numbers("proc").into_iter();
    let threads = pids.flat_map(move |pid| {
        let directory = format!("proc/{pid}/task");
        numbers(&directory).into_iter().map(move |tid| format!("{directory}/{tid}/stat"))
    });
    threads.filter_map(move |file| {
        // A name may be no text at all.
        let bytes = root.bytes(&file).ok().flatten()?;
        TaskStat::parse(&String::from_utf8_lossy(&bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(dir: &std::path::Path, file: &str, text: &str) {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn counters_are_rows_that_grow_and_a_hostile_name_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let interrupts = |timer: u64, res: u64| {
            format!(
                "        CPU0  CPU1\n 33:  1  {timer}  PCI-MSI eth0-rx-1\nRES:  5  {res}  Rescheduling interrupts\nERR:  0\n"
            )
        };
        write(dir.path(), "proc/interrupts", &interrupts(10, 7));
        write(dir.path(), "proc/softirqs", "     CPU0 CPU1\n RCU:  1  2\n");
        write(dir.path(), "proc/schedstat", "version 15\ncpu1 0 0 100 50 0 0 1 2 3\n");
        write(dir.path(), "proc/stat", "cpu  1 2\ncpu1 1 2 3 4 5 6 7 88 9 10\n");
        let stat = "42 (a) R\u{1b} (b) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 -5 1 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 17 1 80 1 0";
        write(dir.path(), "proc/42/task/42/stat", stat);
        let root = Root::open(dir.path()).unwrap();
        let mut counters = Counters::new(root, &"1".parse().unwrap(), 0);
        write(dir.path(), "proc/interrupts", &interrupts(13, 7));
        let view = counters.second(1_000_000_000);
        let rows: Vec<_> = view.rows.iter().map(|row| (row.class, row.label.as_str(), row.count)).collect();
        assert_eq!(rows, [(EventClass::Irq, "33 PCI-MSI eth0-rx-1", 3)]);
        let expected =
            Running { pid: 42, comm: "a) R\u{1b} (b".to_owned(), policy: "F80".to_owned(), since_ns: 0 };
        assert_eq!(view.cpus[0].running.as_ref(), Some(&expected));
        assert_eq!(counters.second(2_000_000_000).rows[0].count, 0);
        assert_eq!(steal(&counters.root, &counters.cpus), BTreeMap::from([(1, 88)]));
    }
}
