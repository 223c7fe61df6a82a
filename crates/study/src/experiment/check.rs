//! Checks a file for every possible mistake before anything is started.

use super::claims::Form;
use super::declared::{Claim, EXPERIMENT_SCHEMA, Experiment};
use super::fault::Fault;
use super::published::Published;
use super::quantity::{Amount, Quantity, time_ns};
use super::words::{GIVEN, placeholders};
use crate::experiment::factors::{KERNEL, OF_STATEMENTS, SETTING, VALUE};
use crate::experiment::parts::Figure;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// Mechanisms of an ablation: 64 subsets.
const MECHANISMS: usize = 6;

type Checked = Result<(), Fault>;
type Where = BTreeMap<Spanned<String>, Spanned<String>>;

/// A file and its text, for the places of mistakes.
struct Checker<'a> {
    experiment: &'a Experiment,
    text: &'a str,
}

/// Checks what the parser could not.
pub(super) fn check(experiment: &Experiment, text: &str, published: &Published) -> Checked {
    let checker = Checker { experiment, text };
    checker.head()?;
    checker.factors()?;
    checker.steps()?;
    checker.values()?;
    checker.series()?;
    checker.duration()?;
    checker.published(published)?;
    checker.ablation()?;
    checker.layout()
}

impl Checker<'_> {
    fn fail(&self, span: Range<usize>, what: impl Into<String>) -> Checked {
        Err(Fault::at(self.text, &span, what))
    }

    fn head(&self) -> Checked {
        let Experiment { schema, name, repetitions, .. } = self.experiment;
        if schema.get_ref() != EXPERIMENT_SCHEMA {
            return self.fail(
                schema.span(),
                format!("schema is {:?}; expected {EXPERIMENT_SCHEMA:?}", schema.get_ref()),
            );
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let what = format!("name {:?}; expected small letters, digits and hyphens", name.get_ref());
            return self.fail(name.span(), what);
        }
        if *repetitions.get_ref() == 0 {
            return self.fail(repetitions.span(), "no repetitions; expected at least 1");
        }
        Ok(())
    }

    fn factors(&self) -> Checked {
        let mut seen: Vec<&str> = Vec::new();
        for factor in &self.experiment.factors {
            let name = factor.name.get_ref().as_str();
            let taken = [KERNEL, SETTING].contains(&name)
                || OF_STATEMENTS.contains(&name)
                || GIVEN.contains(&name)
                || self.experiment.quantities.contains_key(name);
            if taken || seen.contains(&name) || name.is_empty() {
                let what = format!("a factor named {name:?}; expected a name that nothing else has");
                return self.fail(factor.name.span(), what);
            }
            seen.push(name);
            let levels = factor.levels.get_ref();
            if levels.is_empty() {
                return self.fail(
                    factor.levels.span(),
                    format!("factor {name:?} has no levels; expected at least one"),
                );
            }
            let twice = levels
                .iter()
                .enumerate()
                .find(|(at, level)| levels[..*at].iter().any(|one| one.name == level.name));
            if let Some((_, level)) = twice {
                let what = format!("factor {name:?} has level {:?} twice; expected each once", level.name);
                return self.fail(factor.levels.span(), what);
            }
            for word in levels.iter().filter_map(|level| level.boot.as_deref()).flat_map(placeholders) {
                if !["cpus", "cpu", "housekeeping"].contains(&word) {
                    let what = format!("{{{word}}} in a boot line; expected cpus, cpu or housekeeping");
                    return self.fail(factor.levels.span(), what);
                }
            }
            if let Some(words) =
                levels.iter().flat_map(|level| &level.after).find(|words| undone_in(words).is_none())
            {
                // A killed study is undone from what its directory says, which is data and runs
                // nothing else.
                let what =
                    format!("after = [{words:?}]; expected [\"isolate\", \"undo\"], with --state or without");
                return self.fail(factor.levels.span(), what);
            }
            for words in
                levels.iter().flat_map(|level| level.before.iter().chain(&level.after).chain(&level.words))
            {
                self.words(words, &factor.levels.span(), false)?;
            }
        }
        for (name, Quantity { full, least }) in &self.experiment.quantities {
            let alike = matches!(
                (full.get_ref(), least),
                (Amount::Count(_), Amount::Count(_)) | (Amount::Time(_), Amount::Time(_))
            );
            if !alike || GIVEN.contains(&name.as_str()) {
                let what =
                    format!("quantity {name:?}; expected two counts or two durations, and a name of its own");
                return self.fail(full.span(), what);
            }
        }
        Ok(())
    }

    /// Every placeholder is something.
    fn words(&self, words: &[String], span: &Range<usize>, factors: bool) -> Checked {
        for name in words.iter().flat_map(|word| placeholders(word)) {
            let factor = self.experiment.factors.iter().any(|factor| factor.name.get_ref() == name);
            let known = GIVEN.contains(&name)
                || self.experiment.quantities.contains_key(name)
                || name == KERNEL && !self.experiment.machine.kernels.is_empty()
                || factors && factor;
            if !known {
                let what = format!(
                    "{{{name}}} stands for nothing; expected a factor, a quantity, or one of {}",
                    GIVEN.join(", ")
                );
                return self.fail(span.clone(), what);
            }
        }
        Ok(())
    }

    fn steps(&self) -> Checked {
        let steps = &self.experiment.steps;
        if steps.is_empty() {
            return self.fail(0..0, "there are no steps; expected [[step]] with run = [\"VERB\", …]");
        }
        for (at, step) in steps.iter().enumerate() {
            if step.run.get_ref().is_empty() {
                return self.fail(step.run.span(), "a step without words; expected run = [\"VERB\", …]");
            }
            self.words(step.run.get_ref(), &step.run.span(), true)?;
            self.levels(&step.when)?;
            let named = !step.name.is_empty() || steps.len() == 1;
            if !named || steps[..at].iter().any(|one| one.name == step.name && steps.len() > 1) {
                return self.fail(step.run.span(), "several steps; expected a name of its own for each");
            }
        }
        Ok(())
    }

    fn values(&self) -> Checked {
        let Experiment { values, steps, .. } = self.experiment;
        if values.is_empty() {
            return self.fail(0..0, "there are no values; expected [[value]] with name, title and at");
        }
        for (at, value) in values.iter().enumerate() {
            let name = value.name.get_ref();
            if values[..at].iter().any(|one| one.name.get_ref() == name) {
                return self.fail(value.name.span(), format!("value {name:?} twice; expected each once"));
            }
            match &value.step {
                Some(step) if !steps.iter().any(|one| one.name == *step.get_ref()) => {
                    return self.fail(step.span(), format!("no step is called {:?}", step.get_ref()));
                }
                None if steps.len() > 1 => {
                    return self.fail(
                        value.name.span(),
                        format!("value {name:?} of no step; expected step = \"NAME\""),
                    );
                }
                _ => {}
            }
            if !value.times.is_finite() {
                return self.fail(value.name.span(), format!("times of {name:?}; expected a number"));
            }
        }
        self.lists()
    }

    fn lists(&self) -> Checked {
        let Experiment { values, lists, steps, .. } = self.experiment;
        for (at, list) in lists.iter().enumerate() {
            let name = list.name.get_ref();
            let others = values.iter().map(|one| &one.name).chain(lists[..at].iter().map(|one| &one.name));
            if others.into_iter().any(|other| other.get_ref() == name) {
                let what = format!("list {name:?}; expected a name that no value and no other list has");
                return self.fail(list.name.span(), what);
            }
            let known = |step: &str| steps.iter().any(|one| one.name == step);
            match &list.step {
                Some(step) if !known(step.get_ref()) => {
                    return self.fail(step.span(), format!("no step is called {:?}", step.get_ref()));
                }
                None if steps.len() > 1 => {
                    let what = format!("list {name:?} of no step; expected step = \"NAME\"");
                    return self.fail(list.name.span(), what);
                }
                _ => {}
            }
            if !list.times.is_finite() {
                return self.fail(list.name.span(), format!("times of {name:?}; expected a number"));
            }
        }
        Ok(())
    }

    fn duration(&self) -> Checked {
        let Experiment { takes, each, quantities, .. } = self.experiment;
        let Some(takes) = takes else { return Ok(()) };
        let Some(quantity) = quantities.get(takes.get_ref()) else {
            return self
                .fail(takes.span(), format!("takes {:?}; expected the name of a quantity", takes.get_ref()));
        };
        if !matches!(quantity.full.get_ref(), Amount::Count(_)) {
            return Ok(());
        }
        let what = "takes is a count; expected each = a duration, or a factor whose levels are durations";
        let Some(each) = each else { return self.fail(takes.span(), what) };
        let factor = self.experiment.factors.iter().find(|factor| factor.name.get_ref() == each.get_ref());
        let good = match factor {
            Some(factor) => factor.levels.get_ref().iter().all(|level| time_ns(&level.name).is_some()),
            None => time_ns(each.get_ref()).is_some(),
        };
        if good { Ok(()) } else { self.fail(each.span(), what) }
    }

    fn published(&self, numbers: &Published) -> Checked {
        for one in &self.experiment.published {
            self.value(&one.value)?;
            self.levels(&one.at)?;
            if let Err(error) = numbers.number(one.key.get_ref()) {
                return self.fail(one.key.span(), error.to_string());
            }
        }
        self.experiment.claims.iter().try_for_each(|claim| self.claim(claim))
    }

    fn claim(&self, claim: &Claim) -> Checked {
        let span = claim.value.span();
        self.value(&claim.value)?;
        if claim.statement.is_none() && claim.text.is_empty() {
            return self.fail(span, "a claim; expected text, or the id of a statement");
        }
        let (groups, form) = match claim.form() {
            Ok(found) => found,
            Err(what) => return self.fail(span, what),
        };
        groups.iter().copied().chain([&claim.when]).try_for_each(|cells| self.cells(cells))?;
        let keys = |cells: &Where| cells.keys().map(|key| key.get_ref().clone()).collect::<Vec<_>>();
        if groups.iter().any(|cells| keys(cells) != keys(groups[0])) {
            return self.fail(span, "a claim; expected the same factors in each of its groups");
        }
        let levels = |cells: &Where| cells.values().map(|one| one.get_ref().clone()).collect::<Vec<_>>();
        let twice =
            (1..groups.len()).any(|at| groups[..at].iter().any(|one| levels(one) == levels(groups[at])));
        if twice {
            let what = "a claim on cells against themselves; expected other levels in each group";
            return self.fail(span, what);
        }
        let numbers = match form {
            Form::RatioBetween(bounds) => bounds.to_vec(),
            Form::RatioAtLeast(one) | Form::AtLeast(one) | Form::AtMost(one) => vec![one],
            Form::Rising { .. } | Form::Happens(_) => Vec::new(),
        };
        if numbers.iter().all(|number| number.is_finite()) {
            return Ok(());
        }
        self.fail(span, "a claim; expected finite numbers")
    }

    /// Levels as of [`Self::levels`], of the kernel's version and flavour and of the value too.
    fn cells(&self, cells: &Where) -> Checked {
        let (special, others): (Where, Where) = cells
            .iter()
            .map(|(factor, level)| (factor.clone(), level.clone()))
            .partition(|(factor, _)| OF_STATEMENTS.contains(&factor.get_ref().as_str()));
        self.levels(&others)?;
        special.iter().try_for_each(|(factor, level)| {
            if factor.get_ref() == VALUE {
                return self.value(level);
            }
            if self.experiment.machine.kernels.is_empty() {
                return self
                    .fail(factor.span(), format!("{:?} where kernels are no factor", factor.get_ref()));
            }
            Ok(())
        })
    }

    fn ablation(&self) -> Checked {
        let Some(ablation) = &self.experiment.ablation else { return Ok(()) };
        self.value(&ablation.value)?;
        ablation.cost.iter().try_for_each(|cost| self.value(cost))?;
        let names = ablation.factors.get_ref();
        if names.is_empty() || names.len() > MECHANISMS {
            let what =
                format!("{} mechanisms; expected 1 to {MECHANISMS}: every subset is measured", names.len());
            return self.fail(ablation.factors.span(), what);
        }
        for name in names {
            self.factor(name)?;
            for level in [&ablation.with, &ablation.without] {
                self.levels(&BTreeMap::from([(name.clone(), level.clone())]))?;
            }
        }
        Ok(())
    }

    fn layout(&self) -> Checked {
        let table = &self.experiment.table;
        table.rows.iter().chain(&table.columns).try_for_each(|name| self.factor(name))?;
        self.experiment.figures.iter().enumerate().try_for_each(|(at, figure)| self.figure(at, figure))
    }

    fn figure(&self, at: usize, figure: &Figure) -> Checked {
        let span = figure.name.span();
        let name = figure.name.get_ref().as_str();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let twice = self.experiment.figures[..at].iter().any(|one| one.name.get_ref() == name);
        if name.is_empty() || !name.chars().all(plain) || twice {
            let what =
                format!("a figure named {name:?}; expected small letters, digits and hyphens, and each once");
            return self.fail(span, what);
        }
        figure.x.iter().chain(&figure.curves).try_for_each(|name| self.factor(name))?;
        figure.values.iter().try_for_each(|name| self.value(name))?;
        self.levels(&figure.only)?;
        let list = figure.of.as_ref();
        if let Some(of) = list.filter(|of| self.experiment.series_of(of.get_ref()).is_none()) {
            return self.fail(of.span(), format!("no series is called {:?}", of.get_ref()));
        }
        match figure.kind.wants(figure) {
            Some(wanted) => self.fail(span, format!("figure {name:?}; expected {wanted}")),
            None => Ok(()),
        }
    }

    fn series(&self) -> Checked {
        let Experiment { series, steps, .. } = self.experiment;
        for (at, list) in series.iter().enumerate() {
            let name = list.name.get_ref();
            if series[..at].iter().any(|one| one.name.get_ref() == name) {
                return self.fail(list.name.span(), format!("series {name:?} twice; expected each once"));
            }
            if list.columns.get_ref().is_empty() {
                return self.fail(list.columns.span(), "no columns; expected keys or indices of a row");
            }
            match &list.step {
                Some(step) if !steps.iter().any(|one| one.name == *step.get_ref()) => {
                    return self.fail(step.span(), format!("no step is called {:?}", step.get_ref()));
                }
                None if steps.len() > 1 => {
                    let what = format!("series {name:?} of no step; expected step = \"NAME\"");
                    return self.fail(list.name.span(), what);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn value(&self, name: &Spanned<String>) -> Checked {
        match self.experiment.value(name.get_ref()) {
            Some(_) => Ok(()),
            None => self.fail(name.span(), format!("no value is called {:?}", name.get_ref())),
        }
    }

    fn factor(&self, name: &Spanned<String>) -> Checked {
        let kernel = name.get_ref() == KERNEL && !self.experiment.machine.kernels.is_empty();
        if kernel || self.experiment.factors.iter().any(|factor| factor.name == *name) {
            return Ok(());
        }
        self.fail(name.span(), format!("no factor is called {:?}", name.get_ref()))
    }

    /// Factors and levels exist. Kernels are whatever the call names.
    fn levels(&self, levels: &Where) -> Checked {
        for (factor, level) in levels {
            self.factor(factor)?;
            let found = self.experiment.factors.iter().find(|one| one.name == *factor);
            let known = |name: &str| {
                found.is_none_or(|one| one.levels.get_ref().iter().any(|level| level.name == name))
            };
            if !known(level.get_ref()) {
                let what = format!("factor {:?} has no level {:?}", factor.get_ref(), level.get_ref());
                return self.fail(level.span(), what);
            }
        }
        Ok(())
    }
}

/// For a call that only undoes what a cell has changed: where its journal is. `Some(None)`: where
/// it is by default.
pub fn undone_in(words: &[String]) -> Option<Option<&str>> {
    let ["isolate", "undo", rest @ ..] = &*words.iter().map(String::as_str).collect::<Vec<_>>() else {
        return None;
    };
    match *rest {
        [] | ["--json"] => Some(None),
        ["--state", state] | ["--state", state, "--json"] | ["--json", "--state", state] => Some(Some(state)),
        _ => None,
    }
}

impl Experiment {
    /// Reads a file and checks it, keys of published numbers included.
    pub fn from_toml(text: &str, published: &Published) -> Result<Self, Fault> {
        let read: Self = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            Fault::at(text, &span, error.message().trim().replace('\n', ", "))
        })?;
        check(&read, text, published)?;
        Ok(read)
    }
}
