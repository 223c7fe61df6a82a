//! `study replicate --boots`: the experiments of a paper over several boots of this machine. Each
//! call goes on where the last one ended; a unit makes that call after each boot.
//!
//! | file | idea |
//! |---|---|
//! | `ahead` | which boots the cells need, and the page for `--plan` |
//! | `here` | this boot, and the kernels that can be booted |
//! | `change` | what is changed on the machine for it, and given back |
//!
//! The order of the steps, and what a failed boot means, are `study::boots`'.

mod ahead;
mod change;
mod here;

use super::chosen::Chosen;
use super::kept::Kept;
use super::{ReplicateArgs, report};
use crate::isolate::apply::need_root;
use crate::run::progress::Reporter;
use crate::study_verb::experiment::{self, directory};
use ahead::Cells;
use here::Here;
use journal::trust;
use model::{Error, store};
use report::format;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::time::Duration;
use study::boots::{CHAIN_SCHEMA, Chain, Now, Step};
use sys::signals::EndSignals;

/// Where the chain is, below the directory of the replication.
const CHAIN: &str = "boots.json";
/// How long a call that is to end gets to end its cell and undo what that changed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Goes on with it, or begins it.
pub(super) fn run(args: &ReplicateArgs, out: &Path, signals: &EndSignals) -> anyhow::Result<u8> {
    // What stands there decides what root boots.
    trust::is_own(out)?;
    if args.stop {
        return stop(args, out);
    }
    let mut kept = Kept::of(out, args)?;
    let here = Here::read(args.cpus.as_ref())?;
    let present = load(out)?;
    let cpus = present.as_ref().map_or(&here.cpus, |chain| &chain.cpus).clone();
    let kernels =
        present.as_ref().map_or_else(|| here.kernels(&args.kernels), |chain| Ok(chain.kernels.clone()))?;
    let calls = args.on_boots(&kernels, &cpus)?;
    let chosen = super::chosen::chosen(&calls, out, &kept)?;
    let cells = Cells::of(&calls, &chosen, out, &cpus, &here.housekeeping(&cpus)?)?;
    let mut chain = match present {
        Some(chain) => chain,
        None => Chain {
            schema: CHAIN_SCHEMA.to_owned(),
            cpus,
            home: here.home(),
            stages: here.stages(cells.boots()),
            kernels,
            last: None,
            stopped: false,
            returned: false,
        },
    };
    if args.plan {
        print!("{}{}", chosen.page(args), cells.page(&chain, &here));
        return Ok(0);
    }
    need_root()?;
    let begins = load(out)?.is_none();
    if begins {
        change::possible(&here, &chain, out)?;
        agreed(args, here.further(&chain))?;
    }
    kept.scale = chosen.scale;
    kept.store(out)?;
    let _held = directory::hold(out)?;
    save(out, &chain)?;
    let drive = Drive { args: &calls, out, here: &here, cells: &cells, chosen: &chosen };
    drive.on(&mut chain, &mut kept, signals)
}

/// What the steps need, besides the chain.
struct Drive<'a> {
    args: &'a ReplicateArgs,
    out: &'a Path,
    here: &'a Here,
    cells: &'a Cells,
    chosen: &'a Chosen,
}

impl Drive<'_> {
    /// Takes steps until the machine is to boot, or nothing is left.
    fn on(&self, chain: &mut Chain, kept: &mut Kept, signals: &EndSignals) -> anyhow::Result<u8> {
        change::install(self.args, self.out)?;
        loop {
            let differs: Vec<_> = chain.stages.iter().map(|stage| self.here.differs(stage)).collect();
            let now = Now {
                boot_id: &self.here.boot_id,
                results: self.cells.results(),
                differs: &differs,
                at_home: self.here.is(&chain.home),
            };
            let step = chain.next(&now);
            save(self.out, chain)?;
            match step {
                Step::Run(at) => {
                    Reporter::say(&format!("in this boot: {}", chain.stages[at].boot.words()));
                    self.cells.run(self.args, &chain.stages[at].boot, self.out, kept, signals)?;
                    chain.done(at);
                    save(self.out, chain)?;
                }
                Step::Boot(at) => {
                    let stage = &chain.stages[at];
                    Reporter::say(&format!("next boot: {}", stage.boot.words()));
                    // An entry may have gone with its kernel since the beginning.
                    if let Err(error) = change::choose(self.here, stage) {
                        chain.give_up(at, format!("{error:#}"));
                        continue;
                    }
                    return change::reboot(self.args, self.out);
                }
                Step::Home => {
                    Reporter::say("next boot: the machine's own");
                    change::give_back_line()?;
                    return change::reboot(self.args, self.out);
                }
                Step::Report => {
                    change::give_back_line()?;
                    change::give_back_unit()?;
                    let notes = [ahead::notes(chain), kept.not_run.clone()].concat();
                    report(self.args, self.chosen, kept, self.cells.ran(), &notes, self.out)?;
                    return Ok(0);
                }
            }
        }
    }
}

/// Ends what runs, and takes the way home.
fn stop(args: &ReplicateArgs, out: &Path) -> anyhow::Result<u8> {
    let none = || Error::invalid(out.display(), "no replication over boots", "the directory of one");
    load(out)?.ok_or_else(none)?;
    need_root()?;
    if let Some(pid) = directory::end(out, PATIENCE) {
        Reporter::say(&format!("process {pid} has ended"));
    }
    let _held = directory::hold(out)?;
    // What it did last counts, not what was there when this call began.
    let mut chain = load(out)?.ok_or_else(none)?;
    chain.stopped = true;
    save(out, &chain)?;
    for dir in existing_studies(out) {
        experiment::directory::stop(&dir, PATIENCE)?;
    }
    change::give_back_line()?;
    change::give_back_unit()?;
    let here = Here::read(args.cpus.as_ref())?;
    if here.is(&chain.home) {
        println!("stopped; the machine is as it was before");
        return Ok(0);
    }
    println!(
        "stopped; the next boot is the machine's own{}",
        if args.yes { "" } else { ": reboot when it suits" }
    );
    if args.yes { change::reboot(args, out) } else { Ok(0) }
}

fn existing_studies(out: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join(directory::PLAN).exists()).collect()
}

/// Asks before the first reboot.
fn agreed(args: &ReplicateArgs, boots: usize) -> anyhow::Result<()> {
    if args.yes || boots == 0 {
        return Ok(());
    }
    let expected = "--yes, or a terminal to ask on";
    if !std::io::stdin().is_terminal() {
        let found = format!("this machine is to be rebooted {boots} times or more");
        return Err(Error::invalid("--boots", found, expected).into());
    }
    eprintln!(
        "This machine is going to be rebooted {boots} times or more, and once more into its own boot at the end \
         (about {} of measuring). Go on? [y/N]",
        format::span(args.within.as_nanos() as u64)
    );
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { anyhow::bail!("nothing was changed") }
}

fn load(out: &Path) -> anyhow::Result<Option<Chain>> {
    let path = out.join(CHAIN);
    if !path.exists() {
        return Ok(None);
    }
    let chain: Chain = store::read_json(&path)?;
    if chain.schema != CHAIN_SCHEMA {
        return Err(Error::invalid(path.display(), format!("schema {:?}", chain.schema), CHAIN_SCHEMA).into());
    }
    Ok(Some(chain))
}

/// On the disk, before anything follows from it.
fn save(out: &Path, chain: &Chain) -> anyhow::Result<()> {
    Ok(store::write_json(&out.join(CHAIN), chain)?)
}
