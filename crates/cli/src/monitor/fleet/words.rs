//! What a fleet's histories say, for people.

use super::{Answer, By, Judged};
use monitor::fleet::{GroupStanding, Standing};
use report::format;
use std::fmt::Write;

/// Rows that are shown where there are more.
const SHOWN: usize = 20;

/// The whole answer.
pub(super) fn words(answer: &Answer) -> String {
    let Answer { days: [first, last], machines, same_question, .. } = answer;
    let days = if first == last { format!("on {first}") } else { format!("from {first} to {last}") };
    let mut text = format!("{} {days} (UTC)\n", format::plural(machines.len() as u64, "machine"));
    for one in machines.iter().take(SHOWN) {
        let hours = format::plural(one.hours as u64, "hour");
        let _ = writeln!(text, "  {:<24} {hours:>10}  kernel {}", one.name, one.kernels.join(", "));
    }
    more(&mut text, machines.len());
    if !same_question {
        text.push_str("late threads are not compared: the limit or the threads were not the same\n");
    }
    if !answer.packages_unknown.is_empty() {
        let _ = writeln!(text, "packages are not known of {}", answer.packages_unknown.join(", "));
    }
    let listed = machines.len() - answer.packages_unknown.len();
    match answer.by {
        By::Package if listed < 2 => {
            text.push_str("nothing is known of packages: two machines at least must have a list of theirs\n");
        }
        By::Machine => each_machine(&mut text, &answer.standings),
        by => each_group(&mut text, by, &answer.groups),
    }
    text
}

fn each_machine(text: &mut String, rows: &[Judged<Standing>]) {
    let worse: Vec<&Standing> = rows.iter().map(|one| &one.row).filter(|row| row.is_worse()).collect();
    if worse.is_empty() {
        text.push_str("no machine is found worse than the others at the same hours\n");
    } else {
        text.push_str("worse than the others at the same hours:\n");
    }
    for row in worse.iter().take(SHOWN) {
        let Standing { machine, what, unit, value, others, p_value, .. } = row;
        let times = if *others > 0.0 { format!(", {:.2} times", value / others) } else { String::new() };
        let p = p_value.map_or(1.0, |p| p);
        let _ = writeln!(
            text,
            "  {machine:<24} {what}: {value:.3} {unit}, others {others:.3}{times} ({})",
            chance(p)
        );
    }
    more(text, worse.len());
    let short = rows.iter().filter(|one| one.row.p_value.is_none()).count();
    if short > 0 {
        let _ = writeln!(text, "{} not judged: too few hours", format::plural(short as u64, "figure"));
    }
    text.push_str("Each figure by itself: of twenty that are alike everywhere, one names a machine.\n");
}

fn each_group(text: &mut String, by: By, rows: &[Judged<GroupStanding>]) {
    let what = match by {
        By::Machine | By::Kernel => "kernel",
        By::Version => "version of stillcore",
        By::Package => "package",
    };
    if rows.is_empty() {
        let _ = writeln!(
            text,
            "no two groups of machines to compare by {what}: it is the same on all of them, or changed in that time\n\
             (monitor compare --at holds a machine against itself)"
        );
        return;
    }
    let shown: Vec<&Judged<GroupStanding>> = rows.iter().filter(|one| is_shown(one, rows)).collect();
    if shown.is_empty() {
        let _ = writeln!(text, "no {what} is found worse or better than the rest");
    }
    for Judged { row, verdict } in shown.iter().take(SHOWN) {
        let GroupStanding { group, what, unit, value, others, machines: [inside, outside], p_value, .. } =
            row;
        let _ = writeln!(text, "  {group}: {verdict}");
        let _ = writeln!(
            text,
            "      {what}: {value:.3} {unit}, others {others:.3} ({inside} against {outside} machines, {})",
            chance(*p_value)
        );
    }
    more(text, shown.len());
    let count = |verdict: &str| rows.iter().filter(|one| one.verdict == verdict).count() as u64;
    for (verdict, words) in
        [("cannot tell", "tells nothing apart"), ("too few machines", "has too few machines")]
    {
        match count(verdict) {
            0 => {}
            1 => drop(writeln!(text, "1 comparison {words}")),
            more => {
                let words = words.replacen("tells", "tell", 1).replacen("has", "have", 1);
                let _ = writeln!(text, "{more} comparisons {words}");
            }
        }
    }
    text.push_str(
        "A machine that changed in that time is in no group: monitor compare --at holds it against itself.\n\
         Machines are dealt out anew for each figure: of twenty that are alike everywhere, one differs by chance. A\n\
         difference need not come from what the machines have in common.\n",
    );
}

/// Worse, or better than several others: of two groups the worse one says all.
fn is_shown(one: &Judged<GroupStanding>, rows: &[Judged<GroupStanding>]) -> bool {
    let [inside, outside] = one.row.machines;
    let is_its_rest = |other: &Judged<GroupStanding>| {
        other.verdict == "worse" && other.row.what == one.row.what && other.row.machines == [outside, inside]
    };
    one.verdict == "worse" || one.verdict == "better" && !rows.iter().any(is_its_rest)
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

fn more(text: &mut String, found: usize) {
    if found > SHOWN {
        let _ = writeln!(text, "  and {} more: --json has all", found - SHOWN);
    }
}
