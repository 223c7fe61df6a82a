//! Planning, resuming and the table, without a guest.

use super::cell::{Conditions, Measured};
use super::inside::Ended;
use super::*;
use clap::Parser;
use serde_json::Value;
use study::Attempted;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: MatrixArgs,
}

fn args(out: &Path, more: &[&str]) -> MatrixArgs {
    let words = ["matrix", "--out"].map(std::ffi::OsStr::new);
    let more = more.iter().map(std::ffi::OsStr::new);
    Line::try_parse_from(words.into_iter().chain([out.as_os_str()]).chain(more)).unwrap().args
}

fn asking<'a>(args: &'a MatrixArgs, stop: &'a Stop) -> Asking<'a> {
    let kernel = |name: &String| {
        let release = format!("{name}.0-test");
        (name.clone(), Kernel { release, image: "vmlinuz".into(), modules: None, stored: None })
    };
    Asking {
        arch: Arch::X86_64,
        smp: args.smp,
        memory_mib: args.memory,
        accel: args.accel,
        binary: None,
        timeout: Duration::from_secs(1),
        stressors: stressors(args).unwrap(),
        cpus: "2".to_owned(),
        window: args.duration,
        out: &args.out,
        kernels: kernel_names(args).iter().map(kernel).collect(),
        stop,
    }
}

fn measured(conditions: Conditions, exposure: Value, isolation: Value) -> Value {
    let measured = Measured {
        conditions,
        ended: Ended::default(),
        isolation,
        exposure,
        tries: 1,
        failed: Vec::new(),
        wall_s: 1.0,
        qemu: "QEMU".to_owned(),
    };
    serde_json::to_value(measured).unwrap()
}

fn exposure() -> Value {
    json!({ "void": false, "verdict": [], "controls": [
        { "stressor": "tlb_span", "seen": true, "held": true, "told": "" },
        { "stressor": "calc_pi", "seen": false, "held": true, "told": "" },
    ], "unsteady": [], "idle_per_s": {}, "rows": [] })
}

#[test]
fn every_kernel_has_every_profile_once() {
    let args = args(Path::new("out"), &["--kernels", "5.10,6.1-rt", "--profiles", "none,boot"]);
    let cells = study(&kernel_names(&args), &args.profiles).cells().unwrap();
    let mut found: Vec<_> = cells.iter().map(|cell| factors(cell).unwrap()).collect();
    found.sort();
    let expected = [
        ("5.10", Profile::None),
        ("5.10", Profile::Boot),
        ("6.1-rt", Profile::None),
        ("6.1-rt", Profile::Boot),
    ];
    assert_eq!(found, expected.map(|(kernel, profile)| (kernel.to_owned(), profile)));
    assert_eq!(kernel_names(&self::args(Path::new("out"), &[])).len(), 6, "all that the lab knows");
}

#[test]
fn suites_names_and_controls_are_run_once_each() {
    let of = |more: &[&str]| stressors(&args(Path::new("out"), more)).unwrap();
    assert_eq!(of(&["--stressors", "u_fork,calc_pi"]), ["u_fork", "calc_pi", "tlb_span", "schedstats"]);
    let both = of(&["--suite", "positive-control,negative-control", "--stressors", "perf_sys"]);
    assert_eq!(both, ["tlb_span", "schedstats", "calc_pi", "perf_sys"]);
    let safe = catalogue::catalogue().iter().filter(|spec| !spec.dangerous).count();
    assert_eq!(of(&[]).len(), safe);
}

/// What the lab puts on the command line is there under `boot` and under nothing else.
#[test]
fn only_the_profile_boot_isolates_at_boot() {
    for profile in <Profile as clap::ValueEnum>::value_variants() {
        let line = lab::qemu::kernel_command_line(Arch::X86_64, "3".parse().unwrap(), profile.append());
        for key in ["isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity="] {
            assert_eq!(line.contains(key), *profile == Profile::Boot, "{line}");
        }
    }
}

#[test]
fn a_result_of_other_conditions_is_refused_and_named() {
    let (place, stop) = (tempfile::tempdir().unwrap(), Stop::default());
    let mine = args(place.path(), &["--kernels", "6.1", "--profiles", "boot", "--stressors", "perf_sys"]);
    let (store, asking_) = (Store::new(place.path()), asking(&mine, &stop));
    let cells = study(&kernel_names(&mine), &mine.profiles).cells().unwrap();
    check(&asking_, &cells, &store).unwrap();
    store
        .save(&cells[0], measured(asking_.conditions("6.1", Profile::Boot), exposure(), Value::Null))
        .unwrap();
    check(&asking_, &cells, &store).unwrap();
    for (more, expected) in [
        (["--duration", "3s"], "window_ns was 2000000000 there and is 3000000000 now"),
        (["--smp", "4"], "smp was \"3\" there and is \"4\" now"),
        (["--suite", "rtss24"], "stressors was"),
    ] {
        let words = ["--kernels", "6.1", "--profiles", "boot", "--stressors", "perf_sys"];
        let other = args(place.path(), &words.into_iter().chain(more).collect::<Vec<_>>());
        let error = check(&asking(&other, &stop), &cells, &store).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(&cells[0].id), "{error}");
    }
}

