//! One process of a run killed at a random moment: leftovers on the machine, surviving samples, and
//! the wording of the report.

#![allow(dead_code, reason = "the bench and the test use each their part")]

use model::store;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sys::clock::now_ns;

/// Measurements that together start every kind of process.
pub(crate) const VERBS: [&[&str]; 5] = [
    &["measure", "wakeup", "--period", "1ms", "--duration", "2s"],
    &["measure", "wakeup", "--period", "1ms", "--duration", "2s", "--trace=auto"],
    &["measure", "spin", "--duration", "2s"],
    &["measure", "periodic", "--period", "5ms", "--duration", "2s", "--input", "pipe"],
    &["assess", "--period", "1ms", "--duration", "1s", "--trace=auto", "--stressors", "u_fork"],
];

/// Latest moment of a kill after the start.
const LATEST_MS: u64 = 3_000;
/// How long a run may take to end after one of its processes was killed, and its guardian after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers that follow from a seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// One of `0..below`.
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % below.max(1)
    }
}

/// The outcome of one kill.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The kind of process: `main`, `guardian`, `probe`, …; none where the run had ended before.
    pub(crate) role: Option<String>,
    /// The measurement.
    pub(crate) verb: usize,
    /// Leftovers, one entry each.
    pub(crate) left: Vec<String>,
    /// Unreadable files and wrong statements.
    pub(crate) wrong: Vec<String>,
    /// Whether another stillcore ran beside it, so that settings could not be compared.
    pub(crate) beside: bool,
    /// Where a window was open when its writer was killed: age of the last readable sample at that
    /// moment, ms, by probe.
    pub(crate) age_ms: BTreeMap<String, f64>,
}

/// Kills one process of one run and checks what remains in `dir`, which must be empty.
pub(crate) fn kill_one(program: &Path, dir: &Path, random: &mut Random) -> Outcome {
    let verb = random.next(VERBS.len() as u64) as usize;
    let beside = others(dir);
    let before = state(program);
    let mut child = start(program, dir, VERBS[verb]);
    let begun = Instant::now();
    // Most of it is the window; set-up and conclusion have their share.
    let after = Duration::from_millis(20 + random.next(LATEST_MS));
    std::thread::sleep(after.saturating_sub(begun.elapsed()));
    let family = family(child.id());
    let killed_ns = now_ns();
    let one = &family[random.next(family.len() as u64) as usize];
    let killed = matches!(child.try_wait(), Ok(None)) && kill(one.0);
    let role = killed.then(|| one.1.clone());
    let mut outcome =
        Outcome { role, verb, left: Vec::new(), wrong: Vec::new(), beside: false, age_ms: BTreeMap::new() };
    if !ended(&mut child) {
        outcome.left.push(format!("it did not end within {} s", PATIENCE.as_secs()));
        let _ = child.kill();
        let _ = child.wait();
    }
    // A concurrent stillcore changes settings and restores them.
    let changed = || {
        outcome.beside |= beside || others(dir);
        if outcome.beside { Vec::new() } else { changed(before.as_ref(), state(program).as_ref()) }
    };
    let left = leftovers(dir, &family, changed);
    outcome.left.extend(left);
    samples(&mut outcome, dir, killed_ns);
    words(&mut outcome, program, dir);
    outcome
}

fn start(program: &Path, dir: &Path, verb: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(verb).args(["--cpus", "1"]);
    if verb[0] != "assess" {
        command.arg("--quiet");
    }
    command.arg("--state").arg(dir.join("state")).arg("--out").arg(dir.join("run"));
    let log = fs::File::create(dir.join("log")).expect("a scratch place can be written");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("the program can be started")
}

/// The process and its descendants, each with its kind.
fn family(main: u32) -> Vec<(u32, String)> {
    let mut all = vec![(main, "main".to_owned())];
    let mut at = 0;
    while at < all.len() {
        let pid = all[at].0;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|pid| {
            let pid = pid.parse().ok()?;
            Some((pid, role(pid)?))
        }));
        at += 1;
    }
    all
}

fn role(pid: u32) -> Option<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = words.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
    let at = words.iter().position(|word| word == "internal")?;
    Some(words.get(at + 1)?.to_string())
}

fn kill(pid: u32) -> bool {
    let mut command = Command::new("kill");
    let status = command.args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn ended(child: &mut Child) -> bool {
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Settings of the machine, except mounts, which other programs make at any time: ours have the
/// name of their directory.
fn state(program: &Path) -> Option<Value> {
    let output = Command::new(program).args(["internal", "state"]).output().ok()?;
    let mut state: Value = serde_json::from_slice(&output.stdout).ok()?;
    state.as_object_mut()?.remove("mounts");
    Some(state)
}

/// Settings that are other than before, by their paths in the state.
fn changed(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            let inside = |key: &String| {
                let deeper = changed(before.get(key), after.get(key)).into_iter();
                deeper.map(move |path| format!("{key} {path}")).collect::<Vec<_>>()
            };
            keys.into_iter().flat_map(inside).collect()
        }
        (before, after) if before == after => Vec::new(),
        (before, after) => {
            let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            vec![format!("was {}, is {}", text(before), text(after))]
        }
    }
}

