//! Who held a lock that a thread waited for: contention planted by `tests/plants/contention.c`,
//! whose threads and locks are known, against what `trace watch` reports; here and in guests.
//! `cargo bench -p stillcore --bench locks [-- --rounds N --kernels LIST --arm64 PROGRAM]`; needs
//! root, a C compiler, and for guests QEMU. `--kernels here` boots none. Guests of arm64 run the
//! program that is given, and need Debian's compiler for it.
//!
//! A named holder that is wrong is the worst outcome: one of them misses the budget.

mod common;

use common::plants::{self, compile};
use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNELS: &str = "here,5.10,5.10-rt,6.1,6.1-rt,6.12,6.12-rt";
/// With a program for them.
const ARM64_KERNELS: &str = ",6.1-arm64,6.12-arm64";
const ARM64: &str = "-arm64";
const HERE: &str = "here";
const MUSL: &str = "x86_64-unknown-linux-musl";
/// A program with one scene of its own, whose lock has no owner.
const RUST: &str = "rust";
/// Locks with an owner that glibc's memory shows.
const MUTEXES: [&str; 7] = ["plain", "errorcheck", "recursive", "timed", "shared", "robust", "inherit"];
const CASES: [&str; 5] = ["holds", "inverts", "urgent", "sleeps", "chain"];
/// What else threads wait for; read-write locks are named while a writer holds them.
const OTHERS: [&str; 5] =
    ["rwlock:holds", "rwlock:inverts", "condition:holds", "semaphore:holds", "futex:holds"];

/// Locks of the kernel, and the kinds that they are reported as without and with PREEMPT_RT, where
/// one writer waits for another by the rt-mutex in the semaphore.
const OF_KERNEL: [(&str, [&str; 2]); 2] =
    [("position", ["kernel-mutex", "kernel-rt-mutex"]), ("inode", ["kernel-semaphore", "kernel-rt-mutex"])];
const KERNEL_CASES: [&str; 3] = ["holds", "inverts", "urgent"];

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let arm64 = option("--arm64", String::new());
    let all = format!("{KERNELS}{}", if arm64.is_empty() { "" } else { ARM64_KERNELS });
    let (kernels, rounds) = (option("--kernels", all), option("--rounds", 3));
    run("locks", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let plants = compiled(place.path())?;
        let on_arm64 = if kernels.contains(ARM64) { compiled_for_arm64(place.path())? } else { Vec::new() };
        let mut all = Scores::default();
        for kernel in kernels.split(',') {
            let out = place.path().join(kernel);
            let answers = if kernel == HERE {
                plants.iter().map(|plant| here(&program, plant, &out, rounds)).collect::<Result<_, _>>()?
            } else if let Some(release) = kernel.strip_suffix(ARM64) {
                let lab = ["--kernel", release, "--arch", "aarch64", "--binary", &arm64];
                guest(&program, &lab, &on_arm64, &out, rounds)?
            } else {
                guest(&program, &["--kernel", kernel], &plants, &out, rounds)?
            };
            for answer in answers {
                let scores = judge(&answer, kernel, rounds)?;
                if answer.libc == RUST {
                    let wrong = scores.mutexes.no_locks as f64;
                    let row = Row::new(format!("{kernel}, rust: named wrongly"), wrong, "").n(rounds);
                    rows.push(row.budget(Of::Value, Limit::AtMost(0.0)))?;
                } else {
                    scores.rows(&format!("{kernel}, {}", answer.libc), rows)?;
                }
                all.add(&scores);
            }
        }
        all.rows("all", rows)
    });
}

/// A compiled plant.
struct Plant {
    libc: &'static str,
    /// Static, so that it runs in any guest.
    file: PathBuf,
    /// As programs of this machine are linked.
    here: PathBuf,
}

