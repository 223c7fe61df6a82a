//! The next command of a comparison's page: a closer look at what is worse, more runs where these
//! cannot decide, else the same comparison as a gate.

use crate::run::command::without;
use crate::shell::in_shell;
use analysis::groups::measured::{MeasuredRun, Tool};
use analysis::groups::{FigureComparison, GroupComparison};
use model::run::Run;
use model::store;
use report::PageNext;
use stats::decide::Verdict;
use std::ffi::OsString;
use std::path::Path;

/// Runs a side where none, or only one, was made.
const FIRST_RUNS: usize = 5;

/// The two commands of runs that were made in turns, as typed with `--` between them.
pub(super) type Typed = Option<String>;

/// `compared`: the runs, as typed behind `stillcore compare`.
pub(super) fn next(
    comparison: &GroupComparison,
    groups: [&[MeasuredRun]; 2],
    compared: &str,
    typed: Typed,
) -> PageNext {
    let figures = || comparison.windows.iter().flat_map(|window| &window.figures);
    let worse = figures().find(|figure| figure.verdict == Verdict::Worse);
    if let Some(run) = worse.and_then(|figure| worst_run(figure, groups[1])) {
        return PageNext {
            command: format!("stillcore report {}", in_shell(&run.name)),
            why: format!("of the other runs {} is the worst: its report names what disturbed it", run.name),
        };
    }
    let open = || figures().filter(|figure| figure.verdict == Verdict::CannotTell);
    let one_run = figures().any(|figure| figure.verdict == Verdict::OneRun);
    let more = open().filter_map(|figure| figure.more_runs).max();
    let runs = match (more, one_run) {
        (Some(more), _) => comparison.base.len().min(comparison.other.len()) + more,
        (None, true) => FIRST_RUNS,
        (None, false) => {
            return PageNext {
                command: format!("stillcore compare --fail-if 'any worse' {compared}"),
                why: "the same comparison as a gate: exit status 2 where any statistic is worse".to_owned(),
            };
        }
    };
    let why = match more {
        Some(more) => format!("about {more} more runs a side would decide what is open"),
        None => "runs are the unit: one a side shows chance within the two alone".to_owned(),
    };
    match typed.or_else(|| recorded(groups)) {
        Some(commands) => {
            PageNext { command: format!("stillcore compare --turns {runs} --out turns -- {commands}"), why }
        }
        None => PageNext {
            command: format!("stillcore compare {compared}"),
            why: format!("{why}; make {runs} a side, in turns, and compare them"),
        },
    }
}

/// The run with the largest value, where its report can be drawn.
fn worst_run<'a>(figure: &FigureComparison, runs: &'a [MeasuredRun]) -> Option<&'a MeasuredRun> {
    let values = figure.runs[1].iter().zip(runs);
    let (_, run) = values.max_by(|a, b| a.0.total_cmp(b.0))?;
    (run.tool == Tool::Stillcore).then_some(run)
}

/// The commands that the runs record, without the directories that they wrote into.
fn recorded(groups: [&[MeasuredRun]; 2]) -> Typed {
    let command = |runs: &[MeasuredRun]| -> Option<String> {
        let first = runs.first().filter(|run| run.tool == Tool::Stillcore)?;
        let run: Run = store::read_json(&Path::new(&first.name).join(store::RUN)).ok()?;
        let words = once_anywhere(&run.command);
        (!words.is_empty()).then(|| words.iter().map(|word| in_shell(word)).collect::<Vec<_>>().join(" "))
    };
    Some(format!("{} -- {}", command(groups[0])?, command(groups[1])?))
}

/// Without where it wrote to, and how often: `compare` says both.
fn once_anywhere(command: &[String]) -> Vec<String> {
    let words: Vec<OsString> = command.iter().map(OsString::from).collect();
    let kept = without(&words, &["--out", "--runs"]);
    kept.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_command_can_be_run_again_with_another_directory() {
        let command = ["stillcore", "measure", "wakeup", "--out", "x", "-D", "10s", "--out=y"];
        let kept = once_anywhere(&command.map(str::to_owned));
        assert_eq!(kept, ["stillcore", "measure", "wakeup", "-D", "10s"]);
    }
}
