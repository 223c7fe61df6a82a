//! `stillcore model replay`: a model, or a file of rt-app, as threads that do the same.

use super::document::Document;
use super::{replay_text, source};
use crate::stdout::{Label, write_labelled};
use analysis::rt_app;
use analysis::task_model::build::build_on;
use analysis::task_model::change::{Change, changed};
use analysis::task_model::load_tasks::tasks_of;
use analysis::task_model::replay::load_of;
use analysis::task_model::shape::{FILE, SCHEMA, TaskModel};
use analysis::task_model::system;
use anyhow::Context;
use clap::Args;
use graph::load::{Options, admit, play, real_time_share};
use model::load::Load;
use model::quantity::duration;
use model::{Cpus, Error, store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::signals::EndSignals;

/// How long a load is played that says nothing of it.
const DURATION: Duration = Duration::from_secs(10);
/// No load is played for longer: what it is for is over by then.
const LONGEST: Duration = Duration::from_secs(3600);

/// Arguments of `model replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A model.json, a run directory of model or trace watch, a trace.dat, or a JSON file of
    /// rt-app.
    #[arg(value_name = "MODEL|RUN|FILE")]
    from: PathBuf,
    /// How long to play, at most 1h [default: as the file of rt-app says, else 10s].
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Play the model with this changed, as `model --what-if` takes it; repeatable.
    #[arg(long, value_name = "NAME.KEY=VALUE", value_parser = Change::parse)]
    what_if: Vec<Change>,
    /// CPUs to play on in place of those of the file, in this order.
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,
    /// Seed of the jitter and the releases that are drawn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the load as a JSON file of rt-app instead of playing it; replaced if it exists.
    #[arg(long, value_name = "FILE")]
    rt_app: Option<PathBuf>,
    /// Write its real-time threads as tasks for `sched analyze --test fp-rta` instead of playing
    /// it; replaced if it exists.
    #[arg(long, value_name = "FILE")]
    tasks: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Plays. Exit code 1 where a signal ended it.
pub(crate) fn run(args: &ReplayArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let (mut load, notes) = read(&args.from, &args.what_if)?;
    say(&notes);
    if let Some(cpus) = &args.cpus {
        moved(&mut load, cpus)?;
    }
    let asked = args.duration.or(load.duration_ns.map(Duration::from_nanos)).unwrap_or(DURATION);
    if asked > LONGEST {
        return Err(Error::invalid("--duration", format!("{asked:?}"), "at most 1h").into());
    }
    let options = Options { duration_ns: asked.as_nanos() as u64, seed: args.seed };
    if args.rt_app.is_some() || args.tasks.is_some() {
        write(args, &load, options.duration_ns)?;
        return Ok(0);
    }
    let machine = machine::Root::live();
    let number = |name: &str| machine.number(&format!("proc/sys/kernel/{name}"));
    let share = real_time_share(number("sched_rt_runtime_us"), number("sched_rt_period_us"));
    let online =
        machine.cpus("sys/devices/system/cpu/online").context("the CPUs that are online are not known")?;
    admit(&load, share, &online)?;
    let wait = |most: Duration| signals.wait_for(most).is_err() || signals.arrived().is_some();
    let played = play(&load, options, wait)?;
    if args.json {
        println!("{}", replay_text::json(&args.from, &load, &played, &notes));
    } else {
        print!("{}", replay_text::text(&load, &played));
    }
    Ok(u8::from(played.interrupted))
}

fn say(notes: &[String]) {
    notes.iter().for_each(|note| write_labelled(Label::Note, note));
}

/// The load in other formats.
fn write(args: &ReplayArgs, load: &Load, duration_ns: u64) -> anyhow::Result<()> {
    if let Some(file) = &args.tasks {
        let line = system::line(&tasks_of(load)?);
        store::write_whole(file, format!("{line}\n").as_bytes())?;
    }
    if let Some(file) = &args.rt_app {
        let (text, notes) = rt_app::write(load, duration_ns);
        store::write_whole(file, text.as_bytes())?;
        say(&notes);
    }
    Ok(())
}

/// The load of a file or directory, and what is not in it.
fn read(path: &Path, changes: &[Change]) -> anyhow::Result<(Load, Vec<String>)> {
    let place = path.display().to_string();
    let load = |model: &TaskModel| -> anyhow::Result<_> {
        Ok(load_of(&changed(model, changes).context("--what-if")?, &place)?)
    };
    let stored = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    let is_json = stored.extension().is_some_and(|extension| extension == "json");
    if !is_json || !stored.exists() {
        let source = source(path)?;
        return load(&build_on(&source.jobs()?, source.recorded()));
    }
    let size = std::fs::metadata(&stored).map_err(|error| Error::io("read", &stored, error))?.len();
    if size <= rt_app::MOST_BYTES {
        let text = String::from_utf8(store::read_whole(&stored, rt_app::MOST_BYTES)?);
        let text = text.map_err(|_| Error::invalid(&place, "it is no UTF-8", "a JSON file"))?;
        // All models say so themselves.
        if !text.contains(SCHEMA) {
            let expected = "a model, of which threads can be changed";
            let is_model = changes.is_empty();
            anyhow::ensure!(is_model, "--what-if: {place} is a file of rt-app, expected {expected}");
            return Ok((rt_app::read(&place, &text)?, Vec::new()));
        }
    }
    load(&Document::read(&stored)?.model)
}

/// The CPUs of the load, in their order, become these.
fn moved(load: &mut Load, cpus: &Cpus) -> anyhow::Result<()> {
    let before: Cpus = load.threads.iter().filter_map(|one| one.cpus.as_ref()).flat_map(Cpus::iter).collect();
    if before.len() != cpus.len() {
        let (what, expected) = (cpus.to_string(), format!("as many CPUs as the load has: {before}"));
        return Err(Error::invalid("--cpus", what, expected).into());
    }
    let places: BTreeMap<u32, u32> = before.iter().zip(cpus.iter()).collect();
    for thread in &mut load.threads {
        thread.cpus = thread.cpus.as_ref().map(|cpus| cpus.iter().map(|cpu| places[&cpu]).collect());
    }
    Ok(())
}
