//! Interference events on an idle isolated CPU, as the RTSS 2024 paper (Fig. 5, 1 s) and its
//! replication (Table I, 10 s) counted them, and each of the six problems of the paper's Table I
//! provoked by itself; on the kernels of the lab, beside what was published.
//! `cargo bench -p stillcore --bench interference [-- --kernels 5.10,6.12]`; needs QEMU and the
//! binary for guests.
//!
//! CPU 2 is isolated at boot and all but idle: a probe wakes four times a second. Events are those
//! of tracepoints, the probe's own left out; counts in guests are exact, but loads run slower
//! there, so that the counts of a period are no rates of a machine.

mod common;

use common::{Failed, option, run};
use result::{Row, Sink};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A load and how long it is looked at.
struct Look {
    name: &'static str,
    suite: &'static str,
    seconds: u64,
    title: &'static str,
}

const LOOKS: [Look; 8] = [
    Look { name: "table1", suite: "replication25", seconds: 10, title: "Table I, 10 s" },
    Look { name: "fig5", suite: "rtss24", seconds: 1, title: "Fig. 5, 1 s" },
    Look { name: "workqueue", suite: "rtss24-workqueue", seconds: 5, title: "problem 1, workqueues, 5 s" },
    Look { name: "asid", suite: "rtss24-asid", seconds: 5, title: "problem 3, ASIDs (an arm64 one), 5 s" },
    Look { name: "backlog", suite: "rtss24-backlog", seconds: 5, title: "problem 4, network backlog, 5 s" },
    Look { name: "jiffies", suite: "rtss24-jiffies", seconds: 5, title: "problem 5, jiffies, 5 s" },
    Look { name: "statistics", suite: "rtss24-statistics", seconds: 5, title: "problem 6, statistics, 5 s" },
    // Last: what it moves onto other CPUs stays there until the next boot.
    Look { name: "migration", suite: "rtss24-migration", seconds: 5, title: "problem 2, migration, 5 s" },
];

/// Table I of the replication: what was recorded in 10 s, by `context switch`, `IPI`, `TLB flush`,
/// and the kernel here that comes nearest. Its third system, openEuler 22.03 (21, 6, 0), is none of
/// ours.
const PUBLISHED: [(&str, &str, [u64; 3]); 2] =
    [("vanilla 5.10", "5.10", [32, 198, 0]), ("Linux RT", "5.10-rt", [26, 14, 0])];

/// The three sorts of the papers, by the classes they are made of, and work items, which Fig. 5 has
/// among the kernel's tasks.
const SORTS: [(&str, &[&str]); 4] = [
    ("context switch", &["switch"]),
    ("work item", &["work"]),
    ("IPI", &["ipi.resched", "ipi.call", "ipi.irqwork"]),
    ("TLB flush", &["tlb"]),
];

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let kernels = option("--kernels", "5.10,5.10-rt,6.1-rt,6.12".to_owned());
    run("interference", |rows| {
        rows.note(
            "events on CPU 2, isolated at boot and all but idle; published are lines of the function tracer's text that name a \
             function, on a desktop of 4 cores and 8 threads with other loads and rates: one event makes several such lines or, where \
             the function is inlined or not traceable, none (`stillcore trace functions --paper-grep`)",
        )?;
        kernels.split(',').try_for_each(|kernel| look_at(kernel, &program, rows))
    });
}

fn look_at(kernel: &str, program: &str, rows: &mut Sink) -> Result<(), Failed> {
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let out = place.path().join("lab");
    boot(kernel, program, &out)?;
    for look in &LOOKS {
        let seen = read(&out.join("root"), look)?;
        for row in seen.rows(kernel, look) {
            rows.push(row)?;
        }
    }
    Ok(())
}

fn boot(kernel: &str, program: &str, out: &Path) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/interference.sh");
    let mut command = Command::new(program);
    command.args(["lab", "run", "--kernel", kernel, "--packages", "busybox-static", "--memory", "3000"]);
    command.args(["--append", "isolcpus=domain,managed_irq,2,3 nohz_full=2,3 irqaffinity=0-1"]);
    // The last three are `iomix`'s, whose files would never reach a device in a guest that lives in
    // memory.
    for module in ["wireguard", "bonding", "dummy", "crc32c_generic", "loop", "ext4"] {
        command.args(["--module", module]);
    }
    command.arg("--add").arg(format!("{}:/root/look.sh", script.display())).arg("--out").arg(out);
    command.args(["--timeout", "1200s", "--", "/bin/busybox", "sh", "/root/look.sh"]);
    command.args(LOOKS.iter().map(|look| format!("{}:{}:{}", look.name, look.suite, look.seconds)));
    let output = command.output().map_err(Failed::because)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let why = || Failed(format!("{kernel}: {}", said.lines().last().unwrap_or("the guest failed")));
    if output.status.success() { Ok(()) } else { Err(why()) }
}

