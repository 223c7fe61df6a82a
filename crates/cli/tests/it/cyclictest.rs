//! `measure wakeup --cyclictest-compat` beside cyclictest itself: the same options give output of
//! the same shape, line for line, and the scripts that read it get their answers. Numbers are not
//! compared here: that is `cargo xtask bench measure`. Where cyclictest is not installed (package
//! rt-tests) the shapes it printed are in `cyclictest/text.rs`, and the test says so.

use crate::support::{Place, assert_refused, is_root, stillcore, text};
use model::Cpus;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use sys::sched;

/// This program, called by cyclictest's name.
fn ours(place: &Place, options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    command.arg0("cyclictest").current_dir(place.dir.path()).args(options.split_whitespace());
    command.arg("--state").arg(place.state()).stdin(std::process::Stdio::null()).output().unwrap()
}

/// cyclictest's output; none where it is not installed or, without root, refuses to run.
fn theirs(options: &str) -> Option<Output> {
    if !is_root() {
        println!("skipped: cyclictest needs root");
        return None;
    }
    let output = Command::new("cyclictest").args(options.split_whitespace()).output().ok();
    if output.is_none() {
        println!("skipped: cyclictest is missing (package rt-tests)");
    }
    output
}

/// A line whose numbers are replaced: each becomes `9`, whatever its width. Lines without measured
/// values are unchanged.
fn shape(line: &str) -> String {
    if ["Thread ", "Max CPUs", "Online CPUs", "Using "].iter().any(|start| line.starts_with(start)) {
        return line.to_owned();
    }
    let mut shape = String::new();
    // A wide number leaves no blank after its colon, a wide thread id none after its bracket.
    for word in line.replace(':', ": ").replace('(', "( ").split(' ').filter(|word| !word.is_empty()) {
        let mut figure = false;
        for c in word.chars() {
            if c.is_ascii_digit() {
                if !figure {
                    shape.push('9');
                }
                figure = true;
            } else {
                figure = false;
                shape.push(c);
            }
        }
        shape.push(' ');
    }
    shape
}

/// The shapes of all lines but those that only we print, and those whose length or number is
/// chance: which samples were above the histogram, and how many a thread has when another has all
/// of its.
fn shapes(output: &str) -> Vec<String> {
    let own = ["# Missed releases:", "# Lost samples:", "# Early wake-ups:", "# Run directory:"];
    let lines = output.lines().filter(|line| !own.iter().any(|start| line.starts_with(start)));
    let mut shapes: Vec<_> = lines
        .map(|line| {
            if line.starts_with("# Thread ") && !line.contains("Ids") {
                "overflows".to_owned()
            } else {
                shape(line)
            }
        })
        .collect();
    shapes.dedup_by(|one, other| one == other && one == "9: 9: 9 ");
    shapes
}

const SAME: [&str; 11] = [
    "-q -l 60 -p 80",
    "-q -l 60 -p 80 -t2 -a 0 -m",
    "-q -l 60 -p 80 -N -i 500 -d 0 -t2",
    "-q -l 60 -h 40 -p 80 -t2",
    "-q -l 60 -H 40 -p 80 -t2 -i500",
    "-q -l 60 -H 40",
    "-q -D 1 --policy=rr -c 1",
    "-q -l 60 -b 1 -h 5 -p 70",
    // With -v before -a it prints twice how many CPUs it uses.
    "-q -l 20 -i 2000 -t1 -a0 -v",
    "-q -l 60 -A 100 -t2 --default-system",
    "-q -l 20 -p 60 --priospread -t3 -d 100 -v",
];

