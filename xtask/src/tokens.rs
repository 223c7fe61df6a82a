//! Walking the tokens of a Rust file: signs, test code, the end of an item, the value of a string.

use proc_macro2::{Delimiter, Literal, TokenTree};

pub(crate) fn is(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Whether this is the group of `#[cfg(test)]`.
pub(crate) fn is_cfg_test(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else { return false };
    group.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// The place behind the item that begins here.
pub(crate) fn behind_item(tokens: &[TokenTree], from: usize) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is(other, ';'),
    };
    tokens[from..].iter().position(is_end).map_or(tokens.len(), |n| from + n + 1)
}

/// The value of a string literal, raw or not; `None` for any other literal.
pub(crate) fn string_value(literal: &Literal) -> Option<String> {
    let source = literal.to_string();
    if let Some(raw) = source.strip_prefix('r') {
        let inside = raw.trim_matches('#').strip_prefix('"')?.strip_suffix('"')?;
        return Some(inside.to_owned());
    }
    source.strip_prefix('"')?.strip_suffix('"').map(unescape)
}

fn unescape(quoted: &str) -> String {
    let mut value = String::new();
    let mut rest = quoted.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            value.push(letter);
            continue;
        }
        match rest.next() {
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('t') => value.push('\t'),
            Some('0') => value.push('\0'),
            Some('x') => value.extend(character(rest.by_ref().take(2))),
            Some('u') => value.extend(character(rest.by_ref().skip(1).take_while(|&digit| digit != '}'))),
            // The literal continues on the next line.
            Some('\n') => while rest.next_if(char::is_ascii_whitespace).is_some() {},
            other => value.extend(other),
        }
    }
    value
}

/// The character whose number these hexadecimal digits are.
fn character(digits: impl Iterator<Item = char>) -> Option<char> {
    let digits: String = digits.filter(|&digit| digit != '_').collect();
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_its_value_however_it_is_written() {
        for (source, value) in [
            (r#""plain""#, Some("plain")),
            (r#""a \"b\" \\ \x41\u{e9}\n""#, Some("a \"b\" \\ Aé\n")),
            ("\"over \\\n     lines\"", Some("over lines")),
            ("r\"C:\\n\"", Some("C:\\n")),
            ("r#\"a \"b\"\"#", Some("a \"b\"")),
            ("12", None),
            ("b\"bytes\"", None),
        ] {
            let literal: Literal = source.parse().unwrap();
            assert_eq!(string_value(&literal).as_deref(), value, "{source}");
        }
    }
}
