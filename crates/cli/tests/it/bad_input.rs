//! Bad input of every kind: one clear sentence, exit 1, nothing left behind.

use crate::support::{Place, assert_refused, is_root, stillcore};
use std::fs;
use std::process::{Command, Stdio};

/// `assess` with these arguments is refused before anything is written.
fn refused(arguments: &[&str], expected: &[&str]) {
    let place = Place::new();
    let output = place.assess(arguments).output().unwrap();
    assert_refused(&output, expected);
    assert!(!place.path("run").exists(), "a run directory was left");
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

fn online() -> String {
    fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().to_owned()
}

#[test]
fn no_such_cpu() {
    refused(&["--cpus", "4095"], &["no CPU 4095"]);
}

#[test]
fn all_cpus() {
    refused(&["--cpus", &online()], &["all CPUs"]);
}

#[test]
fn a_list_that_is_none() {
    refused(&["--cpus", "3-1"], &["3-1", "CPU numbers"]);
    refused(&["--cpus", "0x3"], &["0x3", "CPU numbers"]);
}

#[test]
fn an_empty_list() {
    refused(&["--cpus", ""], &["none are named"]);
}

#[test]
fn no_duration() {
    refused(&["--duration", "0s"], &["--duration", "at least"]);
}

#[test]
fn a_duration_without_a_unit() {
    refused(&["--duration", "20"], &["20", "20s"]);
}

#[test]
fn a_duration_too_short_for_its_period() {
    refused(&["--duration", "1s", "--period", "100ms"], &["--duration", "at least 4s"]);
}

#[test]
fn a_duration_of_years() {
    refused(&["--duration", "9999h"], &["--duration", "at most"]);
}

#[test]
fn a_period_of_nothing() {
    refused(&["--period", "1us"], &["--period", "at least 20us"]);
}

#[test]
fn a_priority_that_does_not_exist() {
    refused(&["--priority", "100"], &["100", "0..=98"]);
}

#[test]
fn an_unknown_stressor() {
    refused(&["--stressors", "u_fork,earthquake"], &["earthquake", "u_fork, "]);
}

#[test]
fn an_unknown_option() {
    refused(&["--fast"], &["--fast"]);
}

#[test]
fn an_unknown_verb() {
    assert_refused(&stillcore(&["asses"]).output().unwrap(), &["asses"]);
}

#[test]
fn a_corrupt_catalogue_entry() {
    let place = Place::new();
    fs::create_dir(place.path("catalogue")).unwrap();
    fs::write(place.path("catalogue/nohz_full.toml"), "id = \"nohz_full\"\ntitle = 3\n").unwrap();
    let output = place.assess(&["--catalogue", place.path("catalogue").to_str().unwrap()]).output().unwrap();
    assert_refused(&output, &["nohz_full.toml:2", "expected a string"]);
    assert!(!place.path("run").exists());
}

#[test]
fn a_catalogue_that_is_not_there() {
    refused(&["--catalogue", "/no/such/place"], &["/no/such/place"]);
}

#[test]
fn a_run_directory_that_holds_something() {
    let place = Place::new();
    fs::create_dir(place.path("run")).unwrap();
    fs::write(place.path("run/mine"), "x").unwrap();
    assert_refused(&place.assess(&[]).output().unwrap(), &["not empty"]);
    assert_eq!(fs::read_dir(place.path("run")).unwrap().count(), 1, "somebody's directory was touched");
}

#[test]
fn a_run_directory_that_is_a_file() {
    let place = Place::new();
    fs::write(place.path("run"), "x").unwrap();
    assert_refused(&place.assess(&[]).output().unwrap(), &["run"]);
}

#[test]
fn an_unwritable_run_directory() {
    let place = Place::new();
    let mut command = stillcore(&["assess", "--out", "/proc/stillcore-run"]);
    assert_refused(&command.arg("--state").arg(place.state()).output().unwrap(), &["/proc/stillcore-run"]);
}

#[test]
fn an_unwritable_state_directory() {
    let place = Place::new();
    let mut command = stillcore(&["assess", "--state", "/proc/stillcore-state", "--duration", "1s"]);
    let output = command.arg("--out").arg(place.path("run")).output().unwrap();
    assert_refused(&output, &["/proc/stillcore-state"]);
    assert!(!place.path("run").exists());
}

/// A shell command in a mount namespace of its own, as root.
fn in_own_mounts(script: &str, place: &Place) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script]).env("STILLCORE", env!("CARGO_BIN_EXE_stillcore"));
    command.env("PLACE", place.dir.path());
    command
}

