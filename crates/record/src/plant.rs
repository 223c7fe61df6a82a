//! Known holdups, planted one by one with their times: what tests of the boxes compare with.
//!
//! A thread sleeps and wakes on a CPU, periodically and under SCHED_FIFO. Another thread of that
//! CPU is in its way for a time that it knows: as a task above, beside and below it; with
//! preemption off, with interrupts off, in a softirq and in a hard interrupt ([`hold`]); and so
//! long that the scheduler takes the CPU from both ([`Kind::Throttled`]). Or the whole machine
//! stands still ([`stopped`]).

mod hold;
pub mod stopped;

use super::provoke::{Slept, os, start};
use hold::Hold;
use model::Cpus;
use model::sample::{Policy, Reservation};
use rustix::thread::futex;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{fs, io};
use sys::{Error, clock, sched};

/// Of the thread that sleeps and wakes.
const PRIORITY: u32 = 90;
const ABOVE: u32 = PRIORITY + 5;
const BELOW: u32 = PRIORITY - 5;
const PERIOD_NS: i64 = 10_000_000;
/// How long holdups take, and how far apart they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Each, where the kernel does not decide, ns: longer than a period, so that a release falls
    /// into it.
    pub length_ns: i64,
    /// The least time between two of them, so that the effects of one are over, ns.
    pub apart_ns: i64,
}

/// For samples of a recording.
pub const CLOSE: Pace = Pace { length_ns: 25_000_000, apart_ns: 45_000_000 };
/// For breaches: what is late at one time is one of them, and a crowded host makes emulated CPUs
/// late by tens of milliseconds.
pub const FAR: Pace = Pace { length_ns: 100_000_000, apart_ns: 400_000_000 };
/// How long a task runs until the scheduler has had enough of it: more than a second, the period of
/// RT throttling and of the fair server (Documentation/scheduler/sched-rt-group.rst,
/// sched-deadline.rst).
const ENDLESS_NS: i64 = 1_300_000_000;
/// What of it is a stretch in which another task ran, and what only an interruption of one: a
/// crowded host stops a CPU for some milliseconds, a task that is not throttled any more runs for
/// much longer.
const GAP_NS: i64 = 5_000_000;
const INTERRUPTED_NS: i64 = 8_000_000;
/// Between two looks at the clock: about a millisecond, so that an interrupt rarely finds it in the
/// kernel.
const TURNS: u32 = 500_000;
/// A sleep that is there to be seen, though a crowded host may stop the CPU on its way there.
const SHORT_NS: i64 = 5_000_000;
/// SCHED_DEADLINE for a holdup: more than what it takes, or it ends by its budget.
fn reservation(length_ns: i64) -> Reservation {
    let runtime_ns = length_ns.unsigned_abs() * 12 / 5;
    Reservation { runtime_ns, deadline_ns: runtime_ns * 5 / 3, period_ns: runtime_ns * 5 / 3 }
}
/// Whether timers may leave the CPU that arms them, and whether breakpoints become jumps.
const SETTINGS: [&str; 2] = ["/proc/sys/kernel/timer_migration", "/proc/sys/debug/kprobes-optimization"];

/// What is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A SCHED_FIFO task of a higher priority.
    TaskAbove,
    /// One of the same priority, which was there first.
    TaskEqual,
    /// A SCHED_DEADLINE task.
    Deadline,
    /// A task that becomes one of a higher priority while it runs, and an ordinary one again: no
    /// event reports either.
    Raised,
    /// An ordinary task that holds a lock which one of a higher priority waits for, and that
    /// inherits its priority.
    Boosted,
    /// A SCHED_FIFO task of a lower priority, which is not in the way.
    TaskBelow,
    /// A SCHED_OTHER task, which is not in the way either.
    Ordinary,
    /// A system call with preemption off.
    PreemptionOff,
    /// A system call with interrupts off.
    InterruptsOff,
    /// A softirq.
    Softirq,
    /// The handler of a timer; on PREEMPT_RT a softirq's thread serves it.
    Timer,
    /// The CPU is kept from real-time tasks.
    Throttled,
    /// The CPU does not execute, while an ordinary task is in user space.
    Stopped,
}

/// All of them.
pub const KINDS: [Kind; 13] = [
    Kind::TaskAbove,
    Kind::TaskEqual,
    Kind::Deadline,
    Kind::Raised,
    Kind::Boosted,
    Kind::TaskBelow,
    Kind::Ordinary,
    Kind::PreemptionOff,
    Kind::InterruptsOff,
    Kind::Softirq,
    Kind::Timer,
    Kind::Throttled,
    Kind::Stopped,
];

/// A few of them, which no kernel hides.
pub const FEW: [Kind; 3] = [Kind::TaskAbove, Kind::Softirq, Kind::Timer];