/// The plants: with glibc, and where Rust's musl target is installed with that library, and with
/// the locks of Rust's own.
fn compiled(place: &Path) -> Result<Vec<Plant>, Failed> {
    let source = plants::source("contention.c");
    let [glibc, here] = ["contention-glibc", "contention-here"].map(|name| place.join(name));
    compile(Command::new("cc").args(["-O2", "-static", "-pthread", "-o"]).arg(&glibc).arg(&source))?;
    compile(Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&here).arg(&source))?;
    let mut plants = vec![Plant { libc: "glibc", file: glibc, here }];
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().map_err(Failed::because)?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    let library = Path::new(&sysroot).join("lib/rustlib").join(MUSL).join("lib/self-contained");
    if library.join("libc.a").exists() {
        let musl = place.join("contention-musl");
        let part = |name: &str| library.join(name);
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-U_FORTIFY_SOURCE", "-fno-stack-protector", "-O2", "-DPLANT_MUSL"]);
        command.args(["-static", "-nostdlib", "-o"]).arg(&musl);
        command.args([part("crt1.o"), part("crti.o"), source, part("libc.a")]);
        command.args(["-lgcc", "-lgcc_eh"]).args([part("libc.a"), part("crtn.o")]);
        compile(&mut command)?;
        plants.push(Plant { libc: "musl", here: musl.clone(), file: musl });
        let rust = place.join("contention-rust");
        let mut command = Command::new("rustc");
        command.args(["--edition", "2024", "-O", "--target", MUSL, "-o"]).arg(&rust);
        compile(command.arg(plants::source("contention.rs")))?;
        plants.push(Plant { libc: RUST, here: rust.clone(), file: rust });
    }
    Ok(plants)
}

/// The plant with glibc, for guests of that architecture.
fn compiled_for_arm64(place: &Path) -> Result<Vec<Plant>, Failed> {
    let file = place.join("contention-arm64");
    let mut command = Command::new("aarch64-linux-gnu-gcc");
    command.args(["-O2", "-static", "-pthread", "-o"]).arg(&file);
    compile(command.arg(plants::source("contention.c")))?;
    Ok(vec![Plant { libc: "glibc", here: file.clone(), file }])
}

fn scenes() -> Vec<String> {
    let mutexes = MUTEXES.iter().flat_map(|kind| CASES.iter().map(move |case| format!("{kind}:{case}")));
    let kernels = OF_KERNEL.iter().flat_map(|(kind, _)| KERNEL_CASES.map(|case| format!("{kind}:{case}")));
    mutexes.chain(OTHERS.map(str::to_owned)).chain(kernels).collect()
}

/// What was printed: the answer, and the scenes.
struct Answer {
    libc: &'static str,
    json: Value,
    log: String,
}

impl Answer {
    fn of(kernel: &str, libc: &'static str, json: &[u8], log: String) -> Result<Self, Failed> {
        let last = log.lines().last().unwrap_or_default().to_owned();
        let failed = |_| Failed(format!("{kernel}, {libc}: trace watch failed: {last}"));
        Ok(Self { libc, json: serde_json::from_slice(json).map_err(failed)?, log })
    }
}

fn here(program: &str, plant: &Plant, out: &Path, rounds: u64) -> Result<Answer, Failed> {
    let mut command = Command::new(program);
    command.args(["trace", "watch", "--json", "--out"]).arg(out.with_extension(plant.libc));
    command.arg("--").arg(&plant.here).args(["1", &rounds.to_string()]).args(scenes());
    let output = command.output().map_err(Failed::because)?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Answer::of(HERE, plant.libc, &output.stdout, log)
}

/// `lab`: the options of `lab run` that choose the guest.
fn guest(
    program: &str,
    lab: &[&str],
    plants: &[Plant],
    out: &Path,
    rounds: u64,
) -> Result<Vec<Answer>, Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/locks.sh");
    let mut command = Command::new(program);
    let kernel = lab[1];
    command.args(["lab", "run"]).args(lab).args(["--packages", "busybox-static", "--timeout", "900s"]);
    command.arg("--add").arg(format!("{}:/root/locks.sh", script.display())).arg("--out").arg(out);
    for plant in plants {
        command.arg("--add").arg(format!("{}:/root/contention-{}", plant.file.display(), plant.libc));
    }
    command.args(["--", "/bin/busybox", "sh", "/root/locks.sh", &rounds.to_string()]).args(scenes());
    let output = command.output().map_err(Failed::because)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(format!("{kernel}: {}", said.lines().last().unwrap_or_default())));
    }
    let read = |name: String| std::fs::read_to_string(out.join("root").join(name)).unwrap_or_default();
    let answer = |plant: &Plant| {
        let (json, log) = (read(format!("{}.json", plant.libc)), read(format!("{}.log", plant.libc)));
        Answer::of(kernel, plant.libc, json.as_bytes(), log)
    };
    plants.iter().map(answer).collect()
}

