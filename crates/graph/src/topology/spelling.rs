//! How values of a graph are spelled in our TOML: times with their unit, computations as one word.

#![expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls functions so")]

use super::{PassBy, messages};
use measure::job::Work;
use model::quantity::{bytes, duration, spelled};

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(super) fn vector() -> String {
    messages::VECTOR.to_owned()
}

pub(super) fn unique() -> PassBy {
    PassBy::UniquePtr
}

pub(super) fn shared() -> PassBy {
    PassBy::SharedPtr
}

/// A time such as `125ms`, ns.
pub(super) mod time {
    use super::{duration, spelled};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&spelled(*ns))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let time = duration(&String::deserialize(from)?).map_err(D::Error::custom)?;
        Ok(time.as_nanos() as u64)
    }
}

/// A time that may be left out.
pub(super) mod maybe_time {
    use super::{spelled, time};
    use serde::{Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(ns: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match ns {
            Some(ns) => to.serialize_str(&spelled(*ns)),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        time::deserialize(from).map(Some)
    }
}

/// A computation such as `busy:50us`.
pub(super) mod work {
    use measure::job::Work;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(work: &Option<Work>, to: S) -> Result<S::Ok, S::Error> {
        match work {
            Some(work) => to.serialize_str(&work.name()),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Work>, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || D::Error::custom(format!("{text:?} is no computation; expected {}", super::WORKS));
        super::work_of(&text).map(Some).ok_or_else(wrong)
    }
}

/// What can be computed, for a sentence.
const WORKS: &str = "attitude, array:BYTES or busy:TIME, such as array:64K or busy:50us";
/// The largest array, bytes, and the longest busy work, ns.
const MOST_BYTES: u64 = 1 << 30;
const MOST_NS: u64 = 2_000_000_000;

fn work_of(text: &str) -> Option<Work> {
    match text.split_once(':') {
        None => (text == "attitude").then_some(Work::Attitude),
        Some(("array", size)) => {
            let bytes = bytes(size).filter(|bytes| (1..=MOST_BYTES).contains(bytes))?;
            Some(Work::Array { bytes })
        }
        Some(("busy", time)) => {
            let ns = duration(time).ok()?.as_nanos() as u64;
            (ns <= MOST_NS).then_some(Work::Busy { ns })
        }
        Some(_) => None,
    }
}
