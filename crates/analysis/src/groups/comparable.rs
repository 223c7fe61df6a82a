//! Conditions that runs must share before their difference can be attributed to the configurations.
//!
//! Another probe, period, CPU count or tool changes the measurement itself, so the comparison is
//! refused. Other conditions may be what the user compares, so they give a warning. If all runs of
//! one group precede those of the other, a drift of the machine gives the same difference.

use super::measured::{MeasuredRun, MeasuredWindow};
use model::sample::ProbeKind;

/// The same probe and phase of every run, group by group, in the order of the runs.
#[derive(Debug)]
pub struct Matched<'a> {
    /// The probe.
    pub probe: ProbeKind,
    /// The phase.
    pub phase: &'a str,
    /// Of each group its windows.
    pub groups: Vec<Vec<&'a MeasuredWindow>>,
}

/// What can be compared of these groups: one entry a probe that all runs have, in the requested
/// phase, else the disturbed one if all runs have it, else the one that all have.
pub fn matched<'a>(
    groups: &[&'a [MeasuredRun]],
    probe: Option<ProbeKind>,
    phase: Option<&str>,
) -> Result<Vec<Matched<'a>>, String> {
    let runs: Vec<&MeasuredRun> = groups.iter().flat_map(|group| group.iter()).collect();
    let Some(first) = runs.first() else { return Err("there are no runs".to_owned()) };
    let has = |run: &MeasuredRun, window: &MeasuredWindow| {
        run.windows.iter().any(|other| (other.probe, &other.phase) == (window.probe, &window.phase))
    };
    let wanted = |window: &&MeasuredWindow| {
        probe.is_none_or(|probe| probe == window.probe)
            && phase.is_none_or(|phase| phase == window.phase)
            && runs.iter().all(|run| has(run, window))
    };
    let shared: Vec<&MeasuredWindow> = first.windows.iter().filter(wanted).collect();
    let mut chosen: Vec<&MeasuredWindow> = Vec::new();
    for window in &shared {
        if chosen.iter().any(|one| one.probe == window.probe) {
            continue;
        }
        let disturbed = shared.iter().find(|one| one.probe == window.probe && one.disturbed);
        chosen.push(disturbed.unwrap_or(window));
    }
    if chosen.is_empty() {
        return Err(nothing_shared(&runs, probe, phase));
    }
    let windows = |group: &&'a [MeasuredRun], chosen: &MeasuredWindow| -> Vec<&'a MeasuredWindow> {
        let same = |window: &&MeasuredWindow| (window.probe, &window.phase) == (chosen.probe, &chosen.phase);
        group.iter().filter_map(|run| run.windows.iter().find(same)).collect()
    };
    let matched = chosen.into_iter().map(|one| Matched {
        probe: one.probe,
        phase: one.phase.as_str(),
        groups: groups.iter().map(|group| windows(group, one)).collect(),
    });
    Ok(matched.collect())
}

fn nothing_shared(runs: &[&MeasuredRun], probe: Option<ProbeKind>, phase: Option<&str>) -> String {
    let of = |run: &MeasuredRun| {
        let windows: Vec<_> = run
            .windows
            .iter()
            .map(|window| format!("{} in phase {}", window.probe.name(), window.phase))
            .collect();
        format!("{} has {}", run.name, windows.join(", "))
    };
    let asked = match (probe, phase) {
        (None, None) => String::new(),
        (Some(probe), None) => format!(" of probe {}", probe.name()),
        (None, Some(phase)) => format!(" of phase {phase}"),
        (Some(probe), Some(phase)) => format!(" of probe {} in phase {phase}", probe.name()),
    };
    let mut reasons: Vec<String> = runs.iter().map(|run| of(run)).collect();
    reasons.dedup_by(|a, b| a.split_once(" has ").map(|x| x.1) == b.split_once(" has ").map(|x| x.1));
    reasons.truncate(3);
    format!("the runs have no measurement{asked} in common: {}", reasons.join("; "))
}

/// Findings about runs to compare.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Why a difference could not be attributed to the configurations.
    pub refused: Vec<String>,
    /// Warnings for the reader.
    pub warned: Vec<String>,
}

