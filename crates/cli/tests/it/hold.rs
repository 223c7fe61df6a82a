//! A desired state as a file, and an isolation that is held, on this machine: a few settings of a
//! catalogue of its own, and every task kept where it is.

use crate::support::{Place, is_root, stillcore, text};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Mechanisms whose settings nobody here depends on.
const MECHANISMS: [&str; 4] =
    ["stat_interval", "compaction_proactiveness", "irqaffinity", "thp-khugepaged_defrag"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name)
}

fn answer(arguments: &[&str]) -> Output {
    stillcore(arguments).output().unwrap()
}

/// A directory and files of which root may be sure.
fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_file_gives_the_plan_of_the_same_options() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("isolation.toml").display().to_string();
    for machine in ["vm-6.18", "isolated-6.1", "cgroup-v1-5.10"] {
        let root = fixture(machine).display().to_string();
        let options = [
            "--cpus",
            "3",
            "--with",
            "sched_rt_runtime,dirty_writeback",
            "--without",
            "nohz_full",
            "--keep",
            "rtapp",
            "--keep",
            "irq:eth*",
            "--placement",
            "affinity",
            "--move-pinned",
        ];
        let written = answer(&[&["isolate", "profile", "--out", &file], &options[..]].concat());
        assert!(written.status.success(), "{}", text(&written.stderr));
        let plan = |words: &[&str]| {
            let output = answer(&[&["isolate", "plan", "--root", &root, "--json"], words].concat());
            assert!(output.status.success(), "{machine}: {}", text(&output.stderr));
            text(&output.stdout)
        };
        let by_options = plan(&options);
        assert_eq!(plan(&["--profile", &file]), by_options, "{machine}");
        assert_ne!(plan(&["--cpus", "3"]), by_options, "{machine}: the options change the plan");
        // The audit judges by it: what is wanted may fail, and what is left may not.
        let audit = |words: &[&str]| -> Value {
            let output = answer(&[&["audit", "--root", &root, "--json"], words].concat());
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
        };
        let (by_file, by_cpus) = (audit(&["--profile", &file]), audit(&["--cpus", "3"]));
        let optional = |answer: &Value, id: &str| {
            let all = answer["findings"].as_array().unwrap();
            all.iter().find(|one| one["id"] == id).unwrap()["optional"].as_bool().unwrap_or(false)
        };
        assert!(optional(&by_cpus, "dirty_writeback") && !optional(&by_file, "dirty_writeback"));
        assert!(!optional(&by_cpus, "nohz_full") && optional(&by_file, "nohz_full"));
        assert_eq!(by_file["mechanisms"], by_cpus["mechanisms"]);
    }
}

