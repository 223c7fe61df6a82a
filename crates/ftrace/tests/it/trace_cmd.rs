//! The same files read by trace-cmd: counts by event name and CPU must agree, event for event.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::v7::Codec;
use crate::common::{fixture, input};
use ftrace::{BufferInput, Compression, Counts, TraceFile, convert_to_v7, write_v6};

type PerCpu = BTreeMap<u32, BTreeMap<String, u64>>;

/// trace-cmd, which mounts tracefs where it is not and may: in mounts of its own then, because
/// other tests beside this one look at what changes on the machine.
fn trace_cmd() -> Command {
    let apart = Command::new("unshare").args(["--mount", "true"]).output();
    if !apart.is_ok_and(|output| output.status.success()) {
        return Command::new("trace-cmd");
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "trace-cmd"]);
    command
}

/// Whether trace-cmd can be run; prints why a test does nothing if not.
fn have_trace_cmd() -> bool {
    // Its exit status for this is not 0.
    let found = trace_cmd().arg("--version").output().is_ok_and(|output| !output.stdout.is_empty());
    if !found {
        println!("skipped: trace-cmd is missing (package trace-cmd)");
    }
    found
}

/// Counts the lines of `trace-cmd report`: "task-pid [cpu] time: name: fields", and the drops it
/// prints.
fn report(file: &Path) -> (PerCpu, BTreeMap<u32, u64>) {
    let out = trace_cmd().args(["report", "-i"]).arg(file).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (mut counts, mut dropped) = (PerCpu::new(), BTreeMap::new());
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        if let Some(rest) = line.trim_start().strip_prefix("CPU:")
            && let Some((cpu, rest)) = rest.split_once(" [")
        {
            let number = rest.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            *dropped.entry(cpu.parse().unwrap()).or_default() += number;
            continue;
        }
        // Names of tasks may contain anything, so the CPU is the first bracket with digits only.
        let Some((cpu, rest)) = line.split('[').skip(1).find_map(|part| {
            let (cpu, _) = part.split_once(']')?;
            let at = line.find(&format!("[{cpu}]"))? + cpu.len() + 2;
            Some((cpu.parse::<u32>().ok()?, &line[at..]))
        }) else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let name = words.find(|w| w.ends_with(':') && !w.starts_with(|c: char| c.is_ascii_digit())).unwrap();
        *counts.entry(cpu).or_default().entry(name.trim_end_matches(':').to_owned()).or_default() += 1;
    }
    (counts, dropped)
}

fn ours(file: &Path, buffer: &str) -> Counts {
    let file = TraceFile::open(file).unwrap();
    let mut stream = file.stream_buffer(file.buffer(buffer).unwrap()).unwrap();
    let counts = Counts::of(file.formats(), &mut stream).unwrap();
    assert_eq!(stream.damaged(), 0);
    counts
}

fn assert_agree(file: &Path) {
    let (theirs, dropped) = report(file);
    let ours = ours(file, "");
    assert_eq!(theirs, ours.per_cpu, "{}", file.display());
    for (cpu, lost) in &ours.lost {
        assert_eq!(
            dropped.get(cpu).copied().unwrap_or(0),
            lost.events,
            "drops of CPU {cpu}, {}",
            file.display()
        );
    }
}

#[test]
fn our_v6_files() {
    if !have_trace_cmd() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for recording in ["whole", "lost"] {
        let path = dir.path().join(recording);
        write_v6(&path, &input(recording)).unwrap();
        assert_agree(&path);
    }
}

#[test]
fn our_v6_file_with_a_second_buffer() {
    if !have_trace_cmd() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.dat");
    let mut two = input("whole");
    two.buffers = vec![BufferInput { name: "sender".into(), cpus: input("lost").cpus, stats: Vec::new() }];
    write_v6(&path, &two).unwrap();
    // trace-cmd prints all buffers in one list.
    let mut expected = ours(&path, "").per_cpu;
    for (cpu, names) in ours(&path, "sender").per_cpu {
        for (name, n) in names {
            *expected.entry(cpu).or_default().entry(name).or_default() += n;
        }
    }
    assert_eq!(report(&path).0, expected);
}

#[test]
fn our_v7_files_hold_what_our_v6_files_hold() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("v6.dat"), dir.path().join("v7.dat"));
    let mut two = input("whole");
    two.buffers = vec![BufferInput { name: "sender".into(), cpus: input("lost").cpus, stats: Vec::new() }];
    write_v6(&from, &two).unwrap();
    for compression in [Compression::None, Compression::Zstd] {
        convert_to_v7(&from, std::fs::File::create(&to).unwrap(), &to, compression).unwrap();
        let (v6, v7) = (TraceFile::open(&from).unwrap(), TraceFile::open(&to).unwrap());
        assert_eq!(v7.version(), 7);
        for buffer in ["", "sender"] {
            assert_eq!(ours(&to, buffer), ours(&from, buffer), "{compression:?}, buffer {buffer:?}");
            assert_eq!(v7.stats(buffer), v6.stats(buffer));
            assert_eq!(v7.buffer(buffer).unwrap().clock, v6.buffer(buffer).unwrap().clock);
        }
        assert_eq!((v7.uname(), v7.writer(), v7.clock()), (v6.uname(), v6.writer(), v6.clock()));
        assert_eq!(v7.printk_formats().unwrap(), v6.printk_formats().unwrap());
        let mut comms =
            [&v6, &v7].map(|file| file.comms().map(|(pid, comm)| (pid, comm.to_owned())).collect::<Vec<_>>());
        comms.iter_mut().for_each(|names| names.sort());
        assert_eq!(comms[0], comms[1]);
        if have_trace_cmd() {
            assert_eq!(report(&to).0, report(&from).0, "{compression:?}");
        }
    }
    let again =
        convert_to_v7(&to, std::fs::File::create(dir.path().join("x")).unwrap(), &to, Compression::None);
    assert!(again.unwrap_err().to_string().contains("expected 6"));
}

#[test]
fn v7_files_of_our_test_writer() {
    if !have_trace_cmd() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // zlib is left out: many builds of trace-cmd do without it.
    for codec in [Codec::None, Codec::Zstd] {
        let path = dir.path().join("v7.dat");
        std::fs::write(&path, crate::common::v7::write(&input("whole"), codec, 4)).unwrap();
        assert_agree(&path);
    }
}

#[test]
fn v7_files_that_trace_cmd_converted() {
    // The stored ones are read in any case: trace-cmd made them from our version 6.
    let expected = {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v6.dat");
        write_v6(&path, &input("lost")).unwrap();
        ours(&path, "")
    };
    let stored = fixture().join("lost-v7-zstd.dat");
    assert_eq!(ours(&stored, ""), expected);
    if !have_trace_cmd() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("v6.dat"), dir.path().join("v7.dat"));
    write_v6(&from, &input("lost")).unwrap();
    for compression in ["none", "any"] {
        let done = trace_cmd()
            .args(["convert", "--file-version", "7", "--compression", compression, "-i"])
            .arg(&from)
            .arg("-o")
            .arg(&to)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(TraceFile::open(&to).unwrap().version(), 7);
        assert_eq!(ours(&to, ""), expected, "{compression}");
        assert_agree(&to);
    }
    // And back: a version 6 that trace-cmd wrote.
    let done = trace_cmd()
        .args(["convert", "--file-version", "6", "-i"])
        .arg(&stored)
        .arg("-o")
        .arg(&from)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = TraceFile::open(&from).unwrap();
    assert_eq!((file.version(), file.clock()), (6, Some("mono")));
    assert_eq!(ours(&from, ""), expected);
}
