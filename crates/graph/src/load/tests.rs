//! Loads played under the policy of everybody.

use super::*;
use model::Cpus;
use model::load::{Jobs, LoadThread, Phase, Releases, Share, Sleeps, Step};

const MS: u64 = 1_000_000;

fn thread(name: &str, steps: Vec<Step>) -> LoadThread {
    LoadThread {
        name: name.to_owned(),
        policy: Policy::other(),
        cpus: None,
        delay_ns: 0,
        phases: vec![Phase { rounds: 1, steps }],
        rounds: None,
    }
}

fn periodic(period_ns: u64) -> Step {
    let left_out = Share { n: 0, of: 1 };
    Step::Release(Releases::Periodic { period_ns, offset_ns: 0, jitter_ns: 0, left_out })
}

fn load(threads: Vec<LoadThread>) -> Load {
    Load { threads, ..Load::default() }
}

fn asleep(most: Duration) -> bool {
    std::thread::sleep(most);
    false
}

const OPTIONS: Options = Options { duration_ns: 200 * MS, seed: 1 };

#[test]
fn threads_release_one_another_and_execute_what_they_should() {
    let jobs = Jobs { most_ns: vec![MS], total_ns: 10 * MS, n: 10, sleeps: Sleeps::default() };
    let send = Step::Send { channel: 0, share: Share { n: 1, of: 2 } };
    let first = thread("first", vec![periodic(10 * MS), Step::Job(jobs), send]);
    let second = thread("second", vec![Step::Wait { channel: 0 }, Step::Execute(MS / 2)]);
    let load = Load { channels: vec!["second".to_owned()], ..load(vec![first, second]) };
    let played = play(&load, OPTIONS, asleep).unwrap();
    let [first, second] = played.threads.as_slice() else { panic!("{played:?}") };
    // A neighbour may have had the CPU.
    assert!(first.rounds >= 2 && first.rounds + first.missed <= 21, "{played:?}");
    assert!(second.rounds <= first.rounds / 2 + 1 && !second.stuck, "{played:?}");
    assert!(first.cpu_ns >= first.rounds * MS - MS / 10, "{played:?}");
    assert!(!played.interrupted && played.duration_ns >= OPTIONS.duration_ns);
}

#[test]
fn every_kind_of_step_ends_when_the_load_does() {
    let timer = Step::Timer { timer: 1, period_ns: 5 * MS, absolute: false };
    let sleeps = Sleeps { jobs: 1, n: 2, total_ns: MS, longest_ns: MS, most: 2 };
    let jobs = Jobs { most_ns: vec![1000], total_ns: 1000, n: 1, sleeps };
    let all = vec![Step::Lock(0), Step::Execute(1000), Step::Unlock(0), Step::Job(jobs), timer];
    let more = vec![Step::Spin(1000), Step::Sleep(MS), Step::Yield, Step::Lock(0), Step::Unlock(0)];
    let apart = Releases::Apart { least_ns: vec![MS], mean_ns: 2 * MS, n: 40 };
    let alone = thread("alone", vec![Step::Release(apart), Step::Barrier(0)]);
    let never = thread("never", vec![Step::Wait { channel: 0 }]);
    let long = thread("long", vec![Step::Sleep(u64::MAX), Step::Execute(u64::MAX)]);
    let once = LoadThread { rounds: Some(2), ..thread("once", vec![Step::Yield]) };
    let load = Load {
        channels: vec!["never".to_owned()],
        locks: vec!["lock".to_owned()],
        // One more than ever come.
        barriers: vec![("all".to_owned(), 2)],
        ..load(vec![thread("all", all), thread("more", more), alone, never, long, once])
    };
    let played = play(&load, OPTIONS, asleep).unwrap();
    assert!(played.threads.iter().all(|one| !one.stuck), "{played:?}");
    assert_eq!(played.threads[5].rounds, 2);
}

#[test]
fn a_load_ends_at_once_when_asked() {
    let load = load(vec![thread("t", vec![periodic(MS)])]);
    let options = Options { duration_ns: 3_600_000 * MS, seed: 1 };
    let begun = Instant::now();
    let played = play(&load, options, |_| true).unwrap();
    assert!(played.interrupted && begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_cannot_be_had_is_refused_before_anything_begins() {
    let mut nowhere = thread("nowhere", vec![periodic(MS)]);
    nowhere.cpus = Some(Cpus::one(model::cpus::MAX_CPU));
    let error = play(&load(vec![thread("t", vec![periodic(MS)]), nowhere]), OPTIONS, asleep).unwrap_err();
    assert!(error.to_string().contains("nowhere onto CPUs"), "{error}");
}

#[test]
fn loads_that_leave_nothing_to_others_are_refused() {
    let online: Cpus = [0, 1].into_iter().collect();
    let real_time = |cpu: Option<u32>, cost_ns| LoadThread {
        policy: Policy::fifo(1),
        cpus: cpu.map(Cpus::one),
        ..thread("t", vec![periodic(10 * MS), Step::Execute(cost_ns)])
    };
    let refused = |threads| admit(&load(threads), 0.95, &online).map_err(|error| error.to_string());
    assert_eq!(refused(vec![real_time(Some(0), 9 * MS), real_time(Some(1), 9 * MS)]), Ok(()));
    let error = refused(vec![real_time(Some(0), 6 * MS), real_time(Some(0), 4 * MS)]).unwrap_err();
    assert!(error.contains("take 100.0 % of CPU 0; expected at most 95.0 %"), "{error}");
    let error = refused((0..3).map(|_| real_time(None, 7 * MS)).collect()).unwrap_err();
    assert!(error.contains("take 210.0 % of 2 CPUs"), "{error}");
    assert!(refused(vec![real_time(Some(2), 1)]).unwrap_err().contains("CPU 2 is not there"));
    let fair = thread("t", vec![Step::Execute(1)]);
    assert_eq!(refused(vec![fair]), Ok(()));
    assert!((real_time_share(Some(-1), Some(1_000_000)) - 0.95).abs() < 1e-9);
    assert!((real_time_share(Some(500_000), Some(1_000_000)) - 0.5).abs() < 1e-9);
    assert!((real_time_share(Some(0), None) - 0.95).abs() < 1e-9);
}
