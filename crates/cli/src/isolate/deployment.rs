//! `stillcore isolate deployment`: the six multicore deployments of the IEEE Access 2020 paper,
//! Table 1.

use super::State;
use super::apply::{Order, answer, carry_out, exit_code, need_root, summary};
use super::plan::text;
use super::target::{leaves_residents, purpose};
use audit::Catalogue;
use audit::deployment::{ALL, Deployed, Deployment, deploy};
use audit::keep::Keep;
use clap::Args;
use machine::Root;
use std::path::Path;
use sys::signals::EndSignals;

/// Arguments of `isolate deployment`.
#[derive(Debug, Args)]
pub(crate) struct DeploymentArgs {
    /// CHM, HM, HMI, M, MI or Single; letters name what is enabled: C-states, Hyper-threading,
    /// Multicore, Isolated CPUs.
    #[arg(value_parser = named)]
    pub(crate) name: Deployment,
    /// Only print the changes.
    #[arg(long)]
    pub(crate) plan: bool,
    /// Do not move this, as in apply: a PID, a task's name, /CONTROL/GROUP, irq:NUMBER, irq:NAME,
    /// policy:fifo.
    #[arg(long, value_name = "WHAT")]
    pub(crate) keep: Vec<Keep>,
    /// Also move real-time tasks and tasks explicitly pinned to the isolated CPUs.
    #[arg(long)]
    pub(crate) move_pinned: bool,
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn named(text: &str) -> Result<Deployment, String> {
    let found = ALL.iter().find(|deployment| deployment.name.eq_ignore_ascii_case(text));
    found
        .copied()
        .ok_or_else(|| format!("invalid deployment {text:?}: expected CHM, HM, HMI, M, MI or Single"))
}

/// Plans and, unless only the plan is wanted, applies.
pub(crate) fn run(args: &DeploymentArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let root = Root::open(Path::new("/"))?;
    let machine = machine::read(&root)?;
    let purpose = purpose(&root, &args.state, &args.keep)?;
    let deployed = deploy(&root, &machine, &Catalogue::embedded()?, args.name, &purpose)?;
    if args.plan {
        return show(args, &deployed);
    }
    need_root()?;
    leaves_residents(&deployed.plan, args.move_pinned)?;
    let order = Order {
        plan: &deployed.plan,
        profile: None,
        deployment: Some(args.name.name),
        strict: false,
        json: args.json,
        crash_at: None,
    };
    let applied = carry_out(&order, &args.state, signals)?;
    if args.json {
        let mut value = answer(&deployed.plan, &applied, "stillcore.isolate-deployment/1")?;
        add(args, &deployed, &mut value);
        println!("{value}");
    } else {
        print!("{}{}", summary(&deployed.plan, &applied), describe(args, &deployed));
    }
    Ok(exit_code(&applied, false))
}

fn show(args: &DeploymentArgs, deployed: &Deployed) -> anyhow::Result<u8> {
    if args.json {
        let mut value = serde_json::to_value(&deployed.plan)?;
        value["schema"] = "stillcore.isolate-deployment/1".into();
        add(args, deployed, &mut value);
        println!("{value}");
    } else {
        print!("{}{}", text(&deployed.plan), describe(args, deployed));
    }
    Ok(0)
}

fn add(args: &DeploymentArgs, deployed: &Deployed, value: &mut serde_json::Value) {
    value["deployment"] = args.name.name.into();
    value["measure"] = deployed.measure.into();
    value["not_applicable"] = deployed.not_applicable.clone().into();
}

fn describe(args: &DeploymentArgs, deployed: &Deployed) -> String {
    let not_applicable = deployed.not_applicable.iter().map(|reason| format!("not applicable: {reason}\n"));
    let measure = format!("deployment {}: measure CPU {}\n", args.name.name, deployed.measure);
    not_applicable.chain([measure]).collect()
}