/// Checks the conditions of all runs.
pub fn check(groups: &[&[MeasuredRun]], matched: &[Matched<'_>]) -> Found {
    let mut found = Found::default();
    let runs: Vec<&MeasuredRun> = groups.iter().flat_map(|group| group.iter()).collect();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    differ(&names, runs.iter().map(|run| run.tool.name().to_owned()), |one, other| {
        found.refused.push(format!(
            "{one} and {other}: their loops differ, and so would their figures on one and the same machine"
        ));
    });
    // A loop that is never idle leaves no idle state.
    if matched.iter().any(|one| one.probe != ProbeKind::Noise) {
        differ(&names, runs.iter().map(|run| run.idle_states.clone().unwrap_or_default()), |a, b| {
            found
                .refused
                .push(format!("{a}, {b}: only one has the time to leave idle states in its figures"));
        });
    }
    for one in matched {
        let windows: Vec<&MeasuredWindow> = one.groups.iter().flatten().copied().collect();
        let what = one.probe.name();
        let mut differs = |text: fn(&MeasuredWindow) -> Option<String>, hard: bool, why: &str| {
            let values = windows.iter().map(|window| text(window).unwrap_or_default());
            differ(&names, values, |a, b| {
                let list = if hard { &mut found.refused } else { &mut found.warned };
                list.push(format!("{what}: {a} and {b}{why}"));
            });
        };
        differs(
            |w| w.period_ns.map(|ns| format!("period {}", super::units::short_time(ns as i64))),
            true,
            "",
        );
        differs(|w| (w.threads > 0).then(|| format!("{} measured CPUs or threads", w.threads)), true, "");
        differs(|w| w.threshold_ns.map(|ns| format!("gaps stored from {ns} ns on")), true, "");
        differs(
            |w| w.policy.as_ref().map(|policy| format!("policy {policy}")),
            false,
            ": part of what is compared",
        );
        differs(
            |w| (!w.cpus.is_empty()).then(|| format!("CPUs {}", w.cpus)),
            false,
            ": CPUs of one machine differ",
        );
        let lost: u64 = windows.iter().map(|window| window.lost).sum();
        if lost > 0 {
            found.warned.push(format!("{what}: {lost} samples were lost, the worst perhaps among them"));
        }
    }
    differ(&names, runs.iter().map(|run| run.cpu_model.clone().unwrap_or_default()), |a, b| {
        found.warned.push(format!("{a} and {b}: the machines differ, not only their configurations"));
    });
    for group in groups {
        differ(
            &group.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(),
            group.iter().map(|run| run.kernel.clone().unwrap_or_default()),
            |a, b| found.warned.push(format!("within one group {a} and {b}: the group mixes kernels")),
        );
    }
    let mut sorted = names.clone();
    sorted.sort_unstable();
    if let Some([twice, _]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        found.refused.push(format!("{twice} was given twice, and would be taken for two runs"));
    }
    found.warned.extend(few(groups));
    found.warned.extend(order(groups));
    found
}

/// Warns about too few runs.
fn few(groups: &[&[MeasuredRun]]) -> Option<String> {
    let fewest = groups.iter().map(|group| group.len()).min()?;
    match fewest {
        1 => Some(
            "one run of a configuration says nothing of what another boot or another hour would have shown: nothing is concluded about \
             configurations, and intervals are of chance within the runs alone; `measure wakeup --runs 5` makes five"
                .to_owned(),
        ),
        2..5 => Some(format!("{fewest} runs of a configuration are few: from five on a comparison begins to see")),
        _ => None,
    }
}

/// Calls with the first two that differ, each with its run, where all have a value.
fn differ(names: &[&str], values: impl Iterator<Item = String>, mut found: impl FnMut(String, String)) {
    let values: Vec<String> = values.collect();
    let Some(first) = values.first().filter(|first| !first.is_empty()) else { return };
    let other = values.iter().position(|one| one != first && !one.is_empty());
    if let Some(at) = other {
        let name = |at: usize| names.get(at).copied().unwrap_or_default();
        found(format!("{first} in {}", name(0)), format!("{} in {}", values[at], name(at)));
    }
}

/// Warns if one group was measured entirely before another.
fn order(groups: &[&[MeasuredRun]]) -> Option<String> {
    let times: Option<Vec<Vec<&str>>> =
        groups.iter().map(|group| group.iter().map(|run| run.started_at.as_deref()).collect()).collect();
    let times = times?;
    let apart = |a: &Vec<&str>, b: &Vec<&str>| a.iter().max() < b.iter().min() && a.len() + b.len() > 2;
    let any =
        times.iter().enumerate().any(|(at, a)| times[at + 1..].iter().any(|b| apart(a, b) || apart(b, a)));
    any.then(|| {
        "the runs of one group were all made before those of another: a machine that drifted meanwhile would look the same. \
         For two commands on one machine, `stillcore compare -- A -- B` makes them in turns; with a stored base this stays a caution"
            .to_owned()
    })
}
