//! The catalogue of functions that a published replication counts in the text of traces: which
//! kernel has which, and what a call is.
//!
//! The data is `catalogue/functions.toml`; its header explains every key.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The catalogue that ships with stillcore.
pub const EMBEDDED: &str = include_str!("../../../catalogue/functions.toml");

/// The kernels for which every function must have an entry, oldest first.
pub const KERNELS: [&str; 3] = ["5.10", "6.1", "6.12"];

/// What compilers append to the names of clones and parts (GCC: `-fipa-*`,
/// `-freorder-blocks-and-partition`; Clang: LTO).
const SUFFIXES: [&str; 7] = ["constprop", "isra", "part", "cold", "llvm", "lto_priv", "clone"];

/// A function's name without what the compiler appended: `finish_task_switch.isra.0` →
/// `finish_task_switch`.
pub fn stem(symbol: &str) -> &str {
    let of_compiler = |at: &usize| {
        let word = symbol[at + 1..].split('.').next().unwrap_or_default();
        SUFFIXES.contains(&word)
    };
    let at = symbol.match_indices('.').map(|(at, _)| at).find(of_compiler);
    at.map_or(symbol, |at| &symbol[..at])
}

/// Why the function tracer cannot show a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hidden {
    /// Marked `notrace` or `noinstr`, or in a file that is not traced.
    Notrace,
    /// Part of its callers.
    Inlined,
    /// The kernel has no such function.
    Absent,
}

impl Hidden {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Notrace => "must not be traced",
            Self::Inlined => "inlined",
            Self::Absent => "not in this kernel",
        }
    }
}

/// A tracepoint that shows the events of a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTracepoint {
    /// `system:event`.
    pub name: String,
    /// Field that decides whether it counts.
    pub field: Option<String>,
    /// The value it must have.
    pub value: Option<u64>,
}

/// One of the replication's lists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionList {
    /// Name for programs.
    pub id: String,
    /// Name for people.
    pub title: String,
    /// The patterns of its grep, in order.
    pub grep: Vec<String>,
    /// Events of the list that no function shows.
    pub unseen: Option<String>,
    /// Tracepoints that show the same events.
    #[serde(rename = "tracepoint")]
    pub tracepoints: Vec<ListTracepoint>,
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionSpec {
    /// Its name.
    pub id: String,
    /// The list it belongs to.
    pub list: String,
    /// Its symbol by kernel, without the compiler's suffix.
    #[serde(default)]
    pub symbols: BTreeMap<String, String>,
    /// Why it cannot be seen, by kernel.
    #[serde(default)]
    pub hidden: BTreeMap<String, Hidden>,
    /// Whether a call is an event of the list.
    #[serde(default)]
    pub event: bool,
    /// Only from these callers; from any where there are none.
    #[serde(default)]
    pub callers: Vec<String>,
    /// What a call is.
    pub why: String,
}

impl FunctionSpec {
    /// Whether a call by `caller` (without the compiler's suffix) is an event of the list.
    pub fn is_event(&self, caller: &str) -> bool {
        self.event && (self.callers.is_empty() || self.callers.iter().any(|one| one == caller))
    }
}

/// Why lines that match a pattern are no events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternSpec {
    /// The pattern.
    pub text: String,
    /// Why.
    pub why: String,
}

/// The whole catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionCatalogue {
    /// The lists.
    #[serde(rename = "list")]
    pub lists: Vec<FunctionList>,
    /// Their functions.
    #[serde(rename = "function")]
    pub functions: Vec<FunctionSpec>,
    /// Their patterns.
    #[serde(rename = "pattern")]
    pub patterns: Vec<PatternSpec>,
}

