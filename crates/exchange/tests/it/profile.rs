//! What profiles of TuneD do: of ours, of its own as they are written, of broken ones.

use crate::{captured, machines, names, of, written};
use audit::Request;
use exchange::{Profile, Verdict, compare, read_profile};
use machine::Root;
use proptest::prelude::*;
use std::path::Path;

fn put(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A machine of four CPUs with a profile `it` and what it includes.
fn with(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Profile, String>) {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "sys/devices/system/cpu/online", "0-3\n");
    put(dir.path(), "proc/sys/kernel/timer_migration", "1\n");
    put(dir.path(), "proc/sys/vm/stat_interval", "1\n");
    put(dir.path(), "sys/devices/virtual/workqueue/cpumask", "f\n");
    put(dir.path(), "sys/devices/virtual/workqueue/writeback/cpumask", "f\n");
    put(dir.path(), "sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n");
    for cpu in 0..4 {
        let cpufreq = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
        put(dir.path(), &format!("{cpufreq}/scaling_governor"), "powersave\n");
        put(dir.path(), &format!("{cpufreq}/scaling_available_governors"), "powersave performance\n");
    }
    files.iter().for_each(|(file, text)| put(dir.path(), file, text));
    let root = Root::open(dir.path()).unwrap();
    let found = read_profile(&root, &root, "it", None).map_err(|error| error.to_string());
    (dir, found)
}

fn of_files(files: &[(&str, &str)]) -> Profile {
    with(files).1.unwrap()
}

#[test]
fn what_is_exported_does_what_is_desired_but_for_what_is_left() {
    for name in names() {
        let desired = captured(&name, Request::default());
        let export = written("tuned", &desired);
        let root = Root::open(&machines().join(&name)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "it/tuned.conf", &export.files[0].text);
        let path = dir.path().join("it").display().to_string();
        let profile = read_profile(&Root::live(), &root, &path, None).unwrap();
        assert_eq!((&profile.more[..], &profile.unknown[..]), (&[][..], &[][..]), "{name}");
        let left = export.left.join("\n");
        let compared = compare(&desired, &profile, "");
        assert_eq!(compared.besides, [""; 0], "{name}");
        let mut same = 0;
        for row in compared.rows {
            let is_left = left.contains(&row.mechanism) || left.contains(&row.what);
            assert!(row.verdict == Verdict::Same || is_left, "{name}: {row:?}");
            same += u32::from(row.verdict == Verdict::Same);
        }
        assert!(same > 5, "{name}: {same}");
    }
}

