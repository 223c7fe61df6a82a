//! Tests the ring under every interleaving of its steps, or, where these are too many, under every
//! one with few preemptions.
//!
//! Two threads run the ring's own code over words that stop before each access and let a schedule
//! choose who continues. The schedules are walked depth first, each run from the start (Godefroid,
//! "Model Checking for Programming Languages using VeriSoft", POPL 1997), optionally with a bound
//! on preemptions (Musuvathi and Qadeer, "Iterative Context Bounding", PLDI 2007). Accesses are
//! sequentially consistent here; `ring.rs` argues what weaker memory would allow.

use super::ring::{Place, Put, Ring, Words};
use std::sync::{Arc, Condvar, Mutex};

/// The steps of one run: who was chosen at each, and between how many.
#[derive(Default)]
struct Turns {
    /// Whose turn it is.
    runs: usize,
    alive: [bool; 2],
    /// Choices to repeat; afterwards the running thread continues.
    plan: Vec<usize>,
    /// Choices made, each with whether the other could still be chosen.
    made: Vec<(usize, bool)>,
    preemptions: usize,
    bound: usize,
}

#[derive(Default)]
struct Schedule {
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl Schedule {
    /// Called by the thread that runs, before each access.
    fn step(&self, me: usize) {
        let mut turns = self.turns.lock().unwrap();
        let other = 1 - me;
        let at = turns.made.len();
        let planned = turns.plan.get(at).copied();
        let next = planned.unwrap_or(me);
        let could = turns.alive[other] && next == me && turns.preemptions < turns.bound;
        turns.made.push((next, could));
        if next != me {
            turns.preemptions += 1;
            turns.runs = next;
            self.changed.notify_all();
            drop(self.changed.wait_while(turns, |turns| turns.runs != me).unwrap());
        }
    }

    fn wait_for_turn(&self, me: usize) {
        let turns = self.turns.lock().unwrap();
        drop(self.changed.wait_while(turns, |turns| turns.runs != me).unwrap());
    }

    fn leave(&self, me: usize) {
        let mut turns = self.turns.lock().unwrap();
        turns.alive[me] = false;
        turns.runs = 1 - me;
        self.changed.notify_all();
    }
}

/// Words that stop before each access. The schedule lets one thread run at a time, so the lock
/// never waits.
#[derive(Clone)]
struct Stopping {
    me: usize,
    schedule: Arc<Schedule>,
    words: Arc<Mutex<[u64; 8]>>,
}

impl Stopping {
    fn access<T>(&self, place: Place, act: impl FnOnce(&mut u64) -> T) -> T {
        self.schedule.step(self.me);
        let mut words = self.words.lock().unwrap();
        let index = match place {
            Place::Head => 0,
            Place::Tail => 1,
            Place::Entry(index) => 2 + index,
        };
        act(&mut words[index])
    }
}

impl Words for Stopping {
    fn load(&self, place: Place) -> u64 {
        self.access(place, |word| *word)
    }

    fn store(&self, place: Place, value: u64) {
        self.access(place, |word| *word = value);
    }