/// One holdup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// What.
    pub kind: Kind,
    /// CLOCK_MONOTONIC when it had begun, ns.
    pub t0_ns: i64,
    /// The last that is known of it.
    pub t1_ns: i64,
}

/// What could not be planted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// What.
    pub kind: Kind,
    /// Why not.
    pub why: String,
}

/// Everything that was planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Where.
    pub cpu: u32,
    /// The thread that sleeps and wakes.
    pub victim: i32,
    /// The thread that is in its way.
    pub planter: i32,
    /// One by one.
    pub planted: Vec<Planted>,
    /// What the victim measured, by release.
    pub slept: Vec<Slept>,
    /// What this kernel does not allow.
    pub absent: Vec<Absent>,
}

/// Plants each kind `times` times on `cpu` from `from`, at this pace. The caller records.
pub fn plant(cpu: u32, from: u32, times: u32, pace: Pace, kinds: &'static [Kind]) -> Result<Truth, Error> {
    sched::pin(&Cpus::one(from)).map_err(|source| Error::os("run on", format!("CPU {from}"), source))?;
    for setting in SETTINGS {
        // Kernels without one have nothing to switch off.
        let _ = fs::write(setting, "0");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let sleeps = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&sleeps);
    let (victim, waking) = start(cpu, "victim", Arc::clone(&stop), move |stop| wake(stop, &counted))?;
    let planting = move |_: &AtomicBool| in_turn([cpu, from], times, pace, kinds, &sleeps);
    let (planter, planting) = start(cpu, "planter", Arc::clone(&stop), planting)?;
    let planted = planting.join();
    stop.store(true, Ordering::Relaxed);
    let died = |_| Error::failed("a thread", "it panicked");
    let slept = waking.join().map_err(died)??;
    let (planted, absent) = planted.map_err(died)?;
    Ok(Truth { cpu, victim, planter, planted, slept, absent })
}

/// The victim: sleeps until the next multiple of its period, over and over, and counts that.
fn wake(stop: &AtomicBool, sleeps: &AtomicU32) -> Result<Vec<Slept>, Error> {
    sys::policy::set_policy(&Policy::fifo(PRIORITY)).map_err(os("schedule", "the victim"))?;
    let mut slept = Vec::new();
    let mut release_ns = clock::now_ns();
    while !stop.load(Ordering::Relaxed) {
        // Releases that have passed are left out: each sample has slept.
        release_ns += PERIOD_NS * ((clock::now_ns() - release_ns) / PERIOD_NS + 1);
        sleeps.fetch_add(1, Ordering::Relaxed);
        clock::sleep_until(release_ns);
        slept.push(Slept { release_ns, ran_ns: clock::now_ns() });
    }
    Ok(slept)
}

/// What the planter needs.
struct Ground<'a> {
    cpu: u32,
    /// Where the waiter for a lock is.
    from: u32,
    /// How long a holdup takes.
    length_ns: i64,
    /// How often the victim has gone to sleep.
    sleeps: &'a AtomicU32,
    /// The CPUs that a deadline is admitted for.
    domain: io::Result<Cpus>,
    hold: io::Result<Hold>,
    /// Two connected sockets.
    sockets: io::Result<[UdpSocket; 2]>,
    timer: io::Result<OwnedFd>,
}

/// What was planted, and what could not be.
type Done = (Vec<Planted>, Vec<Absent>);

fn in_turn(cpus: [u32; 2], times: u32, pace: Pace, kinds: &[Kind], sleeps: &AtomicU32) -> Done {
    let mut ground = Ground::new(cpus, pace.length_ns, sleeps);
    let (mut planted, mut absent) = (Vec::new(), Vec::new());
    for kind in kinds.iter().copied() {
        for _ in 0..times {
            clock::sleep_until(clock::now_ns() + pace.apart_ns);
            match ground.plant(kind) {
                Ok(found) => {
                    planted.extend(found.into_iter().map(|[t0_ns, t1_ns]| Planted { kind, t0_ns, t1_ns }));
                }
                Err(why) => {
                    absent.push(Absent { kind, why: why.to_string() });
                    break;
                }
            }
        }
    }
    (planted, absent)
}

impl<'a> Ground<'a> {
    fn new([cpu, from]: [u32; 2], length_ns: i64, sleeps: &'a AtomicU32) -> Self {
        let (hold, sockets, timer) = (hold(cpu), loopback(), timer());
        Self { cpu, from, length_ns, sleeps, domain: domain(cpu), hold, sockets, timer }
    }