/// The observation of one load.
struct Observation {
    /// By class: events, and what ran most often with its number.
    classes: BTreeMap<String, (u64, Vec<(String, u64)>)>,
    /// Classes that this kernel does not show.
    unseen: Vec<String>,
    /// The report of the load itself: stressor, state, operations.
    load: Vec<String>,
    /// Why the measurement ended before its time.
    cut: Option<String>,
}

fn json(path: &Path) -> Result<Value, Failed> {
    let text = std::fs::read_to_string(path).map_err(|e| Failed(format!("{}: {e}", path.display())))?;
    serde_json::from_str(&text).map_err(|e| Failed(format!("{}: {e}", path.display())))
}

fn read(root: &Path, look: &Look) -> Result<Observation, Failed> {
    let analysis = json(&root.join(look.name).join("analysis.json"))?;
    let run = json(&root.join(look.name).join("run.json"))?;
    let window = &run["windows"][0];
    let mut observation =
        Observation { classes: BTreeMap::new(), unseen: Vec::new(), load: Vec::new(), cut: None };
    observation.cut = run["incomplete_reason"].as_str().map(str::to_owned);
    for class in analysis["events"][0]["classes"].as_array().into_iter().flatten() {
        let name = class["class"].as_str().unwrap_or_default().to_owned();
        if name == "self" {
            continue;
        }
        if class["observable"] != true {
            observation.unseen.push(name);
            continue;
        }
        let labels = class["labels"]
            .as_array()
            .into_iter()
            .flatten()
            .take(3)
            .filter_map(|label| Some((label["label"].as_str()?.to_owned(), label["count"].as_u64()?)));
        observation.classes.insert(name, (class["count"].as_u64().unwrap_or(0), labels.collect()));
    }
    let load = json(&root.join(format!("{}.load", look.name)))?;
    for record in load["stressors"].as_array().into_iter().flatten() {
        let name = record["name"].as_str().unwrap_or_default();
        let [t0, t1] = ["t0_ns", "t1_ns"].map(|key| record[key].as_i64().unwrap_or(0));
        let during =
            t0 <= window["t0_ns"].as_i64().unwrap_or(0) && t1 >= window["t1_ns"].as_i64().unwrap_or(0);
        let state = record["state"].as_str().unwrap_or_default();
        observation.load.push(match (state, during) {
            ("ok", true) => format!("{name} {}", record["ops_ok"]),
            ("weak", true) => format!("{name} {} of {} (weak)", record["ops_ok"], record["ops_asked"]),
            ("ok" | "weak", false) => format!("{name} not all the time"),
            _ => format!("{name} {state}"),
        });
    }
    Ok(observation)
}

impl Observation {
    /// The sorts of the papers, then each class with what ran most often.
    fn rows(&self, kernel: &str, look: &Look) -> Vec<Row> {
        let on = format!("{kernel}, {}", look.title);
        let operations = format!("operations: {}", self.load.join(", "));
        let why =
            self.cut.as_ref().map_or(operations.clone(), |cut| format!("{operations}; cut short: {cut}"));
        let mut rows = Vec::new();
        for (sort, classes) in SORTS {
            let counts = classes.iter().filter_map(|class| self.classes.get(*class));
            let sum: u64 = counts.map(|(count, _)| count).sum();
            let what = format!("{on}: {sort}");
            if classes.iter().all(|class| self.unseen.iter().any(|unseen| unseen == class)) {
                rows.push(Row::absent(what, "no event of it on this kernel"));
                continue;
            }
            let row = Row::new(what, sum as f64, "events").why(why.clone());
            let at = ["context switch", "IPI", "TLB flush"].iter().position(|one| *one == sort);
            let system = PUBLISHED.iter().find(|(_, of, _)| look.name == "table1" && *of == kernel);
            rows.push(match (system, at) {
                (Some((system, _, counts)), Some(at)) => {
                    row.beside(format!("published, {system}"), counts[at] as f64)
                }
                _ => row,
            });
        }
        for (class, (count, labels)) in self.classes.iter().filter(|(_, (count, _))| *count > 0) {
            let labels: Vec<_> = labels.iter().map(|(label, count)| format!("{label} {count}")).collect();
            rows.push(
                Row::new(format!("{on}: class {class}"), *count as f64, "events").why(labels.join(", ")),
            );
        }
        rows
    }
}