    fn exchange(&self, place: Place, from: u64, to: u64) -> bool {
        self.access(place, |word| {
            let same = *word == from;
            if same {
                *word = to;
            }
            same
        })
    }
}

/// What is explored.
#[derive(Clone, Copy)]
struct Scene {
    depth: usize,
    puts: u64,
    takes: usize,
    replace: bool,
    /// Most preemptions of a schedule.
    bound: usize,
}

/// What came of one run.
struct Outcome {
    puts: Vec<Put>,
    taken: Vec<u64>,
    made: Vec<(usize, bool)>,
}

/// One run of the ring over words of this kind.
fn run<W: Words + Send>(scene: Scene, plan: Vec<usize>, words_of: fn(Stopping) -> W) -> Outcome {
    let turns = Turns { alive: [true; 2], plan, bound: scene.bound, ..Turns::default() };
    let schedule = Arc::new(Schedule { turns: Mutex::new(turns), ..Schedule::default() });
    let words = Arc::new(Mutex::new([0; 8]));
    let ring = |me| {
        let side = Stopping { me, schedule: Arc::clone(&schedule), words: Arc::clone(&words) };
        Ring::new(words_of(side), scene.depth)
    };
    let (producer, consumer) = (ring(0), ring(1));
    let turns = &schedule;
    let (puts, consumer, mut taken) = std::thread::scope(|scope| {
        let producing = scope.spawn(move || {
            turns.wait_for_turn(0);
            // Each message has a number other than 0, which an empty word holds.
            let puts: Vec<_> = (1..=scene.puts).map(|number| producer.put(number, scene.replace)).collect();
            turns.leave(0);
            puts
        });
        let consuming = scope.spawn(move || {
            turns.wait_for_turn(1);
            let taken: Vec<_> = (0..scene.takes).filter_map(|_| consumer.take()).collect();
            turns.leave(1);
            (consumer, taken)
        });
        let (consumer, taken) = consuming.join().unwrap();
        (producing.join().unwrap(), consumer, taken)
    });
    let made = {
        let mut turns = schedule.turns.lock().unwrap();
        turns.plan.clear();
        std::mem::take(&mut turns.made)
    };
    // What is left is taken when no other thread is there.
    taken.extend(std::iter::from_fn(|| consumer.take()));
    Outcome { puts, taken, made }
}

/// Whether each message was taken, replaced or refused, once, and those that were taken came in
/// order.
fn accounted(scene: Scene, outcome: &Outcome) -> bool {
    let mut seen = outcome.taken.clone();
    seen.extend(outcome.puts.iter().zip(1..).filter_map(|(put, number)| match put {
        Put::Taken => None,
        Put::Instead(oldest) => Some(*oldest),
        Put::Full => Some(number),
    }));
    seen.sort_unstable();
    let refused = outcome.puts.contains(&Put::Full);
    seen.into_iter().eq(1..=scene.puts)
        && outcome.taken.is_sorted_by(|one, next| one < next)
        && !(refused && scene.replace)
}

/// Runs every schedule of a scene; returns how many there were, and in how many the account failed.
fn explore<W: Words + Send>(scene: Scene, words_of: fn(Stopping) -> W) -> (usize, usize) {
    let (mut plan, mut failed) = (Vec::new(), 0);
    for runs in 1.. {
        let outcome = run(scene, plan, words_of);
        failed += usize::from(!accounted(scene, &outcome));
        let made = outcome.made;
        let Some(last) = made.iter().rposition(|(_, could)| *could) else { return (runs, failed) };
        plan = made[..last].iter().map(|(chosen, _)| *chosen).collect();
        plan.push(1 - made[last].0);
    }
    unreachable!()
}

#[test]
fn every_interleaving_of_a_short_exchange_keeps_the_account() {
    for replace in [false, true] {
        let scene = Scene { depth: 1, puts: 2, takes: 1, replace, bound: usize::MAX };
        let (schedules, failed) = explore(scene, |words| words);
        assert!(schedules > 20 && failed == 0, "{failed} of {schedules}");
    }
}

#[test]
fn few_preemptions_of_a_longer_exchange_keep_the_account() {
    for replace in [false, true] {
        let scene = Scene { depth: 2, puts: 4, takes: 3, replace, bound: 3 };
        let (schedules, failed) = explore(scene, |words| words);
        assert!(schedules > 100 && failed == 0, "{failed} of {schedules}");
    }
}

/// Words whose exchange does not compare, as one would write without a producer that replaces.
struct Careless(Stopping);

impl Words for Careless {
    fn load(&self, place: Place) -> u64 {
        self.0.load(place)
    }

    fn store(&self, place: Place, value: u64) {
        self.0.store(place, value);
    }

    fn exchange(&self, place: Place, _: u64, to: u64) -> bool {
        self.0.store(place, to);
        true
    }
}

#[test]
fn the_search_finds_what_an_exchange_without_a_look_does() {
    let scene = Scene { depth: 1, puts: 2, takes: 1, replace: true, bound: usize::MAX };
    let (schedules, failed) = explore(scene, Careless);
    assert!(failed > 0, "none of {schedules}");
}
