//! JSON with the line of every value, so that errors in a topology file can name their place.
//!
//! `serde_json` judges the syntax and reads strings and numbers; here only lines are counted, on
//! text that is known to be JSON.

use model::Error;
use std::path::Path;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spot {
    /// Line, from 1.
    pub(super) line: usize,
    /// The value.
    pub(super) value: Json,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    /// A string.
    Text(String),
    /// A number.
    Number(f64),
    /// `true`, `false` or `null`, as written.
    Word(String),
    /// An array.
    List(Vec<Spot>),
    /// An object: keys with their line, in the order of the file.
    Table(Vec<(String, usize, Spot)>),
}

impl Json {
    /// What it is, for a sentence.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Number(number) => number.to_string(),
            Self::Word(word) => word.clone(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "an object".to_owned(),
        }
    }
}

/// Reads a text.
pub(super) fn read(path: &Path, text: &str) -> Result<Spot, Error> {
    let wrong = |error: serde_json::Error| {
        // The message ends with the place, which is said first here.
        let message = error.to_string();
        let what = message.split(" at line ").next().unwrap_or_default().to_owned();
        Error::invalid(format!("{}: line {}", path.display(), error.line()), what, "JSON")
    };
    serde_json::from_str::<serde_json::Value>(text).map_err(wrong)?;
    let mut scan = Scan { rest: text, line: 1 };
    scan.value().map_err(wrong)
}

/// What is left of a text that is known to be JSON.
struct Scan<'t> {
    rest: &'t str,
    line: usize,
}

impl Scan<'_> {
    fn value(&mut self) -> Result<Spot, serde_json::Error> {
        self.space();
        let line = self.line;
        let value = match self.rest.bytes().next() {
            Some(b'{') => Json::Table(self.table()?),
            Some(b'[') => Json::List(self.list()?),
            Some(b'"') => Json::Text(self.text()?),
            _ => self.scalar(),
        };
        Ok(Spot { line, value })
    }

    fn table(&mut self) -> Result<Vec<(String, usize, Spot)>, serde_json::Error> {
        let mut entries = Vec::new();
        self.take(1);
        while !self.closes('}') {
            let line = self.line;
            let key = self.text()?;
            self.space();
            self.take(1);
            entries.push((key, line, self.value()?));
        }
        Ok(entries)
    }

    fn list(&mut self) -> Result<Vec<Spot>, serde_json::Error> {
        let mut entries = Vec::new();
        self.take(1);
        while !self.closes(']') {
            entries.push(self.value()?);
        }
        Ok(entries)
    }

    /// Skips what separates entries; returns whether the end was reached, and consumes it.
    fn closes(&mut self, end: char) -> bool {
        self.space();
        if self.rest.starts_with(',') {
            self.take(1);
            self.space();
        }
        let closes = self.rest.is_empty() || self.rest.starts_with(end);
        if closes {
            self.take(1);
        }
        closes
    }

    fn text(&mut self) -> Result<String, serde_json::Error> {
        let mut escaped = false;
        let mut bytes = self.rest.bytes().enumerate().skip(1);
        let end = bytes.find(|(_, byte)| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        let length = end.map_or(self.rest.len(), |(at, _)| at + 1);
        serde_json::from_str(self.take(length))
    }

    fn scalar(&mut self) -> Json {
        let ends = |c: char| c.is_ascii_whitespace() || ",]}".contains(c);
        let word = self.take(self.rest.find(ends).unwrap_or(self.rest.len()));
        match word.parse() {
            Ok(number) => Json::Number(number),
            Err(_) => Json::Word(word.to_owned()),
        }
    }

    fn space(&mut self) {
        let length = self.rest.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(self.rest.len());
        self.line += self.take(length).matches('\n').count();
    }

    fn take(&mut self, length: usize) -> &str {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn read_text(text: &str) -> Result<Spot, Error> {
        read(Path::new("g.json"), text)
    }

    /// What `serde_json` made of it.
    fn same(spot: &Json, value: &Value) -> bool {
        match (spot, value) {
            (Json::Text(a), Value::String(b)) => a == b,
            (Json::Number(a), Value::Number(b)) => Some(*a) == b.as_f64(),
            (Json::Word(a), Value::Bool(b)) => *a == b.to_string(),
            (Json::Word(a), Value::Null) => a == "null",
            (Json::List(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.value, b))
            }
            (Json::Table(a), Value::Object(b)) => {
                a.iter().all(|(key, _, a)| b.get(key).is_some_and(|b| same(&a.value, b)))
            }
            _ => false,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC*".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map("\\PC{0,6}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_json_reads(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            prop_assert!(same(&read_text(&text.unwrap()).unwrap().value, &value));
        }

        #[test]
        fn any_text_is_json_or_one_line(text in "[\\[\\]{}\":,a0-9 \n\\\\]{0,60}") {
            if let Err(error) = read_text(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }

    #[test]
    fn lines_are_those_of_keys_and_values() {
        let Json::Table(entries) = read_text("{\n \"a\":\n 1, \"b\": [\n\n {}]\n}").unwrap().value else {
            panic!("no table")
        };
        assert_eq!((entries[0].1, entries[0].2.line), (2, 3));
        let Json::List(list) = &entries[1].2.value else { panic!("no list") };
        assert_eq!((entries[1].1, list[0].line), (3, 5));
    }

    #[test]
    fn what_is_no_json_is_named_with_its_line() {
        let error = read_text("{\n \"a\" 1}").unwrap_err().to_string();
        assert_eq!(error, "g.json: line 2: expected `:`; expected JSON");
    }
}
