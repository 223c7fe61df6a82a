//! The declaration of a study of task sets, as read from TOML: the sets, the axis, the curves, what others have published.

use crate::sched_verb::generate::refused;
use model::Error;
use sched::curves::Curve;
use sched::generate::{GenerateError, Generator, Sharing, Spec, Utilizations, read_periods, read_time};
use sched::locks::Protocol;
use sched::{Heuristic, Test};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a declaration must name.
pub(super) const SCHEMA: &str = "stillcore.sched-curves/1";
/// Most sets a point, curves, points.
const MOST: [u64; 3] = [10_000_000, 32, 1000];

/// A study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declared {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) seed: u64,
    /// Sets a point; the same for every curve.
    pub(super) sets: u64,
    pub(super) generate: Sets,
    pub(super) axis: Axis,
    #[serde(rename = "curve")]
    pub(super) curves: Vec<DeclaredCurve>,
    #[serde(default)]
    pub(super) published: Option<Published>,
}

/// What sets are like: the options of `sched generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sets {
    tasks: usize,
    periods: String,
    /// Where it is not the axis.
    #[serde(default)]
    utilization: Option<f64>,
    #[serde(default)]
    utilizations: Option<String>,
    #[serde(default = "implicit")]
    deadlines: [f64; 2],
    #[serde(default = "one")]
    cores: u32,
    /// Each core has tasks and utilization of its own.
    #[serde(default)]
    per_core: bool,
    #[serde(default)]
    sharing: Option<Shared>,
}

/// Requests for resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    resources: u32,
    #[serde(default = "certain")]
    access: f64,
    #[serde(default = "once")]
    requests: u64,
    section: [String; 2],
    #[serde(default)]
    readers: f64,
}

/// What runs along the chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Axis {
    pub(super) of: AxisKind,
    pub(super) values: Vec<f64>,
}

/// Which quantity that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AxisKind {
    /// Sum of the tasks' utilizations (of each core's with `per_core`).
    Utilization,
    /// The same divided by the number of cores.
    UtilizationPerCore,
    /// Number of cores.
    Cores,
}

impl AxisKind {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::UtilizationPerCore => "utilization per core",
            Self::Cores => "cores",
        }
    }
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeclaredCurve {
    pub(super) name: String,
    pub(super) test: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) partition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) locks: Option<String>,
    #[serde(default = "no_time")]
    pub(super) jitter: String,
    /// Critical sections are longer by the jitter.
    #[serde(default)]
    pub(super) longer_sections: bool,
    /// Percent schedulable, a value a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<Vec<f64>>,
}

/// Where published figures are from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) source: String,
    /// Sets a point of theirs, drawn anew for every curve.
    pub(super) sets: u64,
}

fn implicit() -> [f64; 2] {
    [1.0, 1.0]
}

fn one() -> u32 {
    1
}

fn once() -> u64 {
    1
}

fn certain() -> f64 {
    1.0
}

fn no_time() -> String {
    "0us".to_owned()
}

