//! The declaration of a study of task sets, as written in TOML or JSON: the sets, the axis, the
//! curves, the published results of others.

use super::{Curve, OwnLocks};
use crate::analyze::Test;
use crate::generate::{GenerateError, Generator, Sharing, Spec, Utilizations, read_periods, read_time};
use crate::locks::{Locks, Protocol};
use crate::overheads::Overheads;
use crate::partition::Heuristic;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a declaration must name.
pub const SCHEMA: &str = "stillcore.sched-curves/1";
/// Most sets a point, curves, points.
const MOST: [u64; 3] = [10_000_000, 32, 1000];

/// A study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// [`SCHEMA`].
    pub schema: String,
    /// Its name, that of its directory too.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What all sets follow from.
    pub seed: u64,
    /// Sets a point; the same for every curve.
    pub sets: u64,
    /// What is drawn.
    pub generate: Sets,
    /// Along what.
    pub axis: Axis,
    /// What is asked of every set.
    #[serde(rename = "curve")]
    pub curves: Vec<DeclaredCurve>,
    /// Source of the published results.
    #[serde(default)]
    pub published: Option<Published>,
    /// What others say of two curves.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// What is published of two curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// One curve.
    pub first: String,
    /// The other.
    pub second: String,
    /// Where on the axis; at the point with the largest ratio where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// In the words of the source: the advantage of the second over the first.
    pub says: String,
    /// The same as a ratio of shares, second over first, where the words give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

/// What sets are like: the options of `sched generate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sets {
    /// Tasks of a set; of each core with `per_core`.
    pub tasks: usize,
    /// Law of the periods, as `uniform:10ms:100ms`.
    pub periods: String,
    /// Where it is not the axis.
    #[serde(default)]
    pub utilization: Option<f64>,
    /// How it is divided: `uunifast` or `randfixedsum`; chosen by its size if left out.
    #[serde(default)]
    pub utilizations: Option<String>,
    /// Deadlines as shares of the period, uniformly between the two.
    #[serde(default = "implicit")]
    pub deadlines: [f64; 2],
    /// Cores of the system, where they are not the axis.
    #[serde(default = "one")]
    pub cores: u32,
    /// Each core has tasks and utilization of its own.
    #[serde(default)]
    pub per_core: bool,
    /// Requests for resources.
    #[serde(default)]
    pub sharing: Option<DeclaredSharing>,
}

/// Requests for resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredSharing {
    /// Number of resources.
    pub resources: u32,
    /// Probability that a task requests a resource.
    #[serde(default = "certain")]
    pub access: f64,
    /// Most requests of a job for one resource.
    #[serde(default = "once")]
    pub requests: u64,
    /// Shortest and longest critical section, times with their units.
    pub section: [String; 2],
    /// Share of the tasks that only read.
    #[serde(default)]
    pub readers: f64,
}

/// What runs along the chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The quantity.
    pub of: AxisKind,
    /// Its points, ascending.
    pub values: Vec<f64>,
}

/// Which quantity that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxisKind {
    /// Sum of the tasks' utilizations (of each core's with `per_core`).
    Utilization,
    /// The same divided by the number of cores.
    UtilizationPerCore,
    /// Number of cores.
    Cores,
}

