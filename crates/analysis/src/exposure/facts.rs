//! A cell's run directory → what was counted: events by class while operations ran and while
//! nothing did, and who caused them.
//!
//! A stressor is prepared before the disturbed window opens, begins inside it, does nothing for a
//! moment after its last operation, and says when its first and last were: so every operation lies
//! whole in the stretch whose events are counted, and neither its making nor its taking down does.

use super::changed;
use attribution::Error;
use attribution::attribute::events::Attributed;
use attribution::attribute::windows::{attributed_in, windows_of};
use attribution::decode::Decoder;
use ftrace::TraceFile;
use model::events::EventCatalogue;
use model::machine::{MachineState, Snapshot};
use model::run::{Run, TraceCpu, TraceRecord, Window};
use model::stressor::{StressorRecord, StressorState, Witness};
use model::{Cpus, EventClass, store};
use serde::{Deserialize, Serialize};
use stats::dispersion::dispersion;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Blocks in which events are counted for their dispersion, ns.
const BLOCK_NS: i64 = 100_000_000;

/// The counts of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellFacts {
    /// The stressor, and its options other than the defaults.
    pub name: String,
    /// The stressor's own account.
    pub record: StressorRecord,
    /// The measured CPUs.
    pub measured: Cpus,
    /// Policy of what occupied them.
    pub policy: String,
    /// Why it gives no coefficient; absent if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// The classes of which this kernel records something.
    pub observable: BTreeSet<EventClass>,
    /// From the first operation to the quiet moment after the last.
    pub disturbed: Stretch,
    /// Before the stressor was there.
    pub idle_before: Stretch,
    /// After it was gone.
    pub idle_after: Stretch,
    /// Who caused the events of the disturbed stretch, most events first.
    pub sources: Vec<SourceCount>,
    /// Settings that changed during the cell.
    pub changed: Vec<String>,
    /// The machine when it began; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ground: Option<Ground>,
    /// Limits of the measurement.
    pub limits: Vec<String>,
}

impl CellFacts {
    /// Facts of a cell whose stressor gave no account.
    pub fn failed(stressor: &str, cpus: &Cpus, measured: &Cpus, reason: String) -> Self {
        let record = StressorRecord {
            name: stressor.to_owned(),
            cpus: cpus.clone(),
            ops_asked: None,
            ops_ok: 0,
            ops_failed: BTreeMap::new(),
            parts: BTreeMap::new(),
            t0_ns: 0,
            t1_ns: 0,
            witness: Witness { name: String::new(), expected: 0, seen: 0 },
            state: StressorState::Void,
            reason: Some(reason.clone()),
            confined_by: Vec::new(),
            rates: Vec::new(),
            stalls: 0,
        };
        Self::without_measurement(record, measured, reason)
    }

    /// Facts of a cell that could not be measured.
    pub fn without_measurement(record: StressorRecord, measured: &Cpus, reason: String) -> Self {
        Self {
            name: record.name.clone(),
            record,
            measured: measured.clone(),
            policy: String::new(),
            void: Some(reason),
            observable: BTreeSet::new(),
            disturbed: Stretch::default(),
            idle_before: Stretch::default(),
            idle_after: Stretch::default(),
            sources: Vec::new(),
            changed: Vec::new(),
            ground: None,
            limits: Vec::new(),
        }
    }
}

/// How the machine was set when a cell began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// The boot that it is of.
    pub boot_id: String,
    /// When the cell began, ns of `CLOCK_MONOTONIC` in that boot.
    pub t_ns: i64,
    /// Its settings.
    pub state: MachineState,
}

/// Events in a stretch of time, on all measured CPUs together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Its length on each CPU, ns.
    pub length_ns: u64,
    /// By class, those of which there were any; what the probe itself caused is left out.
    pub classes: BTreeMap<EventClass, Count>,
    /// Of all these classes together.
    pub all: Count,
}

/// How many events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// On all measured CPUs.
    pub count: u64,
    /// Variance of their counts in blocks of 100 ms over the mean; at least 1.
    pub dispersion: f64,
    /// On each, where there were any.
    pub by_cpu: BTreeMap<u32, u64>,
}

impl Default for Count {
    fn default() -> Self {
        Self { count: 0, dispersion: 1.0, by_cpu: BTreeMap::new() }
    }
}

/// Events of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCount {
    /// Their class.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// Who caused it; absent where that is not known.
    pub who: Option<String>,
    /// The kernel function that asked; absent where that is not known.
    pub site: Option<String>,
    /// Events that it took part in.
    pub count: u64,
}

