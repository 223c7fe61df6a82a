//! The input: a recording of this machine under load, made by the recorder of a run with every CPU
//! measured.
//!
//! Scheduler events alone are recorded with `cyclictest` beside the load: a program whose wake-ups
//! are analysed.
//!
//! The load is `hackbench` in threads (wake-ups, switches, IPIs) and a shell that starts programs
//! (page faults, TLB shootdowns, work items), so that most classes occur; it ends with the
//! recording, after a minute at most. What the buffers could not hold is lost, as on any overloaded
//! machine, and is part of the comparison.

use crate::common::Failed;
use crate::common::load::Load;
use journal::session::Session;
use model::Cpus;
use model::events::EventCatalogue;
use record::live::Keep;
use record::recorder::{Place, Recorder};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LONGEST: Duration = Duration::from_secs(60);

/// The recording of about this size, made if there is none.
pub(crate) fn cached(megabytes: u64) -> Result<PathBuf, Failed> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-trace-{megabytes}"));
    let file = place.join(model::store::TRACE);
    if !file.exists() {
        let _ = std::fs::remove_dir_all(&place);
        eprintln!("recording about {megabytes} MB of this machine under load, once");
        record(&place, megabytes * 1_000_000, |_| true, &LOAD)?;
    }
    Ok(file)
}

/// A recording of scheduler events alone, made if there is none.
pub(crate) fn scheduler() -> Result<PathBuf, Failed> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-trace-sched");
    let file = place.join(model::store::TRACE);
    if !file.exists() {
        let _ = std::fs::remove_dir_all(&place);
        eprintln!("recording 200 MB of scheduler events of this machine under load, once");
        let load = [LOAD[0], LOAD[1], CYCLICTEST];
        record(&place, 200_000_000, |event| event.starts_with("sched:"), &load)?;
    }
    Ok(file)
}

/// A default `assess` run of this machine, made by the program if there is none.
pub(crate) fn cached_run(program: &Path) -> Result<PathBuf, Failed> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-trace-assess");
    let run = place.join("run");
    if !run.join(model::store::TRACE).exists() {
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).map_err(Failed::because)?;
        eprintln!("assessing this machine, once");
        let mut command = Command::new(program);
        command.args(["assess", "--trace", "on", "--out"]).arg(&run).arg("--state").arg(place.join("state"));
        let status = command.stdout(Stdio::null()).status().map_err(Failed::because)?;
        // 2 is a finding about the machine.
        if !matches!(status.code(), Some(0 | 2)) {
            return Err(Failed(format!("stillcore assess: {status}")));
        }
    }
    Ok(run)
}

/// The load of the machine.
const LOAD: [&[&str]; 2] = [
    &["hackbench", "-T", "-g", "4", "-l", "10000000"],
    // It ends by itself if it is not ended.
    &["sh", "-c", "end=$(($(date +%s) + 70)); while test $(date +%s) -lt $end; do /bin/true; done"],
];
/// The delayed threads: one of SCHED_FIFO per CPU, woken every millisecond.
const CYCLICTEST: &[&str] = &["cyclictest", "-q", "-m", "-p", "90", "-i", "1000", "-a", "-t", "-D", "70"];

fn record(place: &Path, bytes: u64, wanted: impl Fn(&str) -> bool, load: &[&[&str]]) -> Result<(), Failed> {
    let scratch = place.join("pages");
    std::fs::create_dir_all(&scratch).map_err(Failed::because)?;
    let program = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    let mut session = Session::open(program, &place.join("state")).map_err(Failed::because)?;
    let mut catalogue = EventCatalogue::embedded().map_err(Failed::because)?;
    catalogue.events.retain(|event| wanted(&event.name));
    let done = pages(&mut session, &catalogue, [place, &scratch], bytes, load);
    let left = session.close();
    done?;
    if left.is_empty() { Ok(()) } else { Err(Failed(format!("left behind: {}", left.join("; ")))) }
}

fn pages(
    session: &mut Session,
    catalogue: &EventCatalogue,
    [place, scratch]: [&Path; 2],
    bytes: u64,
    load: &[&[&str]],
) -> Result<(), Failed> {
    let machine = machine::read(&machine::Root::live()).map_err(Failed::because)?;
    let (measured, others) = (machine.topology.online, Cpus::default());
    let (name, kprobes) = ("stillcore-bench", false);
    let place_of = Place {
        name,
        measured: &measured,
        others: &others,
        scratch,
        kprobes,
        tids: &[],
        snapshots: None,
        keep: Keep::File,
    };
    let mut recorder = Recorder::prepare(session, catalogue, &place_of).map_err(Failed::because)?;
    {
        let _load = Load::start(load)?;
        recorder.record(true).map_err(Failed::because)?;
        let began = Instant::now();
        while size(scratch) < bytes && began.elapsed() < LONGEST && !recorder.failed() {
            std::thread::sleep(Duration::from_millis(50));
        }
        recorder.record(false).map_err(Failed::because)?;
    }
    recorder.finish(session, place).map_err(Failed::because)?;
    Ok(())
}

/// Bytes of the files of a directory and those below it.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let one = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(one).sum()
}
