//! How templates write numbers: the formats of [`crate::format`] with typographic units, and a dash
//! where there is no value.

use minijinja::{Environment, HtmlEscape, Value};
use model::foreign::is_unseen;
use std::fmt::Write;

use crate::format;

const NONE: &str = "–";

/// Makes the filters known.
pub(super) fn add(environment: &mut Environment) {
    environment.add_filter("ns", |v: &Value| float(v, format::ns_f));
    environment.add_filter("ms", |v: &Value| whole(v, format::ms_exact));
    environment.add_filter("count", |v: &Value| whole(v, format::count));
    environment.add_filter("kib", |v: &Value| whole(v, format::kib));
    environment.add_filter("span", |v: &Value| whole(v, format::span));
    environment.add_filter("rate", |v: &Value| float(v, format::rate));
    environment.add_filter("rate_up", |v: &Value| float(v, format::rate_up));
    environment.add_filter("share", |v: &Value| float(v, format::share));
    environment.add_filter("share_up", |v: &Value| float(v, format::share_up));
    environment.add_filter("ns_round", |v: &Value| float(v, format::ns_round));
    environment.add_filter("title_of", title_of);
    environment.add_filter("seconds", |v: &Value| float(v, |s| format!("{s:.3} s")));
    environment.add_filter("dash", dash);
    environment.add_filter("moment", |text: &str| format::moment(text));
    environment.add_filter("capitalize_first", capitalize_first);
    environment.add_filter("prose", |text: &str| prose(text));
    environment.add_filter("with_code", with_code);
    environment.add_filter("words", words);
}

fn float(value: &Value, text: impl Fn(f64) -> String) -> String {
    f64::try_from(value.clone()).map_or_else(|_| NONE.to_owned(), |number| typographic(&text(number)))
}

fn whole(value: &Value, text: impl Fn(u64) -> String) -> String {
    u64::try_from(value.clone()).map_or_else(|_| NONE.to_owned(), |number| typographic(&text(number)))
}

/// A sentence with a capital letter at its beginning, the rest as it is.
pub(super) fn capitalize_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A class in words.
fn title_of(class: &str) -> &'static str {
    class.parse().map_or("", crate::class_title)
}

/// The value, or a dash where there is none or an empty one.
fn dash(value: &Value) -> String {
    if value.is_undefined() || value.is_none() || value.as_str().is_some_and(str::is_empty) {
        NONE.to_owned()
    } else {
        value.to_string()
    }
}

/// Micro by its sign, minus by its sign, and no line break between a number and its unit.
pub(super) fn typographic(text: &str) -> String {
    let text = text.replace(" us", " µs").replace(' ', "\u{a0}");
    text.strip_prefix('-').map_or(text.clone(), |rest| format!("\u{2212}{rest}"))
}

/// Minus by its sign before each number of a text.
pub(super) fn minus(text: &str) -> String {
    let mut typed = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let sign = letter == '-'
            && matches!(before, ' ' | '(' | '[')
            && letters.peek().is_some_and(char::is_ascii_digit);
        typed.push(if sign { '\u{2212}' } else { letter });
        before = letter;
    }
    typed
}

/// A sentence in which what stands between backticks is code. Everything is escaped.
fn with_code(text: &str) -> Value {
    let text = text.replace(is_unseen, "\u{fffd}");
    let mut typed = String::new();
    for (at, part) in text.split('`').enumerate() {
        let part = HtmlEscape(part);
        let _ = if at % 2 == 1 { write!(typed, "<code>{part}</code>") } else { write!(typed, "{part}") };
    }
    Value::from_safe_string(typed)
}

/// A command whose words break as a whole: a line that ends in `--` reads as the end of options.
fn words(command: &str) -> Value {
    let command = command.replace(is_unseen, "\u{fffd}");
    let each: Vec<String> =
        command.split(' ').map(|word| format!("<span>{}</span>", HtmlEscape(word))).collect();
    Value::from_safe_string(each.join(" "))
}

/// A sentence with micro by its sign, where `us` follows a number, and minus by its sign.
fn prose(text: &str) -> String {
    let text = minus(text);
    let text = text.as_str();
    let mut typed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" us") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        let unit =
            before.ends_with(|c: char| c.is_ascii_digit()) && !after.starts_with(char::is_alphanumeric);
        typed.push_str(before);
        typed.push_str(if unit { "\u{a0}µs" } else { " us" });
        rest = after;
    }
    typed + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_a_sentence_is_escaped_and_what_is_not_seen_is_shown() {
        let typed = with_code("then `a < b` and \u{202e}<b>").to_string();
        assert_eq!(typed, "then <code>a &lt; b</code> and \u{fffd}&lt;b&gt;");
    }

    #[test]
    fn words_of_a_command_are_escaped_and_stay_apart() {
        assert_eq!(words("a --b=<c>").to_string(), "<span>a</span> <span>--b=&lt;c&gt;</span>");
    }

    #[test]
    fn numbers_keep_their_units_beside_them_and_nothing_is_a_dash() {
        assert_eq!(float(&Value::from(12_345), format::ns_f), "12.35\u{a0}µs");
        assert_eq!(float(&Value::from(-412), format::ns_f), "\u{2212}412\u{a0}ns");
        assert_eq!(float(&Value::from(()), format::ns_f), "–");
        assert_eq!(whole(&Value::from(1_234), format::count), "1,234");
        assert_eq!(dash(&Value::from("")), "–");
        assert_eq!(dash(&Value::from("x")), "x");
        assert_eq!(prose("12 us of it tell us 3 used"), "12\u{a0}µs of it tell us 3 used");
        assert_eq!(
            prose("-18 ms to -5.1 us (-2): a -- b-3 -x"),
            "\u{2212}18 ms to \u{2212}5.1\u{a0}µs (\u{2212}2): a -- b-3 -x"
        );
        assert_eq!(prose("41.0 us, then"), "41.0\u{a0}µs, then");
    }
}
