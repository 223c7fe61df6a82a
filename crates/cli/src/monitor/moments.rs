//! `monitor changes`: when something in a history changed for good, and what else was different
//! from about then on.

use super::changed::packages_between;
use super::{Kept, history, past};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use model::monitor_history::Interval;
use monitor::moments::{LEAST_HOURS, Moment, different, moments};
use report::format;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The machine's name.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// Ten days: hours that resemble their neighbours as by day and at night show no change in fewer.
const ROUNDS_HOURS: usize = 240;
/// The schema of the answer.
const SCHEMA: &str = "stillcore.monitor-changes/1";

/// Arguments of `monitor changes`.
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    schema: &'static str,
    /// Hours in which anything was watched.
    hours: usize,
    changes: Vec<Changed>,
}

#[derive(Serialize)]
struct Changed {
    #[serde(flatten)]
    moment: Moment,
    /// What else was different from about then on, one sentence each: within as many hours.
    beside: Vec<String>,
    /// Why packages are not among these; absent where they were looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    packages_unknown: Option<&'static str>,
}

/// Finds the moments.
pub(crate) fn changes(args: &ChangesArgs) -> anyhow::Result<u8> {
    let all = past::read(&args.kept)?;
    let hours: BTreeSet<&str> = all.iter().filter_map(|one| one.at.get(..13)).collect();
    let own = std::fs::read_to_string(HOSTNAME).unwrap_or_default();
    let find = |moment: Moment| changed(moment, &all, own.trim());
    let changes = moments(&all).into_iter().map(find).collect::<Result<_, _>>()?;
    let answer = Answer { schema: SCHEMA, hours: hours.len(), changes };
    if args.json {
        println!("{}", serde_json::to_string(&answer)?);
    } else {
        print!("{}", words(&answer));
    }
    Ok(0)
}

fn changed(moment: Moment, all: &[Interval], own: &str) -> anyhow::Result<Changed> {
    let at: Timestamp = format!("{}:00:00Z", moment.hour).parse()?;
    let within = SignedDuration::from_hours(i64::try_from(moment.within_hours)?);
    let span = [at.checked_sub(within)?, at.checked_add(within)?];
    let (mut beside, mut here) = (Vec::new(), !own.is_empty());
    for two in all.windows(2) {
        let ended = history::ended(&two[1])?;
        if ended >= span[0] && ended <= span[1] {
            beside.extend(different(&two[0], &two[1]));
            here &= two[1].host == own;
        }
    }
    let packages_unknown = match packages_between(span).filter(|_| here) {
        Some(packages) => {
            beside.extend(packages);
            None
        }
        None if here => Some("there is no log of packages of that time"),
        None => Some("the history is of another machine"),
    };
    Ok(Changed { moment, beside, packages_unknown })
}

fn words(answer: &Answer) -> String {
    let hours = format::plural(answer.hours as u64, "hour");
    if answer.changes.is_empty() {
        return match answer.hours {
            few if few < LEAST_HOURS => {
                format!("{hours} are too few to find a change in, expected at least {LEAST_HOURS}\n")
            }
            few if few < ROUNDS_HOURS => format!(
                "in {hours} nothing is found that changed for good; where days differ from nights, so few show nothing\n"
            ),
            _ => format!("in {hours} nothing is found that changed for good\n"),
        };
    }
    let mut text = String::new();
    for Changed { moment, beside, packages_unknown } in &answer.changes {
        let Moment { what, unit, hour, within_hours, values: [before, behind], p_value } = moment;
        let _ = writeln!(text, "{hour}:00Z  {what}: {before:.3} -> {behind:.3} {unit} (p = {p_value:.3})");
        for one in beside {
            let _ = writeln!(text, "    within {within_hours} hours: {one}");
        }
        if let Some(why) = packages_unknown {
            let _ = writeln!(text, "    packages: not known, {why}");
        } else if beside.is_empty() {
            let _ = writeln!(
                text,
                "    within {within_hours} hours: no other kernel, limit or CPUs, and no package"
            );
        }
    }
    let _ = writeln!(
        text,
        "Changes of hours for good, by permutations, each figure by itself. What was different about then\n\
         need not be the cause."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment() -> Moment {
        Moment {
            what: "late threads".to_owned(),
            unit: "per hour",
            hour: "2026-11-20T10".to_owned(),
            within_hours: 3,
            values: [0.0, 2.5],
            p_value: 0.002,
        }
    }

    #[test]
    fn a_change_stands_with_what_was_different_about_then_or_with_that_nothing_is_known() {
        let answer = |beside: &[&str], packages_unknown| Answer {
            schema: SCHEMA,
            hours: 300,
            changes: vec![Changed {
                moment: moment(),
                beside: beside.iter().map(|one| (*one).to_owned()).collect(),
                packages_unknown,
            }],
        };
        let text = words(&answer(&["the kernel: a before, b behind it"], None));
        assert!(text.starts_with("2026-11-20T10:00Z  late threads: 0.000 -> 2.500 per hour (p = 0.002)\n"));
        assert!(text.contains("    within 3 hours: the kernel: a before, b behind it\n"), "{text}");
        assert!(words(&answer(&[], None)).contains("no other kernel, limit or CPUs, and no package"));
        let unknown = words(&answer(&[], Some("the history is of another machine")));
        assert!(unknown.contains("packages: not known, the history") && !unknown.contains("no other kernel"));
    }

    #[test]
    fn where_none_is_found_it_is_said_in_how_many_hours() {
        let text = |hours| words(&Answer { schema: SCHEMA, hours, changes: Vec::new() });
        assert_eq!(text(9), "9 hours are too few to find a change in, expected at least 10\n");
        assert!(text(10).contains("so few show nothing"));
        assert_eq!(text(240), "in 240 hours nothing is found that changed for good\n");
    }
}
