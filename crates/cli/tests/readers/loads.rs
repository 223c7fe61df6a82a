//! Workload files of rt-app.

use super::{Outcome, Reader, fixtures, text, whole};
use analysis::rt_app;
use analysis::task_model::load_tasks::tasks_of;
use model::load::{MOST_STEPS, MOST_THREADS, Step};

pub(crate) fn reader() -> Reader {
    Reader { name: "rt-app", seeds: fixtures("fixtures/rt-app", "json"), damage: text, read, short: 2_000 }
}

fn read(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let Ok(load) = rt_app::read("load.json", &text) else { return whole(false) };
    assert!((1..=MOST_THREADS).contains(&load.threads.len()));
    let steps = load.threads.iter().flat_map(|thread| &thread.phases).flat_map(|phase| &phase.steps);
    let (mut count, mut releasing) = (0, 0);
    for step in steps {
        count += 1;
        match step {
            Step::Wait { channel } => assert!(*channel < load.channels.len()),
            Step::Send { channel, .. } => {
                releasing += 1;
                assert!(*channel < load.channels.len());
            }
            Step::Lock(lock) | Step::Unlock(lock) => assert!(*lock < load.locks.len()),
            Step::Barrier(barrier) => assert!(load.barriers[*barrier].1 > 0),
            _ => {}
        }
    }
    // One event may resume several threads.
    assert!(count - releasing <= MOST_STEPS);
    assert!(load.utilizations().iter().all(|part| (0.0..=1.0).contains(part)));
    let _ = tasks_of(&load);
    // The written form is read again, where something is left to write.
    let (written, notes) = rt_app::write(&load, 1);
    let again = rt_app::read("load.json", &written);
    let is_whole = !notes.iter().any(|note| note.contains("left out"));
    assert!(again.is_ok() || !is_whole, "its own file is refused: {:?}\n{written}", again.err());
    Outcome::Whole
}
