//! Text from outside: names of processes, paths, what other programs wrote. Any user may have
//! chosen it, and root reads it on a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// What a reader does not see, or what makes others read otherwise than written: controls, which
/// drive a terminal, and marks of direction (Trojan Source, Boucher and Anderson 2023).
pub fn is_unseen(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\t');
    let directs = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
    control || directs || matches!(c, '\u{61c}' | '\u{feff}')
}

/// Replaces each such character by a question mark, width unchanged: for one line of a table.
pub fn in_a_line(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) || c.is_control() { '?' } else { c }).collect()
}

/// Each such character as its number, `\u001b`: for all that goes to a terminal. In a JSON text,
/// where it can only stand inside of a string, that is the same string. Lines may end as CSV's do
/// (RFC 4180): with a return before the end, which moves nothing.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let ends_a_line = c == '\r' && rest.peek() == Some(&'\n');
        if is_unseen(c) && !ends_a_line {
            // All of these are below U+10000: one number each.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_drives_a_terminal_or_turns_a_line_around() {
        let name = "\u{1b}]0;P\u{7}\u{1b}[31m<b>\u{9b}2J\u{202e}txt\u{200f}\r\u{8}\u{7f}";
        for text in [escaped(name).into_owned(), in_a_line(name)] {
            assert!(!text.chars().any(|c| is_unseen(c) || c.is_control()), "{text:?}");
        }
        assert_eq!(in_a_line(name).chars().count(), name.chars().count());
        assert_eq!(in_a_line("a\nb"), "a?b");
        assert_eq!(escaped("a\nb\tµs – 1"), "a\nb\tµs – 1");
        assert_eq!(escaped("a,b\r\nc\rd\r"), "a,b\r\nc\\u000dd\\u000d");
    }

    #[test]
    fn a_json_text_means_the_same() {
        let value = serde_json::json!({ "comm\u{202e}": "\u{9b}x\u{1b}", "more": ["\u{7f}"] });
        let text = value.to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped(&text)).unwrap(), value);
        assert!(!escaped(&text).chars().any(is_unseen));
    }

    #[test]
    fn every_character_that_is_unseen_has_a_number_of_four_digits() {
        assert!(!('\u{10000}'..=char::MAX).any(is_unseen));
    }
}
