//! A replication over boots on a machine that really boots: a guest with a disk, GRUB and several
//! kernels. Once undisturbed, and once with its power cut at random moments: is the report the
//! same, and the machine as it was?
//! `cargo bench -p stillcore --bench reboots [-- --program FILE --paper P --only NAMES --cuts N --seed N]`

#[path = "../common/mod.rs"]
mod common;
mod disk;

use common::{Failed, option, run};
use disk::Kernel;
use lab::{Accel, Addition, Arch, Event, Nic, Smp, Spec, Stop};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/reboots/boot.sh");
/// What the machine's own boots have on their line.
const LINE: &str = "console=ttyS0 rdinit=/init net.ifnames=0";
/// Kernels of the menu; the last one has nothing to start from, and panics.
const KERNELS: [&str; 2] = ["6.1", "6.1-rt"];
const PANICS: &str = "5.10";
/// The longest that all of it may take.
const LIMIT: Duration = Duration::from_secs(90 * 60);

fn main() {
    let plan = Plan {
        program: option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore"))),
        paper: option("--paper", "access20".to_owned()),
        only: option("--only", "access20-cstate,access20-fig5".to_owned()),
        cuts: option("--cuts", 10),
        seed: option("--seed", 1),
        stop_after: option("--stop-after", 4),
    };
    run("reboots", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let done = plan.run(place.path(), rows);
        if done.is_err() {
            eprintln!("kept: {}", place.keep().display());
        }
        done
    });
}

struct Plan {
    program: PathBuf,
    paper: String,
    only: String,
    cuts: usize,
    seed: u64,
    /// Cells after which the third machine is stopped.
    stop_after: u32,
}

impl Plan {
    fn run(&self, place: &Path, rows: &mut Sink) -> Result<(), Failed> {
        let kernels = self.kernels(place)?;
        rows.note(format!(
            "GRUB's own programs in a guest of {} with {} CPUs; {PANICS} panics; study replicate {} --boots --only {}",
            KERNELS.join(" and "),
            SMP.cpus(),
            self.paper,
            self.only
        ))?;
        let whole = Machine::new(&place.join("whole"), &kernels, None)?.run(Vec::new())?;
        // So that all of them fall into the time that it takes.
        let most = whole.took.as_secs_f64() / 6.0;
        let cuts = (0..self.cuts as u64).map(|at| Duration::from_secs_f64(1.0 + most * share(self.seed, at)));
        let cut = Machine::new(&place.join("cut"), &kernels, None)?.run(cuts.collect())?;
        let stopped =
            Machine::new(&place.join("stopped"), &kernels, Some(self.stop_after))?.run(Vec::new())?;
        for (name, machine) in [("undisturbed", &whole), ("with power cuts", &cut), ("stopped", &stopped)] {
            rows.push(Row::new(format!("{name}: boots"), machine.boots as f64, ""))?;
            rows.push(Row::new(format!("{name}: cells"), machine.cells.len() as f64, ""))?;
            rows.push(Row::new(format!("{name}: time"), machine.took.as_secs_f64().round(), "s"))?;
            let left =
                machine.left.lines().filter(|line| line.contains("custom.cfg") || line.contains("boot.json"));
            rows.push(none(&format!("{name}: files left"), left.map(str::to_owned).collect()))?;
            let other = [&machine.last].into_iter().filter(|line| !line.ends_with(LINE)).cloned();
            rows.push(none(&format!("{name}: last boots that are not the machine's own"), other.collect()))?;
        }
        rows.push(Row::new("power cuts", cut.cuts as f64, ""))?;
        rows.push(none("cells that differ", differing(&whole.cells, &cut.cells)))?;
        let notes = |machine: &Ended| machine.report["notes"].clone();
        let same = notes(&whole) == notes(&cut);
        rows.push(none(
            "notes that differ",
            if same { Vec::new() } else { vec![format!("{} / {}", notes(&whole), notes(&cut))] },
        ))?;
        let given_up = whole.report["notes"].to_string().matches(&format!("boot {PANICS}")).count();
        rows.push(
            Row::new("boots given up because the kernel panics", given_up as f64, "")
                .budget(Of::Value, Limit::AtLeast(1.0)),
        )?;
        let ran = stopped.cells.len() as f64;
        rows.push(
            Row::new(
                "cells of the stopped one, of those of the undisturbed",
                ran / whole.cells.len() as f64,
                "",
            )
            .budget(Of::Value, Limit::AtMost(0.99)),
        )?;
        Ok(())
    }