    /// When it was, where it came about.
    fn plant(&mut self, kind: Kind) -> io::Result<Vec<[i64; 2]>> {
        let once = |[t0_ns, t1_ns]: [i64; 2]| vec![[t0_ns, t1_ns]];
        let length_ns = self.length_ns;
        match kind {
            Kind::TaskAbove => run(&Policy::fifo(ABOVE), length_ns).map(once),
            Kind::TaskEqual => run(&Policy::fifo(PRIORITY), length_ns).map(once),
            Kind::TaskBelow => run(&Policy::fifo(BELOW), length_ns).map(once),
            Kind::Ordinary => run(&Policy::other(), length_ns).map(once),
            Kind::Raised => raised(length_ns).map(once),
            Kind::Boosted => boosted(self.from, length_ns).map(once),
            Kind::Deadline => self.deadline(),
            Kind::PreemptionOff => self.held(|_| {
                let _parent = rustix::process::getppid();
                Ok(())
            }),
            Kind::InterruptsOff => self.held(|_| sys::process::group().map(drop)),
            Kind::Softirq => self.held(|ground| {
                let [from, to] = ground.sockets.as_ref().map_err(again)?;
                from.send(b"x")?;
                to.recv(&mut [0]).map(drop)
            }),
            Kind::Timer => self.held(|ground| {
                let timer = ground.timer.as_ref().map_err(again)?;
                let soon = Timespec { tv_sec: 0, tv_nsec: SHORT_NS };
                let once = Itimerspec { it_interval: Timespec::default(), it_value: soon };
                rustix::time::timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
                rustix::io::read(timer, &mut [0u8; 8]).map(drop).map_err(Into::into)
            }),
            Kind::Throttled => throttled(),
            Kind::Stopped => stopped::stopped(self.from, self.sleeps, TURNS).map(once),
        }
    }

    /// Arms the probes' program to hold the CPU for the length, then calls `provoke`, which must
    /// run into a probe. Returns when the CPU was held: start and end, CLOCK_MONOTONIC, ns. Empty
    /// if nothing ran into a probe.
    fn held(&self, provoke: impl FnOnce(&Self) -> io::Result<()>) -> io::Result<Vec<[i64; 2]>> {
        let hold = self.hold.as_ref().map_err(again)?;
        hold.arm(self.length_ns.unsigned_abs())?;
        provoke(self)?;
        hold.held()
    }

    /// A deadline is admitted for a whole root domain: nothing but that it has just run here keeps
    /// it here.
    fn deadline(&self) -> io::Result<Vec<[i64; 2]>> {
        sched::pin(self.domain.as_ref().map_err(again)?)?;
        let policy = Policy {
            name: "SCHED_DEADLINE".to_owned(),
            priority: 0,
            reservation: Some(reservation(self.length_ns)),
        };
        let ran = run(&policy, self.length_ns);
        let here = sched::current_cpu() == self.cpu;
        sched::pin(&Cpus::one(self.cpu))?;
        Ok(Some(ran?).filter(|_| here).into_iter().collect())
    }
}

/// Probes where a system call, the handler of a packet and that of a timer run into them.
fn hold(cpu: u32) -> io::Result<Hold> {
    let mut hold = Hold::new(cpu)?;
    hold.at_entry(&system_call("getppid"))?;
    hold.inside(&held_with_interrupts_off())?;
    hold.at_entry("ip_rcv")?;
    hold.at_entry("timerfd_tmrproc")?;
    Ok(hold)
}

/// An error that stays.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// Runs for as long as a holdup takes; in user space, though some machines have to ask the kernel
/// for the time.
fn busy(length_ns: i64) -> [i64; 2] {
    let t0_ns = clock::now_ns();
    let mut t1_ns = t0_ns;
    while t1_ns - t0_ns < length_ns {
        for turn in 0..TURNS {
            std::hint::black_box(turn);
        }
        t1_ns = clock::now_ns();
    }
    [t0_ns, t1_ns]
}

/// Runs under a policy, from one sleep to the next: the scheduler's events show it.
fn run(policy: &Policy, length_ns: i64) -> io::Result<[i64; 2]> {
    sys::policy::set_policy(policy)?;
    clock::sleep_until(clock::now_ns() + SHORT_NS);
    let ran = busy(length_ns);
    clock::sleep_until(clock::now_ns() + SHORT_NS);
    sys::policy::set_policy(&Policy::other())?;
    Ok(ran)
}

/// Runs under a policy that it has for no longer than it runs.
fn raised(length_ns: i64) -> io::Result<[i64; 2]> {
    sys::policy::set_policy(&Policy::fifo(ABOVE))?;
    let ran = busy(length_ns);
    sys::policy::set_policy(&Policy::other())?;
    Ok(ran)
}

