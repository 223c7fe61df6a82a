//! `stillcore isolate apply`: carries out a plan. Stopped or failing, it undoes its changes.

use super::State;
use super::crash::Crashing;
use super::desired::Reading;
use super::target::{Planned, Target, leaves_residents, resident};
use crate::stdout;
use audit::{Catalogue, Profile};
use clap::Args;
use isolate::apply::{Applied, Change, Observer, apply};
use isolate::head::Head;
use isolate::revert::revert_since;
use isolate::standing::Standing;
use isolate::{unknown_group, watch};
use journal::settings::Live;
use machine::Root;
use model::plan::{Fate, Placement, Plan, Resident};
use std::fmt::Write as _;
use std::path::Path;
use sys::signals::EndSignals;

/// Arguments of `isolate apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// What to isolate.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Fail where the kernel refuses the placement, instead of using affinities; undoes what was
    /// changed.
    #[arg(long, requires = "placement")]
    pub(crate) strict: bool,
    /// Print one JSON object instead of one line per change.
    #[arg(long)]
    pub(crate) json: bool,
    /// End the process before (2k) or after (2k+1) the k-th write: for tests.
    #[arg(long, hide = true)]
    pub(crate) crash_at: Option<u64>,
}

/// Plans and applies.
pub(crate) fn run(args: &ApplyArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let root = Root::open(Path::new("/"))?;
    let Planned { plan, profile } = args.target.plan(&root, &args.state, Reading::ToActUpon)?;
    need_root()?;
    leaves_residents(&plan, profile.move_pinned)?;
    let order = Order {
        plan: &plan,
        profile: Some(&profile),
        deployment: None,
        strict: args.strict,
        json: args.json,
        crash_at: args.crash_at,
    };
    let applied = carry_out(&order, &args.state, signals)?;
    if args.json {
        stdout::progress(format_args!("{}\n", answer(&plan, &applied, "stillcore.isolate-apply/1")?));
    } else {
        stdout::progress(format_args!("{}", summary(&plan, &applied)));
    }
    Ok(exit_code(&applied, profile.placement.is_some()))
}

/// What to carry out, and how to report it.
pub(crate) struct Order<'a> {
    pub(crate) plan: &'a Plan,
    /// What asked for it; a deployment is known by its name.
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) deployment: Option<&'a str>,
    /// Whether a placement that the kernel refuses is an error.
    pub(crate) strict: bool,
    pub(crate) json: bool,
    pub(crate) crash_at: Option<u64>,
}

/// Applies over the journal; an error or a signal undoes everything.
pub(crate) fn carry_out(order: &Order, state: &State, signals: &EndSignals) -> anyhow::Result<Applied> {
    let plan = order.plan;
    let state = state.path()?;
    let mut standing = Standing::open(&state)?;
    // An entry that is not understood may concern what this call changes, unless it is of an
    // earlier boot.
    let of_now = standing.found()?.is_none_or(|found| found.this_boot);
    if let Some(line) = standing.refused().first().filter(|_| of_now) {
        anyhow::bail!(
            "{}: {line} cannot be trusted, so nothing is applied on top of it: undo with the version that wrote it, or look into it and \
             give it up with stillcore isolate undo --forget",
            standing.path().display()
        );
    }
    let head = Head::of(plan, order.deployment);
    let goes_on = may_go_on(&mut standing, &head)?;
    if !goes_on {
        standing.end()?;
        standing = Standing::open(&state)?;
    }
    if let Some(group) = unknown_group(&Root::live(), &standing) {
        if standing.found()?.is_none() {
            standing.end()?;
        }
        anyhow::bail!(
            "the control group {group} belongs to an isolation that the state directory {} does not know: undo it with its own --state, or remove the group",
            state.display()
        );
    }
    let mut live = Live::new(&std::env::current_exe()?);
    let mut settings = Crashing::new(&mut live, order.crash_at);
    let first = standing.next();
    let mut print_change = |change: &Change| {
        if !order.json {
            stdout::progress(format_args!("{}\n", line(change)));
        }
    };
    let mut stop = || signals.arrived().map(str::to_owned);
    let mut observer = Observer { stop: &mut stop, on_change: &mut print_change };
    let catalogue = Catalogue::embedded()?;
    let done = apply(plan, &head, &mut standing, &mut settings, &mut observer)
        .map_err(anyhow::Error::from)
        .and_then(|applied| {
            if let Some(refused) = applied.fallback.first().filter(|_| order.strict) {
                let reason = refused.reason.as_deref().unwrap_or("it gave no reason");
                anyhow::bail!("this kernel does not hold the placement {}: {reason}", plan.placement.name());
            }
            if let Some(profile) = order.profile {
                standing.desire(profile)?;
            }
            watch::begin(&Root::live(), &catalogue, &head, &mut standing)?;
            Ok(applied)
        });
    match done {
        Ok(applied) => Ok(applied),
        Err(error) => {
            let reverted = revert_since(standing, &mut settings, first)?;
            let left = reverted.failed.len();
            let what = if left == 0 {
                format!("the {} changes made were taken back", reverted.undone.len())
            } else {
                format!("{left} changes could not be taken back: {}", reverted.failed.join("; "))
            };
            Err(error.context(what))
        }
    }
}

