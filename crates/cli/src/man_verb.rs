//! `stillcore man`: manual pages, one a verb, from the command line's own definition.

use crate::calls;
use crate::conventions::{Convention, ENVIRONMENT, FILES, STATUSES};
use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Verb whose page to print, such as `measure wakeup` [default: the page of stillcore].
    #[arg(value_name = "VERB", conflicts_with = "out")]
    verb: Vec<String>,
    /// Existing directory to write the pages of all verbs to, a file each.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints a page, or writes all.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<u8> {
    let mut command = calls::command().disable_help_subcommand(true);
    command.build();
    if let Some(out) = &args.out {
        return write_all(&command, "stillcore(1)", out).map(|()| 0);
    }
    let (mut verb, mut above) = (&command, String::new());
    for word in words(&args.verb) {
        above = title(verb);
        let named = verb.get_name().to_owned();
        verb = verb
            .find_subcommand(&word)
            .with_context(|| format!("no verb {word} under {named}; see --help of {named}"))?;
    }
    print!("{}", String::from_utf8(page(verb, &above)?)?);
    Ok(0)
}

/// The words of a verb, which may be written as a page is named: `stillcore-measure-wakeup`.
fn words(verb: &[String]) -> impl Iterator<Item = String> {
    let name = verb.join("-");
    let verb = name.strip_prefix("stillcore-").unwrap_or(&name).to_owned();
    let words: Vec<_> = verb.split('-').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.into_iter()
}

/// The page of a command and those of the verbs under it.
fn write_all(command: &Command, above: &str, out: &std::path::Path) -> anyhow::Result<()> {
    let path = out.join(format!("{}.1", name(command)));
    std::fs::write(&path, page(command, above)?).with_context(|| format!("write {}", path.display()))?;
    command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .try_for_each(|verb| write_all(verb, &title(command), out))
}

/// One page. It names the page above it and those below.
fn page(command: &Command, above: &str) -> anyhow::Result<Vec<u8>> {
    // What belongs to a page of its own: clap gives a subcommand no version.
    let source = concat!("stillcore ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).manual("stillcore").source(source);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    // In the order of man-pages(7).
    for (heading, rows) in [("EXIT STATUS", STATUSES), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        writeln!(page, ".SH \"{heading}\"")?;
        for Convention { name, meaning } in rows {
            writeln!(page, ".TP\n.B {name}\n{}", meaning.replace('-', "\\-"))?;
        }
    }
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(title);
    let near: Vec<_> = std::iter::once(above.to_owned())
        .chain(below)
        .filter(|name| !name.is_empty() && *name != title(command))
        .map(|name| format!(".BR {}", name.replace('-', "\\-").replace('(', " (")))
        .collect();
    if !near.is_empty() {
        writeln!(page, ".SH \"SEE ALSO\"\n{}", near.join(" ,\n"))?;
    }
    Ok(page)
}

/// `stillcore-measure-wakeup(1)`.
fn title(command: &Command) -> String {
    format!("{}(1)", name(command))
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}
