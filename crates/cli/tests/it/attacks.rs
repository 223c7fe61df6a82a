//! Attacks by an ordinary user on a stillcore that root runs: planted files are refused in one
//! sentence, or have no effect. Each kind in several ways.

use crate::support::{Place, is_root, stillcore, text};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// User id of the attacker.
const NOBODY: u32 = 65_534;
/// Contents that the attacker may neither read nor change.
const SECRET: &str = "precious";
/// How long a refusal may take, on a crowded machine.
const LONG: Duration = Duration::from_secs(60);

/// A place that the attacker can traverse, with root's file as the target and the attacker's own
/// directory.
struct Field {
    place: Place,
}

impl Field {
    /// `None` unless the test runs as root.
    fn new() -> Option<Self> {
        if !is_root() {
            println!("skipped: who attacks whom needs root");
            return None;
        }
        let place = Place::new();
        fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let field = Self { place };
        fs::write(field.victim(), SECRET).unwrap();
        fs::set_permissions(field.victim(), fs::Permissions::from_mode(0o600)).unwrap();
        for (name, mode, owner) in [("his", 0o755, NOBODY), ("shared", 0o1777, 0)] {
            fs::create_dir(field.at(name)).unwrap();
            fs::set_permissions(field.at(name), fs::Permissions::from_mode(mode)).unwrap();
            chown(field.at(name), Some(owner), Some(owner)).unwrap();
        }
        Some(field)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    fn victim(&self) -> PathBuf {
        self.at("victim")
    }

    /// Lets the attacker run a script in this place.
    fn attack(&self, script: &str) {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-ec", script]).current_dir(self.place.dir.path()).uid(NOBODY).gid(NOBODY);
        assert!(shell.status().unwrap().success(), "{script}");
    }

    /// A run whose files are the attacker's.
    fn his_run(&self) -> PathBuf {
        let run = self.at("his/run");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
        copy(&from, &run);
        run
    }

    fn is_unharmed(&self) -> bool {
        let meta = fs::metadata(self.victim()).unwrap();
        fs::read_to_string(self.victim()).unwrap() == SECRET
            && (meta.uid(), meta.mode() & 0o777) == (0, 0o600)
    }
}

/// Copies a tree and gives it to the attacker.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    chown(to, Some(NOBODY), Some(NOBODY)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            chown(&target, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

/// Root's call; it must end by itself.
fn root(words: &[&str], paths: &[&Path]) -> Output {
    let mut command = stillcore(words);
    command.args(paths).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > LONG {
            child.kill().unwrap();
            panic!("{words:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// The call gives the reason in one sentence and exits 1.
fn refuses(words: &[&str], paths: &[&Path], why: &str) {
    let output = root(words, paths);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
    assert!(said.contains(why) && said.lines().count() == 1, "{words:?}: {said}");
}

#[test]
fn links_lead_nowhere() {
    let Some(field) = Field::new() else { return };
    let run = field.his_run();
    let own_run = field.at("run");
    let other_run = field.at("other");
    copy(&run, &own_run);
    copy(&run, &other_run);
    field.attack(
        "ln -s ../victim shared/report.html; ln -s ../victim shared/x.tar; ln -s ../victim shared/out.md",
    );
    field.attack("ln -s ../../victim his/run/report.html; ln -s ../.. his/run/deep");
    let report = field.at("shared/report.html");
    refuses(&["report", "--html"], &[&report, &own_run], "is a link of user 65534");
    refuses(
        &["compare", "--markdown"],
        &[&field.at("shared/out.md"), &own_run, &other_run],
        "is a link of user 65534",
    );
    refuses(&["report", "--html"], &[&field.at("his/run/deep/victim"), &own_run], "is a link of user 65534");
    // In the attacker's own run the report is written beside the link, or refused. Neither writes
    // the target.
    root(&["report"], &[&run]);
    let snapshot = root(&["snapshot", "--out"], &[&field.at("shared/x.tar")]);
    assert_eq!(snapshot.status.code(), Some(1), "{}", text(&snapshot.stdout));
    assert!(field.is_unharmed());
    // At a hard link the name is replaced, not the linked file.
    field.attack("ln his/run/run.json his/hard.html");
    root(&["report", "--html"], &[&field.at("his/hard.html"), &own_run]);
    assert!(fs::read_to_string(run.join("run.json")).unwrap().starts_with('{'));
}

#[test]
fn names_that_a_writer_will_use_cannot_be_taken_before() {
    let Some(field) = Field::new() else { return };
    let own_run = field.at("run");
    copy(&field.his_run(), &own_run);
    // The former, predictable names.
    field.attack("ln -s ../victim shared/page.html.tmp; for i in $(seq 1 400); do mkdir shared/.stillcore-snapshot-$i; done");
    let output = root(&["report", "--html"], &[&field.at("shared/page.html"), &own_run]);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
    assert!(field.is_unharmed());
    let page = fs::metadata(field.at("shared/page.html")).unwrap();
    assert_eq!(page.uid(), 0);
    let output = root(&["snapshot", "--out"], &[&field.at("shared/own.tar")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let foreign = fs::read_dir(field.at("shared/.stillcore-snapshot-7")).unwrap().count();
    assert_eq!(foreign, 0, "nothing was put into his directory");
}

#[test]
fn planted_journals_are_not_believed() {
    let Some(field) = Field::new() else { return };
    let victim = field.victim().display().to_string();
    // With the checksum that an attacker would compute.
    let line = |id: &str, kind: Option<&str>| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let (boot, old) = (boot.trim(), "PWNED");
        let mut sum = format!("0\0{boot}\0{id}\0{victim}\0{:?}\0{:?}\0Done", Some(old), None::<String>);
        let mut entry = serde_json::json!({ "seq": 0, "boot_id": boot, "id": id, "target": victim, "old": old, "new": null, "phase": "done" });
        if let Some(kind) = kind {
            sum += "\0Some(File)\0None";
            entry["kind"] = kind.into();
        }
        entry["crc"] = crc32fast::hash(sum.as_bytes()).into();
        entry.to_string()
    };
    // The same in the current journal format.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let line_of = |seq: u32, kind: &str, change: &str| {
        let body = format!(
            "{{\"schema\":\"stillcore.journal/2\",\"seq\":{seq},\"boot_id\":\"{}\",\"phase\":\"done\",\"kind\":\"{kind}\",\
             \"version\":1,\"change\":{change}",
            boot.trim()
        );
        format!("{body},\"crc\":{}}}", crc32fast::hash(body.as_bytes()))
    };
    let value = line_of(0, "value", &serde_json::json!({ "path": victim, "old": "PWNED" }).to_string());
    let file =
        serde_json::json!({ "mechanism": "x", "target": victim, "old": "PWNED", "new": SECRET.trim() });
    let plant = |dir: &str, name: &str, line: &str| {
        field.attack(&format!("mkdir -p {dir}; printf '%s\\n' '{line}' > {dir}/{name}"));
    };
    plant("his/state/journal", "99999999-1.jsonl", &line("value", None));
    refuses(
        &["disturb", "calc_pi", "--duration", "1s", "--state"],
        &[&field.at("his/state")],
        "belongs to user 65534",
    );
    plant("his/now/journal", "99999999-1.jsonl", &value);
    refuses(
        &["disturb", "calc_pi", "--duration", "1s", "--state"],
        &[&field.at("his/now")],
        "belongs to user 65534",
    );
    plant("his/standing", "isolation.jsonl", &line("x", Some("file")));
    refuses(&["isolate", "undo", "--state"], &[&field.at("his/standing")], "belongs to user 65534");
    // Root's directory that a careless umask made writable, and a link.
    fs::create_dir(field.at("open")).unwrap();
    fs::set_permissions(field.at("open"), fs::Permissions::from_mode(0o777)).unwrap();
    plant("open/journal", "99999999-1.jsonl", &line("value", None));
    refuses(&["disturb", "calc_pi", "--duration", "1s", "--state"], &[&field.at("open")], "65534");
    field.attack("ln -s ../his/state/journal shared/journal");
    refuses(&["disturb", "calc_pi", "--duration", "1s", "--state"], &[&field.at("shared")], "65534");
    // Root's own directory, with changes that no journal may request.
    fs::create_dir_all(field.at("own/journal")).unwrap();
    for planted in [line("value", None), value] {
        fs::write(field.at("own/journal/99999999-1.jsonl"), planted + "\n").unwrap();
        let call = ["disturb", "calc_pi", "--duration", "1s", "--json", "--state"];
        let output = root(&call, &[&field.at("own")]);
        assert!(!text(&output.stderr).contains("took back"), "{}", text(&output.stderr));
        assert!(field.is_unharmed());
    }
    let head = serde_json::json!({
        "cpus": "", "isolated": "", "housekeeping": "0", "placement": "affinity", "started_ticks": 0
    });
    let head = line_of(0, "isolation", &head.to_string());
    let standing = line_of(1, "file", &file.to_string());
    fs::write(field.at("own/isolation.jsonl"), format!("{head}\n{standing}\n")).unwrap();
    refuses(&["isolate", "undo", "--state"], &[&field.at("own")], "a setting of the kernel");
    assert!(field.is_unharmed());
}

#[test]
fn a_journal_is_its_owners_whatever_the_umask() {
    let Some(field) = Field::new() else { return };
    let shell = format!(
        "umask 0; exec {} disturb calc_pi --duration 1s --json --state {}",
        env!("CARGO_BIN_EXE_stillcore"),
        field.at("state").display()
    );
    assert!(Command::new("/bin/sh").args(["-c", &shell]).stdout(Stdio::null()).status().unwrap().success());
    for (name, mode) in [("state", 0o755), ("state/journal", 0o700)] {
        assert_eq!(fs::metadata(field.at(name)).unwrap().mode() & 0o7777, mode, "{name}");
    }
}

#[test]
fn a_study_is_data() {
    let Some(field) = Field::new() else { return };
    let marker = field.at("rooted");
    let words = format!(
        r#"[["isolate", "run", "--cpus", "0", "--", "/bin/sh", "-c", "touch {}"]]"#,
        marker.display()
    );
    field.attack(&format!(
        "mkdir -p his/study/runs/ab12; printf '%s' '{words}' > his/study/runs/ab12/after.json"
    ));
    field.attack(
        "cp his/study/runs/ab12/after.json his/study/runs/ab12/undo-due; echo '{}' > his/study/plan.json",
    );
    refuses(&["study", "stop"], &[&field.at("his/study")], "belongs to user 65534");
    // The same in root's directory.
    let own = field.at("study");
    copy(&field.at("his/study"), &own);
    Command::new("chown").args(["-R", "root:root"]).arg(&own).status().unwrap();
    root(&["study", "stop"], &[&own]);
    let file = field.at("evil.toml");
    let steps = "[[step]]\nname = \"x\"\nrun = [\"audit\", \"--json\"]\n";
    let text_of = format!(
        "name = \"evil\"\ntitle = \"x\"\nrepetitions = 1\n\n[[factor]]\nname = \"f\"\nlevels = [{{ name = \"a\", after = {words} }}]\n\n{steps}"
    );
    fs::write(&file, text_of).unwrap();
    let output = root(&["study", "run", "--here", "--out"], &[&field.at("new"), &file]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(!marker.exists());
}

#[test]
fn foreign_runs_name_files_of_their_own() {
    let Some(field) = Field::new() else { return };
    let run = field.his_run();
    let file = run.join("run.json");
    let whole = fs::read_to_string(&file).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&whole).unwrap();
    for name in ["/dev/zero", "../../victim", "machine.fifo"] {
        value["machine_before"] = name.into();
        fs::write(&file, value.to_string()).unwrap();
        field.attack("rm -f his/run/machine.fifo; mkfifo his/run/machine.fifo");
        refuses(&["report"], &[&run], "expected the name of a regular file below the run");
        refuses(&["summary"], &[&run], "expected the name of a regular file below the run");
    }
    fs::remove_file(&file).unwrap();
    field.attack("mkfifo his/run/run.json");
    refuses(&["report"], &[&run], "no regular file");
    fs::remove_file(&file).unwrap();
    field.attack("ln -s /dev/zero his/run/run.json");
    refuses(&["report"], &[&run], "no regular file");
}

#[test]
fn captured_trees_and_archives_neither_hang_nor_burst() {
    let Some(field) = Field::new() else { return };
    field.attack("mkdir -p his/tree/proc his/tree/sys/devices/system/cpu; mkfifo his/tree/proc/cmdline; echo 0-3 > his/tree/sys/devices/system/cpu/online");
    root(&["audit", "--cpus", "1", "--root"], &[&field.at("his/tree")]);
    // Nested directories of which the archive names only the last.
    let mut builder = tar::Builder::new(fs::File::create(field.at("his/deep.tar")).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o644);
    builder.append_data(&mut header, "d/".repeat(40) + "x", std::io::empty()).unwrap();
    builder.finish().unwrap();
    refuses(&["audit", "--cpus", "1", "--root"], &[&field.at("his/deep.tar")], "directories deep");
    let mut builder = tar::Builder::new(fs::File::create(field.at("his/wide.tar")).unwrap());
    for number in 0..12_000 {
        builder
            .append_data(&mut header, format!("wide/{number}/") + &"d/".repeat(25) + "x", std::io::empty())
            .unwrap();
    }
    builder.finish().unwrap();
    refuses(&["audit", "--cpus", "1", "--root"], &[&field.at("his/wide.tar")], "more than");
    assert_eq!(unpacked("d") + unpacked("wide"), 0, "something stays in memory");
}

/// Directories in memory with something of this name, as unpacked.
fn unpacked(name: &str) -> usize {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().join(name).exists()).count()
}

#[test]
fn a_call_that_only_reads_ends_when_it_is_told_to() {
    let Some(field) = Field::new() else { return };
    let mut builder = tar::Builder::new(fs::File::create(field.at("many.tar")).unwrap());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o644);
    for number in 0..100_000 {
        builder.append_data(&mut header, format!("many/{number}"), std::io::empty()).unwrap();
    }
    builder.finish().unwrap();
    let mut command = stillcore(&["audit", "--cpus", "1", "--root"]);
    command.arg(field.at("many.tar")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while unpacked("many") == 0 && begun.elapsed() < LONG && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(2), "{status}");
    assert_eq!(unpacked("many"), 0, "what was unpacked stays in memory");
}

#[test]
fn names_do_not_drive_the_terminal() {
    let Some(field) = Field::new() else { return };
    let evil = "\u{1b}]0;P\u{7}\u{9b}\u{202e}x";
    // A process of that name, bound to the last CPU.
    let program = field.at("shared").join(evil);
    fs::copy("/bin/sleep", &program).unwrap();
    let mut process = Command::new(&program).arg("60").uid(NOBODY).gid(NOBODY).spawn().unwrap();
    let pid = process.id().to_string();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let last = (cpus - 1).to_string();
    Command::new("taskset").args(["-cp", &last, &pid]).stdout(Stdio::null()).status().unwrap();
    let mut seen = String::new();
    for words in [
        &["resources", "--cpus", &last][..],
        &["isolate", "plan", "--cpus", &last],
        &["audit", "--cpus", &last],
        &["resources", "--json", "--cpus", &last],
    ] {
        let output = root(words, &[]);
        seen += &text(&output.stdout);
        seen += &text(&output.stderr);
    }
    process.kill().unwrap();
    process.wait().unwrap();
    // Foreign paths in messages.
    let output = root(&["report"], &[&field.at("his").join(evil)]);
    seen += &text(&output.stderr);
    assert!(seen.contains("0;P"), "the name is not in any of it");
    let driving = |c: &char| (c.is_control() && !matches!(c, '\n' | '\t')) || *c == '\u{202e}';
    assert_eq!(seen.chars().find(driving), None);
}

#[test]
fn an_error_without_a_reader_is_an_error_all_the_same() {
    let Some(field) = Field::new() else { return };
    let shell = |script: &str| {
        let program = env!("CARGO_BIN_EXE_stillcore");
        let script = script
            .replace("PROGRAM", program)
            .replace("PLACE", &field.place.dir.path().display().to_string());
        Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(shell("PROGRAM report nosuch 2>/dev/full"), Some(1));
    assert_eq!(shell("PROGRAM report nosuch 2>&-"), Some(1));
    assert_eq!(shell("PROGRAM audit >/dev/full 2>/dev/full"), Some(1));
    // A file that may not grow: the write fails, and no signal ends the process.
    assert_eq!(shell("ulimit -f 1; PROGRAM snapshot --out PLACE/large.tar 2>/dev/null"), Some(1));
    assert!(!field.at("large.tar").exists());
    let left: Vec<_> =
        fs::read_dir(field.place.dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".stillcore")), "{left:?}");
}
