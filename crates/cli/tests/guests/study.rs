//! Two experiments as their users run them: one that boots its kernel twice, and one that asks no
//! kernel.

use crate::support::{Place, read_json, stillcore, text};
use serde_json::Value;
use std::path::Path;

/// Runs one at the smallest scale and returns its answer. A guest that did not end on a crowded
/// host is booted once more.
fn study(place: &Place, name: &str, on: &[&str]) -> Value {
    let run = || {
        let mut command = stillcore(&["study", "run", name, "--scale", "0.00001", "--repetitions", "1"]);
        command.args(["--jobs", "1", "--retry", "--out"]).arg(place.path(name)).args(on);
        command.arg("--state").arg(place.state()).output().unwrap()
    };
    for _ in 0..2 {
        let output = run();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        if cells(&place.path(name)).iter().all(|cell| cell["result"]["state"] == "ok") {
            return read_json(&place.path(name).join("study.json"));
        }
    }
    panic!("{:#?}", cells(&place.path(name)));
}

fn cells(study: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(study.join("cells")).unwrap();
    files.map(|file| read_json(&file.unwrap().path())).collect()
}

pub(crate) fn work_items_reach_a_cpu_that_is_not_isolated_and_are_drawn_with_their_sources() {
    let place = Place::new();
    let answer = study(&place, "rtss24-fig3", &["--lab", "6.1"]);
    let work = |isolation: &str| {
        let cells = cells(&place.path("rtss24-fig3"));
        let cell = cells.iter().find(|cell| cell["cell"]["factors"]["isolation"] == isolation).unwrap();
        cell["result"]["values"]["work"].as_f64().unwrap_or_else(|| panic!("{cell:#}"))
    };
    assert!(work("none") > 0.0 && work("boot") < work("none"), "{} {}", work("none"), work("boot"));
    // RTSS 2024 has operations wake workers on isolated CPUs of its 5.10: here hardly one of them
    // does, which one repetition decides because these are counts.
    let claim = &answer["claims"][0];
    assert_eq!(
        (&claim["statement"], &claim["condition"]),
        (&"rtss24.025".into(), &"6.1".into()),
        "{claim:#}"
    );
    assert_eq!(claim["judgement"], "differs", "{claim:#}");
    // Each says what it was measured under, and the kernel is that of its level.
    for cell in cells(&place.path("rtss24-fig3")) {
        let under = &cell["result"]["under"];
        assert_eq!(under["kernel"], "6.1", "{cell:#}");
        let isolates = under["cmdline"].as_str().unwrap().contains("isolcpus=");
        assert_eq!(isolates, cell["cell"]["factors"]["isolation"] == "boot", "{cell:#}");
    }
    assert!(place.path("rtss24-fig3").join("figures").read_dir().unwrap().count() > 0);
    assert!(place.path("rtss24-fig3").join("study.html").exists());
}

pub(crate) fn the_graphs_of_the_ros_2_experiment_are_counted() {
    let place = Place::new();
    let answer = study(&place, "rtss24-table5", &["--here"]);
    let published = answer["published"].as_array().unwrap();
    let judgements: Vec<_> = published.iter().map(|one| one["judgement"].as_str().unwrap()).collect();
    assert_eq!(judgements.iter().filter(|judgement| **judgement == "agrees").count(), 3, "{judgements:?}");
    assert_eq!(judgements.len(), 4);
}
