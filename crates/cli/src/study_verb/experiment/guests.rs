//! The cells of an experiment in guests of the lab: one boot per kernel and command line, several
//! at a time. Each cell is stored as soon as the guest reports it.

use super::inside::{self, Order};
use super::pace::Pace;
use crate::lab_verb;
use crate::run::progress::Reporter;
use anyhow::Context;
use lab::kernels::Kernel;
use lab::{Accel, Addition, Arch, Event, Smp, Spec, Stop, modules};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use study::experiment::{Boot, CellResult, CellState, Experiment, Planned, boot_line};
use study::{Found, Store};

/// Emulated CPUs of a crowded host hang now and then; such a guest is booted again for the cells
/// that are left.
const TRIES: u32 = 3;
/// An emulated guest beside others takes this much longer than its windows are, at most.
const SLOWER: u32 = 6;

/// What all boots share.
pub(super) struct Lab<'a> {
    pub(super) experiment: &'a Experiment,
    /// The file's text, for the guests.
    pub(super) text: &'a str,
    pub(super) scale: f64,
    pub(super) keep: bool,
    pub(super) out: &'a Path,
    pub(super) store: &'a Store,
    pub(super) binary: Option<PathBuf>,
    pub(super) kernels: BTreeMap<String, Kernel>,
    pub(super) stop: &'a Stop,
    pub(super) pace: Mutex<Pace>,
    /// Kill a guest after this time, in place of one made of its cells' windows.
    pub(super) timeout: Option<Duration>,
}

/// Runs cells that have no result yet.
pub(super) fn run(lab: &Lab<'_>, todo: &[&Planned], jobs: NonZeroUsize) -> anyhow::Result<()> {
    // A result that is made anew would pass for one of this call.
    todo.iter().try_for_each(|planned| lab.store.remove(&planned.cell.id))?;
    let mut boots: BTreeMap<&Boot, Vec<&Planned>> = BTreeMap::new();
    todo.iter().for_each(|planned| boots.entry(&planned.boot).or_default().push(planned));
    // Longest first, so that none is left alone at the end.
    let mut boots: Vec<(&Boot, Vec<&Planned>)> = boots.into_iter().collect();
    boots.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.iter().map(|cell| cell.takes).sum::<Duration>()));
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<anyhow::Error>> = Mutex::new(Vec::new());
    let worker = || {
        while let Some((boot, cells)) = boots.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = boot_for(lab, boot, cells) {
                failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(boots.len()) {
            scope.spawn(worker);
        }
    });
    match failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn boot_for(lab: &Lab<'_>, boot: &Boot, cells: &[&Planned]) -> anyhow::Result<()> {
    let kernel = boot.kernel.as_deref().context("a cell without a kernel")?;
    let (_, cpus, housekeeping) = halves(lab.experiment)?;
    let levels: Vec<&str> = boot.levels.values().map(String::as_str).collect();
    let line = boot_line(&boot.append, cpus, housekeeping);
    let booted = [kernel, &levels.join(" "), &line].join(" ");
    let booted = booted.trim_end();
    let mut why = String::new();
    for tries in 1..=TRIES {
        let left = left(lab, cells)?;
        if left.is_empty() || lab.stop.is_asked() {
            return Ok(());
        }
        Reporter::say(&format!("{booted}: {} cells, try {tries} of {TRIES}", left.len()));
        match once(lab, kernel, boot, &left) {
            Ok(()) => "the guest ended without a result for it".clone_into(&mut why),
            Err(error) if lab.stop.is_asked() => return Err(error),
            Err(error) => {
                why = crate::failure::sentence(&error);
                Reporter::say(&format!("{booted}: {why}"));
            }
        }
    }
    for planned in left(lab, cells)? {
        let result =
            CellResult::without(CellState::Failed, why.clone(), kernel, true, env!("CARGO_PKG_VERSION"));
        lab.store.save(&planned.cell, serde_json::to_value(result)?)?;
    }
    Ok(())
}

