//! One reading of a trace against two, over schedules made at random.

use super::*;
use crate::any_trace::{Threads, any_trace, unless_of_tracers};
use crate::attribute::wakeups::take_apart;
use ftrace::{TraceInput, write_v6};
use rand_chacha::ChaCha8Rng;
use stats::random::uniform;
use stats::resample::generator;
use std::fmt::Write;
use std::path::Path;

const CPUS: usize = 2;
/// The first of these are under SCHED_FIFO.
const TASKS: [i32; 7] = [20, 21, 22, 10, 11, 12, 13];
const REAL_TIME: usize = 3;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                           \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                           \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                           \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// Declaration, offset and size of a field.
type Field = (&'static str, usize, usize);
/// Name and fields of an event.
type Layout = (&'static str, &'static [Field]);

/// The events, by number from 300 on.
const EVENTS: [Layout; 4] = [
    (
        "sched_switch",
        &[
            ("char prev_comm[16]", 8, 16),
            ("pid_t prev_pid", 24, 4),
            ("int prev_prio", 28, 4),
            ("long prev_state", 32, 8),
            ("char next_comm[16]", 40, 16),
            ("pid_t next_pid", 56, 4),
            ("int next_prio", 60, 4),
        ],
    ),
    ("sched_waking", WAKE),
    ("sched_wakeup", WAKE),
    (
        "sched_migrate_task",
        &[
            ("char comm[16]", 8, 16),
            ("pid_t pid", 24, 4),
            ("int prio", 28, 4),
            ("int orig_cpu", 32, 4),
            ("int dest_cpu", 36, 4),
        ],
    ),
];
const WAKE: &[Field] =
    &[("char comm[16]", 8, 16), ("pid_t pid", 24, 4), ("int prio", 28, 4), ("int target_cpu", 32, 4)];

fn format((number, (name, fields)): (usize, &Layout)) -> (String, Vec<u8>) {
    let common = [
        ("unsigned short common_type", 0, 2),
        ("unsigned char common_flags", 2, 1),
        ("unsigned char common_preempt_count", 3, 1),
        ("int common_pid", 4, 4),
    ];
    let mut text = format!("name: {name}\nID: {}\nformat:\n", 300 + number);
    for (declaration, offset, size) in common.iter().chain(*fields) {
        let signed = u8::from(["int", "pid_t", "long"].iter().any(|one| declaration.starts_with(one)));
        writeln!(text, "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};").unwrap();
    }
    ("sched".to_owned(), (text + "\nprint fmt: \"\"\n").into_bytes())
}

/// One record: its number, flags, current task, and what follows the common fields.
fn record(number: usize, flags: u8, pid: i32, words: &[[u8; 4]]) -> Vec<u8> {
    let mut data = (300 + number as u16).to_le_bytes().to_vec();
    data.extend([flags, 0]);
    data.extend(pid.to_le_bytes());
    data.extend(words.as_flattened());
    data
}

fn comm(name: &str) -> Vec<[u8; 4]> {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes.as_chunks::<4>().0.to_vec()
}

/// A machine that schedules at random, and its buffers.
struct Machine {
    random: ChaCha8Rng,
    now_ns: u64,
    running: [usize; CPUS],
    /// By task, the CPU of its queue; none if it sleeps. Idle comes after the tasks.
    queued: [Option<usize>; TASKS.len()],
    renamed: bool,
    pages: [Vec<Vec<u8>>; CPUS],
    last_ns: [u64; CPUS],
}

const IDLE: usize = TASKS.len();

impl Machine {
    fn new(seed: u64) -> Self {
        Self {
            random: generator(seed, 7),
            now_ns: 1_000_000,
            running: [IDLE; CPUS],
            queued: [None; TASKS.len()],
            renamed: false,
            pages: [const { Vec::new() }; CPUS],
            last_ns: [0; CPUS],
        }
    }

    fn below(&mut self, n: usize) -> usize {
        ((uniform(&mut self.random) * n as f64) as usize).min(n - 1)
    }

    fn pid(task: usize) -> i32 {
        TASKS.get(task).copied().unwrap_or(0)
    }

    /// Name, number and priority of a task, as fields hold them.
    fn task(&self, task: usize) -> [Vec<[u8; 4]>; 2] {
        let name = match task {
            IDLE => "swapper".to_owned(),
            1 if self.renamed => "renamed".to_owned(),
            task => format!("task-{task}"),
        };
        let prio = if task < REAL_TIME { 20 + task as i32 } else { 120 };
        [comm(&name), vec![Self::pid(task).to_le_bytes(), prio.to_le_bytes()]]
    }

    /// Writes an event; sometimes leaves one out, or loses some and reports that.
    fn write(&mut self, cpu: usize, data: &[u8], losses: bool) {
        let lost = losses && self.below(200) == 0;
        if losses && self.below(100) == 0 {
            return;
        }
        let pages = &mut self.pages[cpu];
        let full = pages.last().is_none_or(|page| page.len() + data.len() + 4 > 4096);
        if full || lost {
            let mut page = self.now_ns.to_le_bytes().to_vec();
            page.extend((if lost { 1u64 << 31 } else { 0 }).to_le_bytes());
            pages.push(page);
            self.last_ns[cpu] = self.now_ns;
        }
        let delta = (self.now_ns - std::mem::replace(&mut self.last_ns[cpu], self.now_ns)) as u32;
        let page = pages.last_mut().unwrap();
        page.extend((data.len() as u32 / 4 + (delta << 5)).to_le_bytes());
        page.extend(data);
    }

    fn step(&mut self, losses: bool) {
        self.now_ns += 1 + self.below(20_000) as u64;
        let cpu = self.below(CPUS);
        let current = Self::pid(self.running[cpu]);
        let (task, kind) = (self.below(TASKS.len()), self.below(8));
        let [name, who] = self.task(task);
        match kind {
            // Woken, also while it runs: then its next attempt to sleep fails.
            0..=2 if self.queued[task].is_none() => {
                let (target, flags) = (self.below(CPUS), [0, 8][self.below(2)]);
                let words = [name, who, vec![(target as i32).to_le_bytes()]].concat();
                self.write(cpu, &record(1, flags, current, &words), losses);
                self.now_ns += self.below(3_000) as u64;
                let done = [cpu, target][self.below(2)];
                let current = Self::pid(self.running[done]);
                self.write(done, &record(2, flags, current, &words), losses);
                if !self.running.contains(&task) {
                    self.queued[task] = Some(target);
                }
            }
            3 if self.queued[task].is_some() => {
                let [from, to] = [self.queued[task].unwrap(), self.below(CPUS)];
                let cpus = [from, to].map(|cpu| (cpu as i32).to_le_bytes());
                let words = [name, who, cpus.to_vec()].concat();
                self.write(cpu, &record(3, 0, current, &words), losses);
                self.queued[task] = Some(to);
            }
            4 => self.renamed |= self.below(20) == 0,
            _ => self.switch(cpu, losses),
        }
    }

    fn switch(&mut self, cpu: usize, losses: bool) {
        let prev = self.running[cpu];
        let ready: Vec<usize> = (0..TASKS.len()).filter(|task| self.queued[*task] == Some(cpu)).collect();
        let next = if ready.is_empty() { IDLE } else { ready[self.below(ready.len())] };
        if next == prev {
            return;
        }
        let runnable = self.below(3) == 0;
        let state = u64::from(!runnable && prev != IDLE).to_le_bytes();
        let ([prev_name, prev_who], [next_name, next_who]) = (self.task(prev), self.task(next));
        let words = [prev_name, prev_who, state.as_chunks::<4>().0.to_vec(), next_name, next_who].concat();
        self.write(cpu, &record(0, 0, Self::pid(prev), &words), losses);
        if prev != IDLE {
            self.queued[prev] = runnable.then_some(cpu);
        }
        if next != IDLE {
            self.queued[next] = None;
        }
        self.running[cpu] = next;
    }

    fn file(self, dir: &Path) -> TraceFile {
        let mut cpus = Vec::new();
        for (cpu, pages) in (0..).zip(self.pages) {
            let mut all = Vec::new();
            for mut page in pages {
                page[8] = (page.len() - 16) as u8;
                page[9] = ((page.len() - 16) >> 8) as u8;
                page.resize(4096, 0);
                all.extend(page);
            }
            let raw = dir.join(format!("cpu{cpu}"));
            std::fs::write(&raw, all).unwrap();
            cpus.push((cpu, raw));
        }
        let (header_page, clock) = (HEADER_PAGE.into(), "mono".to_owned());
        let formats = EVENTS.iter().enumerate().map(format).collect();
        let input = TraceInput { header_page, formats, clock, cpus, ..TraceInput::default() };
        write_v6(&dir.join("trace.dat"), &input).unwrap();
        TraceFile::open(&dir.join("trace.dat")).unwrap()
    }
}

fn wanted(threads: Threads) -> Wanted {
    Wanted { threads, cpus: None, window: [i64::MIN, i64::MAX], keep: Keep { worst: 1_000, sample: None } }
}

/// Samples taken apart in one reading, each equal to that of two.
fn samples_of_one_reading(file: &TraceFile, wanted: &Wanted) -> u64 {
    let catalogue = EventCatalogue::embedded().unwrap();
    let Reading { found, chosen, apart, mut decoder } =
        read(file, &[""], wanted, true, &catalogue, &[]).unwrap().unwrap();
    let Some(once) = apart else { return 0 };
    let window = [found.t0_ns, found.t1_ns];
    // The second reading uses the decoder of the first.
    let twice = take_apart(file, &mut decoder, &[""], window, &chosen, wanted.keep).unwrap();
    assert_eq!(once.paths, twice.paths);
    assert_eq!(once.attribution, twice.attribution);
    assert_eq!((once.statements, once.damage), (twice.statements, twice.damage));
    once.paths.iter().map(|one| one.path.samples).sum()
}

#[test]
fn one_reading_gives_what_two_do_with_switches_missing_and_events_lost_and_a_task_renamed() {
    let (mut once, mut samples) = (0, 0);
    for seed in 0..80 {
        let mut machine = Machine::new(seed);
        (0..1_500).for_each(|_| machine.step(seed % 2 == 1));
        let dir = tempfile::tempdir().unwrap();
        let file = machine.file(dir.path());
        let threads = match seed % 5 {
            3 => Threads::Named("renamed".to_owned()),
            4 => Threads::Numbers(vec![TASKS[0], TASKS[5]]),
            _ => Threads::RealTime,
        };
        let found = samples_of_one_reading(&file, &wanted(threads));
        once += u32::from(found > 0);
        samples += found;
    }
    assert!(once > 40 && samples > 2_000, "{once} traces, {samples} samples");
}

#[test]
fn others_than_were_guessed_are_read_again() {
    let mut machine = Machine::new(1);
    // A thread that runs only between the sampled places.
    for step in 0..80_000 {
        if !(30_000..32_000).contains(&step) {
            machine.queued[0] = None;
        }
        machine.step(false);
    }
    let dir = tempfile::tempdir().unwrap();
    let file = machine.file(dir.path());
    let (wanted, catalogue) = (wanted(Threads::RealTime), EventCatalogue::embedded().unwrap());
    let reading = read(&file, &[""], &wanted, true, &catalogue, &[]).unwrap().unwrap();
    assert!(reading.apart.is_none());
    let all = any_trace(&file, &[""], &wanted).unwrap();
    assert!(all.threads.paths.iter().any(|one| one.tid == TASKS[0]), "{:?}", all.threads.threads);
}

#[test]
fn events_of_the_kernel_s_tracers_end_a_reading_that_is_not_for_them() {
    let fixture = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
        TraceFile::open(&path).unwrap()
    };
    let wanted = wanted(Threads::RealTime);
    let results = fixture("traces/timerlat-6.12-rt/trace.dat");
    assert_eq!(unless_of_tracers(&results, &[""], &wanted).unwrap(), None);
    let others = fixture("traces/cyclictest/6.12.dat");
    let found = unless_of_tracers(&others, &[""], &wanted).unwrap();
    assert_eq!(found, Some(any_trace(&others, &[""], &wanted).unwrap()));
}
