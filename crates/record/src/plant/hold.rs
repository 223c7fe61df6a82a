//! A CPU held where it stands in the kernel, for a time that is known to it.
//!
//! A BPF program on a kernel probe looks at the clock until the time is over. The kernel runs such
//! programs with preemption off, and with interrupts as they are where the probe is: on, where
//! ftrace calls it at a function's entry; off, where a breakpoint does so inside one
//! (kernel/trace/bpf_trace.c, `trace_call_bpf`; arch/x86/kernel/kprobes; on arm64 every probe is a
//! breakpoint). What is held is the context that runs into the probe: a task's system call, a
//! softirq, a hard interrupt. No module is needed, and no tracepoint reports it. The program is
//! armed for one hold, and it returns when that began and ended.

use perf_event::events::KProbe;
use perf_event::{Builder, Counter};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands of bpf(2), include/uapi/linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
/// A map by numbers, and a program for kernel probes.
const ARRAY: u32 = 2;
const KPROBE: u32 = 2;
/// What a kernel accepts for helpers that it lends to free software alone
/// (include/linux/license.h).
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// The most looks at the clock. The kernel follows each of them when it checks the program, and
/// follows a million instructions in all.
const MOST_LOOKS: i32 = 30_000;
/// Bytes that are copied between two looks, so that fewer of them last long enough.
const COPIED: usize = 2048;
/// Where a breakpoint is put: behind the call to ftrace that a function begins with, which may
/// stand behind an `endbr64`.
const INSIDE: [u64; 3] = [5, 9, 4];

/// What the program shares with us.
#[repr(C)]
struct Shared {
    /// For how long it is to hold, ns; 0: not armed.
    armed_ns: u64,
    /// When it began to hold.
    t0_ns: u64,
    /// When it ended.
    t1_ns: u64,
    copied: [u8; COPIED],
}

/// A program, and the probes of one CPU that run it.
pub(super) struct Hold {
    cpu: u32,
    map: OwnedFd,
    program: OwnedFd,
    probes: Vec<Counter>,
}

impl Hold {
    /// For one CPU.
    pub(super) fn new(cpu: u32) -> io::Result<Self> {
        let map = map()?;
        let program = program(&instructions(map.as_raw_fd(), cpu))?;
        Ok(Self { cpu, map, program, probes: Vec::new() })
    }

    /// A probe at the entry of a kernel function.
    pub(super) fn at_entry(&mut self, function: &str) -> io::Result<()> {
        self.probe(function, 0)
    }