    /// The kernels, with an initial file system that holds the program and GRUB's.
    fn kernels(&self, place: &Path) -> Result<Vec<Kernel>, Failed> {
        let mut kernels = Vec::new();
        for name in KERNELS.into_iter().chain([PANICS]) {
            let initramfs = place.join(format!("initrd-{name}"));
            let image = lab::prepare(
                &self.spec(name, place)?,
                Path::new("/etc/apt"),
                &initramfs,
                &Stop::default(),
                &mut |event| {
                    if let Event::Note(note) = event {
                        eprintln!("{note}");
                    }
                },
            )
            .map_err(Failed::because)?;
            let release =
                image.file_name().and_then(|name| name.to_str()?.strip_prefix("vmlinuz-")).map(str::to_owned);
            let release = release.ok_or_else(|| Failed(format!("{}: no release", image.display())))?;
            kernels.push(Kernel { release, image, initramfs: (name != PANICS).then_some(initramfs) });
        }
        Ok(kernels)
    }

    fn spec(&self, kernel: &str, place: &Path) -> Result<Spec, Failed> {
        let add = |host: &Path, guest: &str| Addition { host: host.to_owned(), guest: guest.to_owned() };
        let grub = place.join("default-grub");
        fs::write(&grub, "")?;
        let call =
            ["/bin/busybox", "sh", "/root/boot.sh", "study", "replicate", &self.paper, "--boots", "--yes"];
        let further = ["--scale", "0.0001", "--only", &self.only];
        Ok(Spec {
            arch: Arch::X86_64,
            kernel: kernel.to_owned(),
            smp: SMP,
            memory_mib: lab::spec::DEFAULT_MEMORY_MIB,
            append: String::new(),
            nic: None::<Nic>,
            modules: ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4"].map(str::to_owned).to_vec(),
            packages: ["busybox-static", "grub2-common"].map(str::to_owned).to_vec(),
            init: self.program.clone(),
            binary: None,
            add: vec![add(Path::new(SCRIPT), "/root/boot.sh"), add(&grub, "/etc/default/grub")],
            accel: Accel::Tcg,
            timeout: LIMIT,
            limit: None,
            out: place.join("out"),
            cache: lab::cache::dir(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
                .map_err(Failed::because)?,
            launcher: Vec::new(),
            command: call.into_iter().chain(further).map(str::to_owned).collect(),
        })
    }
}

const SMP: Smp = Smp { cores: 4, threads: 1 };

/// A machine of its own.
struct Machine {
    place: PathBuf,
    disk: PathBuf,
}

/// What one has come to.
struct Ended {
    boots: usize,
    cuts: usize,
    took: Duration,
    /// State of each cell, by study and id, with the boot that it was measured under.
    cells: BTreeMap<String, String>,
    report: Value,
    /// What is in the folders that were changed.
    left: String,
    /// The line of the last boot.
    last: String,
}

impl Machine {
    fn new(place: &Path, kernels: &[Kernel], stop_after: Option<u32>) -> Result<Self, Failed> {
        fs::create_dir_all(place)?;
        Ok(Self { disk: disk::make(place, kernels, LINE, stop_after)?, place: place.to_owned() })
    }

