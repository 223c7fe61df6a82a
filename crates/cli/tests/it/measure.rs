//! `stillcore measure` on this machine: every release accounted for, whatever happens to the
//! measuring thread.

use crate::support::{
    Place, answer, answer_of, measure, probe_of, releases_balance, signal, start, stillcore, window_open,
};
use model::growth::ReadBy;
use model::sample::{Policy, flag};
use model::usage::Stretch;
use model::{Cpus, Sample, samples_file};
use serde_json::Value;
use std::time::Duration;
use sys::clock::{now_ns, sleep_until};
use sys::sched;

/// Every thread's releases are accounted for, and it took no page fault.
fn accounts_balance(place: &Place, answer: &Value) {
    for thread in answer["threads"].as_array().unwrap() {
        let record = &thread["record"];
        releases_balance(&place.path("run"), record);
        let [minor, major] = ["minor", "major"].map(|kind| record["faults"][kind].as_u64().unwrap());
        assert!(
            major == 0 && (minor == 0 || place.pages_were_moved()),
            "page faults in the window: {record}"
        );
    }
}

/// The last CPU: the least likely to be a housekeeping CPU.
fn last_cpu() -> u32 {
    sched::affinity().unwrap().iter().last().unwrap()
}

#[test]
fn threads_of_their_own_periods_share_cpus_and_every_release_is_accounted_for() {
    let place = Place::alone();
    let order = ["--duration", "1s", "-t", "3", "--distance", "250us", "--stagger", "100us", "--cpus"];
    let answer = answer(measure(&place, "wakeup", &order).arg(last_cpu().to_string()), 0);
    accounts_balance(&place, &answer);
    let periods: Vec<_> = answer["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["record"]["period_ns"].as_u64().unwrap())
        .collect();
    assert_eq!(periods, [1_000_000, 1_250_000, 1_500_000]);
    let released: Vec<_> = answer["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["record"]["released"].as_u64().unwrap())
        .collect();
    // With the 20 of the warm-up, which the duration does not count.
    assert_eq!(released, [1020, 820, 687]);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

/// Whether idle states were forbidden stands in the files and conditions of a run; a refused
/// request is reported. The machine is described as it was before the run.
#[test]
fn idle_states_are_forbidden_unless_they_are_to_be_measured() {
    let device = std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").is_ok();
    for (more, held) in [(&[][..], device), (&["--no-dma-latency"], false)] {
        let place = Place::alone();
        let answer = answer(measure(&place, "wakeup", &["--duration", "100ms"]).args(more), 0);
        let read = |name: &str| std::fs::read_to_string(place.path("run").join(name)).unwrap();
        let run: Value = serde_json::from_str(&read("run.json")).unwrap();
        assert_eq!(run["dma_latency_us"].as_i64(), held.then_some(0), "{more:?}");
        let refused = answer["limits"].to_string().contains("the time to leave idle states");
        assert_eq!(refused, more.is_empty() && !held, "{}", answer["limits"]);
        let findings: Value = serde_json::from_str(&read("findings.json")).unwrap();
        let ours = findings.as_array().unwrap().iter().find(|one| one["id"] == "cpu_dma_latency");
        assert!(ours.is_none_or(|one| one["state"] != "ok"), "{ours:?}");
    }
}

#[test]
fn releases_on_other_clocks_lie_on_the_monotonic_clock() {
    let place = Place::alone();
    let before = now_ns();
    let answer = answer(&mut measure(&place, "wakeup", &["--duration", "500ms", "--clock", "realtime"]), 0);
    accounts_balance(&place, &answer);
    let record = &answer["threads"][0]["record"];
    assert_eq!(record["release_clock"], "CLOCK_REALTIME");
    let file = place.path("run").join(record["file"].as_str().unwrap());
    let (meta, samples) = samples_file::read(&file).unwrap();
    assert_eq!(meta.clock, "CLOCK_REALTIME");
    assert!(samples.iter().all(|sample| (before..now_ns()).contains(&sample.t_ns)));
}

/// The regression test for every such tool: a thread of higher priority takes the CPU for 40
/// periods. A tool that skips releases without counting them (cyclictest) sees one late sample of
/// forty.
#[test]
fn releases_that_a_hog_swallows_are_missed_and_charged() {
    const HOGS: u64 = 10;
    const HOG_NS: i64 = 40_000_000;
    let cpu = last_cpu();
    let place = Place::alone();
    let order = ["--duration", "4s", "--priority", "50", "--cpus", &cpu.to_string()];
    let child = start(&mut measure(&place, "wakeup", &order));
    window_open(&place);
    let hog = std::thread::spawn(move || {
        sched::pin(&Cpus::one(cpu)).unwrap();
        if sys::policy::set_policy(&Policy::fifo(99)).is_err() {
            return false;
        }
        for _ in 0..HOGS {
            let end = now_ns() + HOG_NS;
            while now_ns() < end {}
            sleep_until(now_ns() + 100_000_000);
        }
        true
    });
    let output = child.wait_with_output().unwrap();
    if !hog.join().unwrap() {
        println!("skipped: no right to SCHED_FIFO for the hog");
        return;
    }
    let answer = answer_of(&output, 0);
    accounts_balance(&place, &answer);
    let thread = &answer["threads"][0];
    let missed = thread["record"]["missed"].as_u64().unwrap();
    // The hogs take 1.4 s of a window of 4 s that was open before them: at least seven lie entirely
    // inside it, however late they came.
    assert!(missed >= 7 * 38, "{missed} missed releases of {HOGS} hogs");
    // Hogs cluster the late releases, so too few are independent to report a high quantile. The
    // share of exceedances is checked.
    let figures = &thread["figures"];
    let late = figures["exceedances"].as_array().unwrap();
    let late = late.iter().find(|one| one["threshold_ns"] == 10_000_000).unwrap()["share"].as_f64().unwrap();
    assert!(late > 0.01, "one of 15 releases was up to 40 ms late, but {late} of them 10 ms and more");
    assert!(figures["corrected_max_ns"].as_i64().unwrap() > 20_000_000, "{figures}");
}

#[test]
fn a_measuring_thread_that_is_stopped_for_a_while_misses_what_passes() {
    let place = Place::alone();
    let child = start(&mut measure(&place, "wakeup", &["--duration", "3s"]));
    let probe = probe_of(child.id());
    window_open(&place);
    signal(probe, "STOP");
    std::thread::sleep(Duration::from_millis(300));
    signal(probe, "CONT");
    let answer = answer_of(&child.wait_with_output().unwrap(), 0);
    accounts_balance(&place, &answer);
    let missed = answer["threads"][0]["record"]["missed"].as_u64().unwrap();
    assert!(missed >= 250, "{missed} releases of 300 ms");
}

#[test]
fn interrupted_it_reports_what_it_has() {
    let place = Place::alone();
    let child = start(&mut measure(&place, "wakeup", &["--duration", "60s"]));
    window_open(&place);
    signal(child.id(), "INT");
    let answer = answer_of(&child.wait_with_output().unwrap(), 1);
    assert_eq!((&answer["complete"], &answer["interrupted"]), (&Value::Bool(false), &"SIGINT".into()));
    accounts_balance(&place, &answer);
    assert!(place.path("run/PARTIAL").exists());
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn the_noise_loop_stores_gaps_with_and_without_a_workload() {
    for workload in ["none", "memmove:4K"] {
        let place = Place::alone();
        let order = ["--duration", "1s", "--workload", workload, "--preheat", "100ms"];
        let answer = answer(&mut measure(&place, "spin", &order), 0);
        let record = &answer["threads"][0]["record"];
        assert!(record["iterations"].as_u64().unwrap() > 1000, "{record}");
        let file = place.path("run").join(record["file"].as_str().unwrap());
        let threshold = record["threshold_ns"].as_i64().unwrap();
        let (_, samples) = samples_file::read(&file).unwrap();
        assert!(samples.iter().all(|sample| sample.value_ns + 1 >= threshold));
        assert!(
            record["spin_ns"].as_u64().unwrap() <= 801_000_000,
            "stretches of 0.8 s with a pause: {record}"
        );
        let start = record["t0_ns"].as_i64().unwrap();
        let early = |sample: &Sample| sample.flags & flag::WARM_UP != 0;
        assert!(
            samples.iter().all(|sample| if early(sample) {
                sample.t_ns < start
            } else {
                sample.t_ns + 1_000 >= start
            }),
            "the preheat lies before the measurement"
        );
        assert!(record["noise"]["read_ns"]["CLOCK_MONOTONIC"].as_f64().unwrap() > 0.0);
    }
}

/// Every gap has one cause, and the counters that say so are in the run.
#[test]
fn the_causes_of_noise_are_those_of_its_gaps() {
    let place = Place::alone();
    let order = ["--duration", "1s", "--buckets", "8", "--bucket-width", "250us", "--bias"];
    let answer = answer(&mut measure(&place, "spin", &order), 0);
    let thread = &answer["threads"][0];
    let causes = thread["causes"]["causes"].as_array().unwrap();
    let sum = |name: &str| causes.iter().map(|cause| cause[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("gaps"), thread["figures"]["n"].as_u64().unwrap());
    assert_eq!(sum("total_ns"), thread["figures"]["stolen"]["total_ns"].as_u64().unwrap());
    let buckets = &thread["buckets"];
    let counts = buckets["counts"].as_array().unwrap();
    let counted: u64 = counts.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counts.len(), 8);
    assert_eq!(counted + buckets["over"].as_u64().unwrap(), sum("gaps"));
    let record = &thread["record"];
    let growths =
        model::growth::read(&place.path("run").join(record["counters_file"].as_str().unwrap())).unwrap();
    let of = |read_by| growths.iter().filter(move |growth| growth.read_by == read_by);
    let looks: Vec<_> = of(ReadBy::Drain).collect();
    assert!(looks.windows(2).all(|pair| pair[0].t1_ns == pair[1].t0_ns), "looks leave no time out");
    assert!(of(ReadBy::Stretch).count() >= 1 && of(ReadBy::Pause).count() >= 1);
    let slices: Vec<Stretch> = serde_json::from_value(record["slices"].clone()).unwrap();
    let framed =
        |slice: &Stretch| of(ReadBy::Stretch).any(|one| one.t0_ns <= slice.t0_ns && slice.t1_ns <= one.t1_ns);
    assert!(slices.iter().filter(|slice| slice.t1_ns - slice.t0_ns > 100_000_000).all(framed));
}

/// A stopped loop has a gap of that length and reports the stop: no other task had its CPU for so
/// long.
#[test]
fn a_noise_loop_that_was_stopped_says_so() {
    let place = Place::alone();
    let order = ["--duration", "3s", "--stretch", "3s", "--policy", "other"];
    let child = start(&mut measure(&place, "spin", &order));
    let probe = probe_of(child.id());
    window_open(&place);
    signal(probe, "STOP");
    std::thread::sleep(Duration::from_millis(400));
    signal(probe, "CONT");
    let answer = answer_of(&child.wait_with_output().unwrap(), 0);
    let causes = answer["threads"][0]["causes"]["causes"].as_array().unwrap();
    let stopped = causes.iter().find(|cause| cause["thief"] == "stopped").expect("a stop");
    assert_eq!(stopped["certainty"], "counted", "{stopped}");
    assert!(stopped["max_ns"].as_u64().unwrap() >= 400_000_000, "{stopped}");
}

/// Of the samples that reach the threshold, the first and the largest are kept with their context;
/// all are counted.
#[test]
fn samples_over_the_threshold_keep_their_context() {
    let place = Place::alone();
    let answer = answer(&mut measure(&place, "wakeup", &["--duration", "500ms", "--over", "1ns"]), 2);
    accounts_balance(&place, &answer);
    let record = &answer["threads"][0]["record"];
    let over_threshold = &record["over_threshold"];
    assert_eq!(over_threshold["over"], answer["over_threshold"]);
    let kept: model::context::Contexts = serde_json::from_slice(
        &std::fs::read(place.path("run").join(over_threshold["contexts_file"].as_str().unwrap())).unwrap(),
    )
    .unwrap();
    assert_eq!(kept.over, kept.not_kept + kept.contexts.len() as u64);
    let file = place.path("run").join(record["file"].as_str().unwrap());
    let (_, samples) = samples_file::read(&file).unwrap();
    let counts = samples.iter().filter(|sample| sample.counts() && sample.value_ns >= 1).count();
    assert_eq!(counts as u64, kept.over);
    for context in &kept.contexts {
        let at = samples.iter().position(|sample| *sample == context.sample).unwrap();
        assert_eq!(context.before, samples[at.saturating_sub(8)..at]);
        assert_eq!(context.after, samples[at + 1..(at + 9).min(samples.len())]);
        let counted = context.counted.as_ref().expect("a window has looks on both sides of every sample");
        let ran = context.sample.t_ns + context.sample.value_ns;
        assert!(counted.t0_ns <= context.sample.t_ns && ran <= counted.t1_ns);
    }
}

/// oslat's `-C`: a main thread that shares a CPU with the probe is reported.
#[test]
fn a_main_thread_beside_a_probe_is_reported() {
    let place = Place::alone();
    let cpu = last_cpu().to_string();
    let order = ["--duration", "1s", "--policy", "other", "--cpus", &cpu, "--main-cpus", &cpu];
    let answer = answer(&mut measure(&place, "spin", &order), 0);
    let limits = answer["limits"].to_string();
    assert!(limits.contains(&format!("shared measured CPU {cpu}")), "{limits}");
}

#[test]
fn a_measurement_under_disturbance_has_the_stressors_record_in_its_run() {
    let place = Place::alone();
    let answer = answer(&mut measure(&place, "wakeup", &["--duration", "500ms", "--disturb", "calc_pi"]), 0);
    accounts_balance(&place, &answer);
    let stressor = &answer["stressors"][0];
    assert_eq!((&stressor["name"], &stressor["state"]), (&"calc_pi".into(), &"ok".into()), "{stressor}");
    assert!(stressor["ops_ok"].as_u64().unwrap() > 0, "{stressor}");
    let run: model::Run = model::run::stored::read_run(&place.path("run")).unwrap();
    let window = &run.windows[0];
    let phase = &run.phases[0];
    assert!(phase.disturbed && run.stressors.len() == 1);
    assert!(
        run.stressors[0].t0_ns <= window.t0_ns && run.stressors[0].t1_ns >= window.t1_ns,
        "{:?}",
        run.stressors
    );
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

/// Beside an isolated CPU that is measured another isolated one may be what is to be loaded.
#[test]
fn the_cpus_to_load_can_be_named() {
    let place = Place::new();
    let with = |loaded: &str, status| {
        let order = ["--duration", "300ms", "--cpus", "0", "--disturb", "calc_pi", "--disturb-cpus", loaded];
        answer(&mut measure(&place, "wakeup", &order), status)
    };
    let last = last_cpu().to_string();
    assert_eq!(with(&last, 0)["stressors"][0]["cpus"], last.as_str());
    let mut measured =
        stillcore(&["measure", "wakeup", "--cpus", "0", "--disturb", "calc_pi", "--disturb-cpus", "0"]);
    let refused = measured.arg("--state").arg(place.state()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("--disturb-cpus: 0, of which 0 is measured"), "{error}");
}

#[test]
fn all_cpus_can_be_loaded_where_measured_ones_may_be() {
    let place = Place::new();
    let all = sched::affinity().unwrap().to_string();
    let mut command = stillcore(&["disturb", "calc_pi", "--duration", "200ms", "--json", "--measured", &all]);
    let answer = answer(command.arg("--state").arg(place.state()).arg("--colocated"), 0);
    assert_eq!((&answer["cpus"], &answer["measured"]), (&all.as_str().into(), &all.as_str().into()));
    assert_eq!(answer["stressors"][0]["state"], "ok", "{answer}");
}