#[test]
fn a_full_run_directory() {
    if !is_root() {
        println!("skipped: mounting a small file system takes root");
        return;
    }
    let place = Place::new();
    let script = "mkdir $PLACE/small; mount -t tmpfs -o size=4k none $PLACE/small; head -c 4096 /dev/zero > $PLACE/small/fill; \
                  $STILLCORE assess --state $PLACE/state --out $PLACE/small/run --duration 1s || code=$?; \
                  test ! -e $PLACE/small/run; exit $code";
    assert_refused(&in_own_mounts(script, &place).output().unwrap(), &["No space left"]);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_run_directory_that_fills_up() {
    if !is_root() {
        println!("skipped: mounting a small file system takes root");
        return;
    }
    let place = Place::new();
    let script = "mkdir $PLACE/small; mount -t tmpfs -o size=160k none $PLACE/small; \
                  $STILLCORE assess --state $PLACE/state --out $PLACE/small/run --duration 2s --period 50us || code=$?; \
                  test -s $PLACE/small/run/PARTIAL; exit $code";
    assert_refused(&in_own_mounts(script, &place).output().unwrap(), &["No space left", "partial run"]);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_state_directory_that_fills_up() {
    if !is_root() {
        println!("skipped: mounting a small file system takes root");
        return;
    }
    let place = Place::new();
    let script = "mkdir $PLACE/small; mount -t tmpfs -o size=8k none $PLACE/small; \
                  $STILLCORE assess --state $PLACE/small/st --out $PLACE/run --duration 1s --period 1ms || code=$?; \
                  test -z \"$(ls $PLACE/small/st/journal)\"; exit $code";
    assert_refused(&in_own_mounts(script, &place).output().unwrap(), &["journal", "No space left"]);
    assert!(place.path("run/PARTIAL").exists());
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn tracing_requested_where_it_is_unavailable() {
    if !is_root() {
        refused(&["--trace", "on", "--duration", "1s"], &["trac"]);
        return;
    }
    // A tracefs in which no instance can be made: the kernel's limit and a read-only mount look
    // alike from here.
    let place = Place::new();
    let script = "umount -a -t tracefs 2>/dev/null || true; mkdir $PLACE/t; mount -t tracefs none $PLACE/t; mount -o remount,ro,bind $PLACE/t; \
                  $STILLCORE assess --state $PLACE/state --out $PLACE/run --duration 1s --trace on";
    assert_refused(&in_own_mounts(script, &place).output().unwrap(), &["tracing instance", "Read-only"]);
    assert!(place.path("run/PARTIAL").exists());
}

/// Limits of the machine, and of a control group with less.
#[test]
fn more_memory_than_there_is() {
    let place = Place::new();
    let state = place.state();
    let disturb = |shell: &str, bytes: &str| {
        let words = "disturb vm_fill llc_thrash --duration 1s --bytes";
        let call = format!("{shell} exec {} {words} {bytes} --state", env!("CARGO_BIN_EXE_stillcore"));
        Command::new("/bin/sh").args(["-c", &format!("{call} \"$0\"")]).arg(&state).output().unwrap()
    };
    // Both numbers: the required memory, with one walker per CPU, and the available memory.
    let expected = ["would fill", "GiB of memory; by", "can be had without swapping", "/proc/meminfo"];
    assert_refused(&disturb("", "500G"), &expected);
    assert_eq!(place.leftovers(), Vec::<String>::new());
    let mounted = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(std::path::Path::new);
    let Some(above) = mounted.iter().find(|above| {
        let controllers = fs::read_to_string(above.join("cgroup.subtree_control")).unwrap_or_default();
        above.join("memory.limit_in_bytes").exists() || controllers.contains("memory")
    }) else {
        println!("skipped in part: there is no memory controller here");
        return;
    };
    let group = above.join(format!("stillcore-test-{}", std::process::id()));
    if fs::create_dir(&group).is_err() {
        println!("skipped in part: making a control group takes root");
        return;
    }
    let limit = if group.join("memory.max").exists() { "memory.max" } else { "memory.limit_in_bytes" };
    fs::write(group.join(limit), "67108864").unwrap();
    let enter = format!("echo $$ > {}/cgroup.procs;", group.display());
    let refused = disturb(&enter, "100M");
    fs::remove_dir(&group).unwrap();
    assert_refused(&refused, &["would fill", "MiB of memory; by", "can be had without swapping", limit]);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn a_report_of_nothing() {
    let place = Place::new();
    let run = place.dir.path().to_str().unwrap();
    assert_refused(&stillcore(&["report", run]).output().unwrap(), &["run.json"]);
    fs::write(place.path("run.json"), "{\"schema\": \"stillcore.run/99\"}").unwrap();
    assert_refused(&stillcore(&["report", run]).output().unwrap(), &["run.json"]);
}

#[test]
fn counts_of_something_else() {
    let place = Place::new();
    fs::write(place.path("x.dat"), [0x17, 0x08, 0x44, b't', b'r']).unwrap();
    assert_refused(
        &stillcore(&["trace", "counts", place.path("x.dat").to_str().unwrap()]).output().unwrap(),
        &["x.dat"],
    );
    assert_refused(&stillcore(&["trace", "counts", "/no/such.dat"]).output().unwrap(), &["/no/such.dat"]);
}

#[test]
fn an_unknown_kernel() {
    let place = Place::new();
    let out = place.path("lab");
    let arguments = ["lab", "run", "--kernel", "9.99", "--out", out.to_str().unwrap(), "--", "assess"];
    assert_refused(&stillcore(&arguments).output().unwrap(), &["9.99", "6.1-rt"]);
    assert!(!out.exists());
}

#[test]
fn errors_as_json() {
    let output = stillcore(&["assess", "--json", "--cpus", "4095"]).output().unwrap();
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error["error"]["what"].as_str().unwrap().contains("4095"));
    assert!(error["error"]["where"].is_string() && error["error"]["expected"].is_string());
}

#[test]
fn what_may_harm_the_machine_needs_a_request() {
    for order in [&["watchdog_thresh"][..], &["--suite", "rtss24-migration"]] {
        let place = Place::new();
        let mut command = stillcore(&["disturb"]);
        let output = command.args(order).arg("--state").arg(place.state()).output().unwrap();
        assert_refused(&output, &["may harm the machine", "--dangerous"]);
        assert_eq!(place.leftovers(), Vec::<String>::new());
    }
}

/// A reader that has closed is no error. An unwritable destination is one, in one sentence.
#[test]
fn an_answer_without_a_reader() {
    for order in [&["disturb", "--list", "--json"][..], &["sched", "generate", "--count", "3000"], &["audit"]]
    {
        let mut command = stillcore(order);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{order:?}: {output:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{order:?}");

        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = stillcore(order).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{order:?}: {said}");
        assert!(said.contains("No space left") && !said.contains("panicked"), "{order:?}: {said}");
    }
}

/// Empty input is refused.
#[test]
fn a_file_without_a_line() {
    let place = Place::new();
    let empty = place.path("empty.jsonl");
    fs::write(&empty, "\n").unwrap();
    for verb in ["analyze", "budget", "check-certificate"] {
        let output = stillcore(&["sched", verb]).arg(&empty).output().unwrap();
        assert_refused(&output, &["empty input", "one JSON object per line"]);
    }
}

/// A command that only computes ends at once on SIGINT.
#[test]
fn ctrl_c_ends_a_computation() {
    // A shell's background job and its children ignore SIGINT.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_stillcore")]);
    command.args(["sched", "generate", "--count", "1000000000000"]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // The command draws sets, or waits for a reader that does not read.
    std::thread::sleep(std::time::Duration::from_millis(200));
    crate::support::signal(child.id(), "INT");
    assert!(child.wait().unwrap().code().is_none(), "ended by the signal");
}

#[test]
fn a_matrix_that_cannot_be_run_boots_nothing() {
    let place = Place::new();
    for (order, expected) in [(&["--binary", "nofile"][..], "nofile"), (&["--duration", "0s"], "--duration")]
    {
        let mut command = stillcore(&["lab", "matrix", "--kernels", "6.1", "--profiles", "none"]);
        let output = command.args(order).arg("--out").arg(place.path("matrix")).output().unwrap();
        let said = crate::support::text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        // A program with a dynamic loader cannot be a guest's first one, whatever else is wrong.
        assert!(said.contains(expected) || said.contains("dynamically linked"), "{said}");
        assert!(!said.contains("booting") && !place.path("matrix").exists(), "{said}");
    }
}
