//! The built-in study `exposure`, as the text of an experiment: each stressor alone, by `measure
//! exposure`; in guests also with ways of isolating as a factor (`lab matrix`).

use super::experiment::exposure::{PROFILE, STRESSOR};
use super::profile::Profile;
use clap::ValueEnum;
use disturb::suite::{self, Expect};
use disturb::{StressorSpec, catalogue};
use model::Error;
use model::quantity::spelled;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use study::experiment::EXPERIMENT_SCHEMA;

/// Name of the study.
pub(super) const NAME: &str = "exposure";
/// What it is, for lists.
pub(super) const TITLE: &str =
    "each stressor alone: interference events on the measured CPUs per successful operation, by class";
/// The shortest window in which anything can be counted.
pub(crate) const SHORTEST: Duration = Duration::from_millis(100);

/// What such a study is made of.
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    /// The stressors, controls among them.
    pub(crate) stressors: Vec<String>,
    /// Length of each idle control and of each disturbance.
    pub(crate) duration: Duration,
    pub(crate) priority: u32,
    pub(crate) kprobes: bool,
    pub(crate) repetitions: u32,
    /// Guests with every way of isolating: the table `machine` of the experiment.
    pub(crate) guests: Option<Value>,
}

/// The stressors named and those of the suites, or every harmless one; and the controls, which
/// always run. None twice.
pub(crate) fn stressors(option: &str, named: &[String], suites: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names = asked(named, suites)?;
    if names.is_empty() {
        let harmless = catalogue::catalogue().iter().filter(|spec| !spec.dangerous);
        names.extend(harmless.map(|spec| spec.name.to_owned()));
    }
    for name in &names {
        if catalogue::find(name)?.dangerous {
            let found = format!("{name} may harm the machine beyond its own end");
            return Err(Error::invalid(option, found, "stressors that end with themselves").into());
        }
    }
    for suite in suite::suites()?.into_iter().filter(|suite| suite.expect != Expect::Any) {
        names.extend(suite.stressors.into_iter().map(|member| member.name));
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

/// The stressors that the user asked for by name or suite.
pub(crate) fn asked(named: &[String], suites: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for id in suites {
        names.extend(suite::find(id)?.stressors.into_iter().map(|member| member.name));
    }
    names.extend(named.iter().cloned());
    Ok(names)
}

impl Declared {
    /// The experiment's file.
    pub(crate) fn text(&self) -> anyhow::Result<String> {
        let mut run = ["measure", "exposure", "{stressor}", "--cpus", "{cpus}", "--duration", "{duration}"]
            .map(str::to_owned)
            .to_vec();
        if self.priority > 0 {
            run.extend(["--priority".to_owned(), self.priority.to_string()]);
        }
        if self.kprobes {
            run.push("--kprobes".to_owned());
        }
        run.extend(["--count-only", "--out", "{out}"].map(str::to_owned));
        let time = |times: u32| {
            let length = |of: Duration| spelled((of * times).as_nanos() as u64);
            json!({ "full": length(self.duration), "least": length(SHORTEST) })
        };
        let mut factors = vec![json!({ "name": STRESSOR, "levels": self.stressors })];
        let mut object = json!({
            "schema": EXPERIMENT_SCHEMA,
            "name": self.name,
            "title": TITLE,
            "source": "stillcore's own",
            "seed": 1,
            "repetitions": self.repetitions,
            "takes": "windows",
            "conclusion": "exposure",
            "quantities": { "duration": time(1), "windows": time(3) },
            "step": [{ "run": run }],
            "value": [
                { "name": "operations", "title": "successful operations", "at": "record/ops_ok" },
                { "name": "events", "title": "events beside them", "at": "disturbed/all/count" },
            ],
        });
        if let Some(machine) = &self.guests {
            factors.push(json!({ "name": PROFILE, "levels": Profile::value_variants().iter().map(|one| one.level()).collect::<Vec<_>>() }));
            object["machine"] = machine.clone();
            object["machine"]["modules"] = json!(self.modules()?);
        }
        object["factor"] = json!(factors);
        Ok(toml::to_string(&object)?)
    }

    /// Modules that the stressors need.
    fn modules(&self) -> anyhow::Result<BTreeSet<&'static str>> {
        let mut modules = BTreeSet::new();
        for name in &self.stressors {
            let spec: &StressorSpec = catalogue::find(name)?;
            modules.extend(spec.modules.iter().copied());
        }
        Ok(modules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_names_and_controls_are_run_once_each() {
        let of = |named: &[&str], suites: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            stressors("--stressors", &owned(named), &owned(suites)).unwrap()
        };
        assert_eq!(of(&["u_fork", "calc_pi"], &[]), ["u_fork", "calc_pi", "tlb_span", "schedstats"]);
        let both = of(&["perf_sys"], &["positive-control", "negative-control"]);
        assert_eq!(both, ["tlb_span", "schedstats", "calc_pi", "perf_sys"]);
        let safe = catalogue::catalogue().iter().filter(|spec| !spec.dangerous).count();
        assert_eq!(of(&[], &[]).len(), safe);
    }
}
