//! Cells of an experiment in their order, the boots they need, and how long they take.

use super::declared::Experiment;
use super::needs::Needs;
use super::quantity::{Amount, time_ns};
use super::words::text;
use crate::cell::{Cell, canonical, digest};
use crate::experiment::factors::KERNEL;
use crate::spec::{Study, StudyError};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a cell of a verb costs beside its window: snapshots, the audit, the conclusions.
const BESIDE: Duration = Duration::from_secs(3);
/// What an emulated guest costs before its first cell.
const BOOT: Duration = Duration::from_secs(25);

/// A boot that several cells share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boot {
    /// A kernel of the lab; none for the machine as it stands.
    pub kernel: Option<String>,
    /// Words for its command line.
    pub append: String,
    /// Levels whose calls are made once in it, by factor.
    pub levels: BTreeMap<String, String>,
}

/// A cell, and what it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The cell.
    pub cell: Cell,
    /// Where it is run.
    pub boot: Boot,
    /// What the machine that runs it must have.
    pub needs: Needs,
    /// How long its windows are at this scale.
    pub takes: Duration,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In the order in which to run them: interleaved, by the seed.
    pub cells: Vec<Planned>,
    /// The scale.
    pub scale: f64,
}

impl Plan {
    /// The cells on these kernels, or on the machine as it stands where none are given.
    pub fn of(
        experiment: &Experiment,
        kernels: &[String],
        repetitions: u32,
        scale: f64,
    ) -> Result<Self, StudyError> {
        let mut factors: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for factor in &experiment.factors {
            let levels = factor.levels.get_ref().iter().map(|level| json!(level.name)).collect();
            factors.insert(factor.name.get_ref().clone(), levels);
        }
        if !kernels.is_empty() {
            factors.insert(KERNEL.to_owned(), kernels.iter().map(|name| json!(name)).collect());
        }
        let study = Study { name: identity(experiment, scale), seed: experiment.seed, factors, repetitions };
        let cells = study.cells()?.into_iter().map(|cell| planned(experiment, cell, scale)).collect();
        Ok(Self { cells, scale })
    }

    /// The same on machines as they stand: `kernels` are the names of those that run there, no
    /// boots of the lab.
    pub fn on_machines(
        experiment: &Experiment,
        kernels: &[String],
        repetitions: u32,
        scale: f64,
    ) -> Result<Self, StudyError> {
        let mut plan = Self::of(experiment, kernels, repetitions, scale)?;
        plan.cells.iter_mut().for_each(|planned| planned.boot.kernel = None);
        Ok(plan)
    }

    /// The boots, each once, and how many cells they have.
    pub fn boots(&self) -> BTreeMap<&Boot, usize> {
        let mut boots = BTreeMap::new();
        self.cells.iter().for_each(|planned| *boots.entry(&planned.boot).or_default() += 1);
        boots
    }
}

impl Planned {
    /// How long it takes, as far as that is known before it starts: its windows, and what a verb
    /// costs beside them.
    pub fn expected(&self) -> Duration {
        self.takes + BESIDE
    }
}

/// How long cells take one after the other, with the boots that they need.
pub fn expected(cells: &[&Planned]) -> Duration {
    let boots: BTreeSet<&Boot> =
        cells.iter().map(|planned| &planned.boot).filter(|boot| boot.kernel.is_some()).collect();
    cells.iter().map(|planned| planned.expected()).sum::<Duration>() + BOOT * boots.len() as u32
}

fn planned(experiment: &Experiment, cell: Cell, scale: f64) -> Planned {
    let kernel = Some(text(cell.factors.get(KERNEL))).filter(|name| !name.is_empty()).map(str::to_owned);
    let append: Vec<&str> = experiment.levels(&cell).filter_map(|(_, level)| level.boot.as_deref()).collect();
    let append = append.join(" ");
    let per_boot = experiment.levels(&cell).filter(|(_, level)| level.per_boot);
    let levels = per_boot.map(|(factor, level)| (factor.to_owned(), level.name.clone())).collect();
    let needs = experiment.needs(&cell);
    let takes = takes(experiment, &cell, scale);
    Planned { boot: Boot { kernel, append, levels }, needs, takes, cell }
}

fn takes(experiment: &Experiment, cell: &Cell, scale: f64) -> Duration {
    let Some(name) = &experiment.takes else { return Duration::ZERO };
    let Some(quantity) = experiment.quantities.get(name.get_ref()) else { return Duration::ZERO };
    match quantity.scaled(scale) {
        Amount::Time(ns) => Duration::from_nanos(ns),
        Amount::Count(count) => {
            let each = experiment.each.as_ref().map_or("", |each| each.get_ref());
            let level = text(cell.factors.get(each));
            let ns = time_ns(if level.is_empty() { each } else { level }).unwrap_or(0);
            Duration::from_nanos(ns.saturating_mul(count))
        }
    }
}

/// The name under which cells are stored: that of the experiment, the scale, and a hash of what its
/// cells do, so that a changed file does not reuse results of the old one.
fn identity(experiment: &Experiment, scale: f64) -> String {
    let levels: Vec<Value> = experiment
        .factors
        .iter()
        .flat_map(|factor| factor.levels.get_ref())
        .map(|level| {
            let what =
                json!([level.name, level.words, level.boot, level.isolated, level.before, level.after]);
            if level.per_boot { json!([what, "per boot"]) } else { what }
        })
        .collect();
    let steps: Vec<Value> =
        experiment.steps.iter().map(|step| json!([step.name, step.run.get_ref()])).collect();
    let lists = experiment.lists.iter().map(|list| {
        json!([list.name.get_ref(), list.over, list.by, list.at, format!("{:?}", list.take), list.times])
    });
    let values: Vec<Value> = experiment
        .values
        .iter()
        .map(|value| json!([value.name.get_ref(), value.at, format!("{:?}", value.take), value.times]))
        .chain(lists)
        .collect();
    let quantities: BTreeMap<&String, String> = experiment
        .quantities
        .iter()
        .map(|(name, quantity)| (name, quantity.scaled(scale).to_string()))
        .collect();
    let machine = &experiment.machine;
    let mut guest = vec![json!(machine.smp), json!(machine.memory_mib), json!(machine.nic)];
    guest.push(json!(machine.modules));
    guest.extend([&machine.arch, &machine.accel].into_iter().flatten().map(|name| json!(name)));
    let series: Vec<Value> = experiment
        .series
        .iter()
        .map(|list| json!([list.name.get_ref(), list.at, list.columns.get_ref(), list.lane, list.label]))
        .collect();
    let mut whole = vec![json!(levels), json!(steps), json!(values), json!(quantities), json!(guest)];
    // A plan without any keeps the name from before there were any.
    if !series.is_empty() {
        whole.push(json!(series));
    }
    let digits = digest(&[&canonical(&Value::Array(whole))], 4);
    format!("{} at {scale} of {digits}", experiment.name.get_ref())
}
