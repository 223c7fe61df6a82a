//! `stillcore isolate plan`: what `apply` would change, in order, and what it cannot; or what a
//! profile of another tool would do of it.

use super::boot_line;
use super::desired::Reading;
use super::from::{self, From};
use super::order::Order;
use super::target::resident;
use clap::Args;
use model::plan::{BootStep, Fate, Plan, Step, StepKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Arguments of `isolate plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// What to isolate, and where.
    #[command(flatten)]
    pub(crate) order: Order,
    /// Show instead what this profile of TuneD does of the plan, and what it leaves: tuned:NAME, or
    /// tuned:DIR for a directory with a tuned.conf. Without --cpus the plan is for the CPUs that it
    /// isolates.
    #[arg(long, value_name = "TOOL:PROFILE", value_parser = from::from)]
    from: Option<From>,
    /// Print one JSON object instead of the list.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the plan.
pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<u8> {
    if let Some(from) = &args.from {
        return from::run(&args.order, from, args.json);
    }
    let Order { target, state, .. } = &args.order;
    let plan = target.plan_for(&args.order.root()?, state, Reading::AsData, args.order.next())?.plan;
    if args.json {
        println!("{}", serde_json::to_string(&with_schema(&plan)?)?);
    } else {
        print!("{}", text(&plan));
    }
    Ok(0)
}

fn with_schema(plan: &Plan) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(plan)?;
    value["schema"] = "stillcore.isolate-plan/1".into();
    Ok(value)
}

/// The plan as a page of text.
pub(crate) fn text(plan: &Plan) -> String {
    let mut page = format!(
        "plan to isolate CPUs {}, leaving {} for everything else\nplacement: {}; {}\n",
        plan.isolated,
        plan.housekeeping,
        plan.placement.name(),
        plan.placement_reason
    );
    residents(&mut page, plan);
    now(&mut page, plan);
    next_boot(&mut page, plan);
    if !plan.left.is_empty() {
        page.push_str("\nleft as it is\n");
        for left in &plan.left {
            let _ = writeln!(page, "  {:<28} {}", left.mechanism, left.reason);
        }
    }
    page
}

fn next_boot(page: &mut String, plan: &Plan) {
    let line = boot_line::text(&plan.boot_line);
    // Deployments spell parameters of their own, which nothing has put together with the line.
    let written: Vec<_> = plan.boot_line.changes.iter().flat_map(|change| &change.new).collect();
    let is_written = |step: &BootStep| {
        let parameter = step.parameter.as_deref().unwrap_or_default();
        !parameter.is_empty() && parameter.split(' ').all(|word| written.iter().any(|one| *one == word))
    };
    let rest: Vec<_> = plan.boot.iter().filter(|step| !is_written(step)).collect();
    if line.is_empty() && rest.is_empty() {
        return;
    }
    let _ = write!(page, "\nat the next boot\n{line}");
    for step in rest {
        let word = step.parameter.as_ref().map_or(String::new(), |parameter| format!("{parameter}: "));
        let _ = writeln!(page, "  {:<28} {word}{}", step.mechanism, step.what);
    }
}

/// Who may be there on purpose, and what becomes of each.
fn residents(page: &mut String, plan: &Plan) {
    if !plan.keep.is_empty() {
        let _ = writeln!(page, "kept: {}", plan.keep.join(", "));
    }
    if plan.residents.is_empty() {
        return;
    }
    page.push_str("\nreal-time, pinned or kept there\n");
    for one in &plan.residents {
        let fate = match (one.fate, one.deliberate) {
            (Fate::Kept, _) => "kept",
            (Fate::Stays, true) if plan.move_pinned => "came meanwhile; apply moves it",
            (Fate::Stays, true) => "stays; --move-pinned moves it",
            (Fate::Stays, false) => "stays",
            (Fate::Moves, asked) if !asked || plan.move_pinned => "moves away",
            (Fate::Moves, _) => "apply asks: --keep or --move-pinned",
        };
        let _ = writeln!(page, "  {:<70} {fate}", resident(one));
    }
}

fn now(page: &mut String, plan: &Plan) {
    if plan.steps.is_empty() {
        page.push_str("\nnothing to change now\n");
        return;
    }
    let changes = plan.steps.iter().filter(|step| !step.kind.remembers()).count();
    let _ = writeln!(page, "\nnow, in this order ({changes} changes)");
    for (mechanism, steps) in grouped(&plan.steps) {
        let first = steps[0];
        let _ = writeln!(page, "  {mechanism}{}", if first.risky { "  (risky)" } else { "" });
        for line in lines(&steps) {
            let _ = writeln!(page, "      {line}");
        }
        let _ = writeln!(page, "      why: {}", first.why);
        let _ = writeln!(page, "      costs: {}", first.cost);
    }
}

/// Steps of one mechanism that follow one another.
fn grouped(steps: &[Step]) -> Vec<(&str, Vec<&Step>)> {
    let mut groups: Vec<(&str, Vec<&Step>)> = Vec::new();
    for step in steps {
        match groups.last_mut() {
            Some((mechanism, group)) if *mechanism == step.mechanism => group.push(step),
            _ => groups.push((&step.mechanism, vec![step])),
        }
    }
    groups
}

/// One line per change; tasks that make the same change share a line.
fn lines(steps: &[&Step]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tasks = BTreeMap::<(&str, &str, &str), Vec<&str>>::new();
    for step in steps {
        let old = step.old.as_deref().unwrap_or("?");
        match step.kind {
            StepKind::Task => {
                let note = step.note.as_deref().unwrap_or_default();
                tasks.entry((old, &step.new, note)).or_default().push(name(&step.target));
            }
            StepKind::Kept => lines.push(format!("remember {}", step.target)),
            StepKind::Affinities => lines.push("remember where every task and interrupt may run".to_owned()),
            _ => {
                let note = step.note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
                lines.push(format!("{}  {old} -> {}{note}", step.target, step.new));
            }
        }
    }
    for ((old, new, note), names) in tasks {
        let note = if note.is_empty() { String::new() } else { format!("; {note}") };
        let shown = names.iter().take(6).copied().collect::<Vec<_>>().join(", ");
        let more = if names.len() > 6 { format!(" and {} more", names.len() - 6) } else { String::new() };
        let tasks = if names.len() == 1 { "task" } else { "tasks" };
        lines.push(format!("{} {tasks}  {old} -> {new}  ({shown}{more}{note})", names.len()));
    }
    lines
}

/// The name of a task, of `PID/STARTTIME/NAME`.
fn name(target: &str) -> &str {
    target.splitn(3, '/').nth(2).unwrap_or(target)
}
