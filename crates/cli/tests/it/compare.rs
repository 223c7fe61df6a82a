//! `stillcore compare` from the command line: verdicts, the gate's exit status, what is refused.

use crate::support::{Place, assert_refused, stillcore};
use model::probe::{ProbeDetail, Releases, Served};
use model::run::{Losses, ObserverCost, ProbeRecord, Run, SCHEMA};
use model::sample::{Policy, ProbeKind, SampleMeta};
use model::{Cpus, Sample, samples_file::SampleWriter, store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

const SAMPLES: u64 = 1_500;
const PERIOD_NS: u64 = 1_000_000;

/// A generator of its own: the test chooses the truth.
fn mixed(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A run directory of so many wake-ups of one CPU around `base_ns`.
pub(crate) fn write_run(dir: &Path, base_ns: i64, period_ns: u64, seed: u64, samples: u64) {
    std::fs::create_dir_all(dir.join(store::SAMPLES)).unwrap();
    let file = store::samples_name("wakeup", 2, 0);
    let policy = Policy::fifo(80);
    let mut writer = SampleWriter::create(&dir.join(&file)).unwrap();
    let offset = (mixed(seed) % 200) as i64;
    for seq in 0..samples {
        let value_ns = base_ns + offset + (mixed(seed << 20 | seq) % 2_000) as i64;
        writer.push(Sample { t_ns: (seq * period_ns) as i64, value_ns, seq, missed: 0, flags: 0 }).unwrap();
    }
    let meta = SampleMeta {
        probe: ProbeKind::Wakeup,
        cpu: 2,
        thread: 0,
        phase: "measured".into(),
        unit: "ns".into(),
        clock: "CLOCK_MONOTONIC".into(),
        counter: "CLOCK_MONOTONIC".into(),
        policy_asked: policy.clone(),
        policy_effective: policy.clone(),
        period_ns: Some(period_ns),
        threshold_ns: None,
    };
    writer.finish(&meta).unwrap();
    let served = Served { released: samples, missed: 0 };
    let record = ProbeRecord {
        detail: ProbeDetail::Wakeup(Releases { period_ns, served, ..Releases::default() }),
        phase: "measured".into(),
        file,
        t1_ns: (samples * period_ns) as i64,
        samples,
        ..ProbeRecord::of(ProbeKind::Wakeup, 2, policy)
    };
    let run = Run {
        schema: SCHEMA.into(),
        tool_version: "0".into(),
        command: Vec::new(),
        started_at: format!("2026-01-01T00:00:{:02}Z", seed % 60),
        complete: true,
        incomplete_reason: None,
        stopped_at: None,
        machine_before: "machine-before.json".into(),
        machine_after: None,
        measured_cpus: Cpus::one(2),
        housekeeping_cpus: Cpus::one(0),
        dma_latency_us: None,
        idle_states: BTreeMap::default(),
        frequency_change_ns: BTreeMap::default(),
        plan: Vec::new(),
        phases: Vec::new(),
        windows: Vec::new(),
        probes: vec![record],
        stressors: Vec::new(),
        trace: None,
        losses: Losses::default(),
        observer: ObserverCost::default(),
        seeds: std::collections::BTreeMap::new(),
        limits: Vec::new(),
    };
    store::write_json(&dir.join(store::RUN), &run).unwrap();
}

/// A directory of runs; odd seeds for one group, even for the other, as if made in turns.
fn group(place: &Place, name: &str, base_ns: i64, count: u64, first: u64) -> PathBuf {
    let dir = place.path(name);
    (0..count).for_each(|run| {
        write_run(&dir.join(format!("run{run}")), base_ns, PERIOD_NS, first + 2 * run, SAMPLES);
    });
    dir
}

fn compare(arguments: &[&str]) -> Output {
    stillcore(&["compare"]).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = compare(&[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn verdict<'a>(answer: &'a Value, figure: &str) -> &'a Value {
    let figures = answer["windows"][0]["figures"].as_array().unwrap();
    &figures.iter().find(|one| one["figure"] == figure).unwrap()["verdict"]
}

#[test]
fn wake_ups_out_of_idle_states_are_not_compared_with_those_without() {
    let place = Place::new();
    let [a, b] = ["a", "b"].map(|name| place.path(name));
    write_run(&a, 20_000, PERIOD_NS, 1, SAMPLES);
    write_run(&b, 20_000, PERIOD_NS, 2, SAMPLES);
    let path = b.join(store::RUN);
    let mut run: Run = store::read_json(&path).unwrap();
    run.dma_latency_us = Some(0);
    store::write_json(&path, &run).unwrap();
    let refused = compare(&[text(&a), text(&b)]);
    assert_refused(&refused, &["idle states left to the machine in"]);
    let answer = json(&[text(&a), text(&b), "--anyway"]);
    assert!(
        answer["warnings"].to_string().contains("/dev/cpu_dma_latency held at 0 us"),
        "{}",
        answer["warnings"]
    );
}

#[test]
fn the_page_opens_with_the_verdict_and_the_next_command() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 5, 1), group(&place, "b", 26_000, 5, 2));
    let same = group(&place, "c", 20_000, 5, 102);
    let page = |base: &Path, other: &Path| {
        let file = place.path("page.html");
        let output = compare(&[text(base), text(other), "--html", text(&file)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page = std::fs::read_to_string(file).unwrap();
        let opening = page.split("class=\"opening\"").nth(1).unwrap();
        let opening = opening.split("</section>").next().unwrap().replace('\u{a0}', " ");
        opening.replace("&#x2f;", "/").replace("&#x27;", "'").replace("<span>", "").replace("</span>", "")
    };
    let worse = page(&a, &b);
    assert!(worse.contains("The other runs are worse in ") && worse.contains("<svg"), "{worse}");
    assert!(worse.contains(&format!("<code>stillcore report {}/run", text(&b))), "{worse}");
    let equal = page(&a, &same);
    assert!(equal.contains("equivalent") && equal.contains("--fail-if"), "{equal}");
    let one = page(&a.join("run0"), &b.join("run0"));
    assert!(one.contains("One run a side says nothing of configurations"), "{one}");
    // The runs record no command that could be run again.
    assert!(one.contains("make 5 a side, in turns"), "{one}");
}

#[test]
fn a_planted_difference_is_reported_and_gated() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 5, 1), group(&place, "b", 26_000, 5, 2));
    let (a, b, same) = (text(&a), text(&b), group(&place, "c", 20_000, 5, 102));
    let answer = json(&[a, b]);
    assert_eq!(answer["schema"], "stillcore.compare/1");
    for figure in ["min", "p50", "p99", "max"] {
        assert_eq!(verdict(&answer, figure), "worse", "{figure}");
    }
    assert_eq!(verdict(&answer, "p99.9"), "withheld", "1,500 samples have one above it");
    let distance = answer["windows"][0]["distance"]["wasserstein_ns"].as_f64().unwrap();
    assert!((distance - 6_000.0).abs() < 200.0, "{distance}");
    assert_eq!(verdict(&json(&[b, a]), "p99"), "better");
    assert_eq!(verdict(&json(&[a, text(&same)]), "p99"), "equivalent");

    let summary = place.path("summary.md");
    let gated =
        compare(&[a, b, "--fail-if", "p99 > +5us", "--fail-if", "max > 1ms", "--markdown", text(&summary)]);
    let said = String::from_utf8_lossy(&gated.stdout);
    assert_eq!(gated.status.code(), Some(2), "{said}");
    assert!(
        said.contains("FAILED")
            && said.contains("passed")
            && said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
    let summary = std::fs::read_to_string(summary).unwrap();
    assert!(summary.starts_with("## stillcore compare: failed") && summary.contains("| p99 |"), "{summary}");
    let code = |arguments: &[&str]| compare(arguments).status.code();
    assert_eq!(code(&[a, b, "--fail-if", "p99 > +7us"]), Some(0));
    assert_eq!(code(&[a, b, "--fail-if", "any worse"]), Some(2));
    assert_eq!(code(&[b, a, "--fail-if", "any worse"]), Some(0));
    assert_eq!(code(&[a, text(&same), "--fail-if", "p50 not equivalent"]), Some(0));
    assert_eq!(code(&[a, b, "--fail-if", "exceed:24us > 50%"]), Some(2));
}