impl Declared {
    /// Reads and checks a file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::io("read", path, source))?;
        let declared: Self = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.get(..start).unwrap_or_default().matches('\n').count();
            let what = error.message().trim().replace('\n', ", ");
            Error::invalid(format!("{}, line {line}", path.display()), what, format!("a study, {SCHEMA}"))
        })?;
        declared.check_again(path)?;
        Ok(declared)
    }

    /// Checks it, also after options have changed it.
    pub(super) fn check_again(&self, path: &Path) -> anyhow::Result<()> {
        self.check().map_err(|(field, found, expected)| {
            Error::invalid(format!("{}, {field}", path.display()), found, expected)
        })?;
        let place = format!("{}, generate.", path.display());
        for x in &self.axis.values {
            let generator = self.spec(*x).and_then(|spec| Generator::new(spec, self.seed));
            generator.map_err(|error| refused(&place, error))?;
        }
        Ok(())
    }

    fn check(&self) -> Result<(), (String, String, String)> {
        let wrong =
            |field: &str, found: String, expected: &str| Err((field.to_owned(), found, expected.to_owned()));
        let values = &self.axis.values;
        if self.schema != SCHEMA {
            return wrong("schema", format!("{:?}", self.schema), SCHEMA);
        }
        // The name becomes that of a directory.
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        {
            return wrong("name", format!("{:?}", self.name), "letters, digits, - and _");
        }
        if self.sets == 0 || self.sets > MOST[0] {
            return wrong("sets", self.sets.to_string(), "1 to 10000000");
        }
        if self.curves.is_empty() || self.curves.len() as u64 > MOST[1] {
            return wrong("curve", format!("{} curves", self.curves.len()), "1 to 32");
        }
        if values.is_empty()
            || values.len() as u64 > MOST[2]
            || !values.windows(2).all(|pair| pair[0] < pair[1])
        {
            return wrong("axis.values", format!("{values:?}"), "1 to 1000 values, ascending");
        }
        if self.axis.of == AxisKind::Cores && values.iter().any(|value| value.fract() != 0.0 || *value < 1.0)
        {
            return wrong("axis.values", format!("{values:?}"), "whole numbers of cores");
        }
        if (self.axis.of == AxisKind::Cores) != self.generate.utilization.is_some() {
            return wrong(
                "generate.utilization",
                format!("{:?}", self.generate.utilization),
                "a number iff the axis is cores",
            );
        }
        for curve in &self.curves {
            let odd = |said: &&Vec<f64>| said.len() != values.len() || self.published.is_none();
            if let Some(published) = curve.published.as_ref().filter(odd) {
                let field = format!("curve {:?}, published", curve.name);
                return wrong(
                    &field,
                    format!("{} values", published.len()),
                    "a value a point, and [published]",
                );
            }
            curve.curve().map_err(|(field, found, expected)| {
                (format!("curve {:?}, {field}", curve.name), found, expected)
            })?;
        }
        let mut names: Vec<&str> = self.curves.iter().map(|curve| curve.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => wrong("curve", format!("two called {:?}", pair[0]), "a name for each"),
            None => Ok(()),
        }
    }

    /// What is drawn at one point of the axis.
    pub(super) fn spec(&self, x: f64) -> Result<Spec, GenerateError> {
        let sets = &self.generate;
        let cores = if self.axis.of == AxisKind::Cores { x as u32 } else { sets.cores };
        let utilization = match self.axis.of {
            AxisKind::Utilization => x,
            AxisKind::UtilizationPerCore => x * f64::from(cores),
            AxisKind::Cores => sets.utilization.unwrap_or_default() * if sets.per_core { 1.0 } else { x },
        };
        let sharing = sets.sharing.as_ref().map(|shared| {
            Ok::<_, GenerateError>(Sharing {
                resources: shared.resources,
                probability: shared.access,
                requests: shared.requests,
                length_ns: [read_time(&shared.section[0])?, read_time(&shared.section[1])?],
                readers: shared.readers,
            })
        });
        Ok(Spec {
            tasks: sets.tasks,
            utilization,
            utilizations: match (sets.utilizations.as_deref(), utilization > 1.0) {
                (Some("uunifast"), _) | (None, false) => Utilizations::UUniFast,
                (Some("randfixedsum"), _) | (None, true) => Utilizations::RandFixedSum,
                (Some(other), _) => {
                    return Err(GenerateError::Spec {
                        field: "utilizations",
                        found: format!("{other:?}"),
                        expected: "uunifast or randfixedsum".to_owned(),
                    });
                }
            },
            periods: read_periods(&sets.periods)?,
            deadlines: sets.deadlines,
            jitter_ns: 0,
            cores,
            per_core: sets.per_core,
            sharing: sharing.transpose()?,
        })
    }
}

impl DeclaredCurve {
    /// As the engine takes it; else the field, found, expected.
    pub(super) fn curve(&self) -> Result<Curve, (String, String, String)> {
        let test = Test::by_name(&self.test).ok_or_else(|| {
            let known = Test::ALL.map(Test::name).join(", ");
            ("test".to_owned(), format!("{:?}", self.test), format!("one of {known}"))
        })?;
        let partition = self.partition.as_ref().map(|name| {
            Heuristic::by_name(name).ok_or_else(|| {
                let known = Heuristic::ALL.map(|(name, _)| name).join(", ");
                ("partition".to_owned(), format!("{name:?}"), format!("one of {known}"))
            })
        });
        let locks = self.locks.as_ref().map(|name| {
            Protocol::by_name(name).ok_or_else(|| {
                let known = Protocol::ALL.map(Protocol::name).join(", ");
                ("locks".to_owned(), format!("{name:?}"), format!("one of {known}"))
            })
        });
        let jitter_ns = read_time(&self.jitter).map_err(|_| {
            ("jitter".to_owned(), format!("{:?}", self.jitter), "a time such as 72us".to_owned())
        })?;
        Ok(Curve {
            test,
            partition: partition.transpose()?,
            locks: locks.transpose()?,
            jitter_ns,
            longer_sections: self.longer_sections,
        })
    }
}
