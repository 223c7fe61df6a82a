//! The side of the kernel of LITMUS^RT (2016 and later) that threads are admitted by: the control
//! device, and SCHED_LITMUS.
//!
//! It refuses what `map_ctrl_page`, `sys_set_rt_task_param`, `litmus_admit_task` and the plug-ins'
//! `admit_task` refuse (litmus/ctrldev.c, litmus.c, sched_pfp.c, sched_psn_edf.c). The control
//! page itself is a page of zeros of this machine's own kernel.

use super::call::{Field, Line, hex};
use super::kernel::{Action, Call, Kernel, access, mapping, path_argument, redirected};
use super::tasks::Task;
use std::collections::{HashMap, HashSet};
use std::io;

const CONTROL: &str = "/dev/litmus/ctrl";
const PLUGIN: &str = "/proc/litmus/active_plugin";
/// What a control page looks like before anything is in it.
const ZEROS: &str = "/dev/zero";
const PAGE: u64 = 4096;
const SET_RT_TASK_PARAM: u64 = 2007;
const SCHED_LITMUS: u64 = 7;
const PRIORITIES: u64 = 512;
/// CPUs of this machine that is none.
const ONLINE: u64 = 0b1111;

/// `struct rt_task` (include/litmus/rt_param.h).
const RT_TASK_BYTES: usize = 56;
const RT_TASK: [Field; 9] = [
    Field { name: "exec_cost", offset: 0, size: 8 },
    Field { name: "period", offset: 8, size: 8 },
    Field { name: "relative_deadline", offset: 16, size: 8 },
    Field { name: "phase", offset: 24, size: 8 },
    Field { name: "cpu", offset: 32, size: 4 },
    Field { name: "priority", offset: 36, size: 4 },
    Field { name: "cls", offset: 40, size: 4 },
    Field { name: "budget_policy", offset: 44, size: 4 },
    Field { name: "release_policy", offset: 48, size: 4 },
];

/// What the kernel knows of a thread.
#[derive(Debug, Default)]
struct Thread {
    allowed: Option<u64>,
    parameters: Option<[u8; RT_TASK_BYTES]>,
    real_time: bool,
}

#[derive(Debug)]
pub(crate) struct Litmus {
    plugin: String,
    /// A file of this machine that holds the plug-in's name.
    plugin_file: tempfile::NamedTempFile,
    /// Descriptors of the control device.
    control: HashSet<u64>,
    was_opened: bool,
    threads: HashMap<i32, Thread>,
    lines: Vec<String>,
}

impl Litmus {
    pub(crate) fn booted(plugin: &str) -> io::Result<Self> {
        let plugin_file = tempfile::NamedTempFile::new()?;
        std::fs::write(&plugin_file, format!("{plugin}\n"))?;
        let plugin = plugin.to_owned();
        Ok(Self {
            plugin,
            plugin_file,
            control: HashSet::new(),
            was_opened: false,
            threads: HashMap::new(),
            lines: Vec::new(),
        })
    }

    /// What a program does before it opens the device is its own affair.
    fn note(&mut self, line: String) {
        if self.was_opened {
            self.lines.push(line);
        }
    }

    fn thread(&mut self, task: &Task) -> &mut Thread {
        self.threads.entry(task.tid).or_default()
    }

    fn ioctl(&mut self, task: &Task, call: &Call) -> io::Result<Action> {
        let [_, request, argument, ..] = call.args;
        let line = Line::of("ioctl").with("device", CONTROL).with("request", request);
        if request != SET_RT_TASK_PARAM {
            self.note(line.with("argument", argument).text());
            return Ok(Action::Answer(-i64::from(libc::ENOTTY)));
        }
        // `union litmus_syscall_args`: a number of 4 bytes, and at 8 an address.
        let named = u64::from(task.read_u32(argument)?);
        let parameters: [u8; RT_TASK_BYTES] = task.read(task.read_u64(argument + 8)?)?;
        let line = line.with("task", task.named(named)).with("rt_task", format!("{RT_TASK_BYTES}:"));
        self.note(line.bytes(&parameters, &RT_TASK).text());
        Ok(Action::Answer(self.set_parameters(task, parameters)))
    }

    fn set_parameters(&mut self, task: &Task, parameters: [u8; RT_TASK_BYTES]) -> i64 {
        let of = |name| field(&parameters, name);
        let deadline = if of("relative_deadline") == 0 { of("period") } else { of("relative_deadline") };
        let sound = of("exec_cost") > 0
            && of("period") > 0
            && is_online(of("cpu"))
            && of("exec_cost") <= of("period").min(deadline)
            && of("cls") <= 2
            && of("budget_policy") <= 2;
        let thread = self.thread(task);
        match (thread.real_time, sound) {
            (true, _) => -i64::from(libc::EBUSY),
            (false, false) => -i64::from(libc::EINVAL),
            (false, true) => {
                thread.parameters = Some(parameters);
                0
            }
        }
    }