    /// Runs it until it powers itself off, its power cut after each of these times.
    fn run(&self, cuts: Vec<Duration>) -> Result<Ended, Failed> {
        let begun = Instant::now();
        let mut done = 0;
        for (at, length) in cuts.into_iter().enumerate() {
            let mut qemu = self.start(at)?;
            let until = Instant::now() + length;
            while Instant::now() < until && qemu.try_wait()?.is_none() {
                std::thread::sleep(Duration::from_millis(50));
            }
            if qemu.try_wait()?.is_some() {
                break;
            }
            qemu.kill()?;
            qemu.wait()?;
            done += 1;
        }
        while disk::read(&self.disk, "replicate/replicate.json")?.is_none() {
            let mut qemu = self.start(done)?;
            while qemu.try_wait()?.is_none() {
                if begun.elapsed() > LIMIT {
                    qemu.kill()?;
                    return Err(Failed(format!("it did not end within {} min", LIMIT.as_secs() / 60)));
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        self.ended(done, begun.elapsed())
    }

    fn start(&self, number: usize) -> Result<Child, Failed> {
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-monitor",
            "none",
            "-M",
            "q35",
            "-cpu",
            "max",
        ]);
        qemu.args(["-accel", "tcg,thread=multi", "-smp", &SMP.cpus().to_string(), "-m", "1536M"]);
        qemu.arg("-serial").arg(format!("file:{}", self.place.join(format!("console-{number}")).display()));
        // What the guest has flushed outlasts the end of its power.
        qemu.arg("-drive").arg(format!("file={},format=raw,if=virtio,cache=writeback", self.disk.display()));
        let qemu = qemu.stdin(Stdio::null()).stdout(Stdio::null());
        qemu.spawn().map_err(|error| Failed(format!("qemu-system-x86_64: {error}")))
    }

    fn ended(&self, cuts: usize, took: Duration) -> Result<Ended, Failed> {
        let text = |name: &str| disk::read(&self.disk, name).map(Option::unwrap_or_default);
        let to = self.place.join("data");
        fs::create_dir_all(&to)?;
        disk::copy(&self.disk, "replicate", &to)?;
        let report = fs::read(to.join("replicate/replicate.json"))
            .map_err(|error| Failed(format!("no report ({error}): {}", text("log").unwrap_or_default())))?;
        Ok(Ended {
            boots: text("boots")?.lines().count(),
            cuts,
            took,
            cells: cells(&to.join("replicate"))?,
            report: serde_json::from_slice(&report).map_err(Failed::because)?,
            left: text("left")?,
            last: text("boots")?.lines().next_back().unwrap_or_default().to_owned(),
        })
    }
}

/// Every cell with what became of it.
fn cells(dir: &Path) -> Result<BTreeMap<String, String>, Failed> {
    let mut cells = BTreeMap::new();
    for study in fs::read_dir(dir)?.flatten() {
        for file in fs::read_dir(study.path().join("cells")).into_iter().flatten().flatten() {
            let cell: Value = serde_json::from_slice(&fs::read(file.path())?).map_err(Failed::because)?;
            let result = &cell["result"];
            let name =
                format!("{} {}", study.file_name().to_string_lossy(), file.file_name().to_string_lossy());
            let under = &result["under"];
            cells.insert(name, format!("{} {} {}", result["state"], under["kernel"], under["boot"]));
        }
    }
    Ok(cells)
}

fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |name: &&&String| one.get(**name) != other.get(**name);
    names
        .iter()
        .filter(differs)
        .map(|name| format!("{name}: {:?} / {:?}", one.get(*name), other.get(*name)))
        .collect()
}

/// A row of what there must be none of, the first of them as its text.
fn none(what: &str, found: Vec<String>) -> Row {
    let row = Row::new(what, found.len() as f64, "").budget(Of::Value, Limit::AtMost(0.0));
    match found.first() {
        Some(first) => row.why(first.clone()),
        None => row,
    }
}

/// A number in [0, 1), the `at`th of a seed (splitmix64).
fn share(seed: u64, at: u64) -> f64 {
    let mut z = (seed.wrapping_mul(1 << 32) + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
