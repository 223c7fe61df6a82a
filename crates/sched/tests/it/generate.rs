//! Generated sets follow their laws: moments against theory, and the Kolmogorov-Smirnov distance
//! against known marginal distributions. Seeds are fixed, so that a test either holds for good or
//! not at all.

use sched::generate::{Generator, Periods, Sharing, Spec, Utilizations};
use sched::{
    Access, Limits, Path, Task, TaskSet, are_generated_schedulable, are_schedulable, rate_monotonic,
};

/// Largest distance between the empirical distribution of `values` and `law`, times √n: above 1.95
/// once in a thousand (Kolmogorov).
fn distance(mut values: Vec<f64>, law: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let gap = |(at, value): (usize, &f64)| {
        let theory = law(*value);
        (theory - at as f64 / n).abs().max(((at + 1) as f64 / n - theory).abs())
    };
    values.iter().enumerate().map(gap).fold(0.0, f64::max) * n.sqrt()
}

fn generator(spec: Spec) -> Generator {
    Generator::new(spec, 20_260_101).unwrap()
}

fn utilizations(spec: Spec, sets: u64, at: usize) -> Vec<f64> {
    let generator = generator(spec);
    (0..sets).map(|set| generator.set(set).unwrap().tasks()[at].utilization()).collect()
}

#[test]
fn utilizations_on_the_simplex() {
    // The marginal of n numbers uniform over the simplex: P(u ≤ x) = 1 - (1 - x/U)^(n-1).
    for (tasks, utilizations_by) in
        [(40, Utilizations::UUniFast), (40, Utilizations::RandFixedSum), (2, Utilizations::UUniFast)]
    {
        let spec = Spec { tasks, utilizations: utilizations_by, ..Spec::default() };
        for at in [0, tasks / 2, tasks - 1] {
            let drawn = utilizations(spec.clone(), 4000, at);
            let d = distance(drawn, |x| 1.0 - (1.0 - (x / 0.8).min(1.0)).powi(tasks as i32 - 1));
            assert!(d < 1.95, "{utilizations_by:?}, task {at} of {tasks}: {d}");
        }
    }
}

#[test]
fn second_moments_of_the_simplex() {
    // E[sum u²] = 2 U² / (n + 1).
    let generator = generator(Spec { tasks: 20, ..Spec::default() });
    let sum: f64 = (0..4000)
        .map(|set| generator.set(set).unwrap().tasks().iter().map(|t| t.utilization().powi(2)).sum::<f64>())
        .sum();
    let expected = 2.0 * 0.64 / 21.0;
    // Its standard error here is about 0.4 %.
    assert!((sum / 4000.0 / expected - 1.0).abs() < 0.02, "{sum} of {expected}");
}

#[test]
fn three_utilizations_that_sum_to_one_and_a_half() {
    // The cut of the unit cube by x + y + z = 3/2 has the marginal density 4/3 (1 - |x - 1/2|).
    let law = |x: f64| {
        let rising = |x: f64| (0.5 * x + 0.5 * x * x) * 4.0 / 3.0;
        if x < 0.5 { rising(x) } else { 1.0 - rising((1.0 - x).max(0.0)) }
    };
    for utilizations_by in [Utilizations::UUniFast, Utilizations::RandFixedSum] {
        let spec =
            Spec { tasks: 3, utilization: 1.5, utilizations: utilizations_by, cores: 2, ..Spec::default() };
        for at in 0..3 {
            let d = distance(utilizations(spec.clone(), 4000, at), law);
            assert!(d < 1.95, "{utilizations_by:?}, task {at}: {d}");
        }
    }
}

#[test]
fn sums_and_order() {
    for utilization in [0.3, 0.8, 1.0, 7.5] {
        let by = if utilization > 1.0 { Utilizations::RandFixedSum } else { Utilizations::UUniFast };
        let generator = generator(Spec { utilization, utilizations: by, cores: 8, ..Spec::default() });
        for set in 0..200 {
            let set = generator.set(set).unwrap();
            assert!((set.utilization() - utilization).abs() < 40.0 * 0.5 / 1e7, "{}", set.utilization());
            assert_eq!(rate_monotonic(set.tasks()), (0..40).collect::<Vec<_>>());
        }
    }
}

