//! Finds every doc comment, help text and error text of the sources, by their tokens.
//!
//! A help text belongs to an option or a subcommand of clap, in `crates/cli/src`. An error text is
//! a literal of `#[error(...)]` or of a call that makes an error, with at least three words. Test
//! code has none of them: `#[cfg(test)]` items, the files of such modules, and all named `tests`.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

use super::attributes::{Attributes, Located, group_of};
use super::{Kind, Text};
use crate::repo::{Repo, has_extension};
use crate::tokens::{behind_item, is};

/// Where clap's arguments are declared.
const CLI: &str = "crates/cli/src/";
/// An error text has at least so many.
const FEWEST_WORDS: usize = 3;

/// Every text, in the order of path and line.
pub(super) fn texts(repo: &Repo) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    let mut test_modules = Vec::new();
    for (path, source) in repo.texts(is_source) {
        let broken = |error: LexError| anyhow!("{path}:{}: {error}", error.span().start().line);
        let tokens: TokenStream = source.parse().map_err(broken)?;
        let mut file = File { path, texts: Vec::new(), test_modules: Vec::new() };
        file.read(tokens);
        texts.append(&mut file.texts);
        test_modules.append(&mut file.test_modules);
    }
    texts.retain(|text| !test_modules.iter().any(|module| belongs_to(&text.path, module)));
    Ok(texts)
}

/// `crates/NAME/src/**/*.rs` without what is named `tests`.
fn is_source(path: &str) -> bool {
    let mut parts = path.split('/');
    let in_sources = parts.next() == Some("crates") && parts.nth(1) == Some("src");
    in_sources && has_extension(path, "rs") && parts.all(|part| part != "tests" && part != "tests.rs")
}

/// Whether a file is of a module, given as `crates/x/src/module`, or of one below.
fn belongs_to(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The folder of the modules that a file declares.
fn children(path: &str) -> &str {
    let stem = path.trim_end_matches(".rs");
    let root = ["/mod", "/lib", "/main"].iter().find_map(|root| stem.strip_suffix(root));
    root.unwrap_or(stem)
}

/// What a doc comment inside some brackets documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Code,
    /// A table of verbs.
    Verbs,
    /// The fields of a struct or variant that clap reads.
    Options,
    /// The variants of an enum that clap reads.
    Subcommands,
}

impl Scope {
    /// The scope of braces in it.
    fn inside(self) -> Self {
        match self {
            Self::Verbs => Self::Subcommands,
            Self::Subcommands => Self::Options,
            Self::Options | Self::Code => Self::Code,
        }
    }
}

/// One file and what was found in it.
struct File<'a> {
    path: &'a str,
    texts: Vec<Text>,
    /// Paths of modules declared under `#[cfg(test)]`, without `.rs`.
    test_modules: Vec<String>,
}

