//! The hidden verb `internal provoke DIR CPU FROM TIMES KPROBES`: known causes on a measured CPU with a trace of them, for tests of attribution.

use lab::guest_config::CONFIG_PATH;
use linux::record::provoke::provoke;
use linux::record::recorder::{Place, Recorder};
use linux::session::Session;
use model::Cpus;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Writes `trace.dat`, `trace.json` (its record) and `truth.json` into the directory.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    // It sets a sysctl with no journal: what is to be thrown away may be left in any state.
    anyhow::ensure!(Path::new(CONFIG_PATH).exists(), "`internal provoke` is for guests of the lab");
    let [dir, numbers @ ..] = words else { anyhow::bail!("a directory, two CPUs and a number are needed") };
    let numbers: Vec<u32> = numbers
        .iter()
        .map(|word| Ok(word.to_string_lossy().parse::<u32>()?))
        .collect::<anyhow::Result<_>>()?;
    let [cpu, from, times, kprobes] = numbers[..] else {
        anyhow::bail!("two CPUs and two numbers are needed")
    };
    let dir = PathBuf::from(dir);
    let scratch = dir.join("pages");
    std::fs::create_dir_all(&scratch)?;
    let mut session = Session::open(&std::env::current_exe()?, &dir.join("state"))?;
    let measured = Cpus::one(cpu);
    let machine = linux::machine::read(&linux::machine::Root::live())?;
    let others = machine.topology.online.minus(&measured);
    let (name, kprobes) = ("stillcore-provoke", kprobes == 1);
    let (measured, others, scratch) = (&measured, &others, &scratch);
    let place = Place { name, measured, others, scratch, kprobes, tids: &[], snapshots: None };
    let mut recorder = Recorder::prepare(&mut session, &crate::run::recording::events(false)?, &place)?;
    recorder.record(true)?;
    let truth = provoke(cpu, from, times)?;
    recorder.record(false)?;
    let record = recorder.finish(&mut session, &dir)?;
    session.close();
    std::fs::write(dir.join("trace.json"), serde_json::to_vec_pretty(&record)?)?;
    std::fs::write(dir.join("truth.json"), serde_json::to_vec_pretty(&truth)?)?;
    Ok(())
}