/// By kind of lock.
#[derive(Default)]
struct Scores {
    mutexes: Score,
    read_write: Score,
    of_kernel: Score,
}

impl Scores {
    fn add(&mut self, other: &Self) {
        self.mutexes.add(&other.mutexes);
        self.read_write.add(&other.read_write);
        self.of_kernel.add(&other.of_kernel);
    }

    fn rows(&self, name: &str, rows: &mut Sink) -> Result<(), Failed> {
        self.mutexes.rows(&format!("{name}, mutexes"), rows)?;
        self.read_write.rows(&format!("{name}, read-write locks"), rows)?;
        self.of_kernel.rows(&format!("{name}, locks of the kernel"), rows)
    }
}

/// Contentions, and what was reported of them.
#[derive(Default)]
struct Score {
    /// Of locks with an owner.
    planted: u64,
    named: u64,
    wrong: u64,
    /// Inversions planted, and those found; reported ones that are none.
    inversions: u64,
    found: u64,
    invented: u64,
    /// Waits of condition variables and semaphores that were taken for locks.
    no_locks: u64,
}

impl Score {
    fn add(&mut self, other: &Self) {
        self.planted += other.planted;
        self.named += other.named;
        self.wrong += other.wrong;
        self.inversions += other.inversions;
        self.found += other.found;
        self.invented += other.invented;
        self.no_locks += other.no_locks;
    }

    fn rows(&self, name: &str, rows: &mut Sink) -> Result<(), Failed> {
        let mut push = |row: Row| rows.push(row).map_err(Failed::from);
        // Of nothing there is no share.
        let share = |what: &str, part: u64, of: u64| {
            let share = part as f64 / of as f64 * 100.0;
            (of > 0).then(|| Row::new(format!("{name}: {what}"), share, "%").n(of))
        };
        share("holder named", self.named, self.planted).map_or(Ok(()), &mut push)?;
        let wrong = self.wrong + self.no_locks;
        let row = Row::new(format!("{name}: named wrongly"), wrong as f64, "").n(self.named);
        push(row.budget(Of::Value, Limit::AtMost(0.0)))?;
        share("inversion found", self.found, self.inversions).map_or(Ok(()), &mut push)?;
        let row =
            Row::new(format!("{name}: inversion reported where there was none"), self.invented as f64, "");
        push(row.n(self.planted - self.inversions).budget(Of::Value, Limit::AtMost(0.0)))
    }
}

/// A line of the plant: `KIND:CASE lock ADDRESS deeper ADDRESS PART NUMBER...`.
struct Scene {
    kind: String,
    case: String,
    numbers: HashMap<String, u64>,
}

impl Scene {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (kind, case) = words.next()?.split_once(':')?;
        let rest: Vec<&str> = words.collect();
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let pair = |pair: &[&str]| Some((pair.first()?.to_string(), number(pair.get(1)?)?));
        let numbers: Option<HashMap<String, u64>> = rest.chunks(2).map(pair).collect();
        let scene = Self { kind: kind.to_owned(), case: case.to_owned(), numbers: numbers? };
        scene.numbers.contains_key("waiter").then_some(scene)
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or_default()
    }
}

