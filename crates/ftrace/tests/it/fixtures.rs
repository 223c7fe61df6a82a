//! Our own recordings, through every container: the same events each time, and as many as the
//! kernel says.

use std::collections::BTreeMap;

use crate::common::v7::Codec;
use crate::common::{Owned, collect, formats, input, stat};
use ftrace::{BufferInput, Counts, Item, TraceFile, stream_raw, write_v6};

fn v6(input: &ftrace::TraceInput) -> (tempfile::TempDir, TraceFile) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.dat");
    write_v6(&path, input).unwrap();
    let file = TraceFile::open(&path).unwrap();
    (dir, file)
}

#[test]
fn read_events_equal_the_kernels_statistics() {
    for recording in ["whole", "lost"] {
        let input = input(recording);
        let formats = formats(&input);
        let mut stream = stream_raw(&formats, &input.cpus).unwrap();
        let counts = Counts::of(&formats, &mut stream).unwrap();
        assert_eq!(stream.damaged(), 0);
        for cpu in 0..4 {
            let read: u64 = counts.per_cpu[&cpu].values().sum();
            assert_eq!(read, stat(recording, cpu, "read events"), "{recording} CPU {cpu}");
            let (lost, overrun) = (counts.lost[&cpu], stat(recording, cpu, "overrun"));
            // Pages without room for the number make the sum of the flags a lower bound.
            match lost.unknown_pages {
                0 => assert_eq!(lost.events, overrun, "{recording} CPU {cpu}"),
                _ => assert!(lost.events <= overrun, "{recording} CPU {cpu}"),
            }
        }
        assert_eq!(counts.is_complete(), recording == "whole");
        assert_eq!(counts.total, counts.events.values().sum::<u64>());
        assert!(!counts.events.keys().any(|n| n.starts_with('#')), "an event without a format");
    }
}

#[test]
fn every_container_gives_the_same_items() {
    for recording in ["whole", "lost"] {
        let input = input(recording);
        let raw = collect(&mut stream_raw(&formats(&input), &input.cpus).unwrap());
        assert!(raw.len() > 1000);
        let (_dir, file) = v6(&input);
        assert_eq!(collect(&mut file.stream().unwrap()), raw, "{recording} v6");
        for codec in [Codec::None, Codec::Zlib, Codec::Zstd] {
            let file = TraceFile::from_bytes("v7", crate::common::v7::write(&input, codec, 3)).unwrap();
            assert_eq!(file.version(), 7);
            assert_eq!(collect(&mut file.stream().unwrap()), raw, "{recording} v7 {codec:?}");
            assert_eq!(file.clock(), Some("mono"));
            assert_eq!(file.uname(), Some(input.uname.as_str()));
            assert_eq!(
                file.symbols().unwrap().resolve(0xffff_ffff_8143_5201),
                Some(("a_function".into(), 1))
            );
        }
    }
}

#[test]
fn merged_events_are_in_the_order_of_time() {
    let input = input("whole");
    let items = collect(&mut stream_raw(&formats(&input), &input.cpus).unwrap());
    let times: Vec<u64> = items
        .iter()
        .map(|i| match i {
            Owned::Event { ts_ns, .. } => *ts_ns,
            Owned::Lost { .. } => panic!("nothing was lost in this recording"),
        })
        .collect();
    assert!(times.is_sorted());
}

#[test]
fn holes_lie_between_the_events_around_them() {
    let input = input("lost");
    let items = collect(&mut stream_raw(&formats(&input), &input.cpus).unwrap());
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    let mut open: BTreeMap<u32, u64> = BTreeMap::new();
    let mut holes = 0;
    for item in &items {
        match item {
            Owned::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                assert_eq!(*after_ts_ns, last.get(cpu).copied().unwrap_or(0));
                assert!(after_ts_ns <= before_ts_ns);
                open.insert(*cpu, *before_ts_ns);
                holes += 1;
            }
            Owned::Event { cpu, ts_ns, .. } => {
                if let Some(before) = open.remove(cpu) {
                    assert!(before <= *ts_ns);
                }
                last.insert(*cpu, *ts_ns);
            }
        }
    }
    assert!(holes >= 3, "this recording was made to overflow");
}