    /// A probe inside a kernel function; needs `debug.kprobes-optimization` off, else its
    /// breakpoint becomes a jump.
    pub(super) fn inside(&mut self, function: &str) -> io::Result<()> {
        let mut result = Err(io::ErrorKind::NotFound.into());
        for offset in INSIDE {
            result = self.probe(function, offset);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn probe(&mut self, function: &str, offset: u64) -> io::Result<()> {
        let mut builder = Builder::new(KProbe::probe(function, offset)?);
        let mut probe = builder.any_pid().one_cpu(self.cpu as usize).include_kernel().build()?;
        probe.set_bpf(self.program.as_raw_fd())?;
        probe.enable()?;
        self.probes.push(probe);
        Ok(())
    }

    /// Holds whatever runs into a probe next, for so long.
    pub(super) fn arm(&self, ns: u64) -> io::Result<()> {
        self.put(ns)
    }

    /// When it held, CLOCK_MONOTONIC, ns; none where nothing ran into a probe. It is not armed any
    /// more.
    pub(super) fn held(&self) -> io::Result<Vec<[i64; 2]>> {
        let mut shared = Shared { armed_ns: 0, t0_ns: 0, t1_ns: 0, copied: [0; COPIED] };
        self.element(MAP_LOOKUP, (&raw mut shared) as u64)?;
        self.put(0)?;
        let held = [shared.t0_ns as i64, shared.t1_ns as i64];
        Ok((shared.t1_ns > 0).then_some(held).into_iter().collect())
    }

    fn put(&self, armed_ns: u64) -> io::Result<()> {
        let shared = Shared { armed_ns, t0_ns: 0, t1_ns: 0, copied: [0; COPIED] };
        self.element(MAP_UPDATE, (&raw const shared) as u64).map(drop)
    }

    /// Reads or writes the map's only element at an address that holds a [`Shared`].
    fn element(&self, command: libc::c_int, address: u64) -> io::Result<libc::c_long> {
        let key = 0u32;
        bpf(command, &[self.map.as_raw_fd() as u64, (&raw const key) as u64, address, 0])
    }
}

/// Calls bpf(2) with its `union bpf_attr` as words.
fn bpf(command: libc::c_int, attr: &[u64]) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads as much of `attr` as its size says; the addresses in it are of
    // values that outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), size_of_val(attr)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Two fields of 32 bits, the first one first.
fn pair(first: u32, second: u32) -> u64 {
    // As it stands in memory, whatever the byte order.
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

fn owned(descriptor: libc::c_long) -> OwnedFd {
    // SAFETY: bpf(2) has just made it, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(descriptor as i32) }
}

fn map() -> io::Result<OwnedFd> {
    bpf(MAP_CREATE, &[pair(ARRAY, 4), pair(size_of::<Shared>() as u32, 1), 0]).map(owned)
}

fn program(instructions: &[u64]) -> io::Result<OwnedFd> {
    let (code, license) = (instructions.as_ptr() as u64, LICENSE.as_ptr() as u64);
    bpf(PROG_LOAD, &[pair(KPROBE, instructions.len() as u32), code, license, 0, 0, 0]).map(owned)
}

/// Operations: classes, sizes and codes put together
/// (Documentation/bpf/standardization/instruction-set.rst).
#[derive(Clone, Copy)]
#[repr(u8)]
enum Op {
    StoreWord = 0x62,
    StoreDouble = 0x7a,
    StoreRegister = 0x7b,
    LoadDouble = 0x79,
    LoadNumber = 0x18,
    SecondHalf = 0x00,
    Move = 0xbf,
    MoveNumber = 0xb7,
    Add = 0x0f,
    AddNumber = 0x07,
    Call = 0x85,
    Exit = 0x95,
    Jump = 0x05,
    JumpIf = 0x15,
    JumpUnless = 0x55,
    JumpIfLess = 0xad,
}

/// Helpers of the kernel by number (include/uapi/linux/bpf.h).
const LOOK_UP: i32 = 1;
const CLOCK: i32 = 5;
const THIS_CPU: i32 = 8;
const COPY: i32 = 113;
/// In the second register of a number: it is a map.
const A_MAP: u8 = 1;
/// Places in [`Shared`].
const T0: i16 = 8;
const T1: i16 = 16;
const TO: i32 = 24;

/// An instruction: operation, registers, offset, number.
fn op(op: Op, [to, from]: [u8; 2], offset: i16, number: i32) -> u64 {
    let [low, high] = offset.to_le_bytes();
    let [a, b, c, d] = number.to_le_bytes();
    u64::from_le_bytes([op as u8, from << 4 | to, low, high, a, b, c, d])
}

/// The program, for one CPU. Registers: 6 the map's element, 7 when to end, 8 the looks that are
/// left.
fn instructions(map: i32, cpu: u32) -> [u64; 30] {
    [
        // The element of key 0, which stands on the stack.
        op(Op::StoreWord, [10, 0], -4, 0),
        op(Op::Move, [2, 10], 0, 0),
        op(Op::AddNumber, [2, 0], 0, -4),
        op(Op::LoadNumber, [1, A_MAP], 0, map),
        op(Op::SecondHalf, [0, 0], 0, 0),
        op(Op::Call, [0, 0], 0, LOOK_UP),
        op(Op::JumpIf, [0, 0], 21, 0),
        op(Op::Move, [6, 0], 0, 0),
        // Armed, and on this CPU? Then not any more.
        op(Op::LoadDouble, [7, 6], 0, 0),
        op(Op::JumpIf, [7, 0], 18, 0),
        op(Op::Call, [0, 0], 0, THIS_CPU),
        op(Op::JumpUnless, [0, 0], 16, cpu as i32),
        op(Op::StoreDouble, [6, 0], 0, 0),
        op(Op::Call, [0, 0], 0, CLOCK),
        op(Op::StoreRegister, [6, 0], T0, 0),
        op(Op::Add, [7, 0], 0, 0),
        op(Op::MoveNumber, [8, 0], 0, MOST_LOOKS),
        // Until it is over.
        op(Op::Move, [1, 6], 0, 0),
        op(Op::AddNumber, [1, 0], 0, TO),
        op(Op::MoveNumber, [2, 0], 0, COPIED as i32),
        op(Op::Move, [3, 6], 0, 0),
        op(Op::Call, [0, 0], 0, COPY),
        op(Op::Call, [0, 0], 0, CLOCK),
        // The way that goes on is the one that is jumped to: the kernel's check follows the other
        // one first, and remembers only so many that it has left behind.
        op(Op::JumpIfLess, [0, 7], 1, 0),
        op(Op::Jump, [0, 0], 2, 0),
        op(Op::AddNumber, [8, 0], 0, -1),
        op(Op::JumpUnless, [8, 0], -10, 0),
        op(Op::StoreRegister, [6, 0], T1, 0),
        op(Op::MoveNumber, [0, 0], 0, 0),
        op(Op::Exit, [0, 0], 0, 0),
    ]
}
