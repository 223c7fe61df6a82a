//! `stillcore measure clocks`, and SCHED_DEADLINE in `measure wakeup`: structure and accounts,
//! never a time.

use crate::support::{Place, answer, assert_refused, measure, read_json, releases_balance, stillcore, text};
use model::sample::flag;
use model::samples_file;
use serde_json::Value;

#[test]
fn every_clock_has_a_rate_and_every_pair_is_stored() {
    let place = Place::alone();
    let answer = answer(&mut measure(&place, "clocks", &["--duration", "500ms", "--step", "5ms"]), 0);
    assert_eq!(answer["schema"], "stillcore.measure-clocks/1");
    let run = read_json(&place.path("run/run.json"));
    let record = &run["probes"][0];
    let codes = record["clocks"]["names"].as_array().unwrap();
    let file = place.path("run").join(record["file"].as_str().unwrap());
    let columns = samples_file::read_columns(&file).unwrap();
    let rows = |name: &str| {
        let code = codes.iter().position(|one| one == name).unwrap() as i64;
        columns[0].values.iter().filter(|found| **found == code).count()
    };
    assert_eq!(columns[0].name, "clock");
    let listed = answer["clocks"].as_array().unwrap();
    let names: Vec<_> = listed.iter().map(|one| one["clock"].as_str().unwrap()).collect();
    assert!(names.starts_with(&["CLOCK_MONOTONIC_RAW", "CLOCK_REALTIME", "CLOCK_TAI", "CLOCK_BOOTTIME"]));
    for one in listed {
        let drift = &one["drift"];
        assert_eq!(drift["read"].as_u64().unwrap(), 101, "{one}");
        assert_eq!(rows(one["clock"].as_str().unwrap()), 101);
        assert!(drift["pairs"].as_u64().unwrap() <= 101);
        assert!(drift["ppb_error"].as_f64().unwrap() >= 0.0);
    }
    // Either the scheduler's clock was read, or the answer says why not.
    let scheduler = &answer["scheduler"];
    assert_eq!(scheduler["measured"].is_object(), scheduler["unread"].is_null(), "{scheduler}");
    assert_eq!(names.contains(&"scheduler"), scheduler["unread"].is_null());
    for file in ["analysis.json", "report.html", "findings.json", "machine-after.json"] {
        assert!(place.path("run").join(file).is_file(), "{file}");
    }
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_measurement_is_concluded_again_with_its_own_heading_and_exit_status() {
    let place = Place::alone();
    answer(&mut measure(&place, "clocks", &["--duration", "100ms", "--step", "5ms"]), 0);
    let before = std::fs::read(place.path("run/report.html")).unwrap();
    let output = stillcore(&["report"]).arg(place.path("run")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(report.starts_with("stillcore measure clocks   CPU "), "{report}");
    for heading in ["CONDITIONS", "CLOCKS AGAINST CLOCK_MONOTONIC", "LOSSES", "NEXT"] {
        assert!(report.contains(heading), "{heading}");
    }
    for heading in ["WAKE-UP LATENCY", "GUARANTEED", "DISTINGUISHED"] {
        assert!(!report.contains(heading), "{heading}");
    }
    assert_eq!(std::fs::read(place.path("run/report.html")).unwrap(), before, "the same run, the same page");
}

#[test]
fn bad_orders_are_refused() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        assert_refused(&stillcore(&["measure"]).args(arguments).output().unwrap(), expected);
    };
    refused(&["clocks", "--step", "10us"], &["--step", "at least 1ms"]);
    refused(&["clocks", "--duration", "20ms"], &["--duration", "ten steps"]);
    refused(&["clocks", "--cpus", "8191"], &["CPU 8191"]);
    refused(&["clocks", "--duration", "100ms", "--quiet", "--out", "/proc/none"], &["/proc/none"]);
    refused(&["wakeup", "--policy", "deadline", "--clock", "tai"], &["--clock", "the kernel's"]);
}

fn deadline(place: &Place, arguments: &[&str]) -> Value {
    answer(measure(place, "wakeup", &["--policy", "deadline", "-D", "1s"]).args(arguments), 0)
}

#[test]
fn releases_of_the_kernel_are_accounted_for() {
    let place = Place::alone();
    let answer = deadline(&place, &["--affinity", "none", "--period", "5ms", "--warm-up", "5"]);
    let record = &answer["threads"][0]["record"];
    let samples = releases_balance(&place.path("run"), record);
    let (meta, _) = samples_file::read(&place.path("run").join(record["file"].as_str().unwrap())).unwrap();
    if meta.policy_effective.name != "SCHED_DEADLINE" {
        // Refused, as in a container: the run reports it and measures an ordinary thread.
        assert!(answer["limits"].to_string().contains("SCHED_DEADLINE"), "{}", answer["limits"]);
        println!("skipped: SCHED_DEADLINE is refused here");
        return;
    }
    assert_eq!(meta.clock, "scheduler");
    assert_eq!(record["release_clock"], "scheduler");
    assert!(samples.iter().take(5).all(|sample| sample.flags & flag::WARM_UP != 0));
    // Releases are one period apart, except where the kernel began a new sequence. No job runs
    // before its release.
    assert!(samples.windows(2).all(|two| two[1].t_ns > two[0].t_ns));
    let guessed = answer["limits"].to_string().contains("lower envelope");
    assert!(
        guessed || samples.iter().all(|sample| sample.value_ns > -100_000),
        "a job ran before its release"
    );
    let grid = samples.windows(2).filter(|two| {
        let off = (two[1].t_ns - two[0].t_ns).rem_euclid(5_000_000);
        off.min(5_000_000 - off) < 500_000
    });
    assert!(grid.count() * 2 > samples.len(), "most releases are on the kernel's grid of periods");
}

#[test]
fn a_refused_deadline_thread_names_what_it_needs() {
    let place = Place::alone();
    let cpu = sys::sched::affinity().unwrap().iter().last().unwrap().to_string();
    let answer = deadline(&place, &["--cpus", &cpu]);
    let record = &answer["threads"][0]["record"];
    let limits = answer["limits"].to_string();
    if record["policy_effective"]["name"] == "SCHED_DEADLINE" {
        assert!(!limits.contains("instead of SCHED_DEADLINE"), "{limits}");
    } else {
        assert!(limits.contains("instead of SCHED_DEADLINE"), "{limits}");
        assert!(limits.contains("root domain") || limits.contains("CAP_SYS_NICE"), "{limits}");
        assert!(record["release_clock"].is_null());
    }
}
