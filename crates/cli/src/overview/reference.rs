//! The reference of the command line, written from its definition: `docs/commands.md` and a page
//! for each group of verbs. After a wanted change:
//! `SNAPSHOTS=overwrite cargo test -p stillcore --bin stillcore reference`.

use super::{GROUPS, Group, built};
use crate::conventions::{Convention, ENVIRONMENT, FILES, STATUSES};
use clap::builder::StyledStr;
use clap::{Arg, Command};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The verbs whose written page has not their name.
const WRITTEN: &[(&str, &str)] = &[
    ("explain", "mechanisms"),
    ("measure wakeup", "measure"),
    ("trace explain", "attribution"),
    ("snapshot", "audit"),
    ("summary", "statistics"),
    ("completions", "packages"),
    ("man", "packages"),
    ("sched", "schedulability"),
    ("sched study", "sched-studies"),
    ("sched generate", "sched-studies"),
    ("sched budget", "sched-certificates"),
    ("sched chains", "sched-curves"),
    ("sched executors", "sched-executors"),
    ("sched check-certificate", "sched-certificates"),
    ("graph latency", "graph-transports"),
    ("study", "experiments"),
    ("study merge", "fleet"),
    ("isolate undo", "journal-and-undo"),
];

const TOP: &str = "A test writes this page from the definition of the\n\
                   command line: `SNAPSHOTS=overwrite cargo test -p stillcore --bin stillcore reference`. `--help` of a verb and its\n\
                   manual page have the same texts.\n";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The word by which a group's page is named.
fn word(group: &Group) -> &'static str {
    group.situation.split(' ').next().unwrap_or_default()
}

fn page_of(group: &Group) -> String {
    format!("commands-{}.md", word(group))
}

fn anchor(path: &str) -> String {
    path.replace(' ', "-")
}

/// The page that explains a verb.
fn written(path: &str) -> Option<String> {
    let known = WRITTEN.iter().find(|(verb, _)| *verb == path).map(|(_, page)| (*page).to_owned());
    let name = known.unwrap_or_else(|| anchor(path));
    docs().join(format!("{name}.md")).exists().then_some(name)
}

