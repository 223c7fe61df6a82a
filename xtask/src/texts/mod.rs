//! `cargo xtask texts`: a random sample of what the sources say in English. A reader who has never
//! seen the code restates each text; a text restated wrongly is rewritten.
//!
//! The generator is splitmix64 (Steele, Lea, Flood, OOPSLA 2014), seeded with `--seed`. It draws
//! without replacement: first doc comments, then help texts, then error texts, each kind in the
//! order of path and line. Draw number i (from 0) of n texts takes text i + (output mod (n - i))
//! and swaps it with text i, as the Fisher-Yates shuffle does.

mod attributes;
mod collect;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::output::Output;
use crate::repo::Repo;

/// How many texts of each kind a sample has.
const PER_KIND: usize = 25;

/// Which sample to draw.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the draw: the same tree and seed give the same list.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Doc,
    Help,
    Error,
}

impl Kind {
    /// Every kind, in the order of the draw.
    const ALL: [Self; 3] = [Self::Doc, Self::Help, Self::Error];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Doc => "doc comment",
            Self::Help => "help text",
            Self::Error => "error text",
        })
    }
}

/// One text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Text {
    kind: Kind,
    path: String,
    /// Line of its first word, from 1.
    line: usize,
    /// The item or option that follows; `None` for file headers and errors.
    name: Option<String>,
    content: String,
}

/// Draws a sample and prints it as a numbered list in Markdown.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool> {
    let texts = collect::texts(&Repo::read(root)?)?;
    Output::Terminal.bytes(render(&texts, options.seed).as_bytes())?;
    Ok(true)
}

/// The sample of one seed.
fn draw(texts: &[Text], seed: u64) -> Vec<&Text> {
    let mut generator = SplitMix64 { state: seed };
    let mut sample = Vec::new();
    for kind in Kind::ALL {
        let mut pool: Vec<&Text> = texts.iter().filter(|text| text.kind == kind).collect();
        for at in 0..PER_KIND.min(pool.len()) {
            let left = (pool.len() - at) as u64;
            pool.swap(at, at + (generator.next() % left) as usize);
            sample.push(pool[at]);
        }
    }
    sample
}

struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn render(texts: &[Text], seed: u64) -> String {
    let sample = draw(texts, seed);
    let counts = Kind::ALL.map(|kind| {
        let count = |all: &mut dyn Iterator<Item = &Text>| all.filter(|text| text.kind == kind).count();
        format!("{} of {} {kind}s", count(&mut sample.iter().copied()), count(&mut texts.iter()))
    });
    let head = format!(
        "Sample of seed {seed}: {}. A doc comment without a name is the header of its file.\n",
        counts.join(", ")
    );
    let items = sample.iter().enumerate().map(|(at, text)| format!("{}. {text}", at + 1));
    std::iter::once(head).chain(items).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, `{}:{}`", self.kind, self.path, self.line)?;
        if let Some(name) = &self.name {
            write!(f, ", `{name}`")?;
        }
        f.write_str("\n\n")?;
        let content = match self.kind {
            Kind::Error => code_span(&self.content),
            Kind::Doc | Kind::Help => self.content.clone(),
        };
        // Deep enough to belong to an item of one or of two digits.
        content.lines().try_for_each(|line| writeln!(f, "{}", format!("    {line}").trim_end()))
    }
}

/// Text that Markdown shows as it is, backquotes included.
fn code_span(text: &str) -> String {
    let line = text.replace('\n', "\\n");
    if line.contains('`') { format!("`` {line} ``") } else { format!("`{line}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(kind: Kind, count: usize) -> impl Iterator<Item = Text> {
        (1..=count).map(move |line| Text {
            kind,
            path: "crates/x/src/lib.rs".to_owned(),
            line,
            name: None,
            content: format!("text {line}"),
        })
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs of the reference code, https://prng.di.unimi.it/splitmix64.c.
        let mut generator = SplitMix64 { state: 1_234_567 };
        assert_eq!(
            [generator.next(), generator.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn one_seed_draws_the_same_texts_and_another_seed_draws_others() {
        let texts: Vec<Text> = Kind::ALL.into_iter().flat_map(|kind| numbered(kind, 200)).collect();
        assert_eq!(draw(&texts, 1), draw(&texts, 1));
        assert_eq!(render(&texts, 1), render(&texts, 1));
        for kind in Kind::ALL {
            let lines = |seed| -> Vec<usize> {
                draw(&texts, seed).iter().filter(|text| text.kind == kind).map(|text| text.line).collect()
            };
            assert_eq!(lines(1).len(), PER_KIND);
            assert_ne!(lines(1), lines(2), "{kind}");
        }
    }

    #[test]
    fn no_text_is_drawn_twice_and_few_texts_are_drawn_all() {
        let texts: Vec<Text> = numbered(Kind::Help, PER_KIND).chain(numbered(Kind::Error, 3)).collect();
        let sample = draw(&texts, 7);
        assert_eq!(sample.len(), texts.len());
        assert!(texts.iter().all(|text| sample.contains(&text)));
    }

    #[test]
    fn the_list_gives_number_kind_place_name_and_text() {
        let doc = Text {
            kind: Kind::Doc,
            path: "crates/x/src/a.rs".to_owned(),
            line: 3,
            name: Some("Loss".to_owned()),
            content: "One.\n\nTwo.".to_owned(),
        };
        let error =
            Text { kind: Kind::Error, name: None, content: "no `x` in\nit".to_owned(), ..doc.clone() };
        assert_eq!(
            render(&[doc, error], 1),
            "Sample of seed 1: 1 of 1 doc comments, 0 of 0 help texts, 1 of 1 error texts. \
             A doc comment without a name is the header of its file.\n\
             \n1. doc comment, `crates/x/src/a.rs:3`, `Loss`\n\n    One.\n\n    Two.\n\
             \n2. error text, `crates/x/src/a.rs:3`\n\n    `` no `x` in\\nit ``\n"
        );
    }
}
