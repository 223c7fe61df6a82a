//! The attributes in front of one item. Doc comments are among them: the tokens of `/// Text` are
//! those of `#[doc = " Text"]`.

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};

use crate::tokens::{is, is_cfg_test, string_value};

/// A text and its line.
#[derive(Debug, Clone)]
pub(super) struct Located {
    pub line: usize,
    pub text: String,
}

impl Located {
    /// A string literal; `None` for any other literal.
    pub(super) fn of(literal: &Literal) -> Option<Self> {
        Some(Self { line: literal.span().start().line, text: string_value(literal)? })
    }
}

/// A run of attributes.
#[derive(Debug, Default)]
pub(super) struct Attributes<'a> {
    /// How many tokens they take.
    pub length: usize,
    /// Lines of `///`.
    outer_docs: Vec<Located>,
    /// Lines of `//!`.
    inner_docs: Vec<Located>,
    /// The groups `[...]` of all others.
    others: Vec<&'a TokenTree>,
}

impl<'a> Attributes<'a> {
    /// Those that `tokens` begin with.
    pub(super) fn read(tokens: &'a [TokenTree]) -> Self {
        let mut found = Self::default();
        while let [sign, rest @ ..] = &tokens[found.length..]
            && is(sign, '#')
        {
            let inner = rest.first().is_some_and(|token| is(token, '!'));
            let Some(token) = rest.get(usize::from(inner)) else { break };
            let Some(group) = group_of(token, Delimiter::Bracket) else { break };
            match doc(group) {
                Some(line) if inner => found.inner_docs.push(line),
                Some(line) => found.outer_docs.push(line),
                None => found.others.push(token),
            }
            found.length += 2 + usize::from(inner);
        }
        found
    }

    /// The doc comment of the item.
    pub(super) fn doc_comment(&self) -> Option<Located> {
        joined(&self.outer_docs)
    }

    /// The first paragraph of a file's header.
    pub(super) fn header(&self) -> Option<Located> {
        joined(self.inner_docs.split(|line| line.text.trim().is_empty()).next()?)
    }

    pub(super) fn is_test(&self) -> bool {
        self.others.iter().any(|token| is_cfg_test(Some(token)))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.arguments(name).next().is_some()
    }

    /// Whether the item derives one of these traits.
    pub(super) fn derives(&self, traits: &[&str]) -> bool {
        let named =
            |token| matches!(token, TokenTree::Ident(word) if traits.iter().any(|name| word == *name));
        self.arguments("derive").flatten().any(named)
    }

    /// The arguments of each attribute of this name.
    pub(super) fn arguments(&self, name: &str) -> impl Iterator<Item = TokenStream> {
        self.others.iter().filter_map(move |token| {
            let mut inside = group_of(token, Delimiter::Bracket)?.stream().into_iter();
            let called = matches!(inside.next()?, TokenTree::Ident(word) if word == name);
            called.then(|| match inside.next() {
                Some(TokenTree::Group(group)) => group.stream(),
                _ => TokenStream::new(),
            })
        })
    }

    /// The text of `#[arg(help = "...")]`.
    pub(super) fn help(&self) -> Option<Located> {
        self.arguments("arg").find_map(|arguments| {
            let tokens: Vec<TokenTree> = arguments.into_iter().collect();
            tokens.windows(3).find_map(|window| match window {
                [TokenTree::Ident(word), equals, TokenTree::Literal(text)]
                    if word == "help" && is(equals, '=') =>
                {
                    Located::of(text)
                }
                _ => None,
            })
        })
    }
}

/// The group that a token is, if it has these brackets.
pub(super) fn group_of(token: &TokenTree, brackets: Delimiter) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == brackets => Some(group),
        _ => None,
    }
}

/// The line of a doc comment.
fn doc(group: &Group) -> Option<Located> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(word), _, TokenTree::Literal(text)] = tokens.as_slice() else { return None };
    (word == "doc").then(|| Located::of(text)).flatten()
}

/// Lines as one text, without the blank after `///`.
fn joined(lines: &[Located]) -> Option<Located> {
    let line = lines.first()?.line;
    let plain = |line: &Located| line.text.strip_prefix(' ').unwrap_or(&line.text).trim_end().to_owned();
    let text = lines.iter().map(plain).collect::<Vec<_>>().join("\n");
    Some(Located { line, text })
}
