//! Contention for a lock of Rust's standard library, which stores no owner: whoever reports one has
//! guessed. A thread under SCHED_FIFO waits for another one that sleeps while it holds the lock.
//!
//!     contention CPU ROUNDS
//!
//! Prints `rust:holds lock ADDRESS deeper 0x0`, then `PART NUMBER` of both threads.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread::{scope, sleep};
use std::time::Duration;

unsafe extern "C" {
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
    fn sched_setscheduler(pid: i32, policy: i32, priority: *const i32) -> i32;
    fn gettid() -> i32;
}

const FIFO: i32 = 1;

static LOCK: Mutex<u64> = Mutex::new(0);
static TIDS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

/// Announces itself, under this priority.
fn begin(part: usize, priority: i32) {
    // SAFETY: The priority is read during the call, and the other call takes nothing.
    let tid = unsafe {
        let failed = sched_setscheduler(0, FIFO, [priority; 16].as_ptr());
        assert!(failed == 0, "sched_setscheduler");
        gettid()
    };
    TIDS[part].store(tid.unsigned_abs(), SeqCst);
}

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [cpu, rounds] = numbers[..] else { panic!("contention CPU ROUNDS") };
    let mask = [1_u64 << cpu; 1];
    // SAFETY: The mask has the length that is passed.
    assert!(unsafe { sched_setaffinity(0, 8, mask.as_ptr()) } == 0, "sched_setaffinity");
    let is_held = Barrier::new(2);
    let ms = |ms| sleep(Duration::from_millis(ms));
    scope(|threads| {
        threads.spawn(|| {
            begin(0, 80);
            // Whoever watches looks for new threads now and then.
            ms(250);
            for _ in 0..rounds {
                is_held.wait();
                *LOCK.lock().unwrap() += 1;
            }
        });
        threads.spawn(|| {
            begin(1, 20);
            ms(250);
            for _ in 0..rounds {
                let mut held = LOCK.lock().unwrap();
                is_held.wait();
                ms(5);
                *held += 1;
                drop(held);
                ms(5);
            }
        });
        ms(100);
        let [waiter, holder] = [0, 1].map(|part: usize| TIDS[part].load(SeqCst));
        println!("rust:holds lock {:p} deeper 0x0 waiter {waiter} holder {holder}", &raw const LOCK);
    });
}