/// Counts a cell. A cell without a verdict is no error: the facts say why.
pub fn facts(dir: &Path) -> Result<CellFacts, Error> {
    let run = model::run::stored::read_run(dir)?;
    let record = match run.stressors.as_slice() {
        [record] => record.clone(),
        other => {
            let found = format!("{} stressors", other.len());
            return Err(model::Error::invalid(dir.join(store::RUN).display(), found, "exactly one").into());
        }
    };
    let mut facts = CellFacts {
        policy: run.probes.first().map_or_else(String::new, |probe| probe.policy_effective.name.clone()),
        changed: differences(dir, &run)?,
        limits: run.limits.clone(),
        ..CellFacts::without_measurement(record.clone(), &run.measured_cpus, String::new())
    };
    facts.void = void(&run, &record);
    if facts.void.is_none() {
        facts.void = count(dir, &run, &mut facts)?;
    }
    Ok(facts)
}

fn differences(dir: &Path, run: &Run) -> Result<Vec<String>, Error> {
    let Some(after) = &run.machine_after else { return Ok(Vec::new()) };
    let before: Snapshot = store::read_json(&dir.join(&run.machine_before))?;
    let after: Snapshot = store::read_json(&dir.join(after))?;
    Ok(changed(&before.state, &after.state, &run.measured_cpus))
}

/// Why counts would be void.
fn void(run: &Run, record: &StressorRecord) -> Option<String> {
    if !record.state.happened() {
        return Some(record.reason.clone().unwrap_or_else(|| "it gave no reason".to_owned()));
    }
    if let Some(why) = &run.incomplete_reason {
        return Some(why.clone());
    }
    if record.ops_ok == 0 {
        return Some("no operation succeeded".to_owned());
    }
    let Some(trace) = &run.trace else {
        return Some(run.limits.last().cloned().unwrap_or_else(|| "no events were recorded".to_owned()));
    };
    let of = |cpu: &TraceCpu| [cpu.left, cpu.overrun, cpu.commit_overrun, cpu.dropped];
    let lost = trace.cpus.iter().flat_map(of).fold(0, u64::saturating_add);
    if lost > 0 {
        return Some(format!("{lost} trace events of the measured CPUs are lost"));
    }
    let Some(window) = disturbed(run) else { return Some("there is no disturbed window".to_owned()) };
    if record.t0_ns < window.t0_ns || window.t1_ns < record.t1_ns {
        let out_ns = (window.t0_ns - record.t0_ns).max(record.t1_ns - window.t1_ns);
        return Some(format!(
            "operations ran {:.1} ms outside the disturbed window, where no event was recorded",
            out_ns as f64 / 1e6
        ));
    }
    None
}

fn disturbed(run: &Run) -> Option<&Window> {
    let phase = run.phases.iter().find(|phase| phase.disturbed)?;
    run.windows.iter().find(|window| window.phase == phase.name)
}

/// The stretches to count in, as `[before, disturbed, after]`; none where a control is missing.
fn stretches(run: &Run, record: &StressorRecord) -> Option<[[i64; 2]; 3]> {
    let at = run.windows.iter().position(|window| Some(window) == disturbed(run))?;
    let idle = |window: &Window| {
        let probes = || run.probes.iter().filter(|probe| probe.phase == window.phase);
        let (t0_ns, t1_ns) =
            (probes().map(|probe| probe.t0_ns).max()?, probes().map(|probe| probe.t1_ns).min()?);
        (t0_ns < t1_ns).then_some([t0_ns, t1_ns])
    };
    let (before, after) = (run.windows[..at].last()?, run.windows.get(at + 1)?);
    Some([idle(before)?, [record.t0_ns, record.t1_ns], idle(after)?])
}

