//! Which boots the cells of the chosen experiments need, and how they are run in each.

use super::super::chosen::{Chosen, Wanted};
use super::super::kept::Kept;
use super::super::{Ended, ReplicateArgs, run_one};
use super::here::Here;
use crate::measure::table::table;
use crate::run::progress::Reporter;
use crate::study_verb::experiment;
use report::format;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use study::boots::{BootOf, Chain};
use sys::signals::EndSignals;

/// The cells of an experiment, by the boot that they need.
struct Study {
    wanted: Wanted,
    /// Where its results are.
    dir: PathBuf,
    boots: BTreeMap<BootOf, Group>,
}

/// Cells of an experiment that share a boot.
#[derive(Default)]
struct Group {
    ids: BTreeSet<String>,
    takes: Duration,
}

/// All of them, in the order of the experiments.
pub(super) struct Cells(Vec<Study>);

impl Cells {
    pub(super) fn of(
        args: &ReplicateArgs,
        chosen: &Chosen,
        out: &Path,
        cpus: &str,
        housekeeping: &str,
    ) -> anyhow::Result<Self> {
        let mut studies = Vec::new();
        for wanted in &chosen.fitting {
            let call = args.call(&wanted.name, wanted.text, out, chosen.scale);
            let ahead = experiment::ahead(&call, wanted.text, &wanted.name)?;
            let mut boots: BTreeMap<BootOf, Group> = BTreeMap::new();
            for planned in &ahead.cells {
                let group = boots.entry(BootOf::of(&planned.needs, cpus, housekeeping)).or_default();
                group.ids.insert(planned.cell.id.clone());
                group.takes += planned.expected();
            }
            let dir = call.out.unwrap_or_else(|| out.join(&wanted.name));
            studies.push(Study { wanted: wanted.clone(), dir, boots });
        }
        Ok(Self(studies))
    }

    /// The boots: first what any will do for, then in the order of the experiments.
    pub(super) fn boots(&self) -> Vec<BootOf> {
        let mut boots: Vec<BootOf> = Vec::new();
        for boot in self.0.iter().flat_map(|study| study.boots.keys()) {
            if !boots.contains(boot) {
                boots.push(boot.clone());
            }
        }
        boots.sort_by_key(|boot| boot.kernel.is_some());
        boots
    }

    /// Results that there are.
    pub(super) fn results(&self) -> usize {
        let of = |study: &Study| std::fs::read_dir(study.dir.join("cells")).into_iter().flatten().count();
        self.0.iter().map(of).sum()
    }

    /// Runs the cells of a boot, experiment by experiment. Error: a signal has ended it.
    pub(super) fn run(
        &self,
        args: &ReplicateArgs,
        boot: &BootOf,
        out: &Path,
        kept: &mut Kept,
        signals: &EndSignals,
    ) -> anyhow::Result<()> {
        for study in &self.0 {
            let Some(group) = study.boots.get(boot) else { continue };
            let wanted = Wanted { left: group.takes, ..study.wanted.clone() };
            match run_one(args, &wanted, Some(&group.ids), out, kept, signals)? {
                Ended::Ran => {}
                Ended::LeftOut(why) | Ended::Failed(why) => {
                    Reporter::say(&format!("{}: {why}", wanted.name));
                    let note = format!("{}, boot {}: {why}", wanted.name, boot.words());
                    if !kept.not_run.contains(&note) {
                        kept.not_run.push(note);
                        kept.store(out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// For `--plan`: the boots, with what each adds.
    pub(super) fn page(&self, chain: &Chain, here: &Here) -> String {
        let row = |stage: &study::boots::Stage| {
            let groups: Vec<(&Study, &Group)> =
                self.0.iter().filter_map(|study| Some((study, study.boots.get(&stage.boot)?))).collect();
            let cells: usize = groups.iter().map(|(_, group)| group.ids.len()).sum();
            let takes: Duration = groups.iter().map(|(_, group)| group.takes).sum();
            let state = match &stage.given_up {
                Some(why) => why.clone(),
                None if stage.done => "done".to_owned(),
                None => stage.release.clone(),
            };
            vec![stage.boot.words(), cells.to_string(), format::span(takes.as_nanos() as u64), state]
        };
        let rows = chain.stages.iter().map(row).collect();
        let mut page = format!("\nmeasured CPUs {}\n\n", chain.cpus);
        page.push_str(&table(&["boot", "cells", "takes", "kernel"], rows));
        let boots = here.further(chain);
        let home = if boots > 0 { ", and one more into the machine's own at the end" } else { "" };
        let _ = writeln!(page, "\n{}{home}", format::plural(boots as u64, "boot"));
        page
    }

    /// How many experiments have a result of any cell.
    pub(super) fn ran(&self) -> usize {
        self.0.iter().filter(|study| study.dir.join("study.json").exists()).count()
    }
}

/// Boots whose cells have not all run, and why.
pub(super) fn notes(chain: &Chain) -> Vec<String> {
    let of = |stage: &study::boots::Stage| {
        let why = match (&stage.given_up, stage.done) {
            (Some(why), _) => why.clone(),
            (None, false) => "stopped".to_owned(),
            (None, true) => return None,
        };
        Some(format!("boot {}: {why}", stage.boot.words()))
    };
    chain.stages.iter().filter_map(of).collect()
}
