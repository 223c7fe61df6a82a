//! `stillcore compare -- COMMAND_A -- COMMAND_B`: runs both in turns, then compares. Commands of
//! stillcore that make runs get a directory each time, and the runs are compared; of other
//! commands the wall times are.
//!
//! A pair is one run of each, its order drawn anew (a randomised block design, Fisher 1935), so
//! that a machine that drifts does so under both. The first pairs warm up caches and are not
//! compared.

mod command;
mod record;

use super::{CompareArgs, Method, conclude, gate, inputs, markdown, text};
use crate::run::command::Ended;
use crate::run::interrupted::Interrupted;
use crate::run::place::default_out;
use crate::run::progress::{Reporter, Step};
use crate::shell::in_shell;
use analysis::groups::condition::Judged;
use analysis::groups::{FigureComparison, Question, turns::times};
use clap::Args;
use command::Command;
use model::{Error, store};
use record::{Record, SIDES, Turn};
use serde_json::json;
use stats::random::below;
use stats::resample::generator;
use std::ffi::OsString;
use std::path::PathBuf;
use sys::signals::EndSignals;

/// Pairs where the user names no number: of measurements, and of other commands.
const PAIRS_OF_RUNS: u32 = 5;
const PAIRS: u32 = 10;

/// Options of a comparison that makes its runs itself.
#[derive(Debug, Args)]
pub(crate) struct Turns {
    /// Pairs of runs of two commands [default: 5; of commands that make no run directory, 10].
    #[arg(long = "turns", value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pairs: Option<u32>,
    /// Pairs of runs at the start that are not compared [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    warm_up: Option<u32>,
    /// Seed of the order in each pair [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// New or empty directory for the runs and for turns.json [default: stillcore-TIME in the
    /// current directory; of commands that make no run directory, none].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Two commands to run in turns, with -- between them: compare -- A -- B.
    #[arg(last = true, value_name = "COMMAND -- COMMAND", conflicts_with_all = ["runs", "with", "best"])]
    pub(super) commands: Vec<OsString>,
}

impl Turns {
    /// Refuses options of turns where no commands are given.
    pub(super) fn check(&self) -> Result<(), Error> {
        let given = [
            ("--turns", self.pairs.is_some()),
            ("--warm-up", self.warm_up.is_some()),
            ("--seed", self.seed.is_some()),
            ("--out", self.out.is_some()),
        ];
        match given.iter().find(|(_, given)| *given && self.commands.is_empty()) {
            Some((option, _)) => {
                let what = "an option of commands that are run in turns, and none is given";
                Err(Error::invalid(*option, what, "compare -- A -- B"))
            }
            None => Ok(()),
        }
    }
}

/// Runs two commands in turns and compares; 2 when a condition holds, 1 when a signal ended it.
pub(super) fn run(args: &CompareArgs, question: &Question, signals: &EndSignals) -> anyhow::Result<u8> {
    let options = &args.turns;
    let commands = command::two(&options.commands)?;
    let make_runs = commands[0].makes_run;
    if make_runs != commands[1].makes_run {
        let what = "a measurement of stillcore beside a command that is none";
        return Err(Error::invalid("compare", what, "two measurements, or two other commands").into());
    }
    if !make_runs {
        refuse_options_of_runs(args)?;
    }
    let pairs = options.pairs.unwrap_or(if make_runs { PAIRS_OF_RUNS } else { PAIRS });
    let out = options.out.clone().or_else(|| make_runs.then(default_out));
    let planned = [pairs, options.warm_up.unwrap_or(1)];
    let mut record = Record::create(out, &commands, options.seed.unwrap_or(1), planned)?;
    let signal = take_turns(&commands, &mut record, args, signals)?;
    let interrupted = signal.map(Interrupted);
    if let Some(interrupted) = &interrupted {
        record.interrupted = signal;
        record.save()?;
        if record.pairs() == 0 {
            anyhow::bail!("{interrupted} before a pair of runs had ended; nothing is compared");
        }
        eprintln!("{interrupted}: {} of {pairs} pairs are compared", record.pairs());
    }
    let status =
        if make_runs { compare_runs(args, question, &record)? } else { compare_times(args, &record)? };
    Ok(if interrupted.is_some() { 1 } else { status })
}

/// The two commands as typed, where there are two.
pub(super) fn typed(turns: &Turns) -> Option<String> {
    let words = turns.commands.iter().map(|word| in_shell(&word.to_string_lossy()));
    (!turns.commands.is_empty()).then(|| words.collect::<Vec<_>>().join(" "))
}

/// What means something for runs only.
fn refuse_options_of_runs(args: &CompareArgs) -> Result<(), Error> {
    let given = [
        ("--html", args.html.is_some()),
        ("--method", args.method != Method::Runs),
        ("--figures", !args.figures.is_empty()),
        ("--over", !args.over.is_empty()),
        ("--probe", args.probe.is_some()),
        ("--phase", args.phase.is_some()),
        ("--series", args.series.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            let what = "an option for runs, and of these commands only the wall times are compared";
            Err(Error::invalid(*option, what, "no such option, or stillcore's own measurements"))
        }
        None => Ok(()),
    }
}

