//! `cyclictest --json=FILE` (rt-tests, `cyclictest.c`, file version 1): a histogram a thread, in us
//! or, with `-N`, in ns.
//!
//! A file is refused if its own fields show that it is incomplete: a failed call, fewer threads
//! than it names, bins beyond those requested, more samples in its bins than cycles.
//!
//! `cycles` counts every sample, the histogram those within its limit (`-h`); the difference lies
//! beyond. The command line is under `"cmdline:"`, with the colon.

use super::json::Document;
use super::{Facts, option, single};
use crate::groups::measured::{MeasuredRun, Tool};
use model::Error;
use model::sample::ProbeKind;
use serde_json::Value;

pub(super) fn is(document: &Document) -> bool {
    document.get(&["thread"]).is_some() && document.get(&["resolution_in_ns"]).is_some()
}

pub(super) fn run(document: &Document, name: String) -> Result<MeasuredRun, Error> {
    let nanoseconds = document.get(&["resolution_in_ns"]).and_then(Value::as_u64).unwrap_or(0) != 0;
    let unit_ns = if nanoseconds { 1 } else { 1_000 };
    let command = command(document).unwrap_or_default();
    let mut names = [("-h", "--histogram"), ("-H", "--histofall")].into_iter();
    let limit = names.find_map(|(short, long)| option(&command, short, long)?.parse::<i64>().ok());
    let limit_ns = limit.and_then(|bins| bins.checked_mul(unit_ns as i64));
    whole(document)?;
    let mut threads = Vec::new();
    for (number, thread) in document.members("thread")? {
        let mut parsed = document.thread(&format!("thread.{number}"), thread, unit_ns, Some("cycles"))?;
        let last = parsed.bins.counts.last().map(|(edge, _)| *edge);
        if let (Some(last), Some(limit)) = (last, limit_ns.filter(|limit| *limit > 0))
            && last >= limit
        {
            let what = format!("has bin {}", last / unit_ns as i64);
            let expected = format!("bins below {}, as its command line asks for", limit / unit_ns as i64);
            return Err(document.wrong(&format!("thread.{number}.histogram"), &what, &expected));
        }
        // The file does not hold its bins' end; the command line does.
        parsed.bins.over_from_ns =
            parsed.bins.over_from_ns.map(|least| limit_ns.map_or(least, |limit| limit.max(least)));
        threads.push(parsed);
    }
    single(name, Tool::Cyclictest, ProbeKind::Wakeup, threads, facts(document))
}

/// Whether the file is of a call that went well, and has all of its threads.
pub(super) fn whole(document: &Document) -> Result<(), Error> {
    let code = document.get(&["return_code"]).and_then(Value::as_i64).unwrap_or(0);
    if code != 0 {
        return Err(document.wrong("return_code", &format!("is {code}"), "0, of a call that did not fail"));
    }
    let (announced, found) =
        (document.get(&["num_threads"]).and_then(Value::as_u64), document.members("thread")?.len());
    match announced {
        Some(announced) if announced != found as u64 => Err(document.wrong(
            "thread",
            &format!("has {found} threads"),
            &format!("{announced}, as num_threads says"),
        )),
        _ => Ok(()),
    }
}

/// What files of rt-tests say of themselves.
pub(super) fn facts(document: &Document) -> Facts {
    let command = command(document);
    let kernel = document.text(&["sysinfo", "release"]);
    let line = command.as_deref().unwrap_or_default();
    let interval = option(line, "-i", "--interval").and_then(|us| us.parse::<u64>().ok());
    let priority = option(line, "-p", "--prio").or_else(|| option(line, "-p", "--priority"));
    let policy = option(line, "--policy", "--policy").map(str::to_owned);
    let policy = match (policy, priority.filter(|priority| *priority != "0")) {
        (Some(policy), Some(priority)) => Some(format!("{policy} {priority}")),
        (Some(policy), None) => Some(policy),
        (None, Some(priority)) => Some(format!("fifo {priority}")),
        (None, None) => None,
    };
    Facts { kernel, period_ns: interval.map(|us| us.saturating_mul(1_000)), policy }
}

fn command(document: &Document) -> Option<String> {
    document.text(&["cmdline:"]).or_else(|| document.text(&["cmdline"]))
}