    fn schedule(&mut self, task: &Task, call: &Call) -> io::Result<Action> {
        let [named, policy, parameters, ..] = call.args;
        let priority = task.read_u32(parameters)?;
        let line = Line::of("sched_setscheduler").with("task", task.named(named));
        self.note(line.with("policy", policy).with("priority", priority).text());
        let admitted = policy != SCHED_LITMUS || self.is_admissible(task);
        if !admitted {
            return Ok(Action::Answer(-i64::from(libc::EINVAL)));
        }
        self.thread(task).real_time = policy == SCHED_LITMUS;
        Ok(Action::Answer(0))
    }

    fn is_admissible(&mut self, task: &Task) -> bool {
        let (plugin, thread) = (self.plugin.clone(), self.threads.get(&task.tid));
        let Some(Thread { allowed, parameters: Some(parameters), .. }) = thread else { return false };
        let cpu = field(parameters, "cpu");
        let here = allowed.is_some_and(|allowed| allowed == 1 << cpu);
        let ranked = (1..PRIORITIES).contains(&field(parameters, "priority"));
        match plugin.as_str() {
            "P-FP" => here && ranked,
            "PSN-EDF" => here,
            "GSN-EDF" => true,
            _ => false,
        }
    }

    fn affinity(&mut self, task: &Task, call: &Call) -> io::Result<Action> {
        let [named, bytes, address, ..] = call.args;
        let mask = task.read_u64(address)?;
        let line = Line::of("sched_setaffinity").with("task", task.named(named)).with("bytes", bytes);
        self.note(line.with("mask", hex(&mask.to_le_bytes())).text());
        if mask & ONLINE == 0 {
            return Ok(Action::Answer(-i64::from(libc::EINVAL)));
        }
        self.threads.entry(task.id(named)).or_default().allowed = Some(mask & ONLINE);
        Ok(Action::Answer(0))
    }
}

impl Kernel for Litmus {
    fn enter(&mut self, task: &Task, call: Call) -> io::Result<Action> {
        if let Some(at) = path_argument(&call) {
            return match task.text(call.args[at]).as_str() {
                CONTROL => redirected(task, &call, at, ZEROS),
                PLUGIN => redirected(task, &call, at, &self.plugin_file.path().to_string_lossy()),
                _ => Ok(Action::Pass),
            };
        }
        match call.number {
            libc::SYS_mmap if self.control.contains(&call.args[4]) => {
                self.note(mapping(CONTROL, &call));
                let [_, length, _, kind, _, offset] = call.args;
                let sound = length == PAGE && offset == 0 && kind & libc::MAP_SHARED as u64 == 0;
                Ok(if sound { Action::Pass } else { Action::Answer(-i64::from(libc::EINVAL)) })
            }
            libc::SYS_close => {
                self.control.remove(&call.args[0]);
                Ok(Action::Pass)
            }
            libc::SYS_ioctl if self.control.contains(&call.args[0]) => self.ioctl(task, &call),
            libc::SYS_sched_setscheduler => self.schedule(task, &call),
            libc::SYS_sched_setattr => {
                self.note(Line::of("sched_setattr").with("task", task.named(call.args[0])).text());
                Ok(Action::Pass)
            }
            libc::SYS_sched_setaffinity => self.affinity(task, &call),
            libc::SYS_sched_getaffinity => {
                let thread = self.threads.get(&task.id(call.args[0]));
                let Some(mask) = thread.and_then(|thread| thread.allowed) else { return Ok(Action::Pass) };
                task.write(call.args[2], &mask.to_le_bytes())?;
                Ok(Action::Answer(8))
            }
            libc::SYS_sched_getscheduler => {
                let real_time = self.thread(task).real_time;
                Ok(Action::Answer(if real_time { SCHED_LITMUS as i64 } else { 0 }))
            }
            libc::SYS_sched_getattr if self.thread(task).real_time => {
                // `struct sched_attr`: its size, the policy, and nothing of a mainline class.
                let mut attributes = [0; 48];
                attributes[0] = 48;
                attributes[4] = SCHED_LITMUS as u8;
                task.write(call.args[1], &attributes)?;
                Ok(Action::Answer(0))
            }
            _ => Ok(Action::Pass),
        }
    }

    fn leave(&mut self, task: &Task, call: Call, result: i64) -> io::Result<i64> {
        let Some(at) = path_argument(&call) else { return Ok(result) };
        if result >= 0 && task.text(call.args[at]) == CONTROL {
            self.control.insert(result as u64);
            self.was_opened = true;
            let access = access(call.args[at + 1]);
            self.note(Line::of("open").with("path", CONTROL).with("access", access).text());
        }
        Ok(result)
    }

    fn lines(&self) -> Vec<String> {
        self.lines.clone()
    }
}

fn is_online(cpu: u64) -> bool {
    cpu < 64 && ONLINE >> cpu & 1 == 1
}

fn field(bytes: &[u8; RT_TASK_BYTES], name: &str) -> u64 {
    let field = RT_TASK.iter().find(|field| field.name == name).expect("a field of the table");
    let end = field.offset + field.size;
    bytes[field.offset..end].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
