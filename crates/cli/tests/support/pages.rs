//! The commands that README and the pages of docs/ show, and `../data/pages.toml`, which says of
//! each how it is tested.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A command as it stands in a code block.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// Line of the page, from 1.
    pub(crate) line: usize,
    /// What a reader pastes, without its comment.
    pub(crate) text: String,
    /// Whether a `$` stands before it.
    pub(crate) prompted: bool,
    /// The lines below it, up to the next command or the end of the block.
    pub(crate) output: Vec<String>,
}

/// A page with its code.
#[derive(Debug)]
pub(crate) struct Page {
    /// Path in the repository, such as `docs/trace.md`.
    pub(crate) path: String,
    pub(crate) commands: Vec<Shown>,
    /// The code blocks.
    pub(crate) blocks: Vec<String>,
    /// Commands in backquotes within the text.
    pub(crate) inline: Vec<String>,
}

impl Page {
    /// The code block that begins with this line.
    pub(crate) fn block(&self, first: &str) -> &str {
        let block = self.blocks.iter().find(|block| block.lines().next() == Some(first));
        block.unwrap_or_else(|| panic!("{}: no block that begins with {first}", self.path))
    }
}

/// How the commands of a page are tested.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Accounts {
    /// Files that the commands name, and what they are: see `pages.toml`.
    pub(crate) files: BTreeMap<String, String>,
    /// Run by `make test`, as pasted: the exit statuses that are right.
    pub(crate) here: BTreeMap<String, Vec<i32>>,
    /// Run as root on kernel 6.1 by the guest test `pages`.
    pub(crate) guest: BTreeMap<String, InGuest>,
    /// Run by another test or step, which is named.
    pub(crate) elsewhere: BTreeMap<String, String>,
    /// Not run; the reason. The command line is parsed all the same.
    pub(crate) parsed: BTreeMap<String, String>,
}

/// How a command ends in a guest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InGuest {
    /// Exit statuses that are right.
    pub(crate) exits: Vec<i32>,
    /// Seconds after which Ctrl-C is sent, for a command that is endless or long.
    #[serde(default)]
    pub(crate) stop_after_s: Option<u64>,
}

/// First words of lines that are commands.
const PROGRAMS: &[&str] = &[
    "stillcore",
    "./stillcore",
    "cargo",
    "make",
    "sudo",
    "sudoedit",
    "apt",
    "dnf",
    "docker",
    "podman",
    "pip",
    "python3",
    "trace-cmd",
    "rpm2cpio",
    "taskset",
    "mkdir",
    "ls",
    "ln",
    "cyclictest",
    "./cyclictest",
    "curl",
    "tar",
    "sh",
];

/// The repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and the pages of docs/, by path.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths = vec!["README.md".to_owned()];
    let names = std::fs::read_dir(repository().join("docs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut docs: Vec<String> =
        names.filter(|name| name.strip_suffix(".md").is_some()).map(|name| format!("docs/{name}")).collect();
    docs.sort();
    paths.extend(docs);
    let read = |path: String| {
        let text = std::fs::read_to_string(repository().join(&path)).unwrap();
        page(path, &text)
    };
    paths.into_iter().map(read).collect()
}

/// The accounts of all pages, by path.
pub(crate) fn accounts() -> BTreeMap<String, Accounts> {
    let file = repository().join("crates/cli/tests/data/pages.toml");
    toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Takes the code out of a page: blocks indented by four columns, or between fences. Blocks of
/// Python are left to the tests of the Python package, and patches to the step `exercises`.
pub(crate) fn page(path: String, text: &str) -> Page {
    let mut page = Page { path, commands: Vec::new(), blocks: Vec::new(), inline: Vec::new() };
    let (mut fence, mut open) = (None::<String>, false);
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language.to_owned()) };
            open = false;
            continue;
        }
        let code = match &fence {
            Some(language) if language == "python" || language == "diff" => continue,
            Some(_) => Some(line),
            None => line.strip_prefix("    ").or((open && line.is_empty()).then_some("")),
        };
        let Some(code) = code else {
            open = false;
            page.inline.extend(inline(line));
            continue;
        };
        if !open {
            page.blocks.push(String::new());
        }
        let block = page.blocks.last_mut().unwrap();
        block.push_str(code);
        block.push('\n');
        match command(code) {
            Some((text, prompted)) => {
                page.commands.push(Shown { line: at + 1, text, prompted, output: Vec::new() });
            }
            // Below a command of this block.
            None if open && page.commands.last().is_some_and(|shown| shown.prompted) => {
                page.commands.last_mut().unwrap().output.push(code.to_owned());
            }
            None => {}
        }
        open = true;
    }
    for shown in &mut page.commands {
        while shown.output.last().is_some_and(String::is_empty) {
            shown.output.pop();
        }
    }
    page
}

/// Commands of stillcore in backquotes.
fn inline(line: &str) -> Vec<String> {
    let pieces = line.split('`').skip(1).step_by(2);
    pieces.filter(|piece| piece.starts_with("stillcore ")).map(str::to_owned).collect()
}

/// The command of a line of code, if it is one, and whether a `$` stands before it.
fn command(code: &str) -> Option<(String, bool)> {
    let (code, prompted) = code.strip_prefix("$ ").map_or((code, false), |code| (code, true));
    // A line of a crontab.
    let code = code.strip_prefix("*/5 * * * * ").unwrap_or(code);
    let first = code.split(' ').find(|word| !word.contains('=')).unwrap_or_default();
    (prompted || PROGRAMS.contains(&first)).then(|| (uncommented(code).trim_end().to_owned(), prompted))
}

/// The line up to a `#` that the shell takes for the beginning of a comment.
fn uncommented(code: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in code.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if c == '#' && before == ' ' => return &code[..at],
            _ => {}
        }
        before = c;
    }
    code
}

/// Whether the lines are printed in order, one below the other except where `...` stands. Within a
/// line `[..]` stands for anything. Otherwise the first line that is not at its place.
pub(crate) fn holds<'a>(printed: &str, expected: &'a [String]) -> Result<(), &'a str> {
    let mut rest = printed.lines();
    let mut skip = false;
    for wanted in expected {
        if wanted == "..." || wanted == "…" {
            skip = true;
            continue;
        }
        let is_it = |line: &str| fits(line, wanted.trim_end());
        let found = if skip { rest.any(is_it) } else { rest.next().is_some_and(is_it) };
        if !found {
            return Err(wanted);
        }
        skip = false;
    }
    Ok(())
}

/// Whether a line is the one that is wanted.
pub(crate) fn fits(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.trim_end().strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let at = if is_last { rest.strip_suffix(part).map(str::len) } else { rest.find(part) };
        let Some(at) = at else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}
