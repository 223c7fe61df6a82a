//! Which experiments of a paper are run, in which order, and at which scale: those first that
//! decide most statements for their time.

use super::kept::Kept;
use super::{ReplicateArgs, papers};
use crate::measure::table::table;
use crate::study_verb::experiment::{self, files};
use crate::study_verb::statements;
use model::Error;
use report::format;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use study::experiment::{Planned, decidable, expected};

/// Scales that are tried, the largest first.
const SCALES: [f64; 9] = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001];

/// An experiment that is to be run.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) name: String,
    /// Its file.
    pub(super) text: &'static str,
    pub(super) title: String,
    /// All its cells.
    pub(super) cells: usize,
    /// How long those take that have no result yet.
    pub(super) left: Duration,
    /// Statements that its repetitions can decide.
    pub(super) decides: BTreeSet<String>,
}

/// What was chosen.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) scale: f64,
    /// In the order in which to run them.
    pub(super) fitting: Vec<Wanted>,
    /// For which there is no time.
    pub(super) left_out: Vec<Wanted>,
    /// Experiments that cannot be run so, and why.
    pub(super) refused: Vec<(String, String)>,
}

/// Chooses for the time that is left.
pub(super) fn chosen(args: &ReplicateArgs, out: &Path, kept: &Kept) -> anyhow::Result<Chosen> {
    let named = named(&args.paper, &args.only)?;
    let left = args.within.saturating_sub(Duration::from_secs_f64(kept.spent_s));
    let fixed = args.scale.or((kept.scale > 0.0).then_some(kept.scale));
    let scales = fixed.map_or_else(|| SCALES.to_vec(), |scale| vec![scale]);
    let mut found = None;
    let mut known = BTreeMap::new();
    for scale in scales {
        let one = at_scale(args, out, &named, scale, left, &mut known);
        let fits = one.left_out.is_empty();
        found = Some(one);
        if fits {
            break;
        }
    }
    found.ok_or_else(|| anyhow::anyhow!("no scale to try"))
}

/// The experiments that judge statements of a paper, by name, with their files; of them those that
/// were asked for.
fn named(paper: &str, only: &[String]) -> anyhow::Result<Vec<(&'static str, &'static str)>> {
    let papers = papers(paper)?;
    let of = |id: &str| papers.iter().any(|paper| id.split('.').next() == Some(paper));
    let claims: BTreeMap<String, Vec<String>> = statements::claims()?;
    let wanted: BTreeSet<&String> =
        claims.iter().filter(|(id, _)| of(id)).flat_map(|(_, names)| names).collect();
    let all = files::FILES.iter().copied();
    let mut named: Vec<_> = all.filter(|(name, _)| wanted.iter().any(|one| one == name)).collect();
    if let Some(unknown) = only.iter().find(|one| !named.iter().any(|(name, _)| name == one)) {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        return Err(Error::invalid("--only", unknown, names.join(", ")).into());
    }
    named.retain(|(name, _)| only.is_empty() || only.iter().any(|one| one == name));
    Ok(named)
}

fn at_scale(
    args: &ReplicateArgs,
    out: &Path,
    named: &[(&'static str, &'static str)],
    scale: f64,
    mut left: Duration,
    known: &mut BTreeMap<String, BTreeSet<String>>,
) -> Chosen {
    let mut wanted = Vec::new();
    let mut refused = Vec::new();
    for &(name, text) in named {
        let call = args.call(name, text, out, scale);
        match experiment::ahead(&call, text, name) {
            Ok(ahead) if ahead.cells.is_empty() => {
                let why = "none of its cells can be run there: each needs another machine, kernel or boot";
                refused.push((name.to_owned(), why.to_owned()));
            }
            Ok(ahead) => {
                // The scale changes lengths, and no repetition.
                let decides = known.entry(name.to_owned()).or_insert_with(|| {
                    let all = decidable(&ahead.experiment, &ahead.cells).into_iter();
                    all.filter(|one| one.limit.decidable()).filter_map(|one| one.statement).collect()
                });
                let decides = decides.clone();
                let cells: Vec<&Planned> =
                    ahead.cells.iter().filter(|one| ahead.todo.contains(&one.cell.id)).collect();
                wanted.push(Wanted {
                    name: name.to_owned(),
                    text,
                    title: ahead.experiment.title.clone(),
                    cells: ahead.cells.len(),
                    left: expected(&cells),
                    decides,
                });
            }
            Err(error) => refused.push((name.to_owned(), format!("{error:#}"))),
        }
    }
    // What is already there costs nothing and comes first.
    let worth = |one: &Wanted| one.decides.len() as f64 / one.left.as_secs_f64().max(1.0);
    wanted.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let (mut fitting, mut left_out) = (Vec::new(), Vec::new());
    for one in wanted {
        match left.checked_sub(one.left) {
            Some(rest) => {
                left = rest;
                fitting.push(one);
            }
            None => left_out.push(one),
        }
    }
    Chosen { scale, fitting, left_out, refused }
}

impl Chosen {
    /// Statements that what is run can decide.
    fn decides(&self) -> BTreeSet<&String> {
        self.fitting.iter().flat_map(|one| &one.decides).collect()
    }

    /// For `--plan`.
    pub(super) fn page(&self, args: &ReplicateArgs) -> String {
        let row = |one: &Wanted, fits: bool| {
            let span = format::span(one.left.as_nanos() as u64);
            let run = if fits { "yes" } else { "no time left" };
            vec![one.name.clone(), one.cells.to_string(), span, one.decides.len().to_string(), run.to_owned()]
        };
        let rows = self.fitting.iter().map(|one| row(one, true));
        let rows = rows.chain(self.left_out.iter().map(|one| row(one, false)));
        let mut page = table(&["experiment", "cells", "takes", "can decide", "run"], rows.collect());
        let takes: Duration = self.fitting.iter().map(|one| one.left).sum();
        let _ = writeln!(
            page,
            "\n{} experiments at scale {}, about {} of {}; {} statements can be decided",
            self.fitting.len(),
            self.scale,
            format::span(takes.as_nanos() as u64),
            format::span(args.within.as_nanos() as u64),
            self.decides().len()
        );
        for (name, why) in &self.refused {
            let _ = writeln!(page, "- {name} cannot be run so: {why}");
        }
        page
    }
}
