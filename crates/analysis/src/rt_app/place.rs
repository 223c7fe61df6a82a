//! A value of a file and where it is, so that what is wrong with it can be said.

use super::MOST_NUMBER;
use super::ordered::Node;
use model::Error;
use model::foreign::is_unseen;

/// Bytes of a name.
const LONGEST_NAME: usize = 64;

/// A value and where it is.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) path: String,
    pub(super) node: &'a Node,
}

impl<'a> Place<'a> {
    pub(super) fn refuse(&self, what: impl ToString, expected: impl ToString) -> Error {
        Error::invalid(&self.path, what.to_string(), expected.to_string())
    }

    fn not(&self, expected: &str) -> Error {
        self.refuse(format!("it is {}", self.node.kind()), expected)
    }

    /// Its keys in order, each with its value.
    pub(super) fn object(&self) -> Result<Vec<(String, Place<'a>)>, Error> {
        let Node::Object(all) = self.node else { return Err(self.not("an object")) };
        let of = |(key, node): &'a (String, Node)| {
            (key.clone(), Place { path: format!("{}: {key}", self.path), node })
        };
        Ok(all.iter().map(of).collect())
    }

    pub(super) fn list(&self) -> Result<Vec<Place<'a>>, Error> {
        let Node::List(all) = self.node else { return Err(self.not("a list")) };
        Ok(all.iter().map(|node| Place { path: self.path.clone(), node }).collect())
    }

    /// A whole number that is not below `least`.
    pub(super) fn number(&self, least: i64) -> Result<i64, Error> {
        match self.node {
            Node::Number(value) if (least..=MOST_NUMBER).contains(value) => Ok(*value),
            Node::Number(value) => {
                Err(self.refuse(format!("it is {value}"), format!("a number of {least} to {MOST_NUMBER}")))
            }
            _ => Err(self.not("a whole number")),
        }
    }

    /// A time of microseconds, in ns.
    pub(super) fn time_ns(&self) -> Result<u64, Error> {
        Ok(self.number(0)?.unsigned_abs() * super::US)
    }

    pub(super) fn text(&self) -> Result<&'a str, Error> {
        let Node::Text(text) = self.node else { return Err(self.not("a text")) };
        Ok(text)
    }

    /// A text that names something.
    pub(super) fn name(&self) -> Result<String, Error> {
        let text = self.text()?;
        self.check_name(text)?;
        Ok(text.to_owned())
    }

    pub(super) fn check_name(&self, name: &str) -> Result<(), Error> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(is_unseen) {
            let expected = format!("a name of 1 to {LONGEST_NAME} bytes without control characters");
            return Err(self.refuse(format!("the name {name:?}"), expected));
        }
        Ok(())
    }
}