impl File<'_> {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let header = Attributes::read(&tokens).header();
        self.add(Kind::Doc, header, None);
        self.walk(&tokens, Scope::Code);
    }

    fn walk(&mut self, tokens: &[TokenTree], scope: Scope) {
        let mut inside = scope.inside();
        let mut at = 0;
        while at < tokens.len() {
            let attributes = Attributes::read(&tokens[at..]);
            if attributes.length == 0 {
                self.add_error_call(tokens, at);
                inside = match &tokens[at..] {
                    [table, mark, ..] if self.is_verbs(table, mark) => Scope::Verbs,
                    _ => self.enter(&tokens[at], scope, inside),
                };
                at += 1;
                continue;
            }
            at += attributes.length;
            if attributes.is_test() {
                self.add_test_module(&tokens[at..]);
                at = behind_item(tokens, at);
            } else {
                self.add_attributes(&attributes, &tokens[at..], scope);
                inside = self.scope_of(&attributes).unwrap_or(inside);
            }
        }
    }

    /// Walks through a group, and returns the scope of the next braces.
    fn enter(&mut self, token: &TokenTree, scope: Scope, inside: Scope) -> Scope {
        match token {
            TokenTree::Group(group) => {
                let braces = group.delimiter() == Delimiter::Brace;
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                self.walk(&tokens, if braces { inside } else { Scope::Code });
                if braces { scope.inside() } else { inside }
            }
            other if is(other, ';') => scope.inside(),
            _ => inside,
        }
    }

    /// Whether `verbs!` of the command begins here.
    fn is_verbs(&self, name: &TokenTree, mark: &TokenTree) -> bool {
        self.path.starts_with(CLI) && is_word(name, "verbs") && is(mark, '!')
    }

    /// The scope of the braces of an item that derives a trait of clap.
    fn scope_of(&self, attributes: &Attributes<'_>) -> Option<Scope> {
        if !self.path.starts_with(CLI) {
            None
        } else if attributes.derives(&["Subcommand"]) {
            Some(Scope::Subcommands)
        } else {
            attributes.derives(&["Args", "Parser"]).then_some(Scope::Options)
        }
    }

    /// The texts in the attributes of the item that begins with `tokens`.
    fn add_attributes(&mut self, attributes: &Attributes<'_>, tokens: &[TokenTree], scope: Scope) {
        for arguments in attributes.arguments("error") {
            self.add_errors(arguments);
        }
        let is_help = match scope {
            // Clap shows no doc comment of a field that stands for further arguments.
            Scope::Options => !attributes.has("command"),
            Scope::Verbs | Scope::Subcommands => true,
            Scope::Code => self.scope_of(attributes).is_some(),
        };
        let kind = if is_help { Kind::Help } else { Kind::Doc };
        let text = attributes.help().filter(|_| is_help).or_else(|| attributes.doc_comment());
        self.add(kind, text, name(tokens));
    }

    fn add(&mut self, kind: Kind, text: Option<Located>, name: Option<String>) {
        let Some(Located { line, text }) = text else { return };
        self.texts.push(Text { kind, path: self.path.to_owned(), line, name, content: text });
    }

    fn add_error_call(&mut self, tokens: &[TokenTree], at: usize) {
        if let Some(arguments) = error_arguments(tokens, at) {
            self.add_errors(arguments);
        }
    }

    /// The literals among some arguments, and those of a `format!` among them.
    fn add_errors(&mut self, arguments: TokenStream) {
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Literal(literal) => {
                    let text = Located::of(literal).filter(|one| words(&one.text) >= FEWEST_WORDS);
                    self.add(Kind::Error, text, None);
                }
                TokenTree::Group(group) if at >= 2 && is_word(&tokens[at - 2], "format") => {
                    self.add_errors(group.stream());
                }
                _ => {}
            }
        }
    }

    /// Notes the file of `mod name;`.
    fn add_test_module(&mut self, tokens: &[TokenTree]) {
        let end = behind_item(tokens, 0);
        if let [.., keyword, TokenTree::Ident(name), last] = &tokens[..end]
            && is_word(keyword, "mod")
            && is(last, ';')
        {
            self.test_modules.push(format!("{}/{name}", children(self.path)));
        }
    }
}