#[test]
fn the_table_has_all_results_what_failed_and_what_a_kernel_refuses() {
    let (place, stop) = (tempfile::tempdir().unwrap(), Stop::default());
    let args = args(
        place.path(),
        &["--kernels", "5.10,6.1", "--profiles", "partition,boot", "--stressors", "perf_sys"],
    );
    let (store, asking) = (Store::new(place.path()), asking(&args, &stop));
    answer::keep_kernels(&asking).unwrap();
    let cells = study(&kernel_names(&args), &args.profiles).cells().unwrap();
    let done = study::run_parallel(&cells, &store, NonZeroUsize::MIN, |cell| {
        let (kernel, profile) = factors(cell).unwrap();
        let conditions = asking.conditions(&kernel, profile);
        match (kernel.as_str(), profile) {
            ("6.1", Profile::Partition) => Err("3 guests failed: no time".to_owned()),
            ("5.10", Profile::Partition) => {
                let isolation = json!({ "fallback": [{ "reason": "Invalid argument" }] });
                Ok(measured(conditions, Value::Null, isolation))
            }
            _ => Ok(measured(conditions, exposure(), Value::Null)),
        }
    });
    let matrix = answer::gather(&args, &store, &done.unwrap()).unwrap();
    let columns: Vec<_> = matrix
        .columns
        .iter()
        .map(|column| (column.kernel.as_str(), column.profile.as_str(), column.absent.as_deref()))
        .collect();
    let refused = "this kernel does not hold this placement: Invalid argument";
    assert_eq!(
        columns,
        [
            ("5.10", "partition", Some(refused)),
            ("6.1", "partition", Some("3 guests failed: no time")),
            ("5.10", "boot", None),
            ("6.1", "boot", None),
        ]
    );
    assert_eq!(matrix.profiles.len(), 2);

    // A later call for one more kernel reports all results, and what failed in that call.
    let none = Attempted { cells: Vec::new(), ran: 0, resumed: 0, stale: Vec::new() };
    let later = answer::gather(&args, &store, &none).unwrap();
    assert_eq!(later.columns.len(), 3);
}

/// The result of a cell that saw one stressor, and the control, this often in 100 operations.
fn exposure_of(stressor: &str, events: u64) -> Value {
    let coefficient = |per_operation: f64| {
        json!({ "events": events, "background": 0.0, "per_operation": per_operation, "low": 0.9 * per_operation,
                "high": 1.1 * per_operation, "p": 0.0, "seen": true })
    };
    let mut class = coefficient(events as f64 / 100.0);
    let all = class.clone();
    class["class"] = "ipi.call".into();
    let row = json!({ "stressor": stressor, "state": "ok", "cells": 1, "operations": 100, "failed": {}, "disturbed_s": 1.0, "idle_s": 2.0,
        "all": all, "classes": [class], "each": [], "sources": [], "idle_apart": [], "contaminated": [], "left_out": [], "limits": [] });
    let mut exposure = exposure();
    exposure["rows"] = json!([row]);
    exposure
}

/// A matrix of one cell on disk.
fn table_of(out: &Path, more: &[&str], stressor: &str, events: u64) -> report::Matrix {
    let stop = Stop::default();
    let words = ["--kernels", "6.1", "--profiles", "boot", "--stressors", stressor];
    let args = args(out, &words.into_iter().chain(more.iter().copied()).collect::<Vec<_>>());
    let (store, asking) = (Store::new(out), asking(&args, &stop));
    answer::keep_kernels(&asking).unwrap();
    let cells = study(&kernel_names(&args), &args.profiles).cells().unwrap();
    let conditions = asking.conditions("6.1", Profile::Boot);
    store.save(&cells[0], measured(conditions, exposure_of(stressor, events), Value::Null)).unwrap();
    let none = Attempted { cells: Vec::new(), ran: 0, resumed: 0, stale: Vec::new() };
    answer::gather(&args, &store, &none).unwrap()
}

#[test]
fn rows_measured_anew_go_into_a_table_of_the_same_conditions_only() {
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let file = old.path().join("matrix.json");
    let table = table_of(old.path(), &[], "perf_sys", 800);
    model::store::write_json(&file, &table.json()).unwrap();
    let (asked, cpus) = (["timer".to_owned()], "2".parse().unwrap());

    let merged = onto::onto(table_of(new.path(), &[], "timer", 50), &file, &asked, &cpus).unwrap();
    let rows: Vec<_> = merged.columns[0]
        .rows
        .iter()
        .map(|row| (row.stressor.as_str(), row.classes[0].coefficient.events))
        .collect();
    assert_eq!(rows, [("perf_sys", 800), ("timer", 50)]);
    assert_eq!(merged.conditions.last().unwrap().0, "rows of timer (boot)");
    // Once more: the row is replaced, and its condition too.
    model::store::write_json(&file, &merged.json()).unwrap();
    let again = onto::onto(table_of(new.path(), &[], "timer", 60), &file, &asked, &cpus).unwrap();
    assert_eq!(again.columns[0].rows[1].classes[0].coefficient.events, 60);
    assert_eq!(again.conditions.len(), merged.conditions.len());

    let other = table_of(&new.path().join("other"), &["--duration", "3s"], "timer", 50);
    let error = onto::onto(other, &file, &asked, &cpus).unwrap_err().to_string();
    assert!(error.contains("was 2 s each there and is 3 s each now"), "{error}");
}