fn periods(periods: Periods) -> Vec<f64> {
    let generator = generator(Spec { periods, tasks: 10, ..Spec::default() });
    let of = |set: u64| {
        generator.set(set).unwrap().tasks().iter().map(|task| task.period_ns as f64).collect::<Vec<_>>()
    };
    (0..1000).flat_map(of).collect()
}

#[test]
fn periods_follow_their_laws() {
    let (low, high) = (10_000_000, 100_000_000);
    let uniform = periods(Periods::Uniform { low_ns: low, high_ns: high, granularity_ns: 1 });
    let d = distance(uniform, |t| (t - 1e7) / 9e7);
    assert!(d < 1.95, "uniform: {d}");
    let log = periods(Periods::LogUniform { low_ns: low, high_ns: high, granularity_ns: 1 });
    let d = distance(log, |t| (t / 1e7).log10());
    assert!(d < 1.95, "log-uniform: {d}");
}

#[test]
fn periods_of_a_grid_are_equally_likely() {
    for law in
        [Periods::Uniform { low_ns: 10, high_ns: 100, granularity_ns: 10 }, Periods::harmonic(10, 10 << 9, 2)]
    {
        let drawn = periods(law.clone());
        let mut values = drawn.clone();
        values.sort_by(f64::total_cmp);
        values.dedup();
        assert_eq!(values.len(), 10, "{law:?}");
        // Chi-square with 9 degrees of freedom: above 27.9 once in a thousand.
        let expected = drawn.len() as f64 / 10.0;
        let count = |value: &f64| drawn.iter().filter(|drawn| drawn.total_cmp(value).is_eq()).count() as f64;
        let chi: f64 = values.iter().map(|value| (count(value) - expected).powi(2) / expected).sum();
        assert!(chi < 27.9, "{law:?}: {chi}");
    }
}

#[test]
fn the_same_sets_at_every_utilization_jitter_and_order() {
    let at = |utilization: f64, jitter_ns: u64| generator(Spec { utilization, jitter_ns, ..Spec::default() });
    let (low, high, late) = (at(0.4, 0), at(0.8, 0), at(0.8, 72_000));
    for set in [5u64, 3, 1 << 40, 0] {
        let (low, high, late) = (low.set(set).unwrap(), high.set(set).unwrap(), late.set(set).unwrap());
        assert_eq!(high.with_added_jitter(72_000).unwrap(), late);
        for (one, other) in low.tasks().iter().zip(high.tasks()) {
            assert_eq!(one.period_ns, other.period_ns);
            assert!(one.cost_ns * 2 <= other.cost_ns + 2 && other.cost_ns <= one.cost_ns * 2 + 2);
        }
    }
}

/// From one machine; must be the same on all, for ever.
#[test]
fn a_set_is_fixed() {
    let set = Generator::new(Spec { tasks: 3, ..Spec::default() }, 1).unwrap().set(7).unwrap();
    let rows: Vec<[u64; 2]> = set.tasks().iter().map(|task| [task.period_ns, task.cost_ns]).collect();
    assert_eq!(rows, [[55_828_434, 10_667_896], [60_352_665, 18_271_849], [88_851_825, 27_203_330]]);
}

#[test]
fn cores_with_their_own_tasks() {
    let generator =
        generator(Spec { tasks: 10, utilization: 0.75, cores: 5, per_core: true, ..Spec::default() });
    let system = generator.system(3).unwrap();
    assert!(system.tasks.is_sorted_by_key(|task| task.task.period_ns));
    for indices in system.by_core() {
        let set = system.set_of(&indices).unwrap();
        assert_eq!(set.tasks().len(), 10);
        assert!((set.utilization() - 0.75).abs() < 1e-6);
    }
}

#[test]
fn deadlines_between_shares_of_the_period() {
    let generator = generator(Spec { deadlines: [0.5, 1.0], ..Spec::default() });
    let shares: Vec<f64> = (0..200)
        .flat_map(|set| {
            generator
                .set(set)
                .unwrap()
                .tasks()
                .iter()
                .map(|t| t.deadline_ns as f64 / t.period_ns as f64)
                .collect::<Vec<_>>()
        })
        .collect();
    let d = distance(shares, |share| (share - 0.5) / 0.5);
    assert!(d < 1.95, "{d}");
    assert!(generator.set(0).unwrap().tasks().is_sorted_by_key(|task| task.deadline_ns));
}

