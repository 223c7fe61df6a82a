//! The hidden verbs `internal provoke DIR CPU FROM TIMES KPROBES` and `internal plant DIR CPU FROM
//! TIMES STACKS`: known causes, and known holdups, on a measured CPU with a trace of them, for
//! tests of attribution.

use journal::session::Session;
use lab::guest_config::CONFIG_PATH;
use model::Cpus;
use model::events::Stacks;
use record::live::Keep;
use record::plant::plant;
use record::provoke::provoke;
use record::recorder::{Place, Recorder};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the words ask for.
struct Order {
    dir: PathBuf,
    cpu: u32,
    from: u32,
    times: u32,
    flag: bool,
}

/// `internal provoke`.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let order = Order::of(words)?;
    let truth = || provoke(order.cpu, order.from, order.times);
    recorded(&order, Stacks { own: false, users: true }, order.flag, truth)
}

/// `internal plant`.
pub(crate) fn run_plant(words: &[OsString]) -> anyhow::Result<()> {
    let order = Order::of(words)?;
    let truth = || plant(order.cpu, order.from, order.times);
    recorded(&order, Stacks { own: order.flag, users: false }, false, truth)
}

impl Order {
    fn of(words: &[OsString]) -> anyhow::Result<Self> {
        // Settings are written with no journal: what is to be thrown away may be left in any state.
        anyhow::ensure!(
            Path::new(CONFIG_PATH).exists(),
            "`internal provoke` and `internal plant` are for guests of the lab, which have {CONFIG_PATH}"
        );
        let [dir, numbers @ ..] = words else {
            anyhow::bail!("no directory; expected DIR CPU FROM TIMES FLAG")
        };
        let numbers: Vec<u32> = numbers
            .iter()
            .map(|word| Ok(word.to_string_lossy().parse::<u32>()?))
            .collect::<anyhow::Result<_>>()?;
        let [cpu, from, times, flag] = numbers[..] else {
            anyhow::bail!("{} numbers behind the directory; expected 4: CPU FROM TIMES FLAG", numbers.len())
        };
        Ok(Self { dir: PathBuf::from(dir), cpu, from, times, flag: flag == 1 })
    }
}

/// Records while something is done, and writes `trace.dat`, `trace.json` (its record) and
/// `truth.json` into the directory.
fn recorded<T: Serialize>(
    order: &Order,
    stacks: Stacks,
    kprobes: bool,
    work: impl FnOnce() -> Result<T, sys::Error>,
) -> anyhow::Result<()> {
    let dir = &order.dir;
    let scratch = dir.join("pages");
    std::fs::create_dir_all(&scratch)?;
    let mut session = Session::open(&std::env::current_exe()?, &dir.join("state"))?;
    let measured = Cpus::one(order.cpu);
    let machine = machine::read(&machine::Root::live())?;
    let others = machine.topology.online.minus(&measured);
    let name = "stillcore-provoke";
    let (measured, others, scratch) = (&measured, &others, &scratch);
    let place =
        Place { name, measured, others, scratch, kprobes, tids: &[], snapshots: None, keep: Keep::File };
    let mut recorder = Recorder::prepare(&mut session, &crate::run::recording::events(stacks)?, &place)?;
    recorder.record(true)?;
    let truth = work()?;
    recorder.record(false)?;
    let record = recorder.finish(&mut session, dir)?;
    session.close();
    std::fs::write(dir.join("trace.json"), serde_json::to_vec_pretty(&record)?)?;
    std::fs::write(dir.join("truth.json"), serde_json::to_vec_pretty(&truth)?)?;
    Ok(())
}
