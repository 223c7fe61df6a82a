//! Durations and counts that a scale makes smaller, never below a floor: a small run of an
//! experiment is the same experiment.

use model::quantity::{duration, spelled};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use toml::Spanned;

/// A count, or a duration in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Count(u64),
    /// So long, ns.
    Time(u64),
}

/// The amount at full scale, and the least at any scale.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// As the paper has it.
    pub full: Spanned<Amount>,
    /// The least at any scale.
    pub least: Amount,
}

impl Quantity {
    /// The amount at a scale: rounded, at least the floor, and never more than the full amount
    /// unless the scale is above 1.
    pub fn scaled(&self, scale: f64) -> Amount {
        let by = |full: u64, least: u64| ((full as f64 * scale).round() as u64).max(least.min(full));
        match (*self.full.get_ref(), self.least) {
            (Amount::Count(full), Amount::Count(least) | Amount::Time(least)) => {
                Amount::Count(by(full, least))
            }
            (Amount::Time(full), Amount::Time(least) | Amount::Count(least)) => Amount::Time(by(full, least)),
        }
    }
}

/// As verbs of the command take it.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Time(ns) => f.write_str(&spelled(*ns)),
        }
    }
}

/// ns of a duration such as `50us`, `1.5s`, `2m`.
pub(super) fn time_ns(text: &str) -> Option<u64> {
    let time = duration(text).ok()?;
    u64::try_from(time.as_nanos()).ok()
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count, or a duration such as \"50us\"")
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Amount, E> {
                u64::try_from(count)
                    .map(Amount::Count)
                    .map_err(|_| E::custom("a count below 0; expected 0 or more"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                time_ns(text).map(Amount::Time).ok_or_else(|| {
                    E::custom(format!(
                        "{text:?} is no duration; expected a number with ns, us, ms, s, m or h"
                    ))
                })
            }
        }
        deserializer.deserialize_any(Either)
    }
}
