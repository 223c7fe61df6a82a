//! `isolate plan --from`: what a profile of another tool does of a plan, and what it leaves.

use super::order::Order;
use anyhow::Context;
use audit::Desired;
use exchange::{Compared, Profile, Row, Verdict, compare, read_profile};
use machine::Root;
use model::Error;
use model::foreign::in_a_line;
use serde_json::json;
use std::fmt::Write;

/// How many settings of one mechanism that are alike are shown.
const SHOWN: usize = 2;

/// A profile of another tool.
#[derive(Debug, Clone)]
pub(crate) struct From {
    /// Its name, or the path of its directory.
    name: String,
}

/// Reads `tuned:PROFILE`.
pub(crate) fn from(text: &str) -> Result<From, Error> {
    let name = text.strip_prefix("tuned:").filter(|name| !name.is_empty());
    let name =
        name.ok_or_else(|| Error::invalid("--from", format!("{text:?}"), "tuned:PROFILE or tuned:DIR"))?;
    let path =
        || std::path::absolute(name).map_err(|error| Error::io("find", std::path::Path::new(name), error));
    let name = if name.contains('/') { path()?.display().to_string() } else { name.to_owned() };
    Ok(From { name })
}

/// Prints how the profile stands to what is desired.
pub(super) fn run(order: &Order, from: &From, json: bool) -> anyhow::Result<u8> {
    let root = order.root()?;
    // Profiles are files of this machine, also where the plan is for a captured one.
    let profile = read_profile(&Root::live(), &root, &from.name, order.target.cpus.as_ref())?;
    let isolated = Some(&profile.isolated).filter(|cpus| !cpus.is_empty());
    let desired = order
        .compared(&root, isolated)
        .with_context(|| format!("tuned:{}: no plan to hold it against", in_a_line(&from.name)))?;
    let line = root.maybe("proc/cmdline").unwrap_or_default();
    let compared = compare(&desired, &profile, &line);
    if json {
        println!("{}", document(&desired, &profile, &compared));
    } else {
        print!("{}", text(&desired, &profile, &compared));
    }
    Ok(0)
}

fn document(desired: &Desired, profile: &Profile, compared: &Compared) -> serde_json::Value {
    let rows = compared.rows.iter().map(|row| {
        json!({
            "mechanism": row.mechanism, "what": row.what, "desired": row.desired, "profile": row.profile,
            "verdict": word(row.verdict), "is_so": row.is_so,
        })
    });
    json!({
        "schema": "stillcore.isolate-from/1", "tool": "tuned", "profile": profile.name, "read": profile.read,
        "isolated": desired.plan.isolated, "rows": rows.collect::<Vec<_>>(), "besides": compared.besides,
        "unknown": profile.unknown, "refused": profile.refused, "files": profile.files, "parameters": profile.parameters,
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Other => "other",
        Verdict::Left => "left",
    }
}

fn text(desired: &Desired, profile: &Profile, compared: &Compared) -> String {
    let count = |verdict| compared.rows.iter().filter(|row| row.verdict == verdict).count();
    let is_so = |row: &&Row| row.verdict == Verdict::Left && row.is_so;
    let refused = if profile.refused.is_empty() {
        String::new()
    } else {
        let what = in_a_line(&profile.refused.join(", "));
        format!(
            "TuneD refuses this profile as it is: it asserts, and does not find: {what}\nwithout that, of "
        )
    };
    let mut page = format!(
        "tuned profile {} against the plan to isolate CPUs {}\n{}{} settings: {} as planned, {} otherwise, {} left, {} of them so already\n",
        in_a_line(&profile.name),
        desired.plan.isolated,
        refused,
        compared.rows.len(),
        count(Verdict::Same),
        count(Verdict::Other),
        count(Verdict::Left),
        compared.rows.iter().filter(is_so).count(),
    );
    for file in &profile.read {
        let _ = writeln!(page, "read: {}", in_a_line(file));
    }
    let of = |verdict| compared.rows.iter().filter(move |row| row.verdict == verdict);
    rows(&mut page, "does otherwise", of(Verdict::Other));
    rows(&mut page, "leaves", of(Verdict::Left).filter(|row| !row.is_so));
    rows(&mut page, "does as planned", of(Verdict::Same));
    lines(&mut page, "does besides", &compared.besides);
    lines(&mut page, "not known without running it", &profile.unknown);
    rows(&mut page, "leaves what is so already", of(Verdict::Left).filter(|row| row.is_so));
    page
}

fn rows<'a>(page: &mut String, title: &str, rows: impl Iterator<Item = &'a Row>) {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let alike = |other: &Row| {
            (&other.mechanism, &other.desired, &other.profile, other.is_so)
                == (&row.mechanism, &row.desired, &row.profile, row.is_so)
                && !row.desired.is_empty()
        };
        match groups.iter_mut().find(|group| alike(group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    if !groups.is_empty() {
        let _ = writeln!(page, "\n{title}");
    }
    for group in groups {
        for row in group.iter().take(SHOWN) {
            let _ = writeln!(page, "  {:<28} {}", row.mechanism, one(row));
        }
        if group.len() > SHOWN {
            let _ = writeln!(page, "  {:<28} and {} more like it", "", group.len() - SHOWN);
        }
    }
}

fn one(row: &Row) -> String {
    let mut text = in_a_line(&row.what);
    match (&row.profile, row.desired.is_empty()) {
        (Some(theirs), false) => {
            let _ = write!(text, ": {} instead of {}", in_a_line(theirs), in_a_line(&row.desired));
        }
        (Some(theirs), true) => {
            let _ = write!(text, ": {} instead", in_a_line(theirs));
        }
        (None, false) => {
            let _ = write!(text, " = {}", in_a_line(&row.desired));
        }
        (None, true) => {}
    }
    let is_planned = row.verdict != Verdict::Left;
    if row.is_so && is_planned { text + "  (so already)" } else { text }
}

fn lines(page: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(page, "\n{title}");
    }
    for line in lines {
        let _ = writeln!(page, "  {}", in_a_line(line));
    }
}
