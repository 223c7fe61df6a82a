//! What is wrong with a command line: clap's finding in this program's words, cause first, command
//! last.

use super::Hinted;
use super::hints;
use super::nearest::{did_you_mean, nearest};
use crate::line::{Reached, reached};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use model::quantity::NotATime;
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// The error, with a hint where there is one.
pub(crate) fn explained(error: &Error, command: &Command, words: &[OsString]) -> Hinted {
    let found = Found { error, reached: reached(command, words), words };
    let (what, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => found.verb(),
        ErrorKind::UnknownArgument => found.option(),
        ErrorKind::InvalidValue => found.value(),
        ErrorKind::ValueValidation => found.refused(),
        ErrorKind::MissingRequiredArgument => found.missing(),
        ErrorKind::ArgumentConflict => found.conflict(),
        _ => (found.first_sentence(), found.usage()),
    };
    Hinted { what, hint }
}

/// A refusal of this program's own type: the argument stands for its place, and the names that
/// exist are in the hint.
fn of_model(argument: &str, value: &str, cause: &(dyn std::error::Error + 'static)) -> Option<Explained> {
    let names = |meant: Option<String>, expected: &str| {
        meant.map_or_else(|| format!("expected {expected}"), |meant| format!("{meant} expected {expected}"))
    };
    match cause.downcast_ref::<model::Error>()? {
        model::Error::Unknown(name) => Some((
            format!("{argument} {value}: no such {}", name.kind),
            Some(names(hints::of_cause(cause), &name.expected)),
        )),
        model::Error::Invalid { what, expected, .. } => {
            let listed = expected.strip_prefix("one of ").filter(|_| *what == format!("{value:?}"));
            let Some(listed) = listed else {
                return Some((
                    format!("{argument} {value}: {what}; expected {expected}"),
                    hints::of_cause(cause),
                ));
            };
            let hint = names(did_you_mean(value, listed.split(", ")), expected);
            Some((format!("{argument} {value}: no such value"), Some(hint)))
        }
        _ => None,
    }
}

/// What other tools call what a verb does.
fn elsewhere(word: &str) -> Option<&'static str> {
    Some(match word {
        "check" | "lint" | "advise" | "advice" => "audit",
        "doctor" => "assess",
        "tune" | "tuned" | "setup" => "isolate plan",
        "cyclictest" | "latency" | "timerlat" => "measure wakeup",
        "oslat" | "hwnoise" | "osnoise" | "sysjitter" => "measure spin",
        "stress" | "stress-ng" | "load" => "disturb",
        "record" | "perf" | "attach" => "trace watch",
        "daemon" | "exporter" | "service" => "monitor start",
        "live" => "top",
        "diff" | "gate" => "compare",
        "apply" => "isolate apply",
        "restore" | "undo" | "revert" => "isolate undo",
        _ => return None,
    })
}

/// What clap has found, and where.
struct Found<'a> {
    error: &'a Error,
    reached: Reached<'a>,
    words: &'a [OsString],
}

type Explained = (String, Option<String>);

