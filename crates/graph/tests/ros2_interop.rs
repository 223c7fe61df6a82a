//! A subscriber of Cyclone DDS receives what we publish: made from the message's IDL by `idlc` and
//! a C compiler, on the test machine.
//!
//! Needs the packages cyclonedds-dev and cyclonedds-tools, and a C compiler;
//! `cargo xtask lab middleware` installs them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use graph::ros2::{PerformanceHeader, Publisher, Qos, StampedVector, Time, topic_on_wire};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// No default of anybody.
const DOMAIN: u16 = 71;
const WANTED: usize = 200;

/// The subscriber, built in this directory.
fn subscriber(place: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2");
    let done = |command: &mut Command| {
        let status = command.current_dir(place).status();
        assert!(status.is_ok_and(|status| status.success()), "{command:?}");
    };
    done(Command::new("idlc").args(["-l", "c"]).arg(sources.join("stamped_vector.idl")));
    let program = place.join("subscriber");
    let c = [sources.join("subscriber.c"), place.join("stamped_vector.c")];
    done(Command::new("cc").args(["-O1", "-I."]).args(c).arg("-lddsc").arg("-o").arg(&program));
    program
}

fn start(program: &Path, topic: &str) -> Child {
    let mut command = Command::new(program);
    command.arg(DOMAIN.to_string()).arg(topic_on_wire(topic).unwrap()).arg(WANTED.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sizes from nothing to many datagrams, values of every byte.
fn message(number: u32) -> StampedVector {
    let size = [0, 1, 3, 10, 100, 1024, 10_240, 65_000][number as usize % 8];
    let stamp = Time::of_ns(i64::from(number) * 1_000_000_007);
    let header = PerformanceHeader { stamp, tracking_number: number, frequency: 0.1 * number as f32, size };
    StampedVector { header, data: (0..size).map(|at| (at + number) as u8).collect() }
}

/// As the subscriber prints it.
fn line(message: &StampedVector) -> String {
    let header = &message.header;
    let bytes = message.data.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let Time { sec, nanosec } = header.stamp;
    format!("{sec} {nanosec} {} {} {bytes}.", header.tracking_number, header.size)
}

/// A line of the subscriber: the same with the frequency, which C prints as an exact hexadecimal
/// fraction.
fn parts(line: &str) -> (String, f64) {
    let words: Vec<&str> = line.split(' ').collect();
    let [sec, nanosec, number, frequency, size, bytes] = words[..] else { panic!("{line}") };
    (format!("{sec} {nanosec} {number} {size} {bytes}"), hexadecimal(frequency))
}

/// A number as `%a` prints it: 0x1.8p+1.
fn hexadecimal(text: &str) -> f64 {
    let (mantissa, exponent) = text.trim_start_matches("0x").split_once('p').unwrap();
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).unwrap();
    digits as f64 * f64::powi(2.0, exponent.parse::<i32>().unwrap() - 4 * fraction.len() as i32)
}

#[test]
fn a_subscriber_of_cyclone_dds_receives_what_we_publish() {
    let place = tempfile::tempdir().unwrap();
    let program = subscriber(place.path());
    let mut child = start(&program, "/t100");
    let mut publisher = Publisher::new(DOMAIN, "/t100", Qos { reliable: true, keep_last: None }).unwrap();
    assert!(publisher.wait_for_match(Duration::from_secs(60)), "no subscriber was found");
    let output = std::thread::scope(|scope| {
        let stdout = child.stdout.take().unwrap();
        let reading = scope.spawn(|| std::io::read_to_string(stdout).unwrap());
        // Which message the subscriber sees first is unknown: matching has no handshake. From there
        // on none may be missing.
        let mut number = 0;
        while !reading.is_finished() && number < 100_000 {
            publisher.publish(message(number)).unwrap();
            number += 1;
            std::thread::sleep(Duration::from_millis(2));
        }
        reading.join().unwrap()
    });
    assert!(child.wait().unwrap().success());
    let received: Vec<(String, f64)> = output.lines().map(parts).collect();
    assert_eq!(received.len(), WANTED);
    let first: u32 = received[0].0.split(' ').nth(2).unwrap().parse().unwrap();
    for ((text, frequency), number) in received.iter().zip(first..) {
        let sent = message(number);
        assert!(*text == line(&sent), "message {number} differs");
        assert!((frequency - f64::from(sent.header.frequency)).abs() == 0.0, "{frequency}");
    }
    println!(
        "{WANTED} of {WANTED} messages received and equal, sizes 0 to 65000 bytes, from number {first} on"
    );
}
