//! A machine that does not execute for a while, as seen from inside: all its CPUs stand still
//! together, and its clocks continue.
//!
//! Nothing in a guest can do that. Whoever watches its console is asked to, by a line.

use model::Cpus;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, io, thread};
use sys::{clock, sched};

/// What the line on the console begins with.
pub const REQUEST: &str = "stillcore: stop this machine";
/// For how long.
pub const LENGTH: Duration = Duration::from_millis(400);

const CONSOLE: &str = "/dev/console";
/// Emulated CPUs take turns of a tenth of a second (QEMU, `TCG_KICK_PERIOD`): this was none.
const GAP_NS: i64 = 200_000_000;
/// The loops continue for so long after it: the emulator's timers may come later than its CPUs.
const BEHIND_NS: i64 = 30_000_000;
/// How long somebody may take who was asked.
const PATIENCE_NS: i64 = 10_000_000_000;

/// Requests a stop of the machine while the calling thread is in user space, between two of the
/// `sleeps` that the victim counts; returns when that was. A loop on this CPU and one on `from`
/// read the clock every `turns` turns: both stood still only while neither saw it advance.
pub(super) fn stopped(from: u32, sleeps: &AtomicU32, turns: u32) -> io::Result<[i64; 2]> {
    let until_ns = clock::now_ns() + PATIENCE_NS;
    let looks = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let there = sched::pin(&Cpus::one(from));
            looks.store(true, Ordering::Relaxed);
            there?;
            gap(turns, clock::now_ns(), until_ns)
        });
        while !looks.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        let slept = sleeps.load(Ordering::Relaxed);
        while sleeps.load(Ordering::Relaxed) == slept && clock::now_ns() < until_ns {}
        let asked_ns = clock::now_ns();
        fs::write(CONSOLE, format!("{REQUEST}\n"))?;
        let own = gap(turns, asked_ns, until_ns);
        let other = other.join().map_err(|_| io::Error::other("the other thread panicked"))?;
        Ok::<_, io::Error>([own?, other?])
    })?;
    let [own, other] = seen;
    let both = [own[0].max(other[0]), own[1].min(other[1])];
    if both[1] - both[0] < GAP_NS {
        return Err(io::Error::other(format!("two CPUs stood still at different times: {own:?}, {other:?}")));
    }
    Ok(both)
}

/// The first long time between two looks at the clock, the first of which was at `last_ns`.
fn gap(turns: u32, mut last_ns: i64, until_ns: i64) -> io::Result<[i64; 2]> {
    let mut found = None;
    loop {
        for turn in 0..turns {
            black_box(turn);
        }
        let now_ns = clock::now_ns();
        match found {
            None if now_ns - last_ns >= GAP_NS => found = Some([last_ns, now_ns]),
            Some(gap) if now_ns - gap[1] >= BEHIND_NS => return Ok(gap),
            _ => {}
        }
        if found.is_none() && now_ns > until_ns {
            return Err(io::Error::other(format!("nobody stopped this machine: {CONSOLE} was asked")));
        }
        last_ns = now_ns;
    }
}
