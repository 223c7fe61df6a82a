//! A virtual machine: booted once, put through all its scripts in turn, one directory a script.
//!
//! A script that does not end in its time, or a machine that prints nothing for as long, is ended;
//! what is unfinished then is run again in a second boot, and the account says so.

use crate::support::text;
use record::plant::stopped::{LENGTH, REQUEST};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The kernel's own isolation switched off, so that all of it is done at run time.
pub(crate) const PLAIN: &str = "isolcpus= nohz_full= rcu_nocbs= irqaffinity=";

/// How often a machine is booted until all its scripts have ended.
const BOOTS: u32 = 2;

/// A machine to boot, and its scripts.
pub(crate) struct Machine {
    /// Tier and name: `fast::6.1`.
    pub(crate) name: String,
    pub(crate) arm64: bool,
    pub(crate) kernel: &'static str,
    /// Cores, or cores and threads: `4x2`.
    pub(crate) smp: &'static str,
    /// Words for the kernel command line.
    pub(crate) append: &'static str,
    /// Further arguments of `stillcore lab run`.
    pub(crate) more: Vec<&'static str>,
    pub(crate) cases: Vec<Case>,
}

/// One script, and the checks of its results.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Beside this file; run by busybox sh as root in `/root/NAME`.
    pub(crate) script: &'static str,
    pub(crate) arguments: Vec<String>,
    /// Files that the script finds in its directory: name and text.
    pub(crate) files: Vec<(&'static str, String)>,
    /// The longest that the script may take, s.
    pub(crate) limit_s: u64,
    /// Panics where something does not hold.
    pub(crate) check: fn(&Guest),
    /// Whether its results can be judged; emulated CPUs of a crowded host may stand still while
    /// they measure.
    pub(crate) usable: fn(&Path) -> bool,
}

impl Case {
    /// A script without arguments and files, of at most ten minutes: on a crowded host they take
    /// three times as long.
    pub(crate) fn new(name: &'static str, script: &'static str, check: fn(&Guest)) -> Self {
        let (arguments, files) = (Vec::new(), Vec::new());
        Self { name, script, arguments, files, limit_s: 600, check, usable: |_| true }
    }

    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        self
    }

    pub(crate) fn file(mut self, name: &'static str, text: String) -> Self {
        self.files.push((name, text));
        self
    }

    pub(crate) fn limit(mut self, limit_s: u64) -> Self {
        self.limit_s = limit_s;
        self
    }

    pub(crate) fn usable(mut self, usable: fn(&Path) -> bool) -> Self {
        self.usable = usable;
        self
    }
}

/// The results of a script on a machine.
pub(crate) struct Guest<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) case: &'a Case,
    /// Its directory, brought back.
    pub(crate) root: PathBuf,
}

impl Guest<'_> {
    pub(crate) fn kernel(&self) -> &'static str {
        self.machine.kernel
    }

    /// A file of the script's; empty where there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }

    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        crate::support::read_json(&self.root.join(name))
    }
}

/// The outcome of the boots of a machine.
pub(crate) struct Booted {
    /// Below it a directory a script.
    pub(crate) root: PathBuf,
    /// Why another boot was needed, one sentence each; the last of as many as boots were allowed is
    /// a failure.
    pub(crate) trouble: Vec<String>,
}

/// Where everything of a machine is kept, until it is booted by the next run.
fn place(machine: &Machine) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests").join(machine.name.replace("::", "-"))
}