/// The arguments of a call that makes an error: `Error::invalid(..)`, `bail!(..)`, `.context(..)`
/// and the like, whose name stands at `at`.
fn error_arguments(tokens: &[TokenTree], at: usize) -> Option<TokenStream> {
    let TokenTree::Ident(word) = &tokens[at] else { return None };
    let arguments = match (word.to_string().as_str(), &tokens[..at]) {
        ("context", [.., dot]) if is(dot, '.') => at + 1,
        ("invalid" | "absent" | "failed", [.., owner, colon, _])
            if is_word(owner, "Error") && is(colon, ':') =>
        {
            at + 1
        }
        ("bail" | "anyhow", _) if tokens.get(at + 1).is_some_and(|token| is(token, '!')) => at + 2,
        _ => return None,
    };
    let group = group_of(tokens.get(arguments)?, Delimiter::Parenthesis)?;
    Some(group.stream())
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

/// How many words a text has besides its `{placeholders}`.
fn words(text: &str) -> usize {
    let mut depth = 0_usize;
    let plain: String = text
        .chars()
        .filter(|&letter| {
            depth += usize::from(letter == '{');
            let outside = depth == 0;
            depth = depth.saturating_sub(usize::from(letter == '}'));
            outside
        })
        .collect();
    plain.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count()
}

/// The name of the item that begins here: the first word that is no keyword.
fn name(tokens: &[TokenTree]) -> Option<String> {
    const KEYWORDS: &[&str] = &[
        "pub",
        "crate",
        "const",
        "static",
        "mut",
        "unsafe",
        "async",
        "extern",
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "mod",
        "use",
        "impl",
        "macro_rules",
    ];
    let words = tokens.iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let mut names = words.filter(|word| !KEYWORDS.contains(&word.as_str()));
    names.next().map(|word| word.trim_start_matches("r#").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(Kind, usize, Option<String>, String)> {
        let texts = texts(&Repo::of(files)).unwrap();
        texts.into_iter().map(|text| (text.kind, text.line, text.name, text.content)).collect()
    }

    fn expected(kind: Kind, line: usize, name: &str, text: &str) -> (Kind, usize, Option<String>, String) {
        (kind, line, Some(name.to_owned()).filter(|name| !name.is_empty()), text.to_owned())
    }

    #[test]
    fn a_source_gives_its_header_its_doc_comments_and_no_other_comment() {
        let source = r#"//! The idea
//! of the file.
//!
//! More.
#![forbid(unsafe_code)]

/// A loss
///
/// and its "count".
#[derive(Debug)]
pub(crate) struct Loss {
    /// How many.
    pub r#type: u64, // not this
}

kinds! {
    /// In a macro.
    Cpu = "a cpu of it",
}
// /// Not this.
"#;
        assert_eq!(
            found(&[("crates/x/src/a.rs", source)]),
            [
                expected(Kind::Doc, 1, "", "The idea\nof the file."),
                expected(Kind::Doc, 7, "Loss", "A loss\n\nand its \"count\"."),
                expected(Kind::Doc, 12, "type", "How many."),
                expected(Kind::Doc, 17, "Cpu", "In a macro."),
            ]
        );
    }

    const OPTIONS: &str = r#"/// Arguments.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Wake-up interval.
    #[arg(long)]
    period: u64,
    /// Hidden by the next.
    #[arg(long, help = "Length of it")]
    length: u64,
    /// Further ones.
    #[command(flatten)]
    more: More,
}
#[derive(Subcommand)]
enum Verb {
    /// Run it.
    Run(RunArgs),
    /// Show it.
    Show {
        /// What to show.
        what: String,
    },
}
/// A plain type.
enum Plain {
    /// One of it.
    One,
}
verbs! {
    /// All of them.
    Verbs {
        /// Those below.
        #[command(subcommand)]
        Below(BelowVerb) => nested(BelowVerb::run),
    }
}
"#;

    #[test]
    fn options_and_subcommands_of_the_command_give_help_texts() {
        assert_eq!(
            found(&[("crates/cli/src/a.rs", OPTIONS)]),
            [
                expected(Kind::Help, 1, "RunArgs", "Arguments."),
                expected(Kind::Help, 4, "period", "Wake-up interval."),
                expected(Kind::Help, 8, "length", "Length of it"),
                expected(Kind::Doc, 10, "more", "Further ones."),
                expected(Kind::Help, 16, "Run", "Run it."),
                expected(Kind::Help, 18, "Show", "Show it."),
                expected(Kind::Help, 20, "what", "What to show."),
                expected(Kind::Doc, 24, "Plain", "A plain type."),
                expected(Kind::Doc, 26, "One", "One of it."),
                expected(Kind::Help, 30, "Verbs", "All of them."),
                expected(Kind::Help, 32, "Below", "Those below."),
            ]
        );
        let elsewhere = found(&[("crates/x/src/a.rs", OPTIONS)]);
        assert!(elsewhere.iter().all(|(kind, ..)| *kind == Kind::Doc), "{elsewhere:?}");
    }

    #[test]
    fn calls_that_make_an_error_give_their_literals_of_three_words() {
        let source = r#"#[error("no CPU is left for {what}")]
struct NoCpu;
fn f() {
    Err(model::Error::invalid(path, format!("schema {:?} is unknown", x), "too short"))
    anyhow::bail!(
        "the guest was \
         killed"
    );
    x.context("cannot read it").map_err(|e| anyhow!("{e} {x} two words"));
    println!("not an error text"); context("nor is this one");
}
"#;
        assert_eq!(
            found(&[("crates/x/src/a.rs", source)]),
            [
                expected(Kind::Error, 1, "", "no CPU is left for {what}"),
                expected(Kind::Error, 4, "", "schema {:?} is unknown"),
                expected(Kind::Error, 6, "", "the guest was killed"),
                expected(Kind::Error, 9, "", "cannot read it"),
            ]
        );
    }

    #[test]
    fn nothing_is_taken_from_test_code() {
        let inline = r#"fn f() {}
/// A test.
#[cfg(test)]
mod tests {
    /// No.
    fn g() { bail!("a b c") }
}
#[cfg(test)]
mod testing;
/// Yes.
fn h() {}
"#;
        let doc = "/// No.\nfn f() {}\n";
        let files = [
            ("crates/x/src/a/mod.rs", inline),
            ("crates/x/src/a/testing.rs", doc),
            ("crates/x/src/a/testing/deep.rs", doc),
            ("crates/x/src/a/tests.rs", doc),
            ("crates/x/src/tests/b.rs", doc),
            ("crates/x/tests/c.rs", doc),
            ("crates/x/build.rs", doc),
            ("xtask/src/d.rs", doc),
        ];
        assert_eq!(found(&files), [expected(Kind::Doc, 10, "h", "Yes.")]);
    }

    #[test]
    fn a_source_that_cannot_be_read_is_an_error_with_its_place() {
        let error = texts(&Repo::of(&[("crates/x/src/a.rs", "fn f() {\n}}\n")])).unwrap_err();
        assert!(error.to_string().starts_with("crates/x/src/a.rs:2: "), "{error}");
    }
}
