//! Our stressors beside stress-ng's that do about the same, and beside the programs that papers ran
//! (`originals.rs`), in turns on the same CPUs and as fast as they go: operations per second, and
//! what reaches another core, where a busy loop or nothing runs (`victim.rs`).
//! `cargo bench -p stillcore --bench disturb [-- --only NAMES --rounds N --seconds N --cpu N
//! --second N --victim N --idle yes --dir DIR]`; needs stress-ng, rt-tests, bonnie++ and root.
//!
//! Stressors that need a second CPU, to move to or to interrupt, have two. One worker each; as many
//! as stress-ng's one worker is processes. A ratio is the median over pairs of runs; on a shared
//! machine only it means something, and for operations only where both count the same: ours are
//! printed beside it. Interrupts and switches on the other core include the background, which is
//! measured in turns as well; those of an operation do not.

#[path = "../common/mod.rs"]
mod common;
mod load;
mod originals;
mod victim;

use common::{Failed, median, option, run};
use load::{Count, Load, Ran};
use result::row::ratio_of_rounds;
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use victim::{Effect, Victim};

fn main() {
    let last = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32 - 1);
    let plan = Plan {
        program: option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned()),
        cpu: option("--cpu", 0),
        second: option("--second", 1),
        victim: option("--victim", last),
        window: Duration::from_secs(option("--seconds", 2)),
        rounds: option("--rounds", 5),
        only: option("--only", String::new()),
    };
    let is_busy = option("--idle", "no".to_owned()) == "no";
    run("disturb", |rows| compare(&plan, is_busy, rows));
}

/// Ours beside which one worker of stress-ng is more than one process (stress-affinity.c: itself
/// and 16 others).
const PROCESSES: [(&str, &str); 1] = [("affinity_flip", "17")];

struct Plan {
    program: String,
    cpu: u32,
    second: u32,
    victim: u32,
    window: Duration,
    rounds: u32,
    /// Names of pairs, separated by commas; empty for all.
    only: String,
}

impl Plan {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.split(',').any(|wanted| name.starts_with(wanted))
    }

    /// A call of `disturb`, as fast as it goes, on the one CPU, that outlasts the window.
    fn ours(&self, words: &[&str], window: Duration) -> Load {
        self.on(&self.cpu.to_string(), words, window)
    }

    fn on(&self, cpus: &str, words: &[&str], window: Duration) -> Load {
        let seconds = format!("{}s", (load::BEGIN + window).as_secs() + 1);
        let victim = self.victim.to_string();
        let asked = ["disturb", "--json", "--cpus", cpus, "--measured", &victim, "--duration", &seconds];
        let mut all = vec![self.program.clone()];
        all.extend(asked.iter().chain(words).map(|word| (*word).to_owned()));
        // A suite has rates of its own: those of the programs that it stands for.
        if !words.contains(&"--suite") {
            all.extend(["--rate", "0"].map(str::to_owned));
        }
        if cpus.split(',').any(|cpu| cpu == victim) {
            all.push("--colocated".to_owned());
        }
        Load { name: words[0].to_owned(), words: all, count: Count::Record, window: Some(window) }
    }
}

/// A load of ours and its counterpart.
struct Pair {
    name: String,
    ours: Load,
    theirs: Load,
    operation: String,
    /// Whether another core is looked at: not where the loads run on all.
    apart: bool,
    budget: Option<(Of, Limit)>,
}

impl Pair {
    fn of(name: &str, ours: Load, theirs: Load, operation: &str) -> Self {
        let (name, operation) = (name.to_owned(), operation.to_owned());
        Self { name, ours, theirs, operation, apart: true, budget: None }
    }
}

fn compare(plan: &Plan, is_busy: bool, rows: &mut Sink) -> Result<(), Failed> {
    let Plan { cpu, second, victim, window, rounds, .. } = plan;
    if victim == cpu {
        return Err(Failed(format!("CPU {cpu} cannot be loaded and be the other core: --victim")));
    }
    let work = if is_busy { "a busy loop" } else { "nothing" };
    rows.note(format!(
        "on CPU {cpu}, stressors that need a second CPU on {cpu} and {second}; {rounds} rounds of windows of {} s, in turns",
        window.as_secs()
    ))?;
    rows.note(format!(
        "the other core is CPU {victim}, with {work} on it; its counts are those of /proc/interrupts and of the loop's own \
         involuntary switches, per second with the background, per operation without it"
    ))?;
    sys::sched::pin(&model::Cpus::one(*cpu))?;
    let dir = tempfile::tempdir_in(option("--dir", env!("CARGO_TARGET_TMPDIR").to_owned()))?;
    let victim = Victim::start(*victim, is_busy)?;
    for pair in originals::pairs(plan, dir.path())? {
        match pair {
            Ok(pair) if plan.wants(&pair.name) => measure(plan, &pair, &victim, rows)?,
            Err(gap) if plan.wants(gap.name) => rows.push(Row::absent(gap.name, gap.why))?,
            _ => {}
        }
    }
    for pair in of_catalogue(plan)? {
        measure(plan, &in_reach(plan, pair, &victim)?, &victim, rows)?;
    }
    Ok(())
}