#[test]
fn a_profile_is_put_together_from_those_that_it_includes() {
    let found = of_files(&[
        (
            "etc/tuned/it/tuned.conf",
            "[main]\ninclude=base, -absent\n[variables]\ninclude=/etc/tuned/it.conf\n\
          others=${f:cpulist2hex_invert:${cores}}\n[sysctl]\nvm.stat_interval=${interval}\n[sysfs]\n\
          /sys/devices/virtual/workqueue/*/cpumask=${others}\n/sys/none=1\n[scheduler]\nisolated_cores=${cores}\n\
          [bootloader]\ncmdline_it=+isolcpus=managed_irq,${cores} nosoftlockup\ncmdline_off=-skew_tick=1\n",
        ),
        (
            "usr/lib/tuned/base/tuned.conf",
            "[sysctl]\nvm.stat_interval=10\nkernel.timer_migration=0\n[cpu]\n\
          governor=none|performance\nforce_latency=cstate.id_no_zero:1|3\n[bootloader]\ncmdline_base=skew_tick=1\n\
          [service]\nservice.irqbalance=stop,disable\n[net]\nchannels=combined 1\n",
        ),
        ("etc/tuned/it.conf", "# cores\ncores=2-3\ninterval=60\n"),
    ]);
    assert_eq!(found.read, ["/usr/lib/tuned/base/tuned.conf", "/etc/tuned/it/tuned.conf"]);
    let file = |path: &str| found.files.get(path).map(String::as_str);
    assert_eq!(file("/proc/sys/vm/stat_interval"), Some("60"));
    assert_eq!(file("/proc/sys/kernel/timer_migration"), Some("0"));
    assert_eq!(file("/sys/devices/virtual/workqueue/writeback/cpumask"), Some("00000003"));
    assert_eq!(file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"), Some("performance"));
    assert_eq!(found.files.len(), 7, "{:?}", found.files);
    assert_eq!(found.parameters, ["isolcpus=managed_irq,2-3", "nosoftlockup"]);
    assert_eq!((found.isolated.to_string(), found.quiet.to_string()), ("2,3".into(), "2,3".into()));
    assert_eq!(found.latency_us.as_deref(), Some("2"));
    assert_eq!(found.stopped.iter().collect::<Vec<_>>(), ["irqbalance.service"]);
    assert_eq!(
        found.more,
        ["[net] channels = combined 1", "[sysfs] /sys/none = 1, which is not on this machine"]
    );
    assert_eq!(found.unknown, [""; 0]);
}

#[test]
fn cpus_that_no_variable_names_are_those_that_are_asked_for_and_it_is_said() {
    let text = "[variables]\ninclude=/etc/tuned/it.conf\nisolated_cores=${isolated_cores}\n[scheduler]\n\
                isolated_cores=${isolated_cores}\n";
    let (dir, _) = with(&[("etc/tuned/it/tuned.conf", text), ("etc/tuned/it.conf", "# none\n")]);
    let root = Root::open(dir.path()).unwrap();
    let of = |cpus: &str| read_profile(&root, &root, "it", Some(&cpus.parse().unwrap())).unwrap();
    let found = of("1,3");
    assert_eq!(found.isolated.to_string(), "1,3");
    assert_eq!(found.unknown, ["isolated_cores is set nowhere; taken to be 1,3"]);
    put(dir.path(), "etc/tuned/it.conf", "isolated_cores=2\n");
    let found = of("1,3");
    assert_eq!((found.isolated.to_string().as_str(), found.unknown.len()), ("2", 0));
}

#[test]
fn the_administrators_profile_may_include_the_one_that_it_stands_for() {
    let found = of_files(&[
        ("etc/tuned/it/tuned.conf", "[main]\ninclude=it\n[sysctl]\nvm.stat_interval=1\n"),
        ("usr/lib/tuned/profiles/it/tuned.conf", "[sysctl]\nvm.stat_interval=2\nkernel.timer_migration=0\n"),
    ]);
    assert_eq!(found.files["/proc/sys/vm/stat_interval"], "1");
    assert_eq!(found.files.len(), 2);
}

#[test]
fn what_is_not_known_is_said() {
    let found = of_files(&[(
        "etc/tuned/it/tuned.conf",
        "[variables]\ncheck=\\\\${cores}\ncores=${cores}\na=${f:assertion_non_equal:cores are set:${cores}:${check}}\n\
         [sysctl]\nvm.stat_interval=${f:exec:cat:/x}\n[sysfs]\n/sys/devices/virtual/workqueue/cpumask=${mask}\n\
         [script]\nscript=x.sh\n[disk]\nenabled=0\nreadahead=1\n[vm]\nuname_regex=^6\ndirty_bytes=10%\n",
    )]);
    let expected = [
        "[sysctl] vm.stat_interval = ${f:exec:cat:/x}: ${f:exec:cat:/x} is not computed without TuneD",
        "[sysfs] /sys/devices/virtual/workqueue/cpumask = ${mask}: ${mask} is not set anywhere",
        "[script] runs x.sh",
        "[vm] dirty_bytes = 10%: applies only where uname_regex matches \"^6\"",
    ];
    assert_eq!(found.unknown, expected);
    assert_eq!(found.refused, ["cores are set"]);
    assert!(found.files.is_empty(), "{:?}", found.files);
    assert_eq!(found.more, [""; 0]);
}

#[test]
fn a_value_with_a_bound_is_set_only_where_it_is_beyond_it() {
    let found = of_files(&[(
        "etc/tuned/it/tuned.conf",
        "[sysctl]\nvm.stat_interval=>10\nkernel.timer_migration=>0\n",
    )]);
    assert_eq!(
        found.files.iter().collect::<Vec<_>>(),
        [(&"/proc/sys/vm/stat_interval".to_owned(), &"10".to_owned())]
    );
}

#[test]
fn none_of_that_name_a_circle_and_broken_files_are_errors_that_say_which() {
    let error = |files: &[(&str, &str)]| with(files).1.unwrap_err();
    let none = error(&[("usr/lib/tuned/other/tuned.conf", "")]);
    assert!(none.contains("\"it\"") && none.contains("one of other"), "{none}");
    let broken = error(&[("etc/tuned/it/tuned.conf", "[main]\nx\n")]);
    assert!(broken.contains("/etc/tuned/it/tuned.conf: line 2"), "{broken}");
    let absent = error(&[("etc/tuned/it/tuned.conf", "[main]\ninclude=gone\n")]);
    assert!(absent.contains("\"gone\""), "{absent}");
    // A circle ends by itself: each file is read once.
    let circle = of_files(&[
        ("etc/tuned/it/tuned.conf", "[main]\ninclude=b\n"),
        ("etc/tuned/b/tuned.conf", "[main]\ninclude=it\n[sysctl]\nvm.stat_interval=3\n"),
    ]);
    assert_eq!(circle.read.len(), 2);
}

#[test]
fn other_values_words_and_cpus_are_not_called_the_same() {
    let name = names().into_iter().next().unwrap();
    let desired = captured(&name, Request::default());
    let (path, setting) = desired.files.iter().next().unwrap();
    let mut profile = Profile::default();
    profile.files.insert(path.clone(), format!("{}1", setting.value));
    profile.parameters = desired.parameters.iter().map(|word| format!("{word}x")).collect();
    let compared = compare(&desired, &profile, "");
    let row = compared.rows.iter().find(|row| row.what == *path).unwrap();
    assert_eq!(
        (row.verdict, row.profile.as_deref()),
        (Verdict::Other, Some(&*format!("{}1", setting.value)))
    );
    assert!(compared.rows.iter().all(|row| row.verdict != Verdict::Same), "{:?}", compared.rows);
    let root = Root::open(&machines().join(&name)).unwrap();
    assert_eq!(
        of(&root, &Request { cpus: desired.plan.isolated.clone(), force: true, ..Request::default() }).files,
        desired.files
    );
}

#[test]
fn a_pipe_is_no_file_of_variables_and_paths_of_many_stars_are_not_looked_up() {
    let text = "[variables]\ninclude=/etc/tuned/pipe\n";
    let (dir, _) = with(&[("etc/tuned/it/tuned.conf", text)]);
    let pipe = dir.path().join("etc/tuned/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let root = Root::open(dir.path()).unwrap();
    let error = read_profile(&root, &root, "it", None).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
    let found = of_files(&[("etc/tuned/it/tuned.conf", "[sysfs]\n/sys/*/*/*/*=1\n")]);
    assert_eq!(found.unknown, ["[sysfs] /sys/*/*/*/* = 1: more than 3 stars"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Pieces of profiles in any order, and any text between them.
    #[test]
    fn any_text_is_a_profile_or_an_error(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "[main]\n", "include=it\n", "include=/etc/tuned/it/tuned.conf\n", "[variables]\n", "include=/etc/tuned/it.conf\n",
                    "a=${a}${b}\n", "b=\\\\${a}\n", "[sysctl]\n", "vm.stat_interval=>${f:s2kb:${a}}\n", "[scheduler]\n",
                    "isolated_cores=${f:cpulist_invert:${b}}\n", "${f:", "}", ":", "${", "\\", "[bootloader]\n",
                    "cmdline_a=-+${f:strip:é}\n", "[cpu]\n", "force_latency=cstate.name:x|${a}\n", "governor=|\n", "devices=!cpu0,!\n",
                    "[sysfs]\n", "/sys/devices/virtual/*/cpumask=${f:hex2cpulist:0xé}\n", "[service]\n", "service.=stop\n", "replace=1\n",
                ])
                .prop_map(str::to_owned),
                any::<String>(),
            ],
            0..30,
        ),
    ) {
        let text = pieces.concat();
        let _ = with(&[("etc/tuned/it/tuned.conf", &text), ("etc/tuned/it.conf", &text)]);
    }
}