/// `deploy/github/compare`: what a workflow runs.
#[test]
fn the_step_of_a_workflow_ends_as_the_comparison_does() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 5, 1), group(&place, "b", 26_000, 5, 2));
    let step = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/github/compare/compare.sh");
    let shown = place.path("step-summary.md");
    let ends = |conditions: &str| {
        let output = std::process::Command::new("bash")
            .arg(&step)
            .env("PROGRAM", env!("CARGO_BIN_EXE_stillcore"))
            .env("BASE", format!("{}/run*", a.display()))
            .env("OTHER", format!("{}/run*", b.display()))
            .env("FAIL_IF", conditions)
            .env("RUNNER_TEMP", place.dir.path())
            .env("GITHUB_STEP_SUMMARY", &shown)
            .env("GITHUB_OUTPUT", place.path("output"))
            .output()
            .unwrap();
        output.status.code()
    };
    assert_eq!(ends("p99 > +5us\n\nmax > 1ms\n"), Some(2));
    let summary = std::fs::read_to_string(&shown).unwrap();
    assert!(
        summary.starts_with("## stillcore compare: failed") && summary.contains("max > 1ms"),
        "{summary}"
    );
    assert!(std::fs::read_to_string(place.path("output")).unwrap().starts_with("summary="));
    assert_eq!(ends("p99 > +7us"), Some(0));
    // Nothing of an input is shell code.
    let made = place.path("made");
    assert_eq!(ends(&format!("$(touch {})", made.display())), Some(1));
    assert!(!made.exists());
}