impl FunctionCatalogue {
    /// Reads a catalogue; `place` is what an error names.
    pub fn parse(place: &str, text: &str) -> Result<Self, Error> {
        let catalogue: Self = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            Error::invalid(format!("{place}:{line}"), error.message(), "a catalogue of functions")
        })?;
        catalogue.check(place)?;
        Ok(catalogue)
    }

    /// The catalogue that ships with stillcore.
    pub fn embedded() -> Result<Self, Error> {
        Self::parse("catalogue/functions.toml", EMBEDDED)
    }

    /// The function that is called `symbol` (without the compiler's suffix) on one of the kernels.
    pub fn by_symbol(&self, symbol: &str) -> Option<&FunctionSpec> {
        self.functions.iter().find(|function| function.symbols.values().any(|one| one == symbol))
    }

    /// Why lines that match a pattern are no events; empty for a pattern that is in no list.
    pub fn why(&self, pattern: &str) -> &str {
        self.patterns.iter().find(|one| one.text == pattern).map_or("", |one| one.why.as_str())
    }

    fn check(&self, place: &str) -> Result<(), Error> {
        let bad = |id: &str, what: String, expected: &str| {
            Err(Error::invalid(format!("{place}: {id}"), what, expected))
        };
        let names: [Vec<&String>; 3] = [
            self.lists.iter().map(|list| &list.id).collect(),
            self.functions.iter().map(|function| &function.id).collect(),
            self.patterns.iter().map(|pattern| &pattern.text).collect(),
        ];
        for names in names {
            let mut seen = BTreeSet::new();
            if let Some(twice) = names.into_iter().find(|name| !seen.insert(*name)) {
                return bad(twice, "a second entry".into(), "one entry a name");
            }
        }
        for function in &self.functions {
            if !self.lists.iter().any(|list| list.id == function.list) {
                return bad(&function.id, format!("list {:?}", function.list), "the id of a list");
            }
            for kernel in KERNELS {
                if function.symbols.contains_key(kernel) == function.hidden.contains_key(kernel) {
                    return bad(
                        &function.id,
                        format!("kernel {kernel}"),
                        "a symbol, or why it is hidden, for each kernel",
                    );
                }
            }
            let known = |kernel: &&String| KERNELS.contains(&kernel.as_str());
            if let Some(other) =
                function.symbols.keys().chain(function.hidden.keys()).find(|kernel| !known(kernel))
            {
                return bad(&function.id, format!("kernel {other:?}"), "5.10, 6.1, 6.12");
            }
            if !function.callers.is_empty() && !function.event {
                return bad(
                    &function.id,
                    "callers of what is no event".into(),
                    "event = true beside callers",
                );
            }
        }
        for list in &self.lists {
            let lacks = |text: &&String| !self.patterns.iter().any(|one| one.text == **text);
            if let Some(text) = list.grep.iter().find(lacks) {
                return bad(
                    &list.id,
                    format!("pattern {text:?}"),
                    "an entry that says why it counts no events",
                );
            }
            if list.tracepoints.iter().any(|one| one.field.is_some() != one.value.is_some()) {
                return bad(&list.id, "field without value, or the other way round".into(), "both or none");
            }
        }
        let in_grep = |text: &str| self.lists.iter().any(|list| list.grep.iter().any(|one| one == text));
        if let Some(one) = self.patterns.iter().find(|one| !in_grep(&one.text)) {
            return bad(&one.text, "in no list".into(), "a pattern of a list's grep");
        }
        // So that finding the text is what grep does.
        let plain =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
        match self.patterns.iter().find(|one| !plain(&one.text)) {
            Some(one) => bad(&one.text, "not a plain text".into(), "letters, digits and underscores"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_and_pattern_of_the_shipped_catalogue_is_described() {
        let catalogue = FunctionCatalogue::embedded().unwrap();
        assert_eq!(catalogue.lists.iter().map(|list| list.grep.len()).collect::<Vec<_>>(), [7, 15, 10]);
        for function in &catalogue.functions {
            assert_eq!(function.symbols.len() + function.hidden.len(), KERNELS.len(), "{}", function.id);
            assert!(!function.why.is_empty(), "{}", function.id);
            for symbol in function.symbols.values() {
                assert_eq!(stem(symbol), symbol, "{}", function.id);
                assert_eq!(catalogue.by_symbol(symbol).map(|one| &one.id), Some(&function.id));
            }
            for caller in &function.callers {
                assert!(catalogue.by_symbol(caller).is_some(), "{}: {caller}", function.id);
            }
        }
        for list in &catalogue.lists {
            assert!(list.grep.iter().all(|text| !catalogue.why(text).is_empty()), "{}", list.id);
            // On each kernel some function shows events of the list.
            for kernel in KERNELS {
                let mut functions = catalogue.functions.iter().filter(|one| one.list == list.id && one.event);
                assert!(functions.any(|one| one.symbols.contains_key(kernel)), "{} {kernel}", list.id);
            }
        }
    }

    #[test]
    fn the_tracepoints_of_the_lists_are_in_the_catalogue_of_events() {
        let events = crate::events::EventCatalogue::embedded().unwrap();
        for list in FunctionCatalogue::embedded().unwrap().lists {
            for tracepoint in &list.tracepoints {
                assert!(
                    events.get(&tracepoint.name).is_some_and(|event| event.class.is_some()),
                    "{tracepoint:?}"
                );
            }
        }
    }

    #[test]
    fn what_compilers_append_is_no_part_of_a_name() {
        for (symbol, name) in [
            ("finish_task_switch.isra.0", "finish_task_switch"),
            ("flush_tlb_func_common.constprop.0", "flush_tlb_func_common"),
            ("flush_smp_call_function_queue.part.0.cold", "flush_smp_call_function_queue"),
            ("do_idle", "do_idle"),
            (".text.unlikely", ".text.unlikely"),
            ("a.b", "a.b"),
            ("", ""),
        ] {
            assert_eq!(stem(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn errors_name_their_place() {
        let list = "[[list]]\nid = \"l\"\ntitle = \"L\"\ngrep = [\"a\"]\ntracepoint = []\n";
        let pattern = "[[pattern]]\ntext = \"a\"\nwhy = \"w\"\n";
        let function = |rest: &str| format!("{list}{pattern}[[function]]\nid = \"f\"\nwhy = \"w\"\n{rest}");
        let all = "hidden = { \"5.10\" = \"absent\", \"6.1\" = \"absent\", \"6.12\" = \"absent\" }";
        let good = function(&format!("list = \"l\"\n{all}"));
        assert!(FunctionCatalogue::parse("x.toml", &good).is_ok());
        for (text, place) in [
            (good.replace("list = \"l\"", "list = \"m\""), "x.toml: f"),
            (good.replace("\"5.10\"", "\"5.4\""), "x.toml: f"),
            (format!("{good}\nevent = true\nsymbols = {{ \"6.6\" = \"f\" }}"), "x.toml: f"),
            (format!("{good}\ncallers = [\"g\"]"), "x.toml: f"),
            (format!("{good}\n{pattern}"), "x.toml: a"),
            (good.replace("text = \"a\"", "text = \"b\""), "x.toml: l"),
            (good.replace("\"a\"", "\"a.*b\""), "x.toml: a.*b"),
            (good.replace("absent", "gone"), "x.toml:13"),
        ] {
            let error = FunctionCatalogue::parse("x.toml", &text).unwrap_err().to_string();
            assert!(error.starts_with(place), "{place}: {error}");
        }
    }
}