impl Found<'_> {
    fn one(&self, kind: ContextKind) -> Option<&str> {
        match self.error.get(kind)? {
            ContextValue::String(text) => Some(text),
            ContextValue::Strings(texts) => texts.last().map(String::as_str),
            _ => None,
        }
    }

    fn all(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    /// The argument in question, without its value's name.
    fn argument(&self) -> String {
        let text = self.one(ContextKind::InvalidArg).unwrap_or_default();
        text.split([' ', '[', '=']).next().filter(|option| option.starts_with('-')).unwrap_or(text).to_owned()
    }

    /// The verb, as a reader would say it: "measure wakeup"; the program itself: "stillcore".
    fn at(&self) -> String {
        if self.reached.path.is_empty() { "stillcore".to_owned() } else { self.reached.path.join(" ") }
    }

    fn verb(&self) -> Explained {
        let word = self.one(ContextKind::InvalidSubcommand).unwrap_or_default();
        let what = match self.reached.path.as_slice() {
            [] => format!("no command '{word}'"),
            path => format!("{} has no command '{word}'", path.join(" ")),
        };
        let names = self.reached.command.get_subcommands().map(Command::get_name);
        let similar = self.one(ContextKind::SuggestedSubcommand).or_else(|| nearest(word, names));
        let inner = || {
            let holds = |one: &&Command| one.get_subcommands().any(|inner| inner.get_name() == word);
            let outer = self.reached.command.get_subcommands().find(holds)?;
            Some(format!("{} {word}", outer.get_name()))
        };
        let at_the_top = self.reached.path.is_empty();
        let known = || elsewhere(word).filter(|_| at_the_top);
        let meant = known().map(str::to_owned).or_else(inner).or_else(|| similar.map(str::to_owned));
        let path = self.reached.path.iter().map(String::as_str);
        let full = |end: String| {
            let words: Vec<&str> = std::iter::once("stillcore").chain(path).chain([end.as_str()]).collect();
            format!("did you mean '{}'?", words.join(" "))
        };
        let all = || Some("all commands: stillcore --help".to_owned());
        (what, meant.map(full).or_else(all))
    }

    fn option(&self) -> Explained {
        let word = self.one(ContextKind::InvalidArg).unwrap_or_default();
        if !word.starts_with('-') {
            return (format!("{} takes no argument '{word}'", self.at()), self.usage());
        }
        let what = format!("{} has no option '{word}'", self.at());
        if let Some(verb) = self.one(ContextKind::SuggestedSubcommand) {
            let path: Vec<&str> = self.reached.path.iter().map(String::as_str).chain([verb]).collect();
            return (what, Some(format!("'stillcore {}' has it", path.join(" "))));
        }
        let Some(meant) = self.one(ContextKind::SuggestedArg) else { return (what, self.usage()) };
        let long = meant.trim_start_matches('-');
        let named = self.reached.command.get_arguments().find(|arg| arg.get_long() == Some(long));
        let takes_value = named.is_some_and(|arg| arg.get_action().takes_values());
        let value = self.value_of(word).filter(|_| takes_value);
        let value = value.map_or_else(String::new, |value| format!(" {value}"));
        (what, Some(format!("did you mean '{meant}{value}'?")))
    }

    /// The value that was written behind an option.
    fn value_of(&self, option: &str) -> Option<String> {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        let at = words.iter().position(|word| word.split('=').next() == Some(option))?;
        match words[at].split_once('=') {
            Some((_, value)) => Some(value.to_owned()),
            None => words.get(at + 1).filter(|next| !next.starts_with('-')).map(ToString::to_string),
        }
    }

    fn value(&self) -> Explained {
        let (argument, value) = (self.argument(), self.one(ContextKind::InvalidValue).unwrap_or_default());
        if value.is_empty() {
            let full = self.one(ContextKind::InvalidArg).unwrap_or_default();
            return (format!("{argument}: value missing"), Some(format!("write {full}")));
        }
        let values = self.all(ContextKind::ValidValue);
        let listed = format!("values are {}", values.join(", "));
        let similar = self
            .one(ContextKind::SuggestedValue)
            .or_else(|| nearest(value, values.iter().map(String::as_str)));
        let hint =
            similar.map_or_else(|| listed.clone(), |meant| format!("did you mean '{meant}'? {listed}"));
        (format!("{argument} {value}: no such value"), Some(hint))
    }

    /// A value that the parser of its type refuses.
    fn refused(&self) -> Explained {
        let (argument, value) = (self.argument(), self.one(ContextKind::InvalidValue).unwrap_or_default());
        let Some(cause) = self.error.source() else { return (self.first_sentence(), self.usage()) };
        if let Some(wrong) = cause.downcast_ref::<NotATime>() {
            return (format!("{argument} {value}: {}", wrong.why), hints::of_cause(cause));
        }
        if let Some(explained) = of_model(&argument, value, cause) {
            return explained;
        }
        let why = no_number(cause).map_or_else(|| cause.to_string(), str::to_owned);
        let listed = why.split_once("expected one of ").map(|(_, names)| names);
        let hint = hints::of_cause(cause).or_else(|| did_you_mean(value, listed?.split(", ")));
        let what = if value.is_empty() {
            format!("{argument}: {why}")
        } else {
            format!("{argument} {value}: {why}")
        };
        (what, hint)
    }

    fn missing(&self) -> Explained {
        let missing = self.all(ContextKind::InvalidArg);
        (format!("{}: {} missing", self.at(), missing.join(" and ")), self.usage())
    }

    fn conflict(&self) -> Explained {
        let (one, others) = (self.argument(), self.all(ContextKind::PriorArg));
        let others: Vec<_> = others.iter().map(|other| other.split(' ').next().unwrap_or(other)).collect();
        let what = match others.as_slice() {
            [] => format!("{one}: cannot be used with the other options"),
            [same] if *same == one => format!("{one}: given twice"),
            others => format!("{one}: cannot be used with {}", others.join(", ")),
        };
        (what, None)
    }

    /// How the verb is called.
    fn usage(&self) -> Option<String> {
        let ContextValue::StyledStr(usage) = self.error.get(ContextKind::Usage)? else { return None };
        let usage = usage.to_string();
        let words: Vec<_> = usage.split_whitespace().skip_while(|word| *word == "Usage:").collect();
        Some(words.join(" ")).filter(|line| !line.is_empty())
    }

    /// What clap says, in one line.
    fn first_sentence(&self) -> String {
        let rendered = self.error.render().to_string();
        let sentence = rendered.split("\n\n").next().unwrap_or_default();
        let words: Vec<_> = sentence.trim_start_matches("error: ").split_whitespace().collect();
        words.join(" ")
    }
}
/// What the standard library's parsers of numbers expected: they do not say it.
fn no_number(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if cause.is::<ParseFloatError>() {
        return Some("expected a number");
    }
    match cause.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::PosOverflow => Some("expected a smaller number"),
        IntErrorKind::NegOverflow => Some("expected a larger number"),
        _ => Some("expected a whole number, such as 3"),
    }
}