/// Boots a machine until its scripts have ended, and writes the account that the driver of the
/// tests reads.
pub(crate) fn run(machine: &Machine, selected: &[&Case]) -> Booted {
    let started = Instant::now();
    let place = place(machine);
    let _ = fs::remove_dir_all(&place);
    let root = place.join("root");
    fs::create_dir_all(&root).unwrap();
    let mut trouble = Vec::new();
    let mut boots = 0;
    while boots < BOOTS && !unfinished(selected, &root).is_empty() {
        boots += 1;
        let left = unfinished(selected, &root);
        let out = place.join(format!("boot-{boots}"));
        if let Err(why) = boot(machine, &left, boots, &place, &out) {
            trouble.push(why);
        }
        for case in left {
            let from = out.join("root").join(case.name);
            if from.is_dir() {
                let _ = fs::remove_dir_all(root.join(case.name));
                fs::rename(&from, root.join(case.name)).unwrap();
            }
        }
        let unusable = unfinished(selected, &root);
        if !unusable.is_empty() && trouble.len() < boots as usize {
            let names: Vec<&str> = unusable.iter().map(|case| case.name).collect();
            trouble.push(format!("no result of {}", names.join(", ")));
        }
    }
    account(machine, &place, boots, &trouble, started.elapsed());
    Booted { root, trouble }
}

/// Scripts that have not ended, or whose result cannot be judged.
fn unfinished<'a>(selected: &[&'a Case], root: &Path) -> Vec<&'a Case> {
    selected.iter().copied().filter(|case| !ended(case, &root.join(case.name))).collect()
}

/// Whether a script has ended well and left something that can be judged. `root`: its directory.
pub(crate) fn ended(case: &Case, root: &Path) -> bool {
    let code = fs::read_to_string(root.join("script.code")).unwrap_or_default();
    code.trim() == "0" && (case.usable)(root)
}

/// The output of a script, for messages.
pub(crate) fn printed(root: &Path) -> String {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    format!("exit {}\n{}{}", read("script.code").trim(), read("script.out"), read("script.err"))
}

/// `machine.json`: which kernel booted, how often, why more than once, how long it took.
fn account(machine: &Machine, place: &Path, boots: u32, trouble: &[String], took: Duration) {
    let release = |boot: u32| -> Option<String> {
        let lab = fs::read(place.join(format!("boot-{boot}/lab.json"))).ok()?;
        let lab: serde_json::Value = serde_json::from_slice(&lab).ok()?;
        Some(format!("{} {}", lab["release"].as_str()?, lab["arch"].as_str()?))
    };
    let took_s = took.as_secs_f64();
    let account = serde_json::json!({
        "machine": machine.name,
        "release": (1..=boots).find_map(release),
        "boots": boots,
        "trouble": trouble,
        "took_s": took_s,
    });
    fs::write(place.join("machine.json"), account.to_string()).unwrap();
    println!(
        "{}: {boots} boots, {took_s:.0} s{}",
        machine.name,
        trouble.iter().fold(String::new(), |mut all, why| {
            let _ = write!(all, "\n    {why}");
            all
        })
    );
}

/// One boot, of this number. `Err` says why not every script has ended.
fn boot(machine: &Machine, cases: &[&Case], number: u32, place: &Path, out: &Path) -> Result<(), String> {
    let mut command = crate::support::stillcore(&["lab", "run", "--kernel", machine.kernel]);
    command.args(["--smp", machine.smp, "--append", machine.append, "--packages", "busybox-static"]);
    command.args(&machine.more);
    if machine.arm64 {
        command.args(["--arch", "aarch64", "--binary"]).arg(arm64_program()?);
    }
    let all_s: u64 = cases.iter().map(|case| case.limit_s).sum();
    command.args(["--timeout", &format!("{}s", 2 * all_s)]).arg("--out").arg(out);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests");
    let mut add = |host: &Path, guest: &str| {
        command.arg("--add").arg(format!("{}:/root/{guest}", host.display()));
    };
    for case in cases {
        add(&scripts.join(case.script), &format!("{}/script.sh", case.name));
        for (name, text) in &case.files {
            let file = place.join(format!("{}-{name}", case.name));
            fs::write(&file, text).unwrap();
            add(&file, &format!("{}/{name}", case.name));
        }
    }
    let all = place.join("all.sh");
    fs::write(&all, master(cases, number)).unwrap();
    add(&all, "all.sh");
    command.args(["--", "/bin/busybox", "sh", "/root/all.sh"]);
    watch(command, cases)
}

