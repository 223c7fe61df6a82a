//! The cost of recording, with the kernel's stacks and without: the same work is done under each,
//! in turns.
//! `cargo bench -p stillcore --bench recorder [-- --turns N --loops N]`; needs root and rt-tests.
//!
//! The work is `hackbench` in threads, as many messages each time, on all CPUs: wake-ups, switches
//! and IPIs, far more than a machine under test has. As in a run one CPU is measured and the others
//! are senders. Rows report the CPU time of the recorder while it records and then for the file,
//! its losses, and what the work took beside it.

mod common;

use common::load::Load;
use common::process::{children_cpu_ns, own_cpu_ns};
use common::turns::{Turns, turns};
use common::{Failed, option, run};
use journal::session::Session;
use model::Cpus;
use model::events::EventCatalogue;
use model::run::{TraceCpu, TraceRecord};
use record::live::Keep;
use record::recorder::{Place, Recorder};
use result::{Limit, Of, Row, Sink};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Nothing is recorded.
const NONE: &str = "no recording";
/// Events alone.
const PLAIN: &str = "without stacks";
/// Stacks of events that other CPUs send: the default of a run.
const SENDERS: &str = "default";
/// On the measured CPU, too.
const ALL: &str = "--stacks";

fn main() {
    let loops: u32 = option("--loops", 20_000);
    run("recorder", |rows| {
        let one = |tool: &str| work(tool, loops);
        let done = turns("bench-recorder", &[NONE, PLAIN, SENDERS, ALL], option("--turns", 8), one)?;
        rows.note(format!(
            "work: hackbench -T -g 2 -l {loops} on all CPUs; one CPU measured, the others senders"
        ))?;
        push_rows(&done, rows)
    });
}

fn push_rows(done: &Turns, rows: &mut Sink) -> Result<(), Failed> {
    let beside = |what: &str, figure: &str, unit: (&str, f64), tool: &str, peer: &str| {
        done.row(format!("{tool}: {what}"), unit, (tool, figure), (peer, figure))
    };
    let (seconds, mb) = (("s", 1e-9), ("MB", 1e-6));
    for tool in [SENDERS, ALL] {
        let cpu = beside("CPU time of the recorder", "recorder_ns", seconds, tool, PLAIN);
        let default = tool == SENDERS;
        rows.push(if default { cpu.budget(Of::Ratio, Limit::AtMost(1.1)) } else { cpu })?;
        rows.push(beside("CPU time to make the file", "file_ns", seconds, tool, PLAIN))?;
        rows.push(beside("size of the file", "bytes", mb, tool, PLAIN))?;
    }
    for tool in [PLAIN, SENDERS, ALL] {
        rows.push(done.sum_row(format!("{tool}: events read"), tool, "read"))?;
        let lost = done.sum_row(format!("{tool}: events lost"), tool, "lost");
        rows.push(if tool == SENDERS { lost.budget(Of::Value, Limit::AtMost(0.0)) } else { lost })?;
        rows.push(beside("CPU time of the work", "work_ns", seconds, tool, NONE))?;
        rows.push(beside("wall time of the work", "wall_ns", seconds, tool, NONE))?;
    }
    let apart = |tool: &str| done.median(tool, "events_ns_apart");
    let row = Row::new("events of the measured CPU, one every", apart(SENDERS), "ns");
    rows.push(row)?;
    Ok(())
}

/// The work once, recorded as the tool says.
fn work(tool: &str, loops: u32) -> Result<Value, Failed> {
    let catalogue = EventCatalogue::embedded().map_err(Failed::because)?;
    let catalogue = match tool {
        NONE => None,
        PLAIN => Some(catalogue.without_stacks()),
        SENDERS => Some(catalogue.without_own_stacks()),
        _ => Some(catalogue),
    };
    let Some(catalogue) = catalogue else { return busy(loops).map(|[work, wall]| taken(work, wall)) };
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let program = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    let mut session = Session::open(program, &place.path().join("state")).map_err(Failed::because)?;
    let done = recorded(&mut session, &catalogue, place.path(), loops);
    let left = session.close();
    let done = done?;
    if left.is_empty() { Ok(done) } else { Err(Failed(format!("left behind: {}", left.join("; ")))) }
}

fn recorded(
    session: &mut Session,
    catalogue: &EventCatalogue,
    directory: &Path,
    loops: u32,
) -> Result<Value, Failed> {
    let machine = machine::read(&machine::Root::live()).map_err(Failed::because)?;
    let online = &machine.topology.online;
    let last = online.iter().last().ok_or_else(|| Failed::because("no CPU is online"))?;
    let measured: Cpus = std::iter::once(last).collect();
    let others: Cpus = online.iter().filter(|cpu| *cpu != last).collect();
    let scratch = directory.join("pages");
    std::fs::create_dir(&scratch).map_err(Failed::because)?;
    let (name, kprobes, tids) = ("stillcore-bench", false, &[][..]);
    let place = Place {
        name,
        measured: &measured,
        others: &others,
        scratch: &scratch,
        kprobes,
        tids,
        snapshots: None,
        keep: Keep::File,
    };
    let mut recorder = Recorder::prepare(session, catalogue, &place).map_err(Failed::because)?;
    let before_ns = own_cpu_ns();
    recorder.record(true).map_err(Failed::because)?;
    let [work_ns, wall_ns] = busy(loops)?;
    recorder.record(false).map_err(Failed::because)?;
    let recorder_ns = own_cpu_ns() - before_ns;
    let record = recorder.finish(session, directory).map_err(Failed::because)?;
    let file_ns = own_cpu_ns() - before_ns - recorder_ns;
    let file = directory.join(&record.file);
    let bytes = std::fs::metadata(file).map_err(Failed::because)?.len();
    let mut costs = taken(work_ns, wall_ns);
    costs["recorder_ns"] = json!(recorder_ns);
    costs["file_ns"] = json!(file_ns);
    costs["bytes"] = json!(bytes);
    costs["read"] = json!(sum(&record, |cpu| cpu.read));
    costs["lost"] = json!(sum(&record, |cpu| cpu.overrun + cpu.commit_overrun + cpu.dropped + cpu.left));
    let of_measured = record.cpus.iter().map(|cpu| cpu.read).sum::<u64>();
    costs["events_ns_apart"] = json!(wall_ns / of_measured.max(1));
    Ok(costs)
}

fn taken(work_ns: u64, wall_ns: u64) -> Value {
    json!({ "work_ns": work_ns, "wall_ns": wall_ns })
}

/// Over all CPUs of both buffers.
fn sum(record: &TraceRecord, of: impl Fn(&TraceCpu) -> u64) -> u64 {
    let sender = record.sender.iter().flat_map(|sender| &sender.cpus);
    record.cpus.iter().chain(sender).map(of).sum()
}

/// Does the work: its CPU time and wall time, ns.
fn busy(loops: u32) -> Result<[u64; 2], Failed> {
    let (begun, before) = (Instant::now(), children_cpu_ns());
    let loops = loops.to_string();
    Load::start(&[&["hackbench", "-T", "-g", "2", "-l", &loops]])?.wait()?;
    let wall_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok([children_cpu_ns() - before, wall_ns])
}