#[test]
fn a_gate_that_cannot_judge_lets_nothing_through() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 1, 1), group(&place, "b", 90_000, 1, 2));
    // Known values are still shown.
    let gated = compare(&[text(&a), text(&b), "--fail-if", "p99 > +5us"]);
    let error = String::from_utf8_lossy(&gated.stderr);
    assert_eq!(gated.status.code(), Some(1), "{error}");
    assert!(
        error.contains("cannot be judged")
            && error.contains("a side of one run")
            && error.lines().count() == 1
    );
    assert_eq!(verdict(&json(&[text(&a), text(&b)]), "p50"), "one-run");
    assert_eq!(compare(&[text(&a), text(&b), "--fail-if", "p50 > 50us"]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_compared_is_said_in_words() {
    let place = Place::new();
    let a = group(&place, "a", 20_000, 2, 1);
    let slow = place.path("slow");
    write_run(&slow, 20_000, 2 * PERIOD_NS, 3, SAMPLES);
    let (a, slow) = (text(&a), text(&slow));
    assert_refused(&compare(&[a, slow]), &["cannot be compared", "period 1ms in", "period 2ms in"]);
    assert_eq!(compare(&[a, slow, "--anyway"]).status.code(), Some(0));
    assert_refused(&compare(&[a, a]), &["given twice"]);
    assert_refused(&compare(&[a]), &["runs of one side"]);
    assert_refused(&compare(&[a, slow, a]), &["3 groups", "--with"]);
    assert_refused(&compare(&[a, "/nowhere/at/all"]), &["/nowhere/at/all"]);
    assert_refused(&compare(&[a, slow, "--probe", "noise"]), &["no measurement of probe noise in common"]);
    assert_refused(&compare(&[a, slow, "--fail-if", "p99 > 5"]), &["no time with a unit"]);
    assert_refused(&compare(&[a, slow, "--fail-if", "p99 >"]), &["it has no value"]);
    assert_refused(&compare(&[a, "../../fixtures/results/cyclictest.json"]), &["their loops differ"]);
    assert_refused(&compare(&[a, "Cargo.toml"]), &["a text of no tool that is known"]);
}

#[test]
fn what_is_no_run_in_a_directory_of_runs_is_left_out_and_named() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 5, 1), group(&place, "b", 26_000, 5, 2));
    std::fs::write(a.join("run-1.txt"), "T  CPU  n\n0  3  4,949\n").unwrap();
    std::fs::write(a.join("log.jsonl"), "{\"a\":1}\n{\"a\":2}\n").unwrap();
    std::fs::create_dir(b.join("notes")).unwrap();
    std::fs::write(b.join(".hidden"), "").unwrap();
    let (a, b, log) = (text(&a), text(&b), a.join("run-1.txt"));
    let note = format!(
        "left out, being neither a run nor the result of a tool that is known: {a}/log.jsonl, {a}/run-1.txt, {b}/notes"
    );
    let answer = json(&[a, b]);
    assert_eq!(answer["base"].as_array().unwrap().len(), 5);
    assert!(answer["warnings"].as_array().unwrap().contains(&note.clone().into()), "{}", answer["warnings"]);
    let file = place.path("summary.md");
    let output = compare(&[a, b, "--markdown", text(&file), "--fail-if", "p99 worse"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&note), "{said}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("left out, being neither"));
    let best = json(&[a, b, "--best", "--loss", "p99"]);
    assert!(best["warnings"].to_string().contains("log.jsonl"), "{}", best["warnings"]);
    // By its own name it is an error; so is a run that is damaged, and a result that was cut off.
    assert_refused(&compare(&[text(&log), b]), &["a text of no tool that is known"]);
    std::fs::write(place.path("a/cut.json"), "{\"thread\": {\"0\": {\"histogram\": {\"1\":").unwrap();
    assert_refused(&compare(&[a, b]), &["cut.json", "cannot be compared"]);
    std::fs::remove_file(place.path("a/cut.json")).unwrap();
    std::fs::write(place.path("a/run1/run.json"), "{").unwrap();
    assert_refused(&compare(&[a, b]), &["run1", "cannot be compared"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    assert_refused(&compare(&[text(&place.path("empty")), b]), &["no run in it"]);
}

#[test]
fn a_gate_says_what_was_not_shown_and_can_fail_for_it() {
    let place = Place::new();
    // Two runs a side that differ much among themselves: these cannot decide.
    let dir = |name: &str, values: [i64; 2], seed: u64| {
        let dir = place.path(name);
        for (run, value) in values.into_iter().enumerate() {
            write_run(&dir.join(run.to_string()), value, PERIOD_NS, seed + 2 * run as u64, SAMPLES);
        }
        dir
    };
    let (a, b) = (dir("a", [20_000, 60_000], 1), dir("b", [30_000, 80_000], 2));
    let (a, b) = (text(&a), text(&b));
    assert_eq!(verdict(&json(&[a, b]), "max"), "cannot-tell");
    let ends = |condition: &str| {
        let output = compare(&[a, b, "--fail-if", condition]);
        let said = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        (output.status.code(), said)
    };
    let (code, said) = ends("max worse");
    let expected = "fail-if \"max worse\": passed: max is not shown to be worse (cannot tell: ";
    assert!(code == Some(0) && said.contains(expected), "{code:?} {said}");
    let (code, said) = ends("maybe max worse");
    assert!(code == Some(2) && said.contains("FAILED: max may be worse (cannot tell: "), "{said}");
    // p99.9 is withheld of so few samples: a gate that wants evidence of every figure cannot judge
    // where nothing else fails it.
    assert_eq!((ends("any worse").0, ends("maybe any worse").0), (Some(0), Some(2)));
    let same = group(&place, "c", 20_000, 5, 102);
    let base = group(&place, "d", 20_000, 5, 1);
    let code = |condition: &str| compare(&[text(&base), text(&same), "--fail-if", condition]).status.code();
    assert_eq!(
        (code("maybe p99 worse"), code("any worse"), code("maybe any worse")),
        (Some(0), Some(0), Some(1))
    );
}

#[test]
fn missed_releases_and_both_periods_are_said() {
    let place = Place::new();
    let dirs = [("a", PERIOD_NS, 1), ("b", 10 * PERIOD_NS, 2)].map(|(name, period, first)| {
        let dir = place.path(name);
        for run in 0..3 {
            write_run(&dir.join(format!("run{run}")), 20_000, period, first + 2 * run, SAMPLES);
        }
        dir
    });
    // Two releases missed behind the last sample of a run.
    let path = dirs[0].join("run0").join(store::RUN);
    let mut run: Run = store::read_json(&path).unwrap();
    let served = Served { released: SAMPLES + 2, missed: 2 };
    run.probes[0].detail =
        ProbeDetail::Wakeup(Releases { period_ns: PERIOD_NS, served, ..Releases::default() });
    store::write_json(&path, &run).unwrap();
    let (a, b) = (text(&dirs[0]), text(&dirs[1]));
    let said = |more: &[&str]| {
        let output = compare(&[&[a, b, "--anyway"], more].concat());
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let all = said(&[]);
    assert!(all.contains("every 1 ms and every 10 ms: 4,502 and 4,500 releases, 2 and 0 missed"), "{all}");
    assert!(all.contains("Missed releases are among these, with the lateness they had"), "{all}");
    assert!(all.contains("better | worse"), "the shift function: {all}");
    let chosen = said(&["--figures", "p50,p99"]);
    assert!(!chosen.contains("better | worse") && chosen.contains("p99"), "{chosen}");
}

#[test]
fn the_best_is_named_with_those_that_cannot_be_distinguished_from_it() {
    let place = Place::new();
    let names = [("slow", 40_000, 1), ("quick", 20_000, 2), ("as-quick", 20_050, 101)];
    let groups: Vec<String> = names
        .iter()
        .map(|(name, base, first)| {
            format!("{name}={}", group(&place, &format!("dir-{name}"), *base, 4, *first).display())
        })
        .collect();
    let arguments: Vec<&str> = groups.iter().map(String::as_str).chain(["--best", "--loss", "p99"]).collect();
    let answer = json(&arguments);
    let groups = answer["groups"].as_array().unwrap();
    let may: Vec<bool> = groups.iter().map(|one| one["may_be_best"].as_bool().unwrap()).collect();
    assert_eq!((may, groups[2]["name"].as_str()), (vec![true, true, false], Some("slow")));
    let total: f64 = groups.iter().map(|one| one["p_best"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9 && groups[2]["p_best"].as_f64().unwrap() < 0.01);
    let said = String::from_utf8(compare(&arguments).stdout).unwrap();
    assert!(said.contains("cannot be distinguished"), "{said}");
}

#[test]
fn the_published_selection_stands_beside_ours() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 4, 1), group(&place, "b", 20_030, 4, 2));
    let answer = json(&[text(&a), text(&b), "--method", "chi2"]);
    let chi2 = &answer["chi2"][0];
    assert_eq!(
        chi2["test"]["bins"],
        chi2["test"]["range_us"][1].as_i64().unwrap() - chi2["test"]["range_us"][0].as_i64().unwrap() + 1
    );
    assert_eq!(chi2["test"]["n"][1], 4 * SAMPLES);
    assert!(chi2["qq"]["points_ns"].as_array().unwrap().len() == 500 && chi2["qq"]["slope"].is_f64());
    assert_eq!(verdict(&answer, "p50"), "equivalent");
    let said = String::from_utf8(compare(&[text(&a), text(&b), "--method", "chi2"]).stdout).unwrap();
    assert!(
        said.contains("against its own other half") && said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
}

#[test]
fn results_of_other_tools_are_runs() {
    let result = |name: &str| format!("../../fixtures/results/{name}");
    let (json_file, text_file) = (result("cyclictest.json"), result("cyclictest.txt"));
    let answer = json(&[&json_file, &text_file]);
    let distance = answer["windows"][0]["distance"]["wasserstein_ns"].as_f64().unwrap();
    assert!(distance.abs() < 1e-6, "one run in two formats: {distance}");
    assert_eq!(answer["windows"][0]["n"], serde_json::json!([4000, 4000]));
    for name in ["oslat.json", "jitterdebugger.json", "rtla-timerlat.txt", "rtla-osnoise.txt"] {
        let path = result(name);
        let output = compare(&[&path, &path, "--anyway"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_refused(&compare(&[&json_file, &result("oslat.json")]), &["no measurement in common"]);
}

#[test]
fn the_published_method_draws_its_q_q_plots() {
    let place = Place::new();
    let (a, b) = (group(&place, "a", 20_000, 2, 1), group(&place, "b", 26_000, 2, 2));
    let plots = place.path("plots");
    let output = compare(&[text(&a), text(&b), "--method", "chi2", "--qq", text(&plots)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = std::fs::read_to_string(plots.join("qq-1.svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("xmlns=") && svg.contains("Regression line: slope"),
        "{svg}"
    );
    assert_eq!(svg.matches("a2 2 0 1 0 4 0").count(), 500);
    assert_refused(&compare(&[text(&a), text(&b), "--qq", text(&plots)]), &["--method chi2"]);
}

#[test]
fn configurations_of_one_name_are_one_and_an_empty_name_is_refused() {
    let place = Place::new();
    let runs: Vec<String> = [("a", 20_000, 1), ("b", 26_000, 2), ("c", 20_000, 101), ("d", 26_000, 102)]
        .iter()
        .map(|(name, base, first)| {
            format!(
                "{}={}",
                if *base < 25_000 { "MI" } else { "HM" },
                text(&group(&place, name, *base, 3, *first))
            )
        })
        .collect();
    let arguments: Vec<&str> = runs.iter().map(String::as_str).chain(["--best", "--loss", "p50"]).collect();
    let answer = json(&arguments);
    let groups = answer["groups"].as_array().unwrap();
    let of = |at: usize| (groups[at]["name"].as_str().unwrap(), groups[at]["runs"].as_array().unwrap().len());
    assert_eq!((groups.len(), of(0), of(1)), (2, ("MI", 6), ("HM", 6)));
    assert_eq!((&groups[0]["letters"], &groups[1]["letters"]), (&Value::from("a"), &Value::from("b")));
    for odd in ["A=", "=x"] {
        assert_refused(&compare(&[odd, &runs[1]]), &["NAME=PATH"]);
    }
}