/// Counts, or says why that failed.
fn count(dir: &Path, run: &Run, facts: &mut CellFacts) -> Result<Option<String>, Error> {
    let (Some(trace), Some(stretches)) = (&run.trace, stretches(run, &facts.record)) else {
        return Ok(Some("one of the idle controls is missing".to_owned()));
    };
    let file = TraceFile::open(&dir.join(&trace.file))?;
    let catalogue = EventCatalogue::embedded()?;
    let decoder = Decoder::of(&file, &catalogue)?;
    let mut observable = decoder.observable(&catalogue, &trace.events);
    observable.retain(|class| counts(*class));
    let mut counting = stretches.map(Counting::new);
    let mut sources = BTreeMap::new();
    let sender = trace.sender.as_ref().map(|sender| sender.buffer.as_str());
    let buffers: Vec<&str> = [Some(""), sender].into_iter().flatten().collect();
    let passed = attributed_in(&file, &buffers, &windows_of(run), |event| {
        for (at, counting) in counting.iter_mut().enumerate() {
            if counting.event(&event) && at == 1 {
                add_sources(&mut sources, event.clone());
            }
        }
        Ok::<_, Error>(())
    })?;
    if let Some(why) = unbalanced(trace, passed.decoded, passed.damaged) {
        return Ok(Some(why));
    }
    facts.observable = observable;
    [facts.idle_before, facts.disturbed, facts.idle_after] = counting.map(Counting::stretch);
    facts.sources = sources.into_values().collect();
    facts.sources.sort_by_key(|one| std::cmp::Reverse(one.count));
    Ok(None)
}

/// Whether the class is interference.
fn counts(class: EventClass) -> bool {
    !matches!(class, EventClass::SelfCaused | EventClass::Unexplained)
}

/// Why the trace cannot be trusted to hold every event.
fn unbalanced(trace: &TraceRecord, decoded: u64, damaged: u64) -> Option<String> {
    let senders = trace.sender.iter().flat_map(|sender| &sender.cpus);
    let read = trace.cpus.iter().chain(senders).map(|cpu| cpu.read).fold(0, u64::saturating_add);
    (decoded != read || damaged > 0).then(|| {
        format!("the trace holds {decoded} events and {damaged} damaged places, the kernel says that {read} were read")
    })
}

/// One stretch while the trace streams by.
struct Counting {
    t0_ns: i64,
    t1_ns: i64,
    classes: BTreeMap<EventClass, Blocks>,
    all: Blocks,
}

/// Events of a class, by CPU and by block.
#[derive(Clone)]
struct Blocks {
    by_cpu: BTreeMap<u32, u64>,
    blocks: Vec<u32>,
}

impl Counting {
    fn new([t0_ns, t1_ns]: [i64; 2]) -> Self {
        let all =
            Blocks { by_cpu: BTreeMap::new(), blocks: vec![0; ((t1_ns - t0_ns).max(0) / BLOCK_NS) as usize] };
        Self { t0_ns, t1_ns, classes: BTreeMap::new(), all }
    }

    /// Whether the event counts here.
    fn event(&mut self, event: &Attributed) -> bool {
        let inside = (self.t0_ns..=self.t1_ns).contains(&event.t0_ns);
        if !inside || !event.counts || !counts(event.class) {
            return false;
        }
        let block = ((event.t0_ns - self.t0_ns) / BLOCK_NS) as usize;
        let none = Blocks { by_cpu: BTreeMap::new(), blocks: vec![0; self.all.blocks.len()] };
        for sum in [self.classes.entry(event.class).or_insert(none), &mut self.all] {
            *sum.by_cpu.entry(event.cpu).or_default() += 1;
            // The last block is not whole, and says nothing about bunching.
            if let Some(count) = sum.blocks.get_mut(block) {
                *count += 1;
            }
        }
        true
    }

    fn stretch(self) -> Stretch {
        Stretch {
            length_ns: (self.t1_ns - self.t0_ns).max(0) as u64,
            classes: self.classes.into_iter().map(|(class, blocks)| (class, blocks.count())).collect(),
            all: self.all.count(),
        }
    }
}

impl Blocks {
    fn count(self) -> Count {
        let exposure = vec![1; self.blocks.len()];
        Count {
            count: self.by_cpu.values().sum(),
            dispersion: dispersion(&self.blocks, &exposure),
            by_cpu: self.by_cpu,
        }
    }
}

type Key = (EventClass, String, Option<String>, Option<String>);

/// An event of several senders is one of each of them.
fn add_sources(sources: &mut BTreeMap<Key, SourceCount>, event: Attributed) {
    let mut add = |who: Option<String>, site: Option<String>| {
        let (class, label) = (event.class, event.label.clone());
        let key = (class, label.clone(), who.clone(), site.clone());
        sources.entry(key).or_insert(SourceCount { class, label, who, site, count: 0 }).count += 1;
    };
    if event.sources.is_empty() {
        return add(None, None);
    }
    for (source, _) in event.sources {
        add(Some(source.who), source.site);
    }
}