#[test]
fn fields_are_resolved_by_name() {
    let input = input("whole");
    let formats = formats(&input);
    let endian = formats.endian();
    let switch = formats.by_name("sched:sched_switch").unwrap();
    let exec = formats.by_name("sched_process_exec").unwrap();
    let queue = formats.by_name("workqueue_queue_work").unwrap();
    let mut stream = stream_raw(&formats, &input.cpus).unwrap();
    let mut running: BTreeMap<u32, i64> = BTreeMap::new();
    let (mut switches, mut execs, mut works) = (0, 0, 0);
    while let Some(item) = stream.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let number = |f: &ftrace::EventFormat, n: &str| f.field(n).unwrap().int(event.data, endian).unwrap();
        let text = |f: &ftrace::EventFormat, n: &str| f.field(n).unwrap().text(event.data, endian).unwrap();
        if event.id == switch.id {
            switches += 1;
            let prev = number(switch, "prev_pid");
            assert_eq!(prev, i64::from(event.pid), "the task that is switched away from writes the event");
            if let Some(pid) = running.insert(event.cpu, number(switch, "next_pid")) {
                // This kernel did not write the switches out of CPU 3's idle task (trace-cmd shows
                // none either).
                assert!(pid == prev || pid == 0, "what was switched in is what is switched out");
            }
            let comm = text(switch, "next_comm");
            assert!(!comm.is_empty() && comm.chars().all(|c| !c.is_control()), "{comm:?}");
        } else if event.id == exec.id {
            execs += 1;
            assert!(text(exec, "filename").starts_with("/usr/bin/"));
            assert_eq!(number(exec, "pid"), i64::from(event.pid));
        } else if event.id == queue.id {
            works += 1;
            assert!((0..4).contains(&number(queue, "cpu")));
            assert!(queue.field("work").unwrap().uint(event.data, endian).unwrap() >> 47 == 0x1_ffff);
            assert!(!text(queue, "workqueue").is_empty());
        }
    }
    assert!(switches > 50 && execs > 5 && works > 3, "{switches} {execs} {works}");
}

#[test]
fn v6_keeps_the_metadata() {
    let input = input("whole");
    let (_dir, file) = v6(&input);
    assert_eq!(file.version(), 6);
    assert_eq!(file.clock(), Some("mono"));
    assert_eq!(file.uname(), Some(input.uname.as_str()));
    assert_eq!(file.cpus(), [0, 1, 2, 3]);
    assert_eq!(file.stats("").len(), 4);
    assert_eq!(file.stats("")[&0].read_events, stat("whole", 0, "read events"));
    assert_eq!(file.comm(0), Some("<idle>"));
    assert_eq!(file.comm(15), Some("rcu_preempt"));
    assert!(file.problems().is_empty());
    assert_eq!(file.formats().len(), input.formats.len() + input.ftrace_formats.len());
    assert_eq!(file.symbols().unwrap().len(), 2);
    assert_eq!(file.buffers().len(), 1);
}

#[test]
fn v6_with_a_second_buffer_and_gaps_between_cpus() {
    let mut input = input("whole");
    let lost = crate::common::input("lost");
    let sender = vec![(1, lost.cpus[1].1.clone()), (6, lost.cpus[3].1.clone())];
    input.cpus.retain(|(cpu, _)| *cpu == 2);
    input.buffers = vec![BufferInput {
        name: "sender".to_owned(),
        cpus: sender.clone(),
        stats: vec![(6, crate::common::stats("lost", 3))],
    }];
    let (_dir, file) = v6(&input);
    assert_eq!(file.cpus(), [2]);
    assert_eq!(file.buffers()[0].cpus.len(), 7, "a slot for each number up to the highest CPU of any buffer");
    let expected = collect(&mut stream_raw(file.formats(), &input.cpus).unwrap());
    assert_eq!(collect(&mut file.stream().unwrap()), expected);
    let buffer = file.buffer("sender").unwrap();
    assert_eq!(file.stats("").len(), 4);
    assert_eq!(file.stats("sender")[&6].overrun, 1038);
    assert_eq!(buffer.clock.as_deref(), Some("mono"));
    let expected = collect(&mut stream_raw(file.formats(), &sender).unwrap());
    assert_eq!(collect(&mut file.stream_buffer(buffer).unwrap()), expected);
    for cpu in file.buffers().iter().flat_map(|b| &b.cpus) {
        assert_eq!(cpu.offset % 4096, 0);
    }
}

type Spoil = fn(&mut ftrace::TraceInput);

#[test]
fn the_writer_refuses_contradictions() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.dat");
    let cases: [(&str, Spoil); 6] = [
        ("a multiple of the page size", |i| i.page_size = 8192 * 4),
        ("each CPU once", |i| i.cpus[1].0 = 0),
        ("below 8192", |i| i.cpus[1].0 = 8192),
        ("a plain word", |i| i.clock = String::new()),
        ("a power of two", |i| i.page_size = 5000),
        ("cannot read", |i| i.cpus[0].1 = "nowhere.raw".into()),
    ];
    for (expected, spoil) in cases {
        let mut input = input("whole");
        spoil(&mut input);
        let error = write_v6(&out, &input).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!out.exists(), "{expected}: nothing may be written");
    }
}
