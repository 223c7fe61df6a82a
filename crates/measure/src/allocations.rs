//! Tests that the measuring loops allocate nothing, so that the allocator of the program has no
//! part in what they measure.
//!
//! The unit tests of this crate run on an allocator that counts for each thread.

use super::kind::{Place, Probe, Window};
use super::ring::{BYTES, Ring};
use super::spec::{NoiseSpec, WakeupSpec};
use model::Cpus;
use model::sample::Policy;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use sys::clock::{ClockId, now_ns};
use sys::memory::shared_file;

const WINDOW_NS: i64 = 5_000_000;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count() {
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every call goes to the system's allocator as it came; a counter without a destructor
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(start, layout, size) }
    }
}

fn window(ring: &mut Ring) -> Window<'_> {
    Window { ring, start_ns: now_ns(), duration_ns: WINDOW_NS, releases: None }
}

/// How often a loop called the allocator; it must have stored something.
fn calls_of(probe: &dyn Probe) -> u64 {
    let file = shared_file("allocations-test", BYTES).unwrap();
    let mut ring = Ring::map(&file).unwrap();
    let place = Place { cpus: Cpus::one(0), policy: Policy::other() };
    let mut measuring = probe.prepare(place).unwrap();
    measuring.rehearse(window(&mut ring));
    ring.rewind();
    let before = COUNT.get();
    measuring.run(window(&mut ring)).unwrap();
    let calls = COUNT.get() - before;
    assert!(ring.filled() > 0);
    calls
}

#[test]
fn the_counter_counts() {
    let before = COUNT.get();
    drop(std::hint::black_box(Vec::<u8>::with_capacity(100)));
    assert_eq!(COUNT.get() - before, 2);
}

#[test]
fn the_wake_up_loop_allocates_nothing() {
    for clock in [ClockId::Monotonic, ClockId::Realtime] {
        let spec = WakeupSpec { period_ns: 500_000, offset_ns: 0, warm_up: 2, clock, loops: 0 };
        assert_eq!(calls_of(&spec), 0);
    }
}

#[test]
fn the_noise_loop_allocates_nothing() {
    let spec = NoiseSpec {
        threshold_ns: 0,
        spin_ns: 2_000_000,
        pause_ns: 500_000,
        memmove_bytes: 0,
        preheat_ns: 1_000_000,
        bias: false,
    };
    assert_eq!(calls_of(&spec), 0);
}