/// Runs with the priority of a thread elsewhere that waits for its lock (futex(2),
/// "Priority-inheritance futexes").
fn boosted(from: u32, length_ns: i64) -> io::Result<[i64; 2]> {
    let lock = AtomicU32::new(0);
    futex::lock_pi(&lock, futex::Flags::empty(), None)?;
    let waits = || -> io::Result<()> {
        sched::pin(&Cpus::one(from))?;
        sys::policy::set_policy(&Policy::fifo(ABOVE))?;
        futex::lock_pi(&lock, futex::Flags::empty(), None)?;
        Ok(futex::unlock_pi(&lock, futex::Flags::empty())?)
    };
    std::thread::scope(|scope| {
        let waiter = std::thread::Builder::new().name("waiter".to_owned()).spawn_scoped(scope, waits)?;
        let ran = until_inherited(|| waiter.is_finished()).map(|()| busy(length_ns));
        // Whatever failed: the waiter waits for this.
        futex::unlock_pi(&lock, futex::Flags::empty())?;
        waiter.join().map_err(|_| io::Error::other("the waiter panicked"))??;
        ran
    })
}

/// Until the calling thread, an ordinary one, has a real-time priority, or nobody is left who could
/// give it one.
fn until_inherited(nobody: impl Fn() -> bool) -> io::Result<()> {
    while priority()? >= 0 {
        if nobody() {
            return Err(io::Error::other("the waiter ended, and no priority was inherited from it"));
        }
    }
    Ok(())
}

/// The calling thread's effective priority: the 18th field of its `stat` in `/proc`, negative for
/// a real-time one (proc_pid_stat(5)).
fn priority() -> io::Result<i64> {
    let path = format!("/proc/self/task/{}/stat", sched::tid());
    let stat = fs::read_to_string(&path)?;
    // The second field, a name in parentheses, may hold anything.
    let behind_the_name = stat.rsplit_once(')').map(|(_, rest)| rest);
    let field = behind_the_name.and_then(|rest| rest.split_whitespace().nth(15)?.parse().ok());
    field.ok_or_else(|| io::Error::other(format!("{path}: no number in field 18: {stat:?}")))
}

/// Runs below the victim until the scheduler gives the CPU to an ordinary task, of which there is
/// one; when that ran.
fn throttled() -> io::Result<Vec<[i64; 2]>> {
    let stop = AtomicBool::new(false);
    let until_stopped = || stretches(|_| !stop.load(Ordering::Relaxed));
    // On the CPU that this thread is pinned to.
    std::thread::scope(|scope| {
        let ordinary =
            std::thread::Builder::new().name("ordinary".to_owned()).spawn_scoped(scope, until_stopped)?;
        let t0_ns = clock::now_ns();
        let policy = sys::policy::set_policy(&Policy::fifo(BELOW));
        let ran = policy.map(|()| stretches(|now_ns| now_ns - t0_ns < ENDLESS_NS));
        // Whatever failed: the loop continues until this.
        stop.store(true, Ordering::Relaxed);
        sys::policy::set_policy(&Policy::other())?;
        let ordinary = ordinary.join().map_err(|_| io::Error::other("the loop panicked"))?;
        let ran = ran?;
        let (first, last) = (ran.first().map_or(t0_ns, |one| one[0]), ran.last().map_or(t0_ns, |one| one[1]));
        let long = |[from, to]: &[i64; 2]| *from > first && *to < last && to - from >= GAP_NS;
        Ok(ordinary.into_iter().filter(long).collect())
    })
}

/// When the calling thread ran: from one look at the clock to the next it may have been
/// interrupted, but not for long.
fn stretches(go_on: impl Fn(i64) -> bool) -> Vec<[i64; 2]> {
    let mut now_ns = clock::now_ns();
    let mut stretches = vec![[now_ns; 2]];
    while go_on(now_ns) {
        now_ns = clock::now_ns();
        match stretches.last_mut() {
            Some(last) if now_ns - last[1] < INTERRUPTED_NS => last[1] = now_ns,
            _ => stretches.push([now_ns; 2]),
        }
    }
    stretches
}

/// The function that [`Kind::InterruptsOff`] is in.
pub fn held_with_interrupts_off() -> String {
    system_call("getpgid")
}

/// The kernel's function of a system call.
fn system_call(name: &str) -> String {
    let arch = if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" };
    format!("__{arch}_sys_{name}")
}

/// Two sockets, the first connected to the second.
fn loopback() -> io::Result<[UdpSocket; 2]> {
    let [from, to] = [UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?];
    from.connect(to.local_addr()?)?;
    Ok([from, to])
}

fn timer() -> io::Result<OwnedFd> {
    Ok(rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?)
}

/// The CPUs that share a root domain with this one: those isolated at boot have one together.
fn domain(cpu: u32) -> io::Result<Cpus> {
    let cpus = |name: &str| {
        let path = format!("/sys/devices/system/cpu/{name}");
        let text = fs::read_to_string(&path)?;
        text.trim().parse::<Cpus>().map_err(|error| io::Error::other(format!("{path}: {error}")))
    };
    let (isolated, online) = (cpus("isolated")?, cpus("online")?);
    Ok(if isolated.contains(cpu) { isolated } else { online.minus(&isolated) })
}
