//! `stillcore top` in a terminal: what its user sees at 80x24 and after a resize, with hostile
//! names, on every way out. `script` (util-linux) gives the terminal, the crate `vt100` reads it.

use crate::support::{Place, is_root};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use vt100::Parser;

/// Much longer than a screen takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A name of a process that would set a title, clear the screen and turn a line around.
const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\t\u{202e}";

/// `top` in a terminal of 80x24.
struct Shown {
    child: std::process::Child,
    keys: std::process::ChildStdin,
    output: Receiver<Vec<u8>>,
    screen: Parser,
    all: Vec<u8>,
}

impl Shown {
    /// `None` where there is no `script`. The shell sets the size, then runs `before`.
    fn start(place: &Place, before: &str, options: &str) -> Option<Self> {
        Self::start_verb(place, before, &format!("top {options}"))
    }

    /// The same of another verb.
    fn start_verb(place: &Place, before: &str, verb: &str) -> Option<Self> {
        let (program, state) = (env!("CARGO_BIN_EXE_stillcore"), place.state());
        Self::start_call(&format!("{before} {program} {verb} --state {}", state.display()))
    }

    /// The same of a whole call.
    fn start_call(call: &str) -> Option<Self> {
        let top = format!("stty rows 24 cols 80; {call}; echo status $?; stty -a");
        let mut command = Command::new("script");
        command.args(["-qfc", &top, "/dev/null"]).env("SHELL", "/bin/sh");
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = started else {
            println!("skipped: script is missing (package bsdutils)");
            return None;
        };
        let (keys, mut from) = (child.stdin.take()?, child.stdout.take()?);
        let (to, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                if to.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let size = |number: u16| number.try_into().unwrap();
        Some(Self { child, keys, output, screen: Parser::new(size(24), size(80), 0), all: Vec::new() })
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The screen, once it satisfies a condition.
    fn until(&mut self, what: &str, is: impl Fn(&vt100::Screen) -> bool) -> String {
        let begun = Instant::now();
        while !is(self.screen.screen()) {
            assert!(begun.elapsed() < PATIENCE, "{what}:\n{}", self.screen.screen().contents());
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(200)) {
                self.screen.process(&bytes);
                self.all.extend(bytes);
            }
        }
        self.screen.screen().contents()
    }

    fn until_says(&mut self, words: &str) -> String {
        self.until(words, |screen| screen.contents().contains(words))
    }

    fn assert_given_back(self) {
        self.assert_given_back_with(0);
    }

    /// Its terminal as it was, and its status.
    fn assert_given_back_with(mut self, status: u8) {
        let left = self.until("the end", |screen| screen.contents().contains("status"));
        let left = if left.contains("-icanon") { left } else { self.until_says("icanon") };
        assert!(left.contains(&format!("status {status}")), "{left}");
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert!(!left.contains("-icanon") && !left.contains("-echo "), "{left}");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Shown {
    /// A test that fails leaves nobody behind: a terminal that is hung up ends `top`.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn counters_in_a_terminal_resized_and_left_by_ctrl_c() {
    let place = Place::new();
    let go = place.path("go");
    let wait = format!("until test -e {}; do sleep 0.1; done", go.display());
    let resize = format!("tty=$(tty); ({wait}; stty rows 20 cols 60 <$tty) &");
    let Some(mut top) = Shown::start(&place, &resize, "--counters") else { return };
    let first = top.until_says("– counter");
    assert!(first.starts_with("stillcore top  "), "{first}");
    assert!(first.lines().nth(1).unwrap().starts_with("counters only, no sources"), "{first}");
    assert!(top.screen.screen().alternate_screen());
    std::fs::write(&go, "").unwrap();
    top.until_says("enlarge to 80x24");
    top.press("\u{3}");
    top.assert_given_back();
}

/// Without root there are no events: it shows what the kernel counts, and says so.
#[test]
fn without_root_it_shows_counters_in_a_terminal() {
    let place = Place::new();
    let program = place.path("stillcore");
    std::fs::copy(env!("CARGO_BIN_EXE_stillcore"), &program).unwrap();
    std::fs::set_permissions(place.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let state = place.path("his");
    std::fs::create_dir(&state).unwrap();
    let nobody = if is_root() {
        std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
        "setpriv --reuid 65534 --regid 65534 --clear-groups "
    } else {
        ""
    };
    // As `sudo -u` leaves it: nothing of this user's can be in a home that he may not enter.
    let home = place.path("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
    let call =
        format!("HOME={} {nobody}{} top --state {}", home.display(), program.display(), state.display());
    let Some(mut top) = Shown::start_call(&call) else { return };
    let first = top.until_says("– counter");
    let why = if is_root() { "no root: " } else { "" };
    let second = first.lines().nth(1).unwrap();
    assert!(second.contains(&format!("{why}counters only, no sources")), "{first}");
    top.press("q");
    top.assert_given_back();
}

#[test]
fn events_with_hostile_names_explained_and_left_by_q() {
    if !is_root() {
        println!("skipped: top without root records no events");
        return;
    }
    let place = Place::new();
    // A thread may give itself any name; it wakes and sleeps on every CPU that it comes to.
    let name = std::thread::Builder::new().spawn(|| {
        std::fs::write("/proc/thread-self/comm", HOSTILE).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let Some(mut top) = Shown::start(&place, "", &format!("--cpus {} --disk 0", cpus.trim())) else { return };
    let main = top.until_says("WORST");
    assert!(main.contains("own cost") && main.contains("lost "), "{main}");
    top.press("/x1b]0;x\r");
    let filtered = top.until_says("\\x1b]0;x\\x07");
    assert!(filtered.starts_with("stillcore top"), "{filtered}");
    top.press("\r");
    top.until_says("WORST 1 of");
    top.press("f");
    top.until_says("FROZEN");
    top.press("q");
    top.until_says("CLASS");
    assert!(!top.all.windows(4).any(|bytes| bytes == b"\x1b]0;"), "a name has set the title");
    top.press("q");
    top.assert_given_back();
    name.unwrap().join().unwrap();
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let place = Place::new();
    let Some(mut top) = Shown::start(&place, "", "--counters") else { return };
    top.until_says("own cost");
    let state = place.state().display().to_string();
    let runs = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
        let words = |line: Vec<u8>| String::from_utf8_lossy(&line).replace('\0', " ");
        lines.map(words).any(|line| line.contains(" top ") && line.contains(&state) && !line.contains("stty"))
    };
    assert!(runs());
    drop(top);
    let begun = Instant::now();
    while runs() {
        assert!(begun.elapsed() < PATIENCE, "it lives on without its terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_measurement_shown_live_and_left_by_q() {
    let place = Place::new();
    let trace = if is_root() { "--trace" } else { "" };
    let out = place.path("run");
    let verb = format!("measure wakeup --live {trace} --cpus 0 -D 120s --out {}", out.display());
    let Some(mut live) = Shown::start_verb(&place, "", &verb) else { return };
    let first = live.until_says("missed releases ");
    assert!(first.starts_with("stillcore measure wakeup  ") && first.contains(" s of 120 s"), "{first}");
    if is_root() {
        // The probe's own latency, and its worst wake-up from the release on.
        let main = live.until_says("WORST  CPU 0");
        assert!(main.contains("wake-up of ") && !main.contains("counters only"), "{main}");
    } else {
        live.until_says("no trace: counters only");
    }
    let line = live.until("a latency", |screen| {
        let text = screen.contents();
        text.lines().nth(3).is_some_and(|line| line.contains("wake-up") && line.contains(char::is_numeric))
    });
    assert!(line.lines().nth(3).unwrap().trim_start().starts_with("0  "), "{line}");
    live.press("q");
    live.assert_given_back_with(1);
    let run = std::fs::read_to_string(out.join("run.json")).unwrap();
    assert!(run.contains("interrupted by a key in its live view"), "{run}");
}

#[test]
fn a_live_view_without_a_terminal_is_refused_before_anything_is_written() {
    let place = Place::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    command.args(["measure", "spin", "--live", "--out"]).arg(place.path("run"));
    let output = command.arg("--state").arg(place.state()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("--live needs a terminal"), "{said}");
    assert!(!place.path("run").exists());
}

#[test]
fn a_recording_keeps_its_end_and_is_a_run() {
    if !is_root() {
        println!("skipped: top without root records no events");
        return;
    }
    let place = Place::new();
    let out = place.path("run");
    let options = format!("--cpus 0 -D 4s --out {}", out.display());
    let Some(mut top) = Shown::start(&place, "", &options) else { return };
    let left = top.until_says("who did what: stillcore trace explain");
    assert!(left.contains("recorded 4 s to ") || left.contains("recorded 5 s to "), "{left}");
    top.assert_given_back();
    let mut report = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    let report = report.arg("report").arg(&out).output().unwrap();
    assert!(report.status.code() != Some(1), "{}", String::from_utf8_lossy(&report.stderr));
    assert!(!String::from_utf8_lossy(&report.stdout).contains("no trace was recorded"));
    let mut explain = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    let explain = explain.args(["trace", "explain"]).arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&explain.stdout);
    assert!(said.contains("events of CPU") && said.contains(" asked for by somebody; "), "{said}");
}

#[test]
fn without_a_terminal_it_prints_at_its_end_what_it_has_seen() {
    let place = Place::new();
    let top = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
        command.args(["top", "--cpus", "0", "--state"]).arg(place.state()).args(options);
        let output = command.stdin(Stdio::null()).env_remove("COLUMNS").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, _, said) = top(&[]);
    assert!(code == Some(1) && said.contains("or --duration"), "{said}");
    let (code, _, said) = top(&["-D", "1s", "--disk", "0", "--out", "x"]);
    assert!(code == Some(1) && said.contains("nothing would be kept"), "{said}");
    let counters = ["--counters", "-D", "2s"];
    let events = ["--disk", "0", "-D", "3s"];
    for options in [&counters[..], &events[..usize::from(is_root()) * events.len()]] {
        if options.is_empty() {
            continue;
        }
        let (code, view, said) = top(options);
        assert!(code == Some(0) && view.contains("CLASS ") && view.contains("timer"), "{view}\n{said}");
        assert!(!["\u{1b}", "? help", "[Enter]", "[x]"].iter().any(|key| view.contains(key)), "{view}");
        assert!(view.lines().all(|line| line.chars().count() <= 100), "{view}");
    }
}