#[test]
fn requests_as_asked_for() {
    let sharing =
        Sharing { resources: 2, probability: 0.25, requests: 3, length_ns: [1000, 5000], readers: 0.5 };
    let generator = generator(Spec { sharing: Some(sharing), cores: 4, utilization: 0.4, ..Spec::default() });
    let tasks: Vec<_> = (0..200).flat_map(|set| generator.system(set).unwrap().tasks).collect();
    let requests: Vec<_> = tasks.iter().flat_map(|task| &task.requests).collect();
    // 8000 tasks, two resources: 4000 requests expected, standard deviation 55; readers half of
    // them, standard deviation of their tasks 45.
    assert!((3780..4220).contains(&requests.len()), "{}", requests.len());
    let readers =
        tasks.iter().filter(|task| task.requests.iter().any(|one| one.access == Access::Read)).count();
    let users = tasks.iter().filter(|task| !task.requests.is_empty()).count();
    assert!(
        (users as f64 / 2.0 - readers as f64).abs() < 4.0 * (users as f64).sqrt() / 2.0,
        "{readers} of {users}"
    );
    // No section is longer than its task.
    let long = tasks.iter().filter(|task| task.task.cost_ns >= 5000).flat_map(|task| &task.requests);
    let lengths = long.map(|one| one.length_ns as f64).collect();
    assert!(distance(lengths, |length| (length - 1000.0) / 4000.0) < 1.95);
    for count in 1..=3 {
        let seen = requests.iter().filter(|one| one.count == count).count() as f64;
        assert!((seen / requests.len() as f64 - 1.0 / 3.0).abs() < 0.035, "{count}: {seen}");
    }
}

#[test]
fn impossible_specs_are_refused() {
    for (spec, expected) in [
        (Spec { tasks: 0, ..Spec::default() }, "tasks: 0, expected 1 to 1048576 in all"),
        (Spec { utilization: 0.0, ..Spec::default() }, "utilization: 0, expected above 0"),
        (Spec { utilization: f64::NAN, ..Spec::default() }, "utilization: NaN, expected above 0"),
        (Spec { utilization: 41.0, ..Spec::default() }, "utilization: 41, expected above 0"),
        (Spec { cores: 0, ..Spec::default() }, "cores: 0, expected 1 to 4096"),
        (Spec { deadlines: [1.0, 0.5], ..Spec::default() }, "deadlines: 1 to 0.5, expected shares"),
        (
            Spec { periods: Periods::List(Vec::new()), ..Spec::default() },
            "periods: none, expected at least one",
        ),
    ] {
        let error = Generator::new(spec, 1).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let hopeless = Spec { utilization: 39.0, ..Spec::default() };
    let error = Generator::new(hopeless, 1).unwrap().set(4).unwrap_err().to_string();
    assert!(error.starts_with("set 4: 10000 vectors in a row"), "{error}");
}

/// The textbook's way, with nothing in common: a chain of powers, periods drawn and sorted, another
/// generator of numbers.
fn textbook_set(next: &mut impl FnMut() -> f64, utilization: f64) -> TaskSet {
    let mut left = utilization;
    let mut tasks: Vec<Task> = (1..=40)
        .map(|drawn| {
            let rest = if drawn < 40 { left * next().powf(1.0 / f64::from(40 - drawn)) } else { 0.0 };
            let share = left - rest;
            left = rest;
            let period = (1e7 + 9e7 * next()).round();
            Task::implicit(period as u64, ((share * period).round() as u64).max(1))
        })
        .collect();
    tasks.sort_by_key(|task| task.period_ns);
    TaskSet::new(tasks).unwrap()
}

#[test]
fn as_many_are_schedulable_as_of_sets_drawn_the_textbook_way() {
    let mut state = 99u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    for utilization in [0.8, 0.85] {
        let textbook: Vec<TaskSet> = (0..20_000).map(|_| textbook_set(&mut next, utilization)).collect();
        let generator = generator(Spec { utilization, ..Spec::default() });
        let share = |verdicts: Vec<bool>| verdicts.iter().filter(|one| **one).count() as f64 / 20_000.0;
        let theirs = share(are_schedulable(&textbook, Limits::default(), Path::Widest));
        let ours = are_generated_schedulable(&generator, 0..20_000, &[0], Limits::default(), Path::Widest);
        let ours = share(ours.unwrap().remove(0));
        let error = (2.0 * theirs * (1.0 - theirs) / 20_000.0).sqrt();
        assert!((ours - theirs).abs() < 3.3 * error, "U = {utilization}: {ours} and {theirs}, error {error}");
    }
}