/// Runs the scripts one after another, and none after one that did not end: its remaining processes
/// would disturb the others.
fn master(cases: &[&Case], boot: u32) -> String {
    let mut script = format!("export PATH=/usr/bin:/bin:/sbin:/usr/sbin BOOT={boot}\n");
    for Case { name, arguments, limit_s, .. } in cases {
        let arguments: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        let _ = writeln!(
            script,
            "echo '{MARK}{name}' >&2; cd /root/{name}; /bin/busybox cut -d' ' -f1 /proc/uptime >script.start\n\
             /bin/busybox timeout -s KILL {limit_s} /bin/busybox sh ./script.sh {} >script.out 2>script.err; code=$?\n\
             /bin/busybox cut -d' ' -f1 /proc/uptime >script.end; echo $code >script.code; [ $code -eq 0 ] || exit 0",
            arguments.join(" ")
        );
    }
    script
}

/// A line of the console that begins with it names the script that runs from there on.
const MARK: &str = "== script ";

/// Waits for the end of the guest, and ends it where a script takes much longer than it may.
fn watch(mut command: Command, cases: &[&Case]) -> Result<(), String> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = lines_of(&mut child);
    let mut log = Vec::new();
    let mut running = "boot";
    let mut limit = Duration::from_secs(240);
    let mut since = Instant::now();
    let end = loop {
        match lines.recv_timeout((since + limit).saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let name = line.split_once(MARK).map(|(_, name)| name.trim());
                if let Some(case) = cases.iter().find(|case| Some(case.name) == name) {
                    (running, since) = (case.name, Instant::now());
                    limit = Duration::from_secs(case.limit_s * 3 / 2 + 60);
                }
                if line.contains(REQUEST) {
                    stop(child.id(), LENGTH);
                }
                log.push(line);
            }
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                break Err(format!("{running} did not end within {} s: ended", limit.as_secs()));
            }
        }
    };
    let status = child.wait().unwrap();
    end?;
    if status.success() {
        return Ok(());
    }
    let last: Vec<&str> = log.iter().rev().take(5).rev().map(String::as_str).collect();
    Err(format!("while {running}: {status}: {}", last.join(" | ")))
}

/// Time from the request of a guest until it runs the operation to be stopped in, which lasts some
/// milliseconds.
const READY: Duration = Duration::from_millis(2);

/// Stops the emulators below a process for this time.
fn stop(parent: u32, length: Duration) {
    thread::sleep(READY);
    let machines = emulators(parent);
    let signal = |name: &str| {
        for machine in &machines {
            let _ = Command::new("kill").args([name, &machine.to_string()]).status();
        }
    };
    signal("-STOP");
    thread::sleep(length);
    signal("-CONT");
}

/// The emulators among the descendants of a process.
fn emulators(ancestor: u32) -> Vec<u32> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // `PID (NAME) STATE PARENT …`, where the name may hold anything (proc_pid_stat(5)).
    let process = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.rsplit_once(')')?;
        let parent: u32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent, name.contains("(qemu-system")))
    };
    let all: Vec<(u32, u32, bool)> = pids.filter_map(process).collect();
    let mut family = vec![ancestor];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        family.extend(all.iter().filter(|one| one.1 == parent).map(|one| one.0));
        at += 1;
    }
    all.iter().filter(|one| one.2 && family.contains(&one.0)).map(|one| one.0).collect()
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    let mut output = BufReader::new(child.stderr.take().unwrap());
    thread::spawn(move || {
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if send.send(text(&line).trim_end().to_owned()).is_err() {
                break;
            }
            line.clear();
        }
    });
    lines
}

/// The program built for arm64, beside this one's: `cargo xtask test` builds it.
fn arm64_program() -> Result<PathBuf, String> {
    let program = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    let places: Vec<&Path> = program.ancestors().collect();
    let [_, profile, _, targets, ..] = places[..] else { return Err("no target directory".into()) };
    let name = profile.file_name().unwrap_or_default();
    let built = targets.join("aarch64-unknown-linux-musl").join(name).join("stillcore");
    if built.exists() {
        return Ok(built);
    }
    Err(format!("{} is missing: build stillcore for aarch64-unknown-linux-musl", built.display()))
}
