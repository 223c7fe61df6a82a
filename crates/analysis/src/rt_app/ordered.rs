//! JSON with the order of its keys, which rt-app takes for the order of events.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Number(i64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Nodes)
    }
}

struct Nodes;

impl<'de> Visitor<'de> for Nodes {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON with whole numbers")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        i64::try_from(value)
            .map(Node::Number)
            .map_err(|_| E::custom(format!("{value} is too large a number")))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = from.next_element()? {
            all.push(one);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut all: Vec<(String, Node)> = Vec::new();
        let mut keys = std::collections::BTreeSet::new();
        while let Some((key, value)) = from.next_entry::<String, Node>()? {
            // Other readers keep the last, or all of them.
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key {key:?} comes twice in one object")));
            }
            all.push((key, value));
        }
        Ok(Node::Object(all))
    }
}

/// The text without its comments, `/* … */`, which become spaces: lines and columns stay.
pub(super) fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.char_indices().peekable());
    let (mut in_text, mut in_comment) = (false, false);
    while let Some((_, one)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        match (one, next) {
            ('*', Some('/')) if in_comment => {
                in_comment = false;
                rest.next();
                out.push_str("  ");
            }
            _ if in_comment => out.push(if one == '\n' { '\n' } else { ' ' }),
            ('\\', Some(escaped)) if in_text => {
                rest.next();
                out.extend([one, escaped]);
            }
            ('/', Some('*')) if !in_text => {
                in_comment = true;
                rest.next();
                out.push_str("  ");
            }
            _ => {
                in_text ^= one == '"';
                out.push(one);
            }
        }
    }
    out
}