/// The order of the pairs: which command runs first in each.
fn first_of(seed: u64, pair: u32) -> usize {
    below(2, &mut generator(seed, u64::from(pair)))
}

/// Runs all pairs; returns the signal that ended it.
fn take_turns(
    commands: &[Command; 2],
    record: &mut Record,
    args: &CompareArgs,
    signals: &EndSignals,
) -> anyhow::Result<Option<&'static str>> {
    let all = record.planned + record.warm_up;
    let reporter = Reporter::new(args.json);
    let step = reporter.count("running both in turns", u64::from(2 * all));
    let result = pairs(commands, record, args, signals, &step);
    step.done();
    result
}

fn pairs(
    commands: &[Command; 2],
    record: &mut Record,
    args: &CompareArgs,
    signals: &EndSignals,
    step: &Step,
) -> anyhow::Result<Option<&'static str>> {
    let all = record.planned + record.warm_up;
    for pair in 0..all {
        let first = first_of(record.seed, pair);
        for (at, side) in [first, 1 - first].into_iter().enumerate() {
            step.at(u64::from(2 * pair) + at as u64, || {
                format!("pair {} of {all}: {}", pair + 1, SIDES[side])
            });
            if let Some(signal) = signals.arrived() {
                return Ok(Some(signal));
            }
            let warm_up = pair < record.warm_up;
            let run = record.run_of(side, pair);
            let ended = commands[side].run(run.as_deref(), signals)?;
            let Ended { wall_ns, exit, .. } = ended;
            if let Some(signal) = ended.signal {
                return Ok(Some(signal));
            }
            if let Some(why) = ended.failed {
                let kept = record
                    .dir
                    .as_ref()
                    .map_or_else(String::new, |dir| format!("; {} keeps what is done", dir.display()));
                anyhow::bail!("the {} command failed in pair {}: {why}{kept}", SIDES[side], pair + 1);
            }
            // What cannot be compared is refused at the first pair, not behind the last.
            if let Some(run) = run.as_deref().filter(|_| pair == 0) {
                inputs::one(run, args.series.as_deref())?;
            }
            let run = run.map(|run| run.display().to_string());
            record.turns.push(Turn { pair, side: SIDES[side], warm_up, wall_ns, exit, run });
            record.save()?;
        }
    }
    Ok(None)
}

/// Compares the runs as `compare` does with directories.
fn compare_runs(args: &CompareArgs, question: &Question, record: &Record) -> anyhow::Result<u8> {
    let series = args.series.as_deref();
    let read = |side: usize| -> anyhow::Result<inputs::Runs> {
        let turns = record.compared(side).filter_map(|turn| turn.run.as_deref());
        let runs = turns.map(|run| inputs::one(run.as_ref(), series)).collect::<Result<_, _>>()?;
        Ok(inputs::Runs { runs, ..inputs::Runs::default() })
    };
    let status = conclude(args, question, read(0)?, read(1)?, Some(&record.to_json()?))?;
    if let Some(dir) = record.dir.as_ref().filter(|_| !args.json) {
        let [base, other] = SIDES.map(|side| dir.join(side));
        println!(
            "runs: {}; once more: stillcore compare {} {}",
            dir.display(),
            base.display(),
            other.display()
        );
    }
    Ok(status)
}

fn compare_times(args: &CompareArgs, record: &Record) -> anyhow::Result<u8> {
    let walls = [0, 1].map(|side| record.compared(side).map(|turn| turn.wall_ns).collect::<Vec<_>>());
    let figure = times(&walls[0], &walls[1], args.margin.unwrap_or_default());
    let judge = |one: &analysis::groups::condition::Condition| one.judge_figures(std::iter::once(&figure));
    let judged: Vec<Judged> = args.fail_if.iter().map(judge).collect();
    if let Some(file) = &args.markdown {
        store::write_whole(file, markdown::times(&record.commands, &figure, &judged).as_bytes())?;
    }
    if args.json {
        let mut answer = json!({ "schema": super::SCHEMA, "figures": [&figure], "conditions": judged });
        answer["turns"] = record.to_json()?;
        println!("{answer}");
    } else {
        print!("{}", times_text(record, &figure, &walls));
        print!("{}", text::gate(&judged));
    }
    gate(&judged)
}

fn times_text(record: &Record, figure: &FigureComparison, walls: &[Vec<i64>; 2]) -> String {
    let range = |times: &Vec<i64>| {
        let ends = times.iter().min().zip(times.iter().max());
        ends.map_or_else(String::new, |(least, most)| {
            format!("{} to {}", report::format::ns(*least), report::format::ns(*most))
        })
    };
    let side = |at: usize| {
        format!("{} ({} turns, {})", record.commands[at].join(" "), walls[at].len(), range(&walls[at]))
    };
    let mut said = format!("base:  {}\nother: {}\n\n", side(0), side(1));
    said += &text::figures(std::slice::from_ref(figure));
    said + &text::folded("Wall times; the difference is other less base, and lower is better.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_each_pair_is_drawn_and_can_be_drawn_again() {
        let order = |seed| (0..64).map(|pair| first_of(seed, pair)).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let firsts: usize = order(1).iter().sum();
        assert!((16..=48).contains(&firsts), "{firsts} of 64 begin with the second");
    }
}
