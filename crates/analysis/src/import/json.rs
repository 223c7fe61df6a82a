//! JSON of other tools: every value is looked up by its path, and errors name that path.

use super::Thread;
use crate::groups::bins::Bins;
use model::Error;
use serde_json::{Map, Value};

/// A file.
pub(super) struct Document {
    value: Value,
    name: String,
}

impl Document {
    /// Reads it; an error names the line.
    pub(super) fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let value = serde_json::from_str(text).map_err(|error| {
            Error::invalid(format!("{name}:{}:{}", error.line(), error.column()), error, "whole JSON")
        })?;
        Ok(Self { value, name: name.to_owned() })
    }

    /// The value behind these keys.
    pub(super) fn get(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(&self.value, |value, key| value.get(key))
    }

    /// The text behind them.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        self.get(keys).and_then(Value::as_str).map(str::to_owned)
    }

    /// The members of an object.
    pub(super) fn members(&self, key: &str) -> Result<&Map<String, Value>, Error> {
        self.get(&[key])
            .and_then(Value::as_object)
            .ok_or_else(|| self.wrong(key, "is no object", "an object"))
    }

    /// An error at a key.
    pub(super) fn wrong(&self, key: &str, what: &str, expected: &str) -> Error {
        Error::invalid(&self.name, format!("{key:?} {what}"), expected)
    }

    /// A thread's histogram of bins `unit_ns` wide, whose keys are bins; `total` is the number of
    /// samples with those beyond the last bin.
    pub(super) fn thread(
        &self,
        key: &str,
        thread: &Value,
        unit_ns: u64,
        total: Option<&str>,
    ) -> Result<Thread, Error> {
        let at = |field: &str| format!("{key}.{field}");
        let histogram = thread.get("histogram").and_then(Value::as_object);
        let histogram = histogram.ok_or_else(|| {
            self.wrong(&at("histogram"), "is no object", "counts by bin; -h for cyclictest")
        })?;
        let mut counts = Vec::with_capacity(histogram.len());
        for (bin, count) in histogram {
            let value = bin.parse::<i64>().ok().and_then(|bin| bin.checked_mul(unit_ns as i64));
            let (Some(value), Some(count)) = (value, count.as_u64()) else {
                return Err(self.wrong(&at("histogram"), &format!("has {bin:?}: {count}"), "whole numbers"));
            };
            counts.push((value, count));
        }
        counts.retain(|(_, count)| *count > 0);
        counts.sort_unstable();
        let counted = counts.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
        let counted = counted
            .ok_or_else(|| self.wrong(&at("histogram"), "overflows", "samples of less than 2^64 in all"))?;
        let all = match total {
            Some(field) => {
                let all = thread.get(field).and_then(Value::as_u64);
                all.ok_or_else(|| self.wrong(&at(field), "is no whole number", "the number of samples"))?
            }
            None => counted,
        };
        let over = all.checked_sub(counted).ok_or_else(|| {
            self.wrong(
                &at("histogram"),
                &format!("has {counted} samples"),
                &format!("no more than the {all} in all"),
            )
        })?;
        let limit = |field: &str| {
            let value = thread.get(field).and_then(Value::as_i64)?;
            value.checked_mul(unit_ns as i64)
        };
        let last = counts.last().map_or(0, |(edge, _)| *edge);
        // The file does not state where the bins end: at the earliest behind the last non-empty
        // one.
        let over_from_ns = (over > 0).then_some(last.saturating_add(unit_ns as i64));
        let bins = Bins {
            counts,
            width_ns: unit_ns,
            over,
            over_from_ns,
            max_ns: limit("max"),
            min_ns: limit("min"),
        };
        let cpu = thread.get("cpu").and_then(Value::as_u64).and_then(|cpu| u32::try_from(cpu).ok());
        Ok(Thread { cpu, bins, duration_ns: None })
    }
}
