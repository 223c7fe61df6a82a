//! Boots real kernels. This one program is both sides: on the host it is the test, in the guest it
//! is pid 1 and the command that looks around there.
//!
//! So it has to be static:
//! `cargo test -p stillcore-lab --target x86_64-unknown-linux-musl --test boot`. It needs QEMU, and
//! apt to fetch kernel 6.1 the first time. The guest's side is the code that ships, `lab::guest`.

#![allow(clippy::unwrap_used, reason = "a test without the harness; the allowance for tests does not see it")]

use lab::{Accel, Addition, Arch, Error, Event, Outcome, Spec, Stop};
use libtest_mimic::{Arguments, Trial};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// First argument of the calls that happen inside a guest.
const LOOK: &str = "look-around";
const HANG: &str = "hang";
const CODE_OF_LOOK: i32 = 7;
/// Enough to need many writes on the channel, and not a multiple of any block.
const BIG: usize = (3 << 20) + 17;

type Test = (&'static str, fn());
const TESTS: [Test; 4] = [
    ("guest_is_a_whole_machine", guest_is_a_whole_machine),
    ("what_a_killed_command_made_comes_back", what_a_killed_command_made_comes_back),
    ("a_guest_that_panics_is_an_error", a_guest_that_panics_is_an_error),
    ("stop_kills_the_guest", stop_kills_the_guest),
];

fn main() -> ExitCode {
    if lab::guest::init::is_wanted() {
        lab::guest::init::run();
    }
    match std::env::args().nth(1).as_deref() {
        Some(LOOK) => look_around(),
        Some(HANG) => {
            hang();
            ExitCode::SUCCESS
        }
        _ => run_tests(),
    }
}

fn run_tests() -> ExitCode {
    let trial = |(name, test): Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), TESTS.map(trial).into()).exit_code()
}

// What happens in the guest.

