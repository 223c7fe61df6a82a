//! Fixed-priority verdicts against a stored fixture: sets drawn by a seeded generator, answers of
//! the unit-step simulation of `common`. Stored, so that a change of generator, simulation or
//! analysis shows. `cargo test -p stillcore-sched --test fp_fixture -- --ignored` writes it anew.

use std::path::PathBuf;

use crate::common::{Numbers, Simulated, critical_instant};
use sched::{Limits, Task, TaskSet, is_schedulable, response_times};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Fixture {
    how: String,
    sets: Vec<Answered>,
}

/// Columns, one entry a task; index is priority.
#[derive(Serialize, Deserialize)]
struct Answered {
    period: Vec<u64>,
    deadline: Vec<u64>,
    cost: Vec<u64>,
    jitter: Vec<u64>,
    blocking: Vec<u64>,
    response: Vec<Option<u64>>,
    schedulable: bool,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fp_simulated.json")
}

fn stored() -> Fixture {
    serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap()
}

impl Answered {
    fn tasks(&self) -> Vec<Task> {
        (0..self.period.len())
            .map(|i| Task {
                period_ns: self.period[i],
                deadline_ns: self.deadline[i],
                cost_ns: self.cost[i],
                jitter_ns: self.jitter[i],
                blocking_ns: self.blocking[i],
            })
            .collect()
    }
}

#[test]
fn the_analysis_gives_the_stored_answers() {
    let fixture = stored();
    for (id, set) in fixture.sets.iter().enumerate() {
        let tasks = TaskSet::new(set.tasks()).unwrap();
        let verdict = response_times(&tasks, Limits::default());
        assert_eq!(verdict.response_times, set.response, "set {id}");
        assert_eq!(verdict.schedulable, set.schedulable, "set {id}");
        assert_eq!(is_schedulable(&tasks, Limits::default()), set.schedulable, "set {id}");
    }
    let schedulable = fixture.sets.iter().filter(|set| set.schedulable).count();
    let share = schedulable * 100 / fixture.sets.len();
    assert!((20..=80).contains(&share), "{share} % schedulable: the fixture has to hold both answers");
}

#[test]
fn the_simulation_still_gives_the_stored_answers() {
    for (id, set) in stored().sets.iter().enumerate().step_by(10) {
        assert_eq!(simulate(&set.tasks()).as_ref(), Some(&set.response), "set {id}");
    }
}

/// `None` where some busy window outlasts the simulation.
fn simulate(tasks: &[Task]) -> Option<Vec<Option<u64>>> {
    let one = |index| match critical_instant(&tasks[..=index], 20_000) {
        Simulated::Response(response) => Some(Some(response)),
        Simulated::Beyond => Some(None),
        Simulated::Unknown => None,
    };
    (0..tasks.len()).map(one).collect()
}

fn draw(numbers: &mut Numbers) -> Vec<Task> {
    let count = numbers.between(1, 8);
    let arbitrary = numbers.between(0, 2) == 0;
    let load = numbers.between(40, 105);
    let mut tasks: Vec<Task> = (0..count)
        .map(|_| {
            let period_ns = numbers.between(20, 400);
            let percent = if arbitrary { numbers.between(80, 250) } else { numbers.between(60, 100) };
            Task {
                period_ns,
                deadline_ns: period_ns * percent / 100,
                cost_ns: (period_ns * load * numbers.between(20, 180) / 10_000 / count).max(1),
                jitter_ns: numbers.between(0, 1) * numbers.between(0, period_ns / 4),
                blocking_ns: numbers.between(0, 1) * numbers.between(0, period_ns / 8),
            }
        })
        .collect();
    tasks.sort_by_key(|task| task.deadline_ns);
    tasks
}

/// The stored sets match what this file draws and answers. Otherwise the new text is left in the
/// build directory, to be compared and copied.
#[test]
fn the_fixture_is_what_this_file_draws() {
    let mut numbers = Numbers(2020);
    let mut sets = Vec::new();
    while sets.len() < 200 {
        let tasks = draw(&mut numbers);
        let Some(response) = simulate(&tasks) else { continue };
        let in_time = |(r, task): (&Option<u64>, &Task)| r.is_some_and(|r| r <= task.deadline_ns);
        let column = |field: fn(&Task) -> u64| tasks.iter().map(field).collect::<Vec<u64>>();
        sets.push(Answered {
            period: column(|t| t.period_ns),
            deadline: column(|t| t.deadline_ns),
            cost: column(|t| t.cost_ns),
            jitter: column(|t| t.jitter_ns),
            blocking: column(|t| t.blocking_ns),
            schedulable: response.iter().zip(&tasks).all(in_time),
            response,
        });
    }
    let how = "drawn by splitmix64 seed 2020, answered by unit-step simulation of the critical instant: \
               tests/fp_fixture.rs";
    let lines: Vec<String> = sets.iter().map(|set| serde_json::to_string(set).unwrap()).collect();
    let text = format!("{{\"how\":\"{how}\",\"sets\":[\n{}\n]}}\n", lines.join(",\n"));
    if std::fs::read_to_string(path()).unwrap() != text {
        let drawn = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("fp_fixture.json");
        std::fs::write(&drawn, text).unwrap();
        panic!("{} differs from what was drawn, which is in {}", path().display(), drawn.display());
    }
}