/// Whether the journal's changes are of the same order and boot, so that this call completes them.
/// A journal of another boot no longer applies.
fn may_go_on(standing: &mut Standing, head: &Head) -> anyhow::Result<bool> {
    let Some(found) = standing.found()? else { return Ok(true) };
    if !found.this_boot {
        return Ok(false);
    }
    let same = found.head.isolated == head.isolated
        && found.head.housekeeping == head.housekeeping
        && found.head.deployment == head.deployment;
    if same {
        return Ok(true);
    }
    let what = match &found.head.deployment {
        Some(name) => format!("deployment {name} is in place"),
        None => format!("CPUs {} are isolated already", found.head.isolated),
    };
    anyhow::bail!("{what}: end that first with stillcore isolate undo")
}

/// Refuses to go on without root.
pub(crate) fn need_root() -> anyhow::Result<()> {
    if sys::process::is_root() {
        return Ok(());
    }
    anyhow::bail!("changing a machine needs root; stillcore isolate plan works without")
}

/// One change in a line.
pub(crate) fn line(change: &Change) -> String {
    let old = change.old.as_deref().unwrap_or("?");
    match &change.reason {
        None => format!("{:<24} {}  {old} -> {}", change.mechanism, change.target, change.new),
        Some(reason) => {
            format!("{:<24} {}  stays {old}: {reason}", change.mechanism, change.target)
        }
    }
}

/// The end of the text answer.
pub(crate) fn summary(plan: &Plan, applied: &Applied) -> String {
    let mut text = format!(
        "{} changes made, {} were already so, {} cannot be moved, {} refused; tasks were looked for {}, {} could not be moved\n",
        applied.applied.len(),
        applied.already.len(),
        applied.immovable.len(),
        applied.refused.len(),
        if applied.rounds == 1 { "once".to_owned() } else { format!("{} times", applied.rounds) },
        applied.stray.len()
    );
    for refused in &applied.fallback {
        let reason = refused.reason.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "no {}, what was made of it is taken back, affinities keep tasks away: {reason}",
            refused.mechanism
        );
    }
    for one in plan.residents.iter().filter(|one| one.fate == Fate::Kept) {
        let _ = writeln!(text, "kept: {}", resident(one));
    }
    for left in &plan.left {
        let _ = writeln!(text, "left: {}: {}", left.mechanism, left.reason);
    }
    let stays = |one: &&Resident| one.fate == Fate::Stays && one.deliberate && !plan.move_pinned;
    for one in plan.residents.iter().filter(stays) {
        let _ = writeln!(text, "left: {}: pinned there; --move-pinned moves it", resident(one));
    }
    let boot: Vec<_> = plan.boot.iter().filter_map(|step| step.parameter.as_deref()).collect();
    if !boot.is_empty() {
        let _ =
            writeln!(text, "needs another boot: {}; isolate plan shows what they replace", boot.join(" "));
    }
    let cpus = &plan.isolated;
    let _ = writeln!(
        text,
        "check with stillcore isolate verify; see what may still come with stillcore resources --cpus {cpus}; end with stillcore isolate undo"
    );
    text
}

/// The JSON answer.
pub(crate) fn answer(plan: &Plan, applied: &Applied, schema: &str) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(applied)?;
    value["schema"] = schema.into();
    value["cpus"] = serde_json::to_value(&plan.cpus)?;
    value["isolated"] = serde_json::to_value(&plan.isolated)?;
    value["housekeeping"] = serde_json::to_value(&plan.housekeeping)?;
    // A refused placement does not keep tasks away.
    let placement = if applied.fallback.is_empty() { plan.placement } else { Placement::Affinity };
    value["placement"] = serde_json::to_value(placement)?;
    value["boot"] = serde_json::to_value(&plan.boot)?;
    value["boot_line"] = serde_json::to_value(&plan.boot_line)?;
    value["left"] = serde_json::to_value(&plan.left)?;
    value["keep"] = serde_json::to_value(&plan.keep)?;
    value["residents"] = serde_json::to_value(&plan.residents)?;
    Ok(value)
}

/// 2 where the kernel refused something or tasks stayed. A refused placement counts only where the
/// user asked for that one.
pub(crate) fn exit_code(applied: &Applied, placement_asked: bool) -> u8 {
    let placed = applied.fallback.is_empty() || !placement_asked;
    if applied.refused.is_empty() && applied.stray.is_empty() && placed { 0 } else { 2 }
}