fn look_around() -> ! {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_else(|error| format!("{path}: {error}"));
    println!("isolated={}", read("/sys/devices/system/cpu/isolated").trim());
    println!("hostname={}", read("/proc/sys/kernel/hostname").trim());
    println!("cwd={}", std::env::current_dir().unwrap().display());
    println!("home={}", std::env::var("HOME").unwrap_or_default());
    println!("dummy={}", read("/proc/modules").lines().any(|line| line.starts_with("dummy ")));
    println!("cgroup2={}", read("/proc/mounts").contains("/sys/fs/cgroup cgroup2"));
    println!("tracefs={}", read("/proc/mounts").contains("tracefs"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    println!("loopback={}", listener.and_then(|l| std::net::TcpStream::connect(l.local_addr()?)).is_ok());
    let release = read("/proc/sys/kernel/osrelease");
    println!("options={}", read(&format!("/boot/config-{}", release.trim())).contains("\nCONFIG_SMP=y\n"));
    println!("added={}", read("set.toml").trim());
    fs::create_dir_all("out/deep").unwrap();
    fs::write("out/deep/big", big()).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", "out/link").unwrap();
    // An orphan that holds the pipe of stderr: pid 1 must not wait for it.
    let _ = std::process::Command::new("/proc/self/exe").arg(HANG).spawn().unwrap();
    eprintln!("seen on the console");
    std::process::exit(CODE_OF_LOOK);
}

fn hang() {
    fs::write("begun", "x").unwrap();
    std::thread::sleep(Duration::from_secs(3600));
}

/// Bytes without a short period, the same on both sides.
fn big() -> Vec<u8> {
    (0..BIG as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

// The tests.

fn spec(out: &Path, command: &[&str]) -> Spec {
    Spec {
        arch: Arch::host().unwrap(),
        kernel: "6.1".into(),
        smp: "4".parse().unwrap(),
        memory_mib: 512,
        append: String::new(),
        nic: None,
        modules: vec![],
        packages: vec![],
        init: std::env::current_exe().unwrap(),
        binary: None,
        add: vec![],
        accel: Accel::Tcg,
        // Never reached but by a guest that hangs.
        timeout: Duration::from_secs(240),
        limit: None,
        out: out.join("results"),
        cache: lab::cache::dir(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")).unwrap(),
        launcher: vec![],
        command: command.iter().map(|word| (*word).to_owned()).collect(),
    }
}

fn run(spec: &Spec) -> (lab::Result<Outcome>, String) {
    let mut console = Vec::new();
    let result = lab::run(spec, Path::new("/etc/apt"), &Stop::default(), &mut |event| {
        if let Event::Console(bytes) = event {
            console.extend_from_slice(bytes);
        }
    });
    (result, String::from_utf8_lossy(&console).into_owned())
}

fn guest_is_a_whole_machine() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("set.toml"), "n = 3\n").unwrap();
    let mut spec = spec(dir.path(), &[LOOK]);
    spec.modules = vec!["dummy".into()];
    spec.add = vec![Addition { host: dir.path().join("set.toml"), guest: "/root/set.toml".into() }];
    let (result, console) = run(&spec);
    let outcome = result.unwrap();

    assert_eq!(outcome.exit_code, CODE_OF_LOOK);
    assert!(!outcome.timed_out && outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert!(outcome.release.starts_with("6.1."), "{}", outcome.release);
    assert_eq!(
        fs::read_to_string(spec.out.join("stdout")).unwrap(),
        "isolated=2-3\nhostname=stillcore-lab\ncwd=/root\nhome=/root\ndummy=true\ncgroup2=true\ntracefs=false\n\
         loopback=true\noptions=true\nadded=n = 3\n"
    );
    assert!(
        fs::read(spec.out.join("root/out/deep/big")).unwrap() == big(),
        "the large file has changed on its way"
    );
    assert_eq!(outcome.skipped, ["/root/out/link: neither file nor directory"]);
    assert!(!spec.out.join("root/out/link").exists());
    assert_eq!(fs::read_to_string(spec.out.join("stderr")).unwrap(), "seen on the console\n");
    assert!(console.contains("seen on the console") && !console.contains("isolated="), "{console}");
    assert_eq!(fs::read_to_string(spec.out.join("console.log")).unwrap(), console);
    assert!(fs::read_to_string(spec.out.join("dmesg")).unwrap().contains("Linux version 6.1."));
    assert!(spec.out.join("lab.json").exists());

    // The results are there: a second run must not touch them.
    assert!(matches!(run(&spec).0, Err(Error::OutputNotEmpty { .. })));
}

fn what_a_killed_command_made_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec(dir.path(), &[HANG]);
    spec.limit = Some(Duration::from_secs(5));
    let outcome = run(&spec).0.unwrap();
    assert!(outcome.timed_out);
    assert_eq!(outcome.exit_code, 128 + 9);
    assert_eq!(fs::read_to_string(spec.out.join("root/begun")).unwrap(), "x");
}

fn a_guest_that_panics_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec(dir.path(), &[LOOK]);
    spec.append = "rdinit=/nonexistent root=/dev/nonexistent".into();
    let (result, console) = run(&spec);
    let error = result.unwrap_err();
    assert!(matches!(error, Error::NoResult { .. }), "{error}");
    assert!(console.contains("Kernel panic"), "{console}");
    assert!(error.to_string().contains("nothing was sent"), "{error}");
}

fn stop_kills_the_guest() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), &[HANG]);
    let stop = Stop::default();
    let result = lab::run(&spec, Path::new("/etc/apt"), &stop, &mut |event| {
        if matches!(event, Event::Console(_)) {
            stop.stop();
        }
    });
    assert!(matches!(result, Err(Error::Stopped { .. })), "{result:?}");
    assert!(spec.out.join("console.log").metadata().unwrap().len() > 0);
    // Other runs may have theirs there now; a directory whose lock is free was left behind.
    for dir in fs::read_dir(spec.cache.join("work")).unwrap().flatten() {
        let lock = fs::File::open(dir.path().join("lock"));
        assert!(
            lock.is_err() || lock.unwrap().try_lock().is_err(),
            "{} was left behind",
            dir.path().display()
        );
    }
}