impl AxisKind {
    /// As charts and tables call it.
    pub fn words(self) -> &'static str {
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
pub struct DeclaredCurve {
    /// Its name.
    pub name: String,
    /// The test, by name.
    pub test: String,
    /// How tasks get a core: a heuristic by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// How requests are served: a protocol by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<String>,
    /// Resources that one core alone uses are held at their ceiling, as in SchedCAT, not without
    /// preemption.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ceilings: bool,
    /// Release jitter of every task, a time with its unit.
    #[serde(default = "no_time")]
    pub jitter: String,
    /// Critical sections are longer by the jitter.
    #[serde(default)]
    pub longer_sections: bool,
    /// Who has each resource for itself: `all` or `readers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_locks: Option<String>,
    /// What the kernel costs, as a file of `sched analyze --overheads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overheads: Option<Overheads>,
    /// Curves of one group are set beside one another in text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Percent schedulable, a value a point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Vec<f64>>,
}

/// Source of the published results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Where they are from.
    pub source: String,
    /// Sets a point of theirs, drawn anew for every curve.
    pub sets: u64,
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

/// What is wrong with a declaration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeclaredError {
    /// A field.
    #[error("{field}: {found}; expected {expected}")]
    Field {
        /// Which, as in `curve "linux", test`.
        field: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
    /// The sets of a point cannot be drawn.
    #[error("generate: {0}")]
    Generate(#[from] GenerateError),
}

impl Declared {
    /// Whether every part makes sense, the sets of every point included.
    pub fn check(&self) -> Result<(), DeclaredError> {
        self.check_fields().map_err(|(field, found, expected)| DeclaredError::Field {
            field,
            found,
            expected,
        })?;
        for x in &self.axis.values {
            Generator::new(self.spec(*x)?, self.seed)?;
        }
        Ok(())
    }

    /// All curves as the engine takes them.
    pub fn curves(&self) -> Result<Vec<Curve>, DeclaredError> {
        let wrong = |(field, found, expected)| DeclaredError::Field { field, found, expected };
        self.curves.iter().map(|curve| curve.curve().map_err(wrong)).collect()
    }

    fn check_fields(&self) -> Result<(), (String, String, String)> {
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
        if let Some([name, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong("curve", format!("two called {name:?}"), "a name for each");
        }
        for claim in &self.claims {
            for name in [&claim.first, &claim.second] {
                if !names.contains(&name.as_str()) {
                    return wrong("claim", format!("no curve is called {name:?}"), "names of two curves");
                }
            }
            if claim.at.is_some_and(|at| !values.contains(&at)) {
                return wrong("claim.at", format!("{:?}", claim.at), "a value of the axis");
            }
        }
        Ok(())
    }

    /// What is drawn at one point of the axis.
    pub fn spec(&self, x: f64) -> Result<Spec, GenerateError> {
        let sets = &self.generate;
        let cores = if self.axis.of == AxisKind::Cores { x as u32 } else { sets.cores };
        let utilization = match self.axis.of {
            AxisKind::Utilization => x,
            AxisKind::UtilizationPerCore => x * f64::from(cores),
            AxisKind::Cores => sets.utilization.unwrap_or_default() * if sets.per_core { 1.0 } else { x },
        };
        sets.spec(cores, utilization)
    }
}

impl Sets {
    /// The sets of this many cores with this utilization, without release jitter.
    pub fn spec(&self, cores: u32, utilization: f64) -> Result<Spec, GenerateError> {
        let sharing = self.sharing.as_ref().map(|shared| {
            Ok::<_, GenerateError>(Sharing {
                resources: shared.resources,
                probability: shared.access,
                requests: shared.requests,
                length_ns: [read_time(&shared.section[0])?, read_time(&shared.section[1])?],
                readers: shared.readers,
            })
        });
        Ok(Spec {
            tasks: self.tasks,
            utilization,
            utilizations: match (self.utilizations.as_deref(), utilization > 1.0) {
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
            periods: read_periods(&self.periods)?,
            deadlines: self.deadlines,
            jitter_ns: 0,
            cores,
            per_core: self.per_core,
            sharing: sharing.transpose()?,
        })
    }
}

impl DeclaredCurve {
    /// As the engine takes it; else the field, found, expected.
    fn curve(&self) -> Result<Curve, (String, String, String)> {
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
            let protocol = Protocol::by_name(name).ok_or_else(|| {
                let known = Protocol::ALL.map(Protocol::name).join(", ");
                ("locks".to_owned(), format!("{name:?}"), format!("one of {known}"))
            })?;
            let locks =
                if self.ceilings { Locks::with_ceilings(protocol) } else { Some(Locks::of(protocol)) };
            locks.ok_or_else(|| {
                ("ceilings".to_owned(), format!("beside {name}"), Locks::TAKE_CEILINGS.to_owned())
            })
        });
        if self.ceilings && locks.is_none() {
            return Err(("ceilings".to_owned(), "no locks".to_owned(), "a protocol beside them".to_owned()));
        }
        let jitter_ns = read_time(&self.jitter).map_err(|_| {
            ("jitter".to_owned(), format!("{:?}", self.jitter), "a time such as 72us".to_owned())
        })?;
        let own_locks = match self.own_locks.as_deref() {
            None => None,
            Some("all") => Some(OwnLocks::All),
            Some("readers") => Some(OwnLocks::Readers),
            Some(other) => {
                return Err(("own_locks".to_owned(), format!("{other:?}"), "all or readers".to_owned()));
            }
        };
        if let Some(Err(error)) = self.overheads.as_ref().map(Overheads::check) {
            let expected = format!("{} ns to 2^53 - 1", error.expected);
            return Err((format!("overheads.{}", error.field), error.value.to_string(), expected));
        }
        Ok(Curve {
            test,
            partition: partition.transpose()?,
            locks: locks.transpose()?,
            jitter_ns,
            longer_sections: self.longer_sections,
            own_locks,
            overheads: self.overheads,
        })
    }
}