#[test]
fn a_file_is_refused_by_its_line_and_beside_the_options_that_it_stands_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("isolation.toml");
    let name = file.display().to_string();
    write(&file, "schema = \"stillcore.isolation/1\"\ncpus = \"3\"\nmechanism = 1\n");
    for verb in [&["isolate", "plan"][..], &["audit"], &["isolate", "verify"], &["isolate", "apply"]] {
        let output = answer(&[verb, &["--profile", &name]].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{verb:?}: {error}");
        assert!(
            error.contains("isolation.toml: line 3") && error.contains("`mechanism`"),
            "{verb:?}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    write(&file, "schema = \"stillcore.isolation/1\"\ncpus = \"3\"\n");
    let both = answer(&["isolate", "plan", "--profile", &name, "--cpus", "2"]);
    assert_eq!(both.status.code(), Some(1), "{}", text(&both.stdout));
    // Root acts upon no file that others may write.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let output = answer(&["isolate", "apply", "--profile", &name]);
    let error = text(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("others may write it"), "{error}");
    assert!(
        answer(&["audit", "--root", &fixture("vm-6.18").display().to_string(), "--profile", &name])
            .status
            .code()
            != Some(1)
    );
}

/// A machine with a CPU to isolate, and what is isolated of it here.
struct Held {
    place: Place,
    profile: PathBuf,
    catalogue: PathBuf,
    before: Vec<(PathBuf, String)>,
}

impl Held {
    /// None where that takes what this user or machine has not.
    fn new() -> Option<Self> {
        Self::placed("affinity")
    }

    fn placed(placement: &str) -> Option<Self> {
        let online = machine::read(&machine::Root::live()).unwrap().topology.online;
        if !is_root() || online.len() < 2 {
            println!("skipped: holding takes root and two CPUs");
            return None;
        }
        let place = Place::alone();
        let catalogue = place.path("catalogue");
        fs::create_dir(&catalogue).unwrap();
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogue/mechanisms");
        for id in MECHANISMS {
            fs::copy(all.join(format!("{id}.toml")), catalogue.join(format!("{id}.toml"))).unwrap();
        }
        let profile = place.path("isolation.toml");
        let cpu = online.iter().max().unwrap();
        let text = "schema = \"stillcore.isolation/1\"\nkeep = [\"comm:*\", \"irq:*\"]\n";
        write(&profile, &format!("{text}placement = \"{placement}\"\ncpus = \"{cpu}\"\n"));
        let files = [
            "/proc/sys/vm/stat_interval",
            "/proc/sys/vm/compaction_proactiveness",
            "/proc/irq/default_smp_affinity",
        ];
        let value = |file: &str| Some((PathBuf::from(file), fs::read_to_string(file).ok()?));
        let before = files.iter().filter_map(|file| value(file)).collect();
        Some(Self { place, profile, catalogue, before })
    }

    fn command(&self, verb: &str, more: &[&str]) -> Command {
        let mut command = stillcore(&["isolate", verb, "--state"]);
        command.arg(self.place.state()).args(more);
        command
    }

    /// Begins to hold; the second value is every line that it prints.
    fn hold(&self, more: &[&str]) -> Holding {
        let mut command = self.command("hold", &["--json", "--profile"]);
        command.arg(&self.profile).arg("--catalogue").arg(&self.catalogue).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut holding = Holding { child, lines, seen: Vec::new() };
        holding.wait_for("holding", "");
        holding
    }

    fn undo(&self) -> Output {
        self.command("undo", &[]).output().unwrap()
    }

    fn before_of(&self, file: &str) -> String {
        let (_, before) = self.before.iter().find(|(one, _)| one == Path::new(file)).unwrap();
        before.trim().to_owned()
    }

    fn is_as_before(&self) {
        for (file, before) in &self.before {
            assert_eq!(fs::read_to_string(file).unwrap(), *before, "{}", file.display());
        }
        assert_eq!(self.place.leftovers(), Vec::<String>::new());
        let traces = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
        let ours = traces.filter(|entry| entry.file_name().to_string_lossy().starts_with("stillcore-hold-"));
        assert_eq!(ours.count(), 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A test that fails leaves nothing either.
        let _ = self.undo();
    }
}

struct Holding {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<Value>,
}

impl Holding {
    /// The next event of this name about this target.
    fn wait_for(&mut self, event: &str, target: &str) -> Value {
        for line in self.lines.by_ref() {
            let value: Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(value["schema"], "stillcore.isolate-hold/1");
            self.seen.push(value.clone());
            if value["event"] == event && value["target"].as_str().unwrap_or_default() == target {
                return value;
            }
        }
        let mut why = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut why).unwrap();
        panic!("it ended before {event} {target:?}: {why} {:#?}", self.seen);
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    fn end(mut self) -> (Option<i32>, Vec<Value>) {
        for line in self.lines.by_ref() {
            self.seen.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.seen))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value that a setting had, set again at the end of a test, even of one that fails: the next
/// one would take what is left for the machine's own.
struct Before {
    file: &'static str,
    value: String,
}

impl Drop for Before {
    fn drop(&mut self) {
        let _ = fs::write(self.file, &self.value);
    }
}

/// Another program that writes a value and lives on until it has been named; its number.
fn plant(file: &str, value: &str) -> Child {
    let script = format!("echo {value} > {file}; read _");
    Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap()
}

fn let_go(mut child: Child) {
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn what_others_change_is_set_again_with_their_name_and_an_undo_is_obeyed() {
    let Some(held) = Held::new() else { return };
    let mut holding = held.hold(&["--heals", "3", "--window", "1h"]);
    let refused = held.command("hold", &[]).output().unwrap();
    let pid = holding.child.id();
    assert!(
        text(&refused.stderr).contains(&format!("process {pid} holds the isolation")),
        "{}",
        text(&refused.stderr)
    );
    let status = held.command("status", &["--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["held_by"], pid);
    let everywhere = held.before_of("/proc/irq/default_smp_affinity");
    for (file, value) in
        [("/proc/sys/vm/stat_interval", "7"), ("/proc/irq/default_smp_affinity", &everywhere)]
    {
        let wanted = fs::read_to_string(file).unwrap();
        let child = plant(file, value);
        let healed = holding.wait_for("healed", file);
        assert_eq!(healed["changer"]["pid"], child.id(), "{healed}");
        assert_eq!(healed["changer"]["comm"], "sh", "{healed}");
        let_go(child);
        assert_eq!(fs::read_to_string(file).unwrap(), wanted);
    }
    // Another healer is distinguished from an accident, and left alone; the rest is healed as before.
    let fought = "/proc/sys/vm/compaction_proactiveness";
    let _given_back = Before { file: fought, value: held.before_of(fought) };
    let script = format!("while read _; do echo 77 > {fought}; done");
    let mut other = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut again = || std::io::Write::write_all(other.stdin.as_mut().unwrap(), b"\n").unwrap();
    for _ in 0..3 {
        again();
        holding.wait_for("healed", fought);
    }
    again();
    let left = holding.wait_for("given-up", fought);
    // On a busy machine the value may be seen before the kernel's word of who wrote it; then it is
    // said that this is not known, and never another name.
    let named = left["changer"]["comm"] == "sh";
    assert!(named || left["changer"].is_null() && left["changer_unknown"].is_string(), "{left}");
    assert_eq!(fs::read_to_string(fought).unwrap().trim(), "77", "it is not fought");
    let child = plant("/proc/sys/vm/stat_interval", "8");
    holding.wait_for("healed", "/proc/sys/vm/stat_interval");
    let_go(child);
    drop(other.stdin.take());
    other.wait().unwrap();
    // The other one has set it, and it is his: undoing leaves it, and says so.
    let undone = held.undo();
    assert_eq!(undone.status.code(), Some(2), "{}{}", text(&undone.stdout), text(&undone.stderr));
    assert!(text(&undone.stdout).contains("which somebody else has set"), "{}", text(&undone.stdout));
    let (code, seen) = holding.end();
    assert_eq!(code, Some(2), "something was left: {seen:#?}");
    let end = seen.last().unwrap();
    assert_eq!(end["event"], "end");
    assert!(end["reason"].as_str().unwrap().contains("undone"), "{end}");
    assert_eq!((&end["healed"], &end["left"]), (&Value::from(6), &Value::from(1)), "{end}");
    assert_eq!(fs::read_to_string(fought).unwrap().trim(), "77", "nothing is set once it is undone");
    fs::write(fought, held.before_of(fought)).unwrap();
    held.is_as_before();
}

#[test]
fn killed_it_leaves_a_journal_that_gives_everything_back_and_in_quiet_it_writes_nothing() {
    let Some(held) = Held::new() else { return };
    let mut holding = held.hold(&[]);
    let child = plant("/proc/sys/vm/stat_interval", "7");
    holding.wait_for("healed", "/proc/sys/vm/stat_interval");
    let_go(child);
    holding.signal("KILL");
    let (code, _) = holding.end();
    assert_eq!(code, None);
    let journal = held.place.state().join("isolation.jsonl");
    let stands = fs::read(&journal).unwrap();
    // What stands is held without saying it again, and nothing is written while nobody changes it.
    let mut command = held.command("hold", &["--json", "--duration", "4s", "--interval", "100ms"]);
    // As a service of a manager that wants to hear of it.
    let manager = UnixDatagram::bind(held.place.path("notify")).unwrap();
    command.env("NOTIFY_SOCKET", held.place.path("notify")).env("WATCHDOG_USEC", "6000000");
    let quiet = command.arg("--catalogue").arg(&held.catalogue).output().unwrap();
    let lines: Vec<Value> =
        text(&quiet.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.last().unwrap_or_else(|| panic!("{}", text(&quiet.stderr)));
    assert_eq!((&end["event"], &end["writes"]), (&Value::from("end"), &Value::from(0)), "{lines:#?}");
    assert_eq!(fs::read(&journal).unwrap(), stands);
    manager.set_nonblocking(true).unwrap();
    let mut messages = Vec::new();
    let mut bytes = [0; 1024];
    while let Ok(length) = manager.recv(&mut bytes) {
        messages.push(text(&bytes[..length]));
    }
    let alive = messages.iter().filter(|line| *line == "WATCHDOG=1").count();
    assert!(messages.iter().any(|line| line == "READY=1") && alive >= 2, "{messages:?}");
    assert_eq!(messages.last().map(String::as_str), Some("STOPPING=1"), "{messages:?}");
    // The file of what stands is the one that was applied.
    let profile = held.command("profile", &[]).output().unwrap();
    let written = held.place.path("written.toml");
    write(&written, &text(&profile.stdout));
    let verified = held.command("verify", &["--json", "--profile", &written.display().to_string()]);
    let mut verified = verified;
    let verified = verified.output().unwrap();
    assert_eq!(text(&profile.stderr), "");
    assert!(text(&profile.stdout).contains("keep = [\"comm:*\", \"irq:*\"]"), "{}", text(&profile.stdout));
    assert!(text(&verified.stdout).contains("\"wanted\":"), "{}", text(&verified.stderr));
    // Stopped as its option says.
    let holding = held.hold(&["--on-stop", "undo"]);
    holding.signal("TERM");
    let (code, seen) = holding.end();
    assert_eq!(code, Some(0), "{seen:#?}");
    assert!(!journal.exists());
    held.is_as_before();
}

/// What a container runtime or `cset` does: balancing over all CPUs, and the group of the others
/// given CPUs back.
#[test]
fn cpusets_of_version_1_are_set_again_too() {
    let top = Path::new("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance");
    let balanced = fs::read_to_string(top).is_ok_and(|text| text.trim() == "1");
    if !balanced {
        return println!("skipped: no cpusets of version 1 that balance are mounted here");
    }
    // A cpuset of a container or of a service, say: it balances over the CPU that is to be isolated.
    let root = machine::Root::live();
    let online = machine::read(&root).unwrap().topology.online;
    let others = machine::cpusets_v1(&root).unwrap().below;
    if let Some(cpu) = online.iter().max().filter(|cpu| others.contains(*cpu)) {
        return println!("skipped: another cpuset of version 1 balances over CPU {cpu}");
    }
    let Some(mut held) = Held::placed("cpuset") else { return };
    held.before.push((top.to_owned(), "1\n".to_owned()));
    let mut holding = held.hold(&[]);
    let house = "/sys/fs/cgroup/cpuset/stillcore-house/cpuset.cpus";
    let all = fs::read_to_string("/sys/fs/cgroup/cpuset/cpuset.cpus").unwrap();
    for (file, value) in [(top.to_str().unwrap(), "1"), (house, all.trim())] {
        let wanted = fs::read_to_string(file).unwrap();
        let child = plant(file, value);
        let healed = holding.wait_for("healed", file);
        assert_eq!(healed["changer"]["pid"], child.id(), "{healed}");
        let_go(child);
        assert_eq!(fs::read_to_string(file).unwrap(), wanted);
    }
    assert_eq!(held.undo().status.code(), Some(0));
    let (code, seen) = holding.end();
    assert_eq!(code, Some(0), "{seen:#?}");
    assert!(!Path::new(house).exists());
    held.is_as_before();
}

#[test]
fn the_unit_starts_no_program_and_reads_no_file_of_a_user() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("isolation.toml");
    write(&file, "schema = \"stillcore.isolation/1\"\ncpus = \"1\"\n");
    let name = file.display().to_string();
    let home = answer(&[
        "isolate",
        "hold",
        "--install",
        "--print",
        "--profile",
        &name,
        "--program",
        "/var/tmp/stillcore",
    ]);
    let error = text(&home.stderr);
    assert!(home.status.code() == Some(1) && error.contains("/var/tmp"), "{error}");
    // Any file of root's is a program for this test.
    let temporary =
        answer(&["isolate", "hold", "--install", "--print", "--profile", &name, "--program", "/usr/bin/env"]);
    let error = text(&temporary.stderr);
    assert!(temporary.status.code() == Some(1) && error.contains("root must not act upon it"), "{error}");
    let nothing = answer(&["isolate", "hold", "--install", "--print", "--program", "/usr/bin/env"]);
    assert!(text(&nothing.stderr).contains("name what the unit is to hold"), "{}", text(&nothing.stderr));
    let unit =
        answer(&["isolate", "hold", "--install", "--print", "--program", "/usr/bin/env", "--cpus", "1"]);
    let text = text(&unit.stdout);
    assert!(text.contains("/usr/bin/env isolate hold --cpus 1 --interval 1s"), "{text}");
    assert!(!text.contains("linked: ") && !text.contains("systemctl start"), "nothing was written: {text}");
    let never = answer(&["isolate", "hold", "--install", "--print", "--cpus", "1", "--interval", "0s"]);
    assert!(String::from_utf8_lossy(&never.stderr).contains("--interval: 0, expected"), "{never:?}");
}
