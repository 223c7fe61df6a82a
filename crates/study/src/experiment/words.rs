//! A cell's commands: the words of the file with their placeholders filled in.
//!
//! `{NAME}` as a whole word of a level with words stands for all of them; inside a word it is the
//! level's name, the scaled quantity, or one of `cpus`, `cpu` (the first of them), `housekeeping`,
//! `dir` (the cell's), `out` (the step's, below it), `seed`.

use super::declared::{Experiment, Step};
use crate::cell::Cell;
use crate::experiment::parts::Level;
use serde_json::Value;

/// Placeholders that every file may use.
pub(super) const GIVEN: [&str; 6] = ["cpus", "cpu", "housekeeping", "dir", "out", "seed"];

/// What a cell is run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// CPUs to measure, as a list.
    pub cpus: String,
    /// The others.
    pub housekeeping: String,
    /// Directory of the cell: a step's `{out}` is one below it.
    pub out: String,
}

/// What a cell does: calls of this program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// Before its steps. Where one cannot be done, the cell is not applicable.
    pub before: Vec<Vec<String>>,
    /// Its steps by name; each prints one JSON object.
    pub steps: Vec<(String, Vec<String>)>,
    /// After its steps, whatever happened.
    pub after: Vec<Vec<String>>,
}

/// The calls of one cell. In a guest, those of levels that it makes once booted are left out.
pub fn commands(experiment: &Experiment, cell: &Cell, scale: f64, place: &Place, in_guest: bool) -> Commands {
    let levels: Vec<&Level> =
        experiment.levels(cell).map(|(_, level)| level).filter(|one| !(in_guest && one.per_boot)).collect();
    let fill = |words: &[String], step: &str| filled(experiment, cell, scale, place, words, step);
    let all = |calls: fn(&Level) -> &Vec<Vec<String>>| -> Vec<Vec<String>> {
        levels.iter().flat_map(|level| calls(level)).map(|words| fill(words, "")).collect()
    };
    let mut after = all(|level| &level.after);
    after.reverse();
    let steps = experiment.steps.iter().filter(|step| wanted(step, cell));
    let steps = steps.map(|step| (step.name.clone(), json(fill(step.run.get_ref(), &step.name)))).collect();
    Commands { before: all(|level| &level.before), steps, after }
}

/// The calls that a guest makes once booted, before this cell and all others of its boot.
pub fn once_booted(experiment: &Experiment, cell: &Cell, scale: f64, place: &Place) -> Vec<Vec<String>> {
    let levels = experiment.levels(cell).map(|(_, level)| level).filter(|level| level.per_boot);
    let calls = levels.flat_map(|level| &level.before);
    calls.map(|words| json(filled(experiment, cell, scale, place, words, ""))).collect()
}

/// The words with `--json` among them. What follows a lone `--` is another program's.
fn json(mut words: Vec<String>) -> Vec<String> {
    let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if !words[..own].iter().any(|word| word == "--json") {
        words.insert(own, "--json".to_owned());
    }
    words
}

impl Experiment {
    /// The levels that a cell has, by factor.
    pub(super) fn levels<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = (&'a str, &'a Level)> {
        self.factors.iter().filter_map(|factor| {
            let name = factor.name.get_ref().as_str();
            let has = text(cell.factors.get(name));
            let level = factor.levels.get_ref().iter().find(|level| level.name == has)?;
            Some((name, level))
        })
    }
}

pub(super) fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Whether a step is of this cell.
pub(super) fn wanted(step: &Step, cell: &Cell) -> bool {
    step.when.iter().all(|(factor, level)| text(cell.factors.get(factor.get_ref())) == level.get_ref())
}

fn filled(
    experiment: &Experiment,
    cell: &Cell,
    scale: f64,
    place: &Place,
    words: &[String],
    step: &str,
) -> Vec<String> {
    let mut filled = Vec::new();
    for word in words {
        let whole = placeholders(word).first().copied().filter(|name| word.len() == name.len() + 2);
        let level = whole.and_then(|name| experiment.levels(cell).find(|(factor, _)| *factor == name));
        match level.and_then(|(_, level)| level.words.as_ref()) {
            // The words of a level may have placeholders themselves, of which none is a factor's:
            // one round is enough.
            Some(words) => {
                filled.extend(words.iter().map(|word| replaced(experiment, cell, scale, place, word, step)));
            }
            None => filled.push(replaced(experiment, cell, scale, place, word, step)),
        }
    }
    filled
}

fn replaced(
    experiment: &Experiment,
    cell: &Cell,
    scale: f64,
    place: &Place,
    word: &str,
    step: &str,
) -> String {
    let mut result = word.to_owned();
    for name in placeholders(word) {
        let value = match name {
            "cpus" => place.cpus.clone(),
            "cpu" => place.cpus.split([',', '-']).next().unwrap_or_default().to_owned(),
            "housekeeping" => place.housekeeping.clone(),
            "dir" => place.out.clone(),
            "out" if step.is_empty() => format!("{}/run", place.out),
            "out" => format!("{}/{step}", place.out),
            "seed" => cell.seed.to_string(),
            _ => match experiment.quantities.get(name) {
                Some(quantity) => quantity.scaled(scale).to_string(),
                None => text(cell.factors.get(name)).to_owned(),
            },
        };
        result = result.replace(&format!("{{{name}}}"), &value);
    }
    result
}

/// Names between braces.
pub(super) fn placeholders(word: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = word;
    while let Some((_, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else { break };
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            names.push(name);
        }
        rest = after;
    }
    names
}