fn judge(answer: &Answer, kernel: &str, rounds: u64) -> Result<Scores, Failed> {
    let scenes: Vec<Scene> = answer.log.lines().filter_map(Scene::parse).collect();
    if scenes.len() < if answer.libc == RUST { 1 } else { self::scenes().len() } {
        return Err(Failed(format!("{}: only {} scenes were played", answer.libc, scenes.len())));
    }
    let locks = answer.json["watch"]["locks"]["locks"].as_array().cloned().unwrap_or_default();
    let mut scores = Scores::default();
    for scene in &scenes {
        if ["condition", "semaphore", "futex", RUST].contains(&scene.kind.as_str()) {
            scores.mutexes.no_locks += waits_of(&locks, scene.number("waiter"));
            continue;
        }
        if let Some((_, kinds)) = OF_KERNEL.iter().find(|(kind, _)| *kind == scene.kind) {
            // There they inherit.
            let (inherits, of) = (kernel.ends_with("-rt"), &mut scores.of_kernel);
            let rows = longest_wait(&locks, kinds, scene.number("waiter"));
            let inverts = scene.case == "inverts" && !inherits;
            of.add(&contention(rows, scene, ["waiter", "holder"], inverts, rounds));
            continue;
        }
        let score = if scene.kind == "rwlock" { &mut scores.read_write } else { &mut scores.mutexes };
        let inverts = ["inverts", "chain"].contains(&scene.case.as_str()) && scene.kind != "inherit";
        score.add(&contention(at(&locks, scene, "lock"), scene, ["waiter", "holder"], inverts, rounds));
        if scene.case == "chain" {
            let deeper = at(&locks, scene, "deeper");
            score.add(&contention(deeper, scene, ["holder", "deepest"], false, rounds));
        }
    }
    Ok(scores)
}

/// What was reported of a lock of a scene.
fn at<'l>(locks: &'l [Value], scene: &Scene, lock: &str) -> Vec<&'l Value> {
    // A read-write lock has a word for its phase and one for its writers.
    let word = scene.number(lock);
    let words = if scene.kind == "rwlock" { word..word + 32 } else { word..word + 1 };
    locks.iter().filter(|row| words.contains(&row["word"].as_u64().unwrap_or_default())).collect()
}

/// Of the locks of these kinds that a thread waited for, the one that it waited longest for: the
/// kernel has others of the kind.
fn longest_wait<'l>(locks: &'l [Value], kinds: &[&str], tid: u64) -> Vec<&'l Value> {
    let is_one = |row: &&Value| {
        let waits =
            row["waiters"].as_array().is_some_and(|all| all.iter().any(|one| one["thread"]["tid"] == tid));
        waits && kinds.iter().any(|kind| row["kind"] == *kind)
    };
    locks.iter().filter(is_one).max_by_key(|row| row["waited"]["max_ns"].as_u64()).into_iter().collect()
}

/// One lock of a scene: who waited for it, and who held it.
fn contention(
    rows: Vec<&Value>,
    scene: &Scene,
    [waiter, holder]: [&str; 2],
    inverts: bool,
    rounds: u64,
) -> Score {
    let [waiter, holder] = [waiter, holder].map(|part| scene.number(part));
    let inversions = if inverts { rounds } else { 0 };
    let mut score = Score { planted: rounds, inversions, ..Score::default() };
    for row in rows {
        let list = |key: &str| row[key].as_array().cloned().unwrap_or_default();
        score.named += row["known"].as_u64().unwrap_or_default().min(rounds);
        for one in list("holders").iter().filter(|one| one["thread"]["tid"] != holder) {
            score.wrong += one["waits"].as_u64().unwrap_or_default();
            eprintln!("{}:{}: wrong holder: {row}", scene.kind, scene.case);
        }
        for one in list("waiters") {
            let inversions = one["inversions"].as_u64().unwrap_or_default();
            if inverts && one["thread"]["tid"] == waiter {
                score.found += inversions.min(rounds);
            } else if inversions > 0 {
                score.invented += inversions;
                eprintln!("{}:{}: no inversion: {row}", scene.kind, scene.case);
            }
        }
    }
    score
}

/// Waits of a thread for anything that was taken for a lock, the locks of the C library aside that
/// hold new threads back.
fn waits_of(locks: &[Value], tid: u64) -> u64 {
    let of_thread = |row: &&Value| {
        let waiters = row["waiters"].as_array().cloned().unwrap_or_default();
        waiters.iter().any(|one| one["thread"]["tid"] == tid)
    };
    // By its value alone nothing is called a lock.
    let is_planted = |row: &&Value| {
        let kind = row["kind"].as_str().unwrap_or_default();
        let is_a_programs = kind != "by-value" && !kind.starts_with("kernel-");
        is_a_programs && row["waited"]["max_ns"].as_u64().unwrap_or_default() > 150_000
    };
    locks.iter().filter(of_thread).filter(is_planted).count() as u64
}
