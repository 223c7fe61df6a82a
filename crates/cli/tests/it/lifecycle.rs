//! The life of a run on this machine: to its end, interrupted, killed, as an ordinary user; and
//! what is left each time.

use crate::support::{Place, is_root, read_json, text, traces_of};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NOTHING: Vec<String> = Vec::new();

/// Waits until a condition holds. The duration is not tested.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < give_up, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Starts a long assessment and waits until its disturbed phase has begun.
fn disturbed(place: &Place) -> Child {
    let mut command = place.assess(&["--duration", "4s", "--period", "1ms"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = place.path("run/run.json");
    eventually("the first phase is over", || {
        fs::read(&run)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
            .is_some_and(|run| !run["phases"].as_array().unwrap().is_empty())
    });
    std::thread::sleep(Duration::from_millis(600));
    child
}

#[test]
fn a_run_to_its_end() {
    let place = Place::new();
    let output = place.assess(&["--duration", "2s", "--json"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
    let run = place.path("run");
    for name in [
        "run.json",
        "machine-before.json",
        "machine-after.json",
        "findings.json",
        "analysis.json",
        "report.html",
    ] {
        assert!(run.join(name).is_file(), "{name} is missing");
    }
    assert!(!run.join("PARTIAL").exists());
    let record = read_json(&run.join("run.json"));
    assert_eq!(record["complete"], true);
    assert_eq!(record["phases"].as_array().unwrap().len(), 3);
    assert_eq!(record["windows"].as_array().unwrap().len(), 6);
    assert_eq!(run.join("trace.dat").is_file(), record["trace"].is_object());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["schema"], "stillcore.assess/1");
    accounts_balance(&record);
    assert_eq!(place.leftovers(), NOTHING);
}

/// Every requested release was served, missed or lost, and every trace event is accounted for.
fn accounts_balance(record: &serde_json::Value) {
    for probe in record["probes"].as_array().unwrap() {
        let number = |name: &str| probe[name].as_u64().unwrap();
        if probe["probe"] == "wakeup" {
            assert_eq!(
                number("released"),
                number("samples") + number("missed") + number("ring_lost"),
                "{probe}"
            );
        }
    }
    if record["trace"].is_object() {
        assert!(record["trace"]["cpus"].as_array().unwrap().iter().all(|cpu| cpu["left"] == 0));
    }
}

#[test]
fn the_report_can_be_drawn_again_without_the_machine() {
    let place = Place::new();
    assert!(matches!(place.assess(&["--duration", "2s"]).output().unwrap().status.code(), Some(0 | 2)));
    let run = place.path("run");
    let before = fs::read(run.join("report.html")).unwrap();
    fs::remove_file(run.join("report.html")).unwrap();
    fs::remove_file(run.join("analysis.json")).unwrap();
    let output = crate::support::stillcore(&["report", run.to_str().unwrap()]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
    assert_eq!(fs::read(run.join("report.html")).unwrap(), before, "the same run gives the same page");
}

#[test]
fn a_run_that_is_interrupted() {
    let place = Place::new();
    let child = disturbed(&place);
    let pid = child.id();
    signal(pid, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("interrupted by SIGINT"), "{}", text(&output.stderr));
    partial(&place.path("run"));
    assert_eq!(place.leftovers(), NOTHING);
    assert_eq!(traces_of(pid), Vec::<std::path::PathBuf>::new());
}

fn partial(run: &Path) {
    assert!(fs::metadata(run.join("PARTIAL")).unwrap().len() > 0);
    let record = read_json(&run.join("run.json"));
    assert_eq!(record["complete"], false);
    assert!(!record["incomplete_reason"].as_str().unwrap().is_empty());
    assert!(!record["probes"].as_array().unwrap().is_empty(), "what was measured is kept");
}

#[test]
fn a_run_that_is_killed_is_cleaned_up_by_its_guardian() {
    let place = Place::new();
    let mut child = disturbed(&place);
    let pid = child.id();
    assert!(!is_root() || !traces_of(pid).is_empty(), "there is something to clean up");
    signal(pid, "KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    eventually("the machine is as it was", || place.leftovers().is_empty() && traces_of(pid).is_empty());
    partial(&place.path("run"));
    // None of its losses was counted, so none is reported as 0.
    let report =
        crate::support::stillcore(&["report", place.path("run").to_str().unwrap()]).output().unwrap();
    let said = text(&report.stdout);
    assert!(said.contains("cut off before it counted its losses"), "{said} {}", text(&report.stderr));
    assert!(!said.contains("samples lost 0"), "{said}");
}

#[test]
fn when_the_guardian_is_killed_too_the_next_call_cleans_up() {
    let place = Place::new();
    let mut child = disturbed(&place);
    let pid = child.id();
    signal(guardian_of(pid), "KILL");
    signal(pid, "KILL");
    child.wait().unwrap();
    if is_root() {
        assert!(!traces_of(pid).is_empty(), "nobody was left to clean up");
    }
    let again =
        crate::support::stillcore(&["assess", "--cpus", "4095", "--state", place.state().to_str().unwrap()])
            .output()
            .unwrap();
    assert_eq!(again.status.code(), Some(1), "even a call that is refused restores first");
    assert_eq!(place.leftovers(), NOTHING);
    assert_eq!(traces_of(pid), Vec::<std::path::PathBuf>::new());
}

fn guardian_of(parent: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let is_guardian = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| text(&words).contains("guardian"))
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_guardian).expect("a guardian")
}

#[test]
fn two_runs_at_once_do_not_take_each_other_s_things() {
    let places = [Place::new(), Place::new()];
    let starts = places.iter().map(|place| {
        let mut command = place.assess(&["--duration", "1s", "--stressors", "u_fork"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let children: Vec<_> = starts.collect();
    for (child, place) in children.into_iter().zip(&places) {
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("not restored"), "{}", text(&output.stderr));
        assert_eq!(place.leftovers(), NOTHING);
        assert_eq!(traces_of(pid), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn two_runs_into_one_directory_leave_the_first_alone() {
    let place = Place::new();
    for round in 0..4 {
        let out = place.path(&format!("shared-{round}"));
        let starts = (0..2).map(|_| {
            let mut command = crate::support::stillcore(&[
                "assess",
                "--duration",
                "400ms",
                "--period",
                "1ms",
                "--trace",
                "off",
            ]);
            command.arg("--state").arg(place.state()).arg("--out").arg(&out).stdout(Stdio::null());
            command.args(["--stressors", "u_fork"]).stderr(Stdio::piped()).spawn().unwrap()
        });
        let children: Vec<_> = starts.collect();
        let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        let (good, bad): (Vec<_>, Vec<_>) =
            outputs.iter().partition(|output| output.status.code() != Some(1));
        let said: Vec<_> = outputs.iter().map(|output| text(&output.stderr)).collect();
        assert_eq!((good.len(), bad.len()), (1, 1), "{said:?}");
        assert!(text(&bad[0].stderr).contains("a new or empty directory"), "{said:?}");
        assert_eq!(read_json(&out.join("run.json"))["complete"], true);
    }
}

/// A task of higher priority takes the measured CPU for a second at a random time of the noise
/// window: all of that is stolen time, whether it begins in a stretch, in a pause, or lasts from
/// one to the next.
#[test]
fn a_hog_is_noise_whenever_it_comes() {
    if !is_root() {
        println!("skipped: a hog of higher priority takes root");
        return;
    }
    for delay in ["0.3", "0.9"] {
        let place = Place::new();
        let mut command = place.assess(&["--duration", "6s", "--trace", "off", "--stressors", "calc_pi"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the first noise window has begun", || {
            place.path("run/samples").read_dir().is_ok_and(|mut files| {
                files.any(|file| {
                    file.unwrap().file_name().to_str().is_some_and(|name| name.starts_with("noise"))
                })
            })
        });
        let cpu = read_json(&place.path("run/run.json"))["measured_cpus"].as_str().unwrap().to_owned();
        let hog = format!(
            "sleep {delay}; timeout -s KILL 1 chrt -f 85 taskset -c {cpu} sh -c 'while :; do :; done'"
        );
        let _ = Command::new("sh").args(["-c", &hog]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 2)));
        let run = place.path("run");
        let record = read_json(&run.join("run.json"));
        let noise =
            record["probes"].as_array().unwrap().iter().find(|probe| probe["probe"] == "noise").unwrap();
        let (_, samples) = model::samples_file::read(&run.join(noise["file"].as_str().unwrap())).unwrap();
        // A second of hog meets at least 0.6 s of stretches (0.8 s of every second); what else is
        // stolen here only adds.
        let stolen: i64 = samples.iter().map(|sample| sample.value_ns).sum();
        assert!(stolen > 600_000_000, "hog after {delay} s: {stolen} ns stolen of {}", noise["spin_ns"]);
        let slices: Vec<model::usage::Stretch> = serde_json::from_value(noise["slices"].clone()).unwrap();
        assert!(
            slices.windows(2).all(|pair| pair[0].t1_ns <= pair[1].t0_ns),
            "no time is counted twice: {slices:?}"
        );
    }
}

#[test]
fn an_ordinary_user_gets_what_can_be_had() {
    if !is_root() {
        println!("skipped: already an ordinary user, and a_run_to_its_end is this test");
        return;
    }
    let place = Place::new();
    let home = place.path("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(place.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // The build directory may be closed to others; a copy is not.
    let binary = place.path("stillcore");
    fs::copy(env!("CARGO_BIN_EXE_stillcore"), &binary).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all"])
        .arg(&binary)
        .args(["assess", "--duration", "2s", "--period", "1ms", "--out", "run"])
        .current_dir(&home)
        .env("HOME", &home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
    let record = read_json(&home.join("run/run.json"));
    let limits = record["limits"].to_string();
    assert!(limits.contains("SCHED_OTHER") && limits.contains("no events were recorded"), "{limits}");
    assert_eq!(record["complete"], true);
    assert!(text(&output.stdout).contains("SCHED_OTHER"), "the summary says so, too");
    assert_eq!(place.leftovers(), NOTHING);
}
