//! What a declaration is made of.

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;

/// Mechanisms whose worth is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ablation {
    /// What is to be low.
    pub value: Spanned<String>,
    /// What the other CPUs get done, to be high; none where nothing measures it.
    pub cost: Option<Spanned<String>>,
    /// Factors of two levels, each a mechanism.
    pub factors: Spanned<Vec<Spanned<String>>>,
    /// The level with the mechanism.
    pub with: Spanned<String>,
    /// The level without it.
    pub without: Spanned<String>,
    /// How much more than all mechanisms have still suffices, as a share.
    #[serde(default)]
    pub within: f64,
}

/// What is made of several numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The only one, or the first.
    #[default]
    First,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// Half of them do not exceed it; it lies between the two middle ones of an even number.
    Median,
    /// How many places there are, numbers or not.
    Count,
}

/// A list of values, as declared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListOf {
    /// Its name; no value has it.
    pub name: Spanned<String>,
    /// What it is, for headings.
    pub title: String,
    /// Unit as printed.
    #[serde(default)]
    pub unit: String,
    /// Where the elements are in the step's JSON, as in the `at` of a value.
    pub over: String,
    /// Where an element has its name.
    pub by: String,
    /// Where an element has its value.
    pub at: String,
    /// What is made of several of one name.
    #[serde(default)]
    pub take: Take,
    /// A factor for the unit.
    #[serde(default = "one")]
    pub times: f64,
    /// The step it is of, where there are several.
    pub step: Option<Spanned<String>>,
}

pub(super) fn one() -> f64 {
    1.0
}

/// How something is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A value over a factor, a line a curve.
    Lines,
    /// The same, a bar a point.
    Bars,
    /// Distributions under each other: least, median, a high quantile, observed maximum.
    Spread,
    /// Counts of bins, logarithmic.
    Counts,
    /// Values over time.
    Course,
    /// What ran when, in lanes.
    Lanes,
    /// Quantiles of one distribution against those of another.
    Qq,
}

/// One figure of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name, also of its files.
    pub name: Spanned<String>,
    /// What it shows [default: the title of the experiment].
    pub title: Option<String>,
    /// How.
    pub kind: Kind,
    /// The factor along the axis, of lines and bars.
    pub x: Option<Spanned<String>>,
    /// Factors whose levels are curves, or rows.
    #[serde(default)]
    pub curves: Vec<Spanned<String>>,
    /// The value upwards; of a spread three or four: least, median, quantile, observed maximum; of
    /// counts the observed maximum, which may lie beyond the last bin; of bars without x one a bar;
    /// of quantiles none, or slope and intercept of the line through them.
    #[serde(default)]
    pub values: Vec<Spanned<String>>,
    /// The list that it is drawn of: counts, courses, lanes.
    pub of: Option<Spanned<String>>,
    /// What the numbers of that list are, with their unit: `wake-up latency`; of lanes, what a lane
    /// is: `task`; of quantiles, whose those upwards are.
    #[serde(default)]
    pub what: String,
    /// A logarithmic axis.
    #[serde(default)]
    pub log: bool,
    /// Only cells of these levels.
    #[serde(default)]
    pub only: BTreeMap<Spanned<String>, Spanned<String>>,
}

impl Kind {
    /// What a figure of this kind lacks.
    pub(crate) fn wants(self, figure: &Figure) -> Option<&'static str> {
        let values = figure.values.len();
        let list = figure.of.is_some();
        match self {
            Self::Lines if figure.x.is_none() || values != 1 || list => Some("x, and values of one name"),
            Self::Bars if figure.x.is_some() && values != 1 || values == 0 || list => {
                Some("x and values of one name, or values alone")
            }
            Self::Spread if !(3..=4).contains(&values) || figure.x.is_some() || list => {
                Some("values of three or four names: least, median, a quantile, observed maximum")
            }
            Self::Counts if !list || values != 1 || figure.x.is_some() => {
                Some("of = a series, values of one name, the observed maximum, and no x")
            }
            Self::Course | Self::Lanes if !list || values != 0 || figure.x.is_some() => {
                Some("of = a series, and neither x nor values")
            }
            Self::Qq
                if !list || !matches!(values, 0 | 2) || figure.x.is_some() || !figure.curves.is_empty() =>
            {
                Some(
                    "of = a series, values of no or two names, slope and intercept, and neither x nor curves",
                )
            }
            _ => None,
        }
    }
}

/// What is concluded from all answers of an experiment's first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Events per operation of each stressor, judged by controls, from answers of `measure
    /// exposure`; compared where there are several kernels or ways of isolating.
    Exposure,
}

/// Requirements of a level, or a whole experiment, on a machine beside its boot line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wants {
    /// CPUs online, at least.
    pub cpus: Option<usize>,
    /// Memory, MiB, at least.
    pub memory_mib: Option<u64>,
    /// Performance counters of the core.
    #[serde(default)]
    pub counters: bool,
}

/// A level: `"50us"`, or a table where it stands for more than its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// What it is called in tables.
    pub name: String,
    /// What `{factor}` as a whole word stands for: any number of words, none included; its name
    /// where nothing is said.
    pub words: Option<Vec<String>>,
    /// Words of the kernel's command line, as in [`super::Needs`]: guests boot with them, a machine
    /// as it stands must have done so.
    pub boot: Option<String>,
    /// Whether the measured CPUs have to be isolated, however that was done (true), or no CPU may
    /// be (false).
    pub isolated: Option<bool>,
    /// What else a machine must have.
    pub needs: Option<Wants>,
    /// Calls of this program before the cell.
    pub before: Vec<Vec<String>>,
    /// The command that undoes it, in every case: `isolate undo` or nothing.
    pub after: Vec<Vec<String>>,
    /// Whether `before` is called once a boot of a guest, and not for each cell; the guest ends
    /// with it. Such cells share no boot with others.
    pub per_boot: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Whole {
    name: String,
    words: Option<Vec<String>>,
    boot: Option<String>,
    isolated: Option<bool>,
    needs: Option<Wants>,
    #[serde(default)]
    before: Vec<Vec<String>>,
    #[serde(default)]
    after: Vec<Vec<String>>,
    #[serde(default)]
    per_boot: bool,
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Level;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a level: text, a number, or a table with a name")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Level, E> {
                Ok(Level { name: name.to_owned(), ..Level::default() })
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Level, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Level, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Level, A::Error> {
                let Whole { name, words, boot, isolated, needs, before, after, per_boot } =
                    Whole::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Level { name, words, boot, isolated, needs, before, after, per_boot })
            }
        }
        deserializer.deserialize_any(Either)
    }
}