/// Text in a cell or paragraph of Markdown, where nothing of it is a mark but backquotes.
fn prose(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces = text.split('`').enumerate().map(|(at, piece)| match at % 2 {
        0 => piece.replace('<', "&lt;").replace('*', "\\*").replace('|', "\\|"),
        _ => piece.replace('|', "\\|"),
    });
    pieces.collect::<Vec<_>>().join("`")
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

fn text_of(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// The meaning of an option and its default, which some texts name at their end.
fn meaning(arg: &Arg) -> (String, String) {
    let text = text_of(arg.get_long_help().or(arg.get_help()));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (text, said) = match text.rsplit_once(" [default: ") {
        Some((text, said)) if said.ends_with(']') => (text, said.trim_end_matches(']')),
        _ => (text.as_str(), ""),
    };
    let mut meaning = prose(text);
    let values = arg.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    let is_switch = !arg.get_action().takes_values();
    if !values.is_empty() && !is_switch && !arg.is_hide_possible_values_set() {
        let explained = values.iter().map(|value| {
            let about = text_of(value.get_help());
            let about = about.trim_end_matches('.');
            let about = if about.is_empty() { String::new() } else { format!(" ({})", prose(about)) };
            format!("{}{about}", code(value.get_name()))
        });
        let _ = write!(meaning, ". Values: {}", explained.collect::<Vec<_>>().join(", "));
    }
    let defaults = arg
        .get_default_values()
        .iter()
        .filter(|value| !value.is_empty())
        .map(|value| code(&value.to_string_lossy()));
    let default = if is_switch { String::new() } else { defaults.collect::<Vec<_>>().join(" ") };
    (meaning, if default.is_empty() { prose(said) } else { default })
}

fn row(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let name = if arg.is_positional() { arg.to_string() } else { format!("{short}{arg}") };
    let (meaning, default) = meaning(arg);
    format!("| {} | {meaning} | {default} |\n", code(&name))
}

/// A table of options, if there are any.
fn table<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let rows: String = args.map(row).collect();
    if rows.is_empty() { rows } else { format!("\n| option | meaning | default |\n|---|---|---|\n{rows}") }
}

fn is_of_verb(arg: &Arg) -> bool {
    !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help"
}

/// The verb with its usage and options, and the verbs under it.
fn section(command: &Command, path: &str, page: &mut String) {
    let mut command = command.clone().term_width(100);
    let depth = "#".repeat(1 + path.split(' ').count());
    let about = text_of(command.get_long_about().or(command.get_about()));
    let _ = write!(page, "\n{depth} {path}\n\n{}.", prose(about.trim_end_matches('.')));
    if let Some(name) = written(path) {
        let _ = write!(page, " More: [{name}]({name}.md).");
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(page, "\n\n{}", code(&usage).replace("\\|", "|"));
    page.push_str(&table(command.get_arguments().filter(|arg| is_of_verb(arg))));
    if path == "help" {
        return;
    }
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        section(verb, &format!("{path} {}", verb.get_name()), page);
    }
}

fn group_page(command: &Command, group: &Group) -> String {
    let mut page = format!(
        "# Commands: {}\n\nFor those who look up an option of these verbs. {TOP}\nOptions of every verb, exit statuses and files: [commands](commands.md).\n",
        prose(group.situation)
    );
    for verb in group.verbs.iter().filter_map(|verb| command.find_subcommand(verb)) {
        section(verb, verb.get_name(), &mut page);
    }
    page
}

fn conventions(page: &mut String, heading: &str, first: &str, rows: &[Convention]) {
    let _ = write!(page, "\n## {heading}\n\n| {first} | meaning |\n|---|---|\n");
    for Convention { name, meaning } in rows {
        let _ = writeln!(page, "| `{name}` | {} |", prose(meaning));
    }
}

fn index(command: &Command) -> String {
    let mut page = format!(
        "# Commands\n\nFor those who look up a verb, an exit status, a variable or a file. {TOP}\n## Verbs\n\n| to | verb | does |\n|---|---|---|\n"
    );
    for group in GROUPS {
        for verb in group.verbs.iter().filter_map(|verb| command.find_subcommand(verb)) {
            let (name, about) = (verb.get_name(), prose(&text_of(verb.get_about())));
            let (situation, place) = (prose(group.situation), page_of(group));
            let _ = writeln!(page, "| {situation} | [{name}]({place}#{name}) | {about} |");
            for inner in verb.get_subcommands().filter(|inner| name != "help" && inner.get_name() != "help") {
                let (path, about) = (format!("{name} {}", inner.get_name()), text_of(inner.get_about()));
                let link = format!("[{path}]({place}#{})", anchor(&path));
                let _ = writeln!(page, "| | {link} | {} |", prose(&about));
            }
        }
    }
    page.push_str("\n## Options of every verb\n");
    page.push_str(&table(command.get_arguments().filter(|arg| !arg.is_hide_set())));
    page.push_str(
        "\nUnits, lists of CPUs, and options that several verbs share: [option names](option-names.md).\n",
    );
    conventions(&mut page, "Exit statuses", "status", STATUSES);
    conventions(&mut page, "Environment", "variable", ENVIRONMENT);
    conventions(&mut page, "Files", "file", FILES);
    page.push_str("\n## Keys of config.toml\n\n| key | sets | of the verbs |\n|---|---|---|\n");
    for (key, option, verbs) in crate::defaults::keys() {
        let _ = writeln!(page, "| `{key}` | {option} | {verbs} |");
    }
    page
}

fn check(name: &str, page: String) {
    snapbox::assert_data_eq!(page, snapbox::Data::read_from(&docs().join(name), None).raw());
}

#[test]
fn reference() {
    let command = built(&crate::command());
    check("commands.md", index(&command));
    for group in GROUPS {
        check(&page_of(group), group_page(&command, group));
    }
}

#[test]
fn the_written_pages_are_there() {
    let command = built(&crate::command());
    for (verb, page) in WRITTEN {
        assert_eq!(written(verb).as_deref(), Some(*page));
        let words = verb.split(' ').try_fold(&command, |command, word| command.find_subcommand(word));
        assert!(words.is_some(), "{verb} is no verb");
    }
}