/// The pair on two CPUs where one is not enough.
fn in_reach(plan: &Plan, mut pair: Pair, victim: &Victim) -> Result<Pair, Failed> {
    let needs_two = matches!(load::run(&pair.ours, victim)?, Err(why) if why.starts_with("it has one CPU"));
    if needs_two {
        let both = format!("{},{}", plan.cpu, plan.second);
        for load in [&mut pair.ours, &mut pair.theirs] {
            let name = load.name.clone();
            *load = plan.on(&both, &words(&name), plan.window);
        }
        pair.apart = plan.second != plan.victim;
    }
    Ok(pair)
}

/// What each side did in each round.
#[derive(Default)]
struct Rounds {
    ours: Vec<Ran>,
    theirs: Vec<Ran>,
    idle: Vec<Effect>,
}

fn measure(plan: &Plan, pair: &Pair, victim: &Victim, rows: &mut Sink) -> Result<(), Failed> {
    let mut all = Rounds::default();
    for _ in 0..plan.rounds {
        all.idle.push(load::idle(plan.window, victim)?);
        for (load, ran) in [(&pair.ours, &mut all.ours), (&pair.theirs, &mut all.theirs)] {
            match load::run(load, victim)? {
                Ok(one) => ran.push(one),
                Err(why) => {
                    rows.push(Row::absent(&pair.name, format!("{}: {why}", load.name)))?;
                    return Ok(());
                }
            }
        }
    }
    for row in rows_of(pair, &all) {
        eprintln!("{row:?}");
        rows.push(row)?;
    }
    Ok(())
}

fn rows_of(pair: &Pair, all: &Rounds) -> Vec<Row> {
    let rates = |ran: &[Ran]| ran.iter().filter_map(|one| one.ops_per_s).collect::<Vec<_>>();
    let row = |what: &str, unit: &str, ours: Vec<f64>, theirs: Vec<f64>| {
        let name = if what.is_empty() { pair.name.clone() } else { format!("{}: {what}", pair.name) };
        let row = Row::new(name, median(ours.clone()), unit).n(ours.len() as u64);
        row.ratio(ratio_of_rounds(&ours, &theirs)).beside(&pair.theirs.name, median(theirs))
    };
    let mut rows = Vec::new();
    if !rates(&all.ours).is_empty() {
        let one = row("", "operations per s", rates(&all.ours), rates(&all.theirs))
            .why(format!("our operation: {}", pair.operation));
        rows.push(match pair.budget {
            Some((of, limit)) => one.budget(of, limit),
            None => one,
        });
    }
    if !pair.apart {
        return rows;
    }
    let effects = |ran: &[Ran]| ran.iter().map(|one| one.effect).collect::<Vec<_>>();
    let (ours, theirs) = (effects(&all.ours), effects(&all.theirs));
    let ipis = |all: &[Effect]| all.iter().map(Effect::all_ipis).collect::<Vec<_>>();
    let kinds = [("ours", &ours), ("theirs", &theirs), ("background", &all.idle)];
    let kinds = kinds.map(|(who, all)| format!("{who}: {}", Effect::by_kind(all))).join("; ");
    rows.push(row("interrupts on the other core", "per s", ipis(&ours), ipis(&theirs)).why(kinds));
    let switches = |all: &[Effect]| all.iter().filter_map(|one| one.switches).collect::<Vec<_>>();
    if !switches(&ours).is_empty() {
        let background = format!("background: {:.1}", median(switches(&all.idle)));
        let one = row("switches on the other core", "per s", switches(&ours), switches(&theirs));
        rows.push(one.why(background));
    }
    let per_operation = |ran: &[Ran]| {
        let net = ran.iter().zip(&all.idle).map(|(one, idle)| (one, one.effect.all_ipis() - idle.all_ipis()));
        net.filter_map(|(one, net)| Some(net / one.ops_per_s?)).collect::<Vec<_>>()
    };
    if !rates(&all.ours).is_empty() {
        let what = "interrupts on the other core, of an operation";
        rows.push(row(what, "per operation", per_operation(&all.ours), per_operation(&all.theirs)));
    }
    rows
}

/// The words of a stressor with as many workers as the counterpart has processes.
fn words(name: &str) -> Vec<&str> {
    let workers = PROCESSES.iter().find(|(ours, _)| *ours == name).map_or("1", |(_, processes)| processes);
    vec![name, "--workers", workers]
}

/// Those of the catalogue that name a counterpart and are safe to run as fast as they go.
fn of_catalogue(plan: &Plan) -> Result<Vec<Pair>, Failed> {
    let output = Command::new(&plan.program).args(["disturb", "--list", "--json"]).output()?;
    let list: Value = serde_json::from_slice(&output.stdout).map_err(Failed::because)?;
    let all = list["stressors"].as_array().ok_or_else(|| Failed::because("no list of stressors"))?;
    let pair = |spec: &Value| {
        let option = spec["peer"].as_str()?.split_whitespace().next()?.strip_prefix("--")?;
        let (ours, theirs) = (spec["name"].as_str()?, format!("stress-ng:{option}"));
        let load = |name: &str| plan.on(&plan.cpu.to_string(), &words(name), plan.window);
        (spec["dangerous"] == false && plan.wants(ours)).then(|| {
            Pair::of(ours, load(ours), load(&theirs), spec["operation"].as_str().unwrap_or_default())
        })
    };
    Ok(all.iter().filter_map(pair).collect())
}
