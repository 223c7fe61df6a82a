//! `stillcore isolate verify`: whether what was applied still holds; with `--watch`, what drifts and when.

use super::State;
use crate::args::duration;
use clap::Args;
use linux::isolate::Catalogue;
use linux::isolate::change::Live;
use linux::isolate::standing::{self, Found};
use linux::isolate::verify::{Verified, verify};
use linux::machine::Root;
use linux::sys::signals::EndSignals;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Arguments of `isolate verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Where the journal is.
    #[command(flatten)]
    pub(crate) state: State,
    /// Go on looking until stopped, and print what drifts, with the time since the start.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Distance of the looks.
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration, requires = "watch")]
    pub(crate) interval: Duration,
    /// Stop watching after this time.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "watch")]
    pub(crate) duration: Option<Duration>,
    /// Print one JSON object a look.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verifies; 2 when anything drifted.
pub(crate) fn run(args: &VerifyArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let state = args.state.path()?;
    let Some(found) = standing::find(&state)? else {
        anyhow::bail!("nothing is isolated by stillcore: nothing to verify");
    };
    if !found.this_boot {
        anyhow::bail!("what was isolated went with an earlier boot: apply it again");
    }
    let mut look = Look { root: Root::open(Path::new("/"))?, catalogue: Catalogue::embedded()?, found };
    let mut known = BTreeSet::new();
    let begin = Instant::now();
    let mut drifted = false;
    loop {
        let verified = look.once()?;
        drifted |= !verified.drifted.is_empty();
        tell(args, &verified, &mut known, begin.elapsed())?;
        let over = args.duration.is_some_and(|duration| begin.elapsed() + args.interval > duration);
        if !args.watch || over || wait(args.interval, signals) {
            return Ok(if drifted { 2 } else { 0 });
        }
    }
}

struct Look {
    root: Root,
    catalogue: Catalogue,
    found: Found,
}

impl Look {
    fn once(&mut self) -> anyhow::Result<Verified> {
        let mut live = Live::new(&std::env::current_exe()?);
        Ok(verify(&self.root, &self.catalogue, &self.found, &mut live)?)
    }
}

/// Waits for the next look; true when asked to stop.
fn wait(interval: Duration, signals: &EndSignals) -> bool {
    let until = Instant::now() + interval;
    while Instant::now() < until {
        if signals.arrived().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20).min(interval));
    }
    false
}

fn tell(
    args: &VerifyArgs,
    verified: &Verified,
    known: &mut BTreeSet<String>,
    since: Duration,
) -> anyhow::Result<()> {
    if args.json {
        let mut value = serde_json::to_value(verified)?;
        value["schema"] = "stillcore.isolate-verify/1".into();
        value["t_s"] = since.as_secs_f64().into();
        println!("{value}");
        return Ok(());
    }
    if known.is_empty() && since < args.interval {
        println!("{} changes hold, {} are gone with their target", verified.holding, verified.gone);
    }
    let now: BTreeSet<_> = verified.drifted.iter().cloned().collect();
    let at = if args.watch { format!("{:8.1} s  ", since.as_secs_f64()) } else { String::new() };
    for new in now.difference(known) {
        println!("{at}{new}");
    }
    for healed in known.difference(&now) {
        println!("{at}no longer: {healed}");
    }
    *known = now;
    Ok(())
}