#[test]
fn what_only_seems_to_be_done_is_not_called_done() {
    let name = names().into_iter().next().unwrap();
    let desired = captured(&name, Request::default());
    let isolated = desired.plan.isolated.clone();
    let tasks = |profile: &Profile| {
        let rows = compare(&desired, profile, "").rows;
        rows.into_iter().find(|row| row.mechanism == "user-tasks").unwrap()
    };
    let all = Profile { isolated, ..Profile::default() };
    assert_eq!(tasks(&all).verdict, Verdict::Same);
    let some = tasks(&Profile { spared: vec!["ps_blacklist = x".into()], ..all });
    assert_eq!(
        (some.verdict, some.profile.as_deref()),
        (Verdict::Other, Some("all but some (ps_blacklist = x)"))
    );
    let found = of_files(&[(
        "etc/tuned/it/tuned.conf",
        "[cpu]\ngovernor=ondemand\n[scheduler]\nisolated_cores=1\nkthread_process=false\nps_blacklist=x\n",
    )]);
    assert!(found.files.is_empty(), "{:?}", found.files);
    assert_eq!(found.more, ["[cpu] governor = ondemand, of which this machine offers powersave performance"]);
    assert_eq!(found.spared, ["kthread_process = false", "ps_blacklist = x"]);
}
