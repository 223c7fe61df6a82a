//! What `stillcore` prints when no verb is named, and at the top of `stillcore --help`: the verbs
//! in groups, each headed by the situation in which one wants it.

#[cfg(test)]
mod reference;

use clap::Command;
use std::fmt::Write;

/// Verbs for one situation.
struct Group {
    situation: &'static str,
    verbs: &'static [&'static str],
}

/// Each verb is in one group. Verbs that most users seldom need are in the last, which the short
/// form prints by name only.
const GROUPS: &[Group] = &[
    Group { situation: "look (changes no setting)", verbs: &["top", "audit", "explain"] },
    Group { situation: "measure", verbs: &["assess", "measure", "graph", "trace", "monitor"] },
    Group { situation: "change (`isolate undo` restores)", verbs: &["isolate", "disturb"] },
    Group { situation: "conclude", verbs: &["report", "compare", "model", "sched"] },
    Group {
        situation: MORE,
        verbs: &["resources", "summary", "snapshot", "study", "lab", "completions", "man", "help"],
    },
];

const MORE: &str = "more";

/// The last lines of both forms.
const END: &str = "Start here: stillcore assess    Options: stillcore VERB -h (short), --help";

/// The program's page of help: name, groups, options.
const TEMPLATE: &str = "{before-help}Options:\n{options}{after-help}";

/// The command with its verbs in groups instead of clap's list. No verb is hidden: completions and
/// manual pages have them all.
pub(crate) fn grouped(command: Command) -> Command {
    let built = built(&command);
    let (short, long) = (groups(&built, false), groups(&built, true));
    command.help_template(TEMPLATE).before_help(short).before_long_help(long).after_help(END)
}

/// The command with the verb `help`, and with names that say where each verb is.
pub(crate) fn built(command: &Command) -> Command {
    let mut command = command.clone();
    command.build();
    command
}

/// The page of a call without a verb.
pub(crate) fn page(command: &Command) -> String {
    format!("{}\n{END}\n", groups(command, false))
}

/// What the program is for, and the groups; in full also the last has a line for each verb.
fn groups(command: &Command, in_full: bool) -> String {
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = about.strip_prefix('F').map_or(about.clone(), |rest| format!("f{rest}"));
    let mut text = format!("stillcore {}: {about}\n\n", env!("CARGO_PKG_VERSION"));
    for group in GROUPS {
        if group.situation == MORE && !in_full {
            let _ = writeln!(text, "{MORE}\n  {}", group.verbs.join("  "));
            continue;
        }
        let _ = writeln!(text, "{}", group.situation);
        for name in group.verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:width$}  {about}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_verb_is_in_exactly_one_group() {
        let command = built(&crate::command());
        let mut times: BTreeMap<&str, u32> =
            command.get_subcommands().map(|verb| (verb.get_name(), 0)).collect();
        for verb in GROUPS.iter().flat_map(|group| group.verbs) {
            *times.get_mut(verb).unwrap_or_else(|| panic!("{verb} is no verb")) += 1;
        }
        times.retain(|_, times| *times != 1);
        assert!(times.is_empty(), "not in one group of {}: {times:?}", file!());
        assert!(command.get_subcommands().all(|verb| !verb.is_hide_set()));
    }

    #[test]
    fn the_page_fits_a_terminal() {
        let page = page(&crate::command());
        assert!(page.lines().count() <= 24, "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }
}
