//! Numbers of papers, by key: a TOML file of tables, lists and numbers.

use super::fault::Fault;
use thiserror::Error;
use toml::Value;

/// The file of published numbers.
#[derive(Debug, Clone)]
pub struct Published(toml::Table);

/// A key that names no number.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{key:?} names {found} among the published numbers; expected a number, such as replication.max_latency.vanilla or ….period[0]"
)]
pub struct PublishedError {
    /// As given.
    pub key: String,
    /// What is there.
    pub found: &'static str,
}

impl Published {
    /// Reads the file.
    pub fn from_toml(text: &str) -> Result<Self, Fault> {
        toml::from_str(text).map(Self).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            Fault::at(text, &span, error.message().trim().replace('\n', ", "))
        })
    }

    /// The number at a key: names between dots, `[i]` for an element of a list.
    pub fn number(&self, key: &str) -> Result<f64, PublishedError> {
        as_number(key, self.at(key)?)
    }

    /// The numbers at a key: those of a list, or the one.
    pub fn numbers(&self, key: &str) -> Result<Vec<f64>, PublishedError> {
        match self.at(key)? {
            Value::Array(all) if !all.is_empty() => all.iter().map(|one| as_number(key, one)).collect(),
            one => Ok(vec![as_number(key, one)?]),
        }
    }

    fn at(&self, key: &str) -> Result<&Value, PublishedError> {
        let wrong = |found| PublishedError { key: key.to_owned(), found };
        let mut parts = key.split('.');
        let first = parts.next().unwrap_or_default();
        let mut at = self.0.get(first).ok_or_else(|| wrong("nothing"))?;
        for part in parts {
            let (name, index) = match part.split_once('[') {
                Some((name, rest)) => {
                    (name, rest.strip_suffix(']').and_then(|text| text.parse::<usize>().ok()))
                }
                None => (part, None),
            };
            at = at.get(name).ok_or_else(|| wrong("nothing"))?;
            if part.contains('[') {
                let index = index.ok_or_else(|| wrong("nothing"))?;
                at = at.get(index).ok_or_else(|| wrong("nothing"))?;
            }
        }
        Ok(at)
    }
}

fn as_number(key: &str, at: &Value) -> Result<f64, PublishedError> {
    let wrong = |found| PublishedError { key: key.to_owned(), found };
    match at {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        Value::String(_) => Err(wrong("text")),
        Value::Array(_) => Err(wrong("a list")),
        Value::Table(_) => Err(wrong("a table")),
        _ => Err(wrong("no number")),
    }
}