#[test]
fn the_same_options_give_the_same_lines() {
    for options in SAME {
        let place = Place::new();
        let output = ours(&place, options);
        assert_eq!(output.status.code(), Some(0), "{options}: {}", text(&output.stderr));
        let Some(peer) = theirs(options) else { return };
        assert_eq!(shapes(&text(&output.stdout)), shapes(&text(&peer.stdout)), "{options}");
        assert_eq!(place.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn columns_stand_where_cyclictest_has_them() {
    let options = "-q -l 60 -p 80 -i 1000";
    let place = Place::new();
    let line = |output: &Output| text(&output.stdout).lines().last().unwrap().to_owned();
    let Some(peer) = theirs(options) else { return };
    // Thread ids and latencies may be wider than their columns, on either side.
    let until = |line: &str, word: &str| line.find(word).unwrap() - line.find(") P:").unwrap();
    let (ours, theirs) = (line(&ours(&place, options)), line(&peer));
    for word in ["P:", "I:", "C:", "Min:", "Act:"] {
        assert_eq!(until(&ours, word), until(&theirs, word), "{ours}\n{theirs}");
    }
}

#[test]
fn what_it_refuses_we_refuse_and_what_makes_it_hang_too() {
    for options in ["-q -l 10 -p 100", "-q -l 10 -a 4000", "-q -h 0 -l 1", "-q -l 1 -c 7"] {
        let place = Place::new();
        assert_refused(&ours(&place, options), &[]);
        if let Some(peer) = theirs(options) {
            assert_eq!(peer.status.code(), Some(1), "{options}");
        }
    }
    // With an interval of 0 cyclictest never returns; it reads invalid numbers as 0.
    for (options, word) in
        [("-i 0", "interval"), ("-q -l ten", "ten"), ("-q -D 1x", "1x"), ("--frobnicate", "frobnicate")]
    {
        assert_refused(&ours(&Place::new(), options), &[word]);
    }
}

/// OSADL's script for latency plots: lines without `#`, blanks turned into tabs, a column each; the
/// largest maximum of all.
#[test]
fn a_plot_script_finds_its_columns_and_its_maximum() {
    let place = Place::new();
    let output = text(&ours(&place, "-q -l 100 -m -p 80 -t2 -i 500 -h 400").stdout);
    std::fs::write(place.path("output"), &output).unwrap();
    let script = r#"
        max=`grep "Max Latencies" output | tr " " "\n" | sort -n | tail -1 | sed s/^0*//`
        grep -v -e "^#" -e "^$" output | tr " " "\t" >histogram
        for core in 1 2; do cut -f1,`expr $core + 1` histogram >histogram$core; done
        echo "$max"; wc -l <histogram; awk '{ n += $2 } END { print n }' histogram1 histogram2
        awk -F'\t' 'NF != 3' histogram | wc -l"#;
    let run = Command::new("sh").args(["-c", script]).current_dir(place.dir.path()).output().unwrap();
    let numbers: Vec<i64> = text(&run.stdout).split_whitespace().map(|word| word.parse().unwrap()).collect();
    let (max, rows, counted, odd) = (numbers[0], numbers[1], numbers[2], numbers[3]);
    assert_eq!((rows, odd), (400, 0));
    let number = |name: &str| -> Vec<i64> {
        let line = output.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    assert_eq!(number("# Max Latencies:").into_iter().max(), Some(max));
    assert_eq!(number("# Total:").into_iter().sum::<i64>(), counted);
    let all = counted + number("# Histogram Overflows:").into_iter().sum::<i64>();
    assert!((100..=200).contains(&all), "{all} samples of two threads, one of which has its hundred");
}

/// A script that takes the last line a thread, and one that reads the file of `--json`.
#[test]
fn the_last_lines_are_the_threads_and_the_file_says_the_same() {
    for quiet in ["-q", ""] {
        let place = Place::new();
        let file = place.path("result.json");
        let output =
            ours(&place, &format!("{quiet} -l 150 -p 80 -t2 -d 0 -h 900000 --json {}", file.display()));
        let output = text(&output.stdout);
        let answer: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!((&answer["file_version"], &answer["num_threads"]), (&1.into(), &2.into()));
        let mut cycles = Vec::new();
        for (number, one) in answer["thread"].as_object().unwrap() {
            let bins = one["histogram"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
            cycles.push(one["cycles"].as_u64().unwrap());
            assert!(cycles.ends_with(&[bins]), "{one}");
            let line = output.lines().find_map(|line| line.strip_prefix("# Min Latencies: ")).unwrap();
            let minimum = line.split(' ').nth(number.parse().unwrap()).unwrap();
            assert_eq!(minimum, format!("{:05}", one["min"].as_i64().unwrap()));
        }
        assert_eq!(cycles.iter().max(), Some(&150), "the thread that has its samples ends the other");
    }
    let place = Place::new();
    let output = text(&ours(&place, "-l 150 -p 80 -t2").stdout);
    let last: Vec<_> = output.lines().rev().take(2).collect();
    assert!(last[0].starts_with("T: 1 (") && last[1].starts_with("T: 0 ("), "{output}");
    let cycles = |line: &str| {
        line.split_once("C:").unwrap().1.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(last.iter().map(|line| cycles(line)).max(), Some(150));
}

#[test]
fn the_samples_are_in_a_run_directory_and_the_releases_are_accounted_for() {
    let place = Place::new();
    let output = stillcore(&["measure", "wakeup", "--cyclictest-compat"])
        .arg("--state")
        .arg(place.state())
        .arg("--out")
        .arg(place.path("run"))
        .args(["--", "-q", "-D1", "-i500", "-p", "80"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let run = crate::support::read_json(&place.path("run/run.json"));
    let record = &run["probes"][0];
    let number = |name: &str| record[name].as_u64().unwrap();
    assert_eq!((&run["complete"], number("released")), (&Value::Bool(true), 2000));
    assert_eq!(number("released"), number("samples") + number("missed") + number("ring_lost"));
    let stdout = text(&output.stdout);
    assert!(stdout.contains(&format!("# Missed releases: {:05}\n", number("missed"))), "{stdout}");
    assert!(stdout.contains(&format!("C:{:7}", number("samples"))), "{stdout}");
    assert!(Path::new(&place.path("run/report.html")).exists());
}

/// What of this name lies where private directories are made.
fn private_places() -> Vec<String> {
    let entries =
        ["/var/tmp", "/tmp"].into_iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("stillcore-")).collect();
    names.sort();
    names
}

#[test]
fn it_leaves_no_directory_that_nobody_asked_for() {
    let place = Place::alone();
    let before = private_places();
    let output = ours(&place, "-q -l 100 -i 500");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains("Run directory"), "{}", text(&output.stdout));
    // An error behind the measurement.
    let output = ours(&place, "-q -l 100 -i 500 -h 20 --histfile /nowhere/x");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(!text(&output.stderr).contains("is kept"), "{}", text(&output.stderr));
    // A signal in the middle.
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    command.arg0("cyclictest").current_dir(place.dir.path()).args(["-q", "--state"]).arg(place.state());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    crate::support::eventually("samples", || (private_places() != before).then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    crate::support::signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let left: Vec<_> =
        std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [place.state()]);
    assert_eq!(private_places(), before);
}

/// Without -l and -D it measures until it is ended, as with `timeout`: that is no failure.
#[test]
fn without_an_end_it_measures_until_it_is_ended() {
    let place = Place::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    command.arg0("cyclictest").args(["-q", "-p", "80", "--state"]).arg(place.state());
    command.arg("--out").arg(place.path("run")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let samples = place.path("run/samples/wakeup-cpu0-0.parquet");
    let give_up = Instant::now() + Duration::from_secs(30);
    while !samples.exists() && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).lines().last().unwrap().starts_with("T: 0 ("));
    let run = crate::support::read_json(&place.path("run/run.json"));
    assert_eq!(run["complete"], Value::Bool(true));
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

/// As on a machine with isolated CPUs: all CPUs that the process may use are measured, and none is
/// left over.
#[test]
fn a_process_that_has_only_the_measured_cpus_measures_them() {
    sched::pin(&Cpus::one(0)).unwrap();
    let place = Place::new();
    let output = ours(&place, "-q -S -l 50 -p 80");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let threads = text(&output.stdout).lines().filter(|line| line.starts_with("T:")).count();
    assert_eq!(threads, 1, "one thread a CPU that it may use");
}

#[test]
fn both_kinds_of_options_at_once_are_refused() {
    let refused =
        |words: &[&str], expected: &[&str]| assert_refused(&stillcore(words).output().unwrap(), expected);
    refused(&["measure", "wakeup", "--cyclictest-compat", "--period", "1ms"], &["--period"]);
    refused(&["measure", "wakeup", "--", "-p", "80"], &["--cyclictest-compat"]);
}
