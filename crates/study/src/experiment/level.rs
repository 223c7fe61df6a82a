//! One level of a factor: a name, and what it stands for on a command line, at boot, before and after a cell.

use super::needs::Wants;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A level: `"50us"`, or a table where it stands for more than its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// What it is called in tables.
    pub name: String,
    /// What `{factor}` as a whole word stands for: any number of words, none included; its name where nothing is said.
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    name: String,
    words: Option<Vec<String>>,
    boot: Option<String>,
    isolated: Option<bool>,
    needs: Option<Wants>,
    #[serde(default)]
    before: Vec<Vec<String>>,
    #[serde(default)]
    after: Vec<Vec<String>>,
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
                let Whole { name, words, boot, isolated, needs, before, after } =
                    Whole::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Level { name, words, boot, isolated, needs, before, after })
            }
        }
        deserializer.deserialize_any(Either)
    }
}
