//! The hidden verbs `internal provoke DIR CPU FROM TIMES KPROBES` and `internal plant DIR CPU FROM
//! TIMES HOW`: known causes, and known holdups, on a measured CPU with a trace of them, for tests of
//! attribution. HOW holdups are recorded: 0 by the usual events, 1 with stacks, 2 with probes on the
//! function that is held with interrupts off, 3 by somebody else, for whom they are longer and
//! farther apart.

use journal::session::Session;
use lab::guest_config::CONFIG_PATH;
use model::events::{EventCatalogue, Stacks};
use model::{Cpus, off};
use record::live::Keep;
use record::plant;
use record::provoke::provoke;
use record::recorder::{Place, Recorder};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What was planted, as somebody else records it.
const BY_OTHERS: u32 = 3;
/// The same, of a few kinds.
const FEW_BY_OTHERS: u32 = 4;
/// The times of what was planted.
const TRUTH: &str = "truth.json";

/// What the words ask for.
struct Order {
    dir: PathBuf,
    cpu: u32,
    from: u32,
    times: u32,
    how: u32,
}

/// `internal provoke`.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let order = Order::of(words)?;
    let truth = || provoke(order.cpu, order.from, order.times);
    let events = crate::run::recording::events(Stacks { own: false, users: true })?;
    recorded(&order, &events, order.how == 1, truth)
}

/// `internal plant`.
pub(crate) fn run_plant(words: &[OsString]) -> anyhow::Result<()> {
    let order = Order::of(words)?;
    let kinds: &[plant::Kind] = if order.how == FEW_BY_OTHERS { &plant::FEW } else { &plant::KINDS };
    if matches!(order.how, BY_OTHERS | FEW_BY_OTHERS) {
        let truth = plant::plant(order.cpu, order.from, order.times, plant::FAR, kinds)?;
        std::fs::create_dir_all(&order.dir)?;
        return Ok(std::fs::write(order.dir.join(TRUTH), serde_json::to_vec_pretty(&truth)?)?);
    }
    let truth = || plant::plant(order.cpu, order.from, order.times, plant::CLOSE, kinds);
    let mut events = crate::run::recording::events(Stacks { own: order.how == 1, users: false })?;
    if order.how == 2 {
        events = events.and(off::pair(&plant::held_with_interrupts_off()));
    }
    recorded(&order, &events, false, truth)
}

impl Order {
    fn of(words: &[OsString]) -> anyhow::Result<Self> {
        // Settings are written with no journal: what is to be thrown away may be left in any state.
        anyhow::ensure!(
            Path::new(CONFIG_PATH).exists(),
            "`internal provoke` and `internal plant` are for guests of the lab, which have {CONFIG_PATH}"
        );
        let [dir, numbers @ ..] = words else {
            anyhow::bail!("no directory; expected DIR CPU FROM TIMES HOW")
        };
        let numbers: Vec<u32> = numbers
            .iter()
            .map(|word| Ok(word.to_string_lossy().parse::<u32>()?))
            .collect::<anyhow::Result<_>>()?;
        let [cpu, from, times, how] = numbers[..] else {
            anyhow::bail!("{} numbers behind the directory; expected 4: CPU FROM TIMES HOW", numbers.len())
        };
        Ok(Self { dir: PathBuf::from(dir), cpu, from, times, how })
    }
}

/// Records while something is done, and writes `trace.dat`, `trace.json` (its record) and
/// `truth.json` into the directory.
fn recorded<T: Serialize>(
    order: &Order,
    events: &EventCatalogue,
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
    let mut recorder = Recorder::prepare(&mut session, events, &place)?;
    recorder.record(true)?;
    let truth = work()?;
    recorder.record(false)?;
    let record = recorder.finish(&mut session, dir)?;
    session.close();
    std::fs::write(dir.join("trace.json"), serde_json::to_vec_pretty(&record)?)?;
    std::fs::write(dir.join(TRUTH), serde_json::to_vec_pretty(&truth)?)?;
    Ok(())
}