/// Leftovers after the time limit of guardian and children: processes, tracing instances, groups,
/// mounts, journals, temporary files, settings.
fn leftovers(dir: &Path, family: &[(u32, String)], mut changed: impl FnMut() -> Vec<String>) -> Vec<String> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let mut left = processes(dir);
        // Its children do not all name the directory.
        let alive = family.iter().filter(|(pid, _)| role(*pid).is_some());
        left.extend(alive.map(|(pid, role)| format!("process {pid}, {role}")));
        left.extend(named_after(family[0].0));
        let journal = fs::read_dir(dir.join("state/journal")).into_iter().flatten().filter_map(Result::ok);
        left.extend(journal.map(|entry| format!("journal {}", entry.path().display())));
        let state = fs::read_dir(dir.join("state")).into_iter().flatten().filter_map(Result::ok);
        let names = state.map(|entry| entry.file_name().to_string_lossy().into_owned());
        left.extend(names.filter(|name| name != "journal").map(|name| format!("state {name}")));
        left.extend(temporary(&dir.join("run")));
        let mounts = fs::read_to_string("/proc/mounts").expect("a system with procfs");
        let here = dir.to_string_lossy().into_owned();
        left.extend(mounts.lines().filter(|line| line.contains(&here)).map(|line| format!("mount {line}")));
        if left.is_empty() {
            left = changed();
        }
        if left.is_empty() || Instant::now() > give_up {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a stillcore of another directory runs: each has a guardian that watches a journal.
fn others(dir: &Path) -> bool {
    let here = dir.to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let mut lines = entries.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        fs::read(entry.path().join("cmdline")).ok()
    });
    lines.any(|words| {
        let line = String::from_utf8_lossy(&words);
        line.contains("internal\0guardian") && !line.contains(&here)
    })
}

pub(crate) fn processes(dir: &Path) -> Vec<String> {
    let here = dir.to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        (pid != std::process::id() && line.contains(&here)).then(|| format!("process {pid} {line}"))
    });
    lines.collect()
}

/// Tracing instances and control groups of a process.
pub(crate) fn named_after(main: u32) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/mounts").expect("a system with procfs");
    let places = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let target = PathBuf::from(words.next()?);
        match words.next()? {
            "tracefs" => Some(target.join("instances")),
            "cgroup" | "cgroup2" => Some(target),
            _ => None,
        }
    });
    let (name, beside) = (format!("stillcore-{main}"), format!("stillcore-{main}-"));
    let entries = places.filter_map(|place| fs::read_dir(place).ok()).flatten().filter_map(Result::ok);
    let ours = entries.filter(|entry| {
        let found = entry.file_name();
        found.to_str().is_some_and(|found| found == name || found.starts_with(&beside))
    });
    ours.map(|entry| entry.path().display().to_string()).collect()
}

/// Files of a run that no reader knows.
pub(crate) fn temporary(run: &Path) -> Vec<String> {
    let entries = fs::read_dir(run).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).map(|name| format!("temporary file {name}")).collect()
}

/// Every samples file is readable, and reaches until shortly before the kill if its window was
/// open.
fn samples(outcome: &mut Outcome, dir: &Path, killed_ns: i64) {
    let run = dir.join("run");
    let entries = fs::read_dir(run.join(store::SAMPLES)).into_iter().flatten().filter_map(Result::ok);
    let files: Vec<_> = entries.map(|entry| entry.path()).collect();
    let tails: Vec<_> =
        files.iter().filter(|path| path.extension().is_none_or(|it| it != "parquet")).collect();
    for file in files.iter().filter(|path| path.extension().is_some_and(|it| it == "parquet")) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (meta, samples) = match model::samples_file::read(file) {
            Ok(read) => read,
            Err(error) => {
                // Killed between the making of the two files, nothing was measured yet.
                if fs::metadata(file).is_ok_and(|meta| meta.len() > 0) || !tails.is_empty() {
                    outcome.wrong.push(format!("{name} cannot be read: {error}"));
                }
                continue;
            }
        };
        let is_open = tails.iter().any(|tail| tail.to_string_lossy().contains(&name));
        let last_ns = samples.iter().map(|sample| sample.t_ns + sample.value_ns.max(0)).max();
        if let (true, Some("main"), Some(last_ns)) = (is_open, outcome.role.as_deref(), last_ns)
            && fs::read(file).is_ok_and(|bytes| !bytes.ends_with(b"PAR1"))
        {
            let age = (killed_ns - last_ns) as f64 / 1e6;
            outcome.age_ms.insert(meta.probe.name().to_owned(), age.max(0.0));
        }
    }
}

/// The report must never say that an unfinished run has lost nothing.
fn words(outcome: &mut Outcome, program: &Path, dir: &Path) {
    let run = dir.join("run");
    let record = match model::run::stored::read_run(&run) {
        Ok(record) => record,
        Err(_) if !run.join(store::RUN).exists() => return,
        Err(error) => return outcome.wrong.push(format!("the run cannot be read: {error}")),
    };
    // A run that ended by itself has its counts; one that had not read the machine has measured
    // nothing.
    if record.has_ended() || !run.join(store::FINDINGS).exists() {
        return;
    }
    let output = Command::new(program).arg("report").arg(&run).output();
    let Ok(output) = output else { return outcome.wrong.push("the report cannot be started".to_owned()) };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !matches!(output.status.code(), Some(0 | 2)) {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return outcome.wrong.push(format!("the report fails: {why}"));
    }
    let Ok(page) = fs::read_to_string(run.join(store::REPORT)) else {
        return outcome.wrong.push("the report has no page".to_owned());
    };
    for wrong in ["samples lost 0", "lost 0", "0 lost", "ring</dt><dd>0<"] {
        if said.contains(wrong) || page.contains(wrong) {
            outcome.wrong.push(format!("the report of an unfinished run says {wrong:?}"));
        }
    }
    if !said.contains("not known: the run was cut off") {
        outcome.wrong.push("the report does not say that the losses are not known".to_owned());
    }
}