/// Those without a result.
fn left<'a>(lab: &Lab<'_>, cells: &[&'a Planned]) -> anyhow::Result<Vec<&'a Planned>> {
    let mut left = Vec::new();
    for planned in cells {
        if !matches!(lab.store.find(&planned.cell)?, Found::Done(_)) {
            left.push(*planned);
        }
    }
    Ok(left)
}

fn once(lab: &Lab<'_>, kernel: &str, boot: &Boot, cells: &[&Planned]) -> anyhow::Result<()> {
    let levels: Vec<&str> = boot.levels.values().map(String::as_str).collect();
    let name: String = [kernel, &levels.join(" "), &boot.append]
        .join(" ")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' })
        .collect();
    let dir = lab.out.join("guests").join(name.trim_end_matches('_'));
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    fs::create_dir_all(lab.out.join("guests"))?;
    let order = lab.out.join("guests").join(format!("{}.order.json", name.trim_end_matches('_')));
    let spec = spec(lab, kernel, boot, cells, &order, dir)?;
    let mut console = String::new();
    let mut failed = None;
    let mut listen = |event: Event<'_>| match event {
        Event::Note(text) => Reporter::say(&format!("{kernel}: {text}")),
        Event::Console(bytes) => {
            console.push_str(&String::from_utf8_lossy(bytes));
            while let Some(end) = console.find('\n') {
                let line: String = console.drain(..=end).collect();
                if let Err(error) = keep(lab, cells, &line) {
                    failed.get_or_insert(error);
                }
            }
        }
    };
    let outcome = lab::run(&spec, Path::new("/etc/apt"), lab.stop, &mut listen);
    let _ = fs::remove_file(&order);
    if let Some(error) = failed {
        return Err(error);
    }
    let outcome = outcome?;
    // A line that the kernel wrote into is no result; the store of the guest has all of them.
    for entry in Store::new(outcome.out.join("root")).all()? {
        if let Ok(checkpoint) = entry.checkpoint
            && let Some(planned) = cells.iter().find(|planned| planned.cell == checkpoint.cell)
        {
            lab.store.save(&planned.cell, checkpoint.result)?;
        }
    }
    if outcome.timed_out {
        anyhow::bail!("the guest's time was over");
    }
    Ok(())
}

/// Stores the result in a line of the console, if it is of one of these cells.
fn keep(lab: &Lab<'_>, cells: &[&Planned], line: &str) -> anyhow::Result<()> {
    let Some((id, result)) = inside::heard(line) else { return Ok(()) };
    let Some(planned) = cells.iter().find(|planned| planned.cell.id == id) else { return Ok(()) };
    lab.store.save(&planned.cell, serde_json::to_value(&result)?)?;
    let pace = lab.pace.lock().unwrap_or_else(std::sync::PoisonError::into_inner).ended(planned);
    Reporter::say(&format!("{}: {pace}", super::in_short(&planned.cell, &result)));
    Ok(())
}

/// The architecture of the guests.
pub(super) fn arch(experiment: &Experiment) -> anyhow::Result<Arch> {
    match &experiment.machine.arch {
        Some(name) => Ok(name.parse()?),
        None => Arch::host().context("no guests for this machine's architecture: give --arch"),
    }
}

/// A guest's CPUs: all, those to measure, the others.
fn halves(experiment: &Experiment) -> anyhow::Result<(Smp, &'static str, &'static str)> {
    let smp: Smp = experiment.machine.smp.as_deref().unwrap_or("4").parse()?;
    let (cpus, housekeeping) =
        lab::qemu::partition(smp.cpus()).context("a guest of one CPU has none to measure")?;
    Ok((smp, cpus, housekeeping))
}

fn spec(
    lab: &Lab<'_>,
    kernel: &str,
    boot: &Boot,
    cells: &[&Planned],
    order: &Path,
    out: PathBuf,
) -> anyhow::Result<Spec> {
    let machine = &lab.experiment.machine;
    let arch = arch(lab.experiment)?;
    let (smp, cpus, housekeeping) = halves(lab.experiment)?;
    let contents = Order {
        experiment: lab.text.to_owned(),
        cpus: cpus.to_owned(),
        housekeeping: housekeeping.to_owned(),
        scale: lab.scale,
        keep: lab.keep,
        name: kernel.to_owned(),
        cells: cells.iter().map(|planned| planned.cell.clone()).collect(),
    };
    fs::write(order, serde_json::to_vec(&contents)?).with_context(|| order.display().to_string())?;
    let windows: Duration = cells.iter().map(|planned| planned.takes + Duration::from_secs(10)).sum();
    let programs = lab_verb::programs(arch, lab.binary.clone())?;
    let found = lab.kernels.get(kernel).context("the kernel was not fetched")?;
    let mut wanted = Vec::new();
    for module in &machine.modules {
        if modules::has(found, module)? {
            wanted.push(module.clone());
        }
    }
    Ok(Spec {
        arch,
        kernel: kernel.to_owned(),
        smp,
        memory_mib: machine.memory_mib.unwrap_or(lab::spec::DEFAULT_MEMORY_MIB),
        append: boot_line(&boot.append, cpus, housekeeping),
        modules: wanted,
        packages: Vec::new(),
        nic: machine.nic.as_deref().map(str::parse).transpose()?,
        init: programs.init,
        binary: programs.binary,
        add: vec![Addition { host: order.to_owned(), guest: format!("/root/{}", inside::ORDER) }],
        accel: machine.accel.as_deref().map_or(Ok(Accel::Tcg), str::parse)?,
        timeout: lab.timeout.unwrap_or(Duration::from_secs(240) + windows * SLOWER),
        limit: None,
        out,
        cache: lab_verb::cache()?,
        launcher: lab_verb::launcher()?,
        command: vec!["internal".to_owned(), inside::VERB.to_owned(), inside::ORDER.to_owned()],
    })
}
