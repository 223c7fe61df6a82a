//! One name for one thing: the options that several verbs share, and the names that they had
//! before, which are still accepted.

use crate::line::reached;
use clap::Command;
use std::ffi::OsString;

/// Options that several verbs have, and what each means on all of them.
#[cfg(test)]
const SHARED: &[(&str, &str)] = &[
    ("--allow-split", "isolate some hardware threads of a core and leave its siblings for other work"),
    ("--catalogue", "directory of settings to use instead of the built-in catalogue"),
    ("--class", "scheduling class of a kernel outside mainline"),
    ("--colocated", "with `--disturb`: also load the measured CPUs"),
    ("--comm", "threads, or processes, with this name"),
    ("--cpus", "CPUs that are measured, isolated or listed; of `disturb`: CPUs that the stressors run on"),
    (
        "--deadline",
        "relative deadline of a job; of `report` and `summary`: count releases at least this late",
    ),
    ("--disturb", "stressors, or `suite:NAME`, to run beside a measurement"),
    ("--disturb-cpus", "CPUs that `--disturb` loads"),
    ("--duration", "length of a measurement, or of each of its phases"),
    ("--force", "also isolate CPU 0, and CPUs that belong to somebody else"),
    ("--json", "print one JSON object"),
    (
        "--keep",
        "with `--trace-over`: most samples to keep the trace around; of `isolate`: what to leave as it is; of `study run`: keep the run directories",
    ),
    ("--keep-before", "with `--trace-over`: length of trace before each sample"),
    ("--kprobes", "find senders of IPIs by kprobes, where the kernel has no events for them"),
    ("--move-pinned", "also move real-time tasks and tasks pinned to the CPUs"),
    ("--no-dma-latency", "leave idle states enabled"),
    (
        "--off-stretches",
        "record stretches with interrupts or preemption off, or calls of the named functions",
    ),
    ("--out", "new directory, or file, for the result"),
    (
        "--over",
        "lower limit of samples to report, or to keep: this long or longer. `measure` then exits with 2",
    ),
    ("--period", "interval of releases or messages"),
    ("--placement", "how to keep the scheduler off isolated CPUs"),
    ("--policy", "scheduling policy"),
    ("--priority", "real-time priority; 0, where accepted, is SCHED_OTHER"),
    ("--profile", "file of the desired state, instead of the options that describe it"),
    ("--quiet", "show no progress"),
    ("--root", "root directory of a snapshot or an image, instead of this machine"),
    ("--runtime", "CPU time reserved per job"),
    ("--stacks", "record, or show, kernel stacks"),
    ("--state", "directory for the journal"),
    ("--stop-over", "stop at the first sample this long or longer; exit with 2"),
    ("--stressors", "stressors of the verb's own disturbed phase or cells"),
    ("--suite", "the same by a named list"),
    ("--threshold", "shortest gap that the noise probe stores"),
    ("--timer-slack", "timer slack of threads that are not real-time"),
    (
        "--trace",
        "record kernel events: `on`, `off`, `auto`; alone: `on`. `--trace on` and `--trace=on` are the same",
    ),
    ("--trace-over", "lower limit of samples around which the trace is kept"),
    ("--user-stacks", "record user-space stacks of senders"),
    ("--with", "settings to change also; of `compare`: the other runs"),
    ("--without", "settings to leave alone"),
];
/// Options of so many verbs need a row there.
#[cfg(test)]
const MANY: usize = 5;

/// Another name of an option.
pub(crate) struct Former {
    /// Beginnings of the verbs that had it, such as `measure` or `measure wakeup`.
    pub(crate) verbs: &'static [&'static str],
    /// The name that is still accepted.
    pub(crate) name: &'static str,
    /// Its name now.
    pub(crate) now: &'static str,
}

/// The former names.
pub(crate) const FORMER: &[Former] = &[
    Former { verbs: &["resources"], name: "--cpu", now: "--cpus" },
    Former { verbs: &["measure wakeup"], name: "--threshold", now: "--over" },
    Former { verbs: &["measure", "graph run"], name: "--stressors", now: "--disturb" },
];

/// The words with today's names, and a note for each that had another. An option whose value needs
/// an equals sign gets it where one of its values follows: `--trace on`.
pub(crate) fn current(command: &Command, words: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let reached = reached(command, &words);
    let verb = reached.path.join(" ");
    let of_verb = |former: &&Former| {
        let under = |one: &&str| verb == **one || verb.starts_with(&format!("{one} "));
        former.verbs.iter().any(under)
    };
    let (mut current, mut notes) = (Vec::with_capacity(words.len()), Vec::new());
    let mut options = true;
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        options &= word != "--";
        let Some(text) = word.to_str().filter(|text| options && text.starts_with("--")) else {
            current.push(word.clone());
            continue;
        };
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let former = FORMER.iter().filter(of_verb).find(|former| former.name == name);
        let name = former.map_or(name, |former| former.now);
        if let Some(former) = former {
            notes.push(format!("{verb} {} is called {}", former.name, former.now));
        }
        let mut with_equals = reached.command.get_arguments().filter(|arg| arg.is_require_equals_set());
        let arg = with_equals.find(|arg| arg.get_long() == name.strip_prefix("--"));
        let following = rest.peek().and_then(|next| next.to_str()).filter(|next| {
            let values = arg.map(clap::Arg::get_possible_values).unwrap_or_default();
            value.is_none() && values.iter().any(|value| value.matches(next, false))
        });
        let whole = match value.or(following) {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        };
        if following.is_some() {
            rest.next();
        }
        current.push(whole.into());
    }
    (current, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current_line(line: &str) -> (String, Vec<String>) {
        let (words, notes) = current(&crate::command(), line.split(' ').map(OsString::from).collect());
        (words.join(" ".as_ref()).into_string().unwrap(), notes)
    }

    #[test]
    fn a_former_name_is_accepted_with_a_note() {
        let (line, notes) = current_line("stillcore resources --cpu 1 --kind irq");
        assert_eq!(line, "stillcore resources --cpus 1 --kind irq");
        assert_eq!(notes, ["resources --cpu is called --cpus"]);
        assert_eq!(
            current_line("stillcore measure wakeup --threshold=1ms").0,
            "stillcore measure wakeup --over=1ms"
        );
        // Elsewhere it is an option of its own, or none.
        assert!(current_line("stillcore measure spin --threshold 1us").1.is_empty());
        assert!(current_line("stillcore audit --cpu 1").1.is_empty());
        assert!(current_line("stillcore isolate run -- x resources --cpu 1").1.is_empty());
    }

    #[test]
    fn a_mode_may_follow_and_an_operand_is_none() {
        let same = "stillcore measure spin --trace=auto --cpus 1";
        assert_eq!(current_line("stillcore measure spin --trace auto --cpus 1").0, same);
        assert_eq!(current_line(same).0, same);
        let operand = "stillcore graph run --trace graph.toml";
        assert_eq!(current_line(operand).0, operand);
        let cyclictest = "stillcore measure wakeup --cyclictest-compat -- --trace on";
        assert_eq!(current_line(cyclictest).0, cyclictest);
    }

    /// Verbs by the name of an option that they have; of an inner verb the whole path.
    fn by_option() -> std::collections::BTreeMap<String, Vec<String>> {
        fn walk(command: &Command, path: &str, all: &mut std::collections::BTreeMap<String, Vec<String>>) {
            for inner in command.get_subcommands() {
                let path = format!("{path} {}", inner.get_name()).trim().to_owned();
                for arg in inner.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set()) {
                    let Some(long) = arg.get_long() else { continue };
                    all.entry(format!("--{long}")).or_default().push(path.clone());
                }
                walk(inner, &path, all);
            }
        }
        let mut all = std::collections::BTreeMap::new();
        walk(&crate::command(), "", &mut all);
        all.retain(|name, _| name != "--help");
        all
    }

    #[test]
    fn a_former_name_leads_to_an_option_and_is_none_any_more() {
        let options = by_option();
        for former in FORMER {
            let had = |verb: &String| {
                former.verbs.iter().any(|one| verb == one || verb.starts_with(&format!("{one} ")))
            };
            assert!(options[former.now].iter().any(had), "{}", former.now);
            assert!(!options.get(former.name).is_some_and(|verbs| verbs.iter().any(had)), "{}", former.name);
        }
    }

    #[test]
    fn options_of_many_verbs_are_explained() {
        let options = by_option();
        let explained = |name: &str| SHARED.iter().any(|(known, _)| *known == name);
        for (name, verbs) in options.iter().filter(|(_, verbs)| verbs.len() >= MANY) {
            assert!(explained(name), "{name} of {}", verbs.join(", "));
        }
        assert!(SHARED.is_sorted_by_key(|(name, _)| *name));
    }

    #[test]
    fn page() {
        use std::fmt::Write;
        let options = by_option();
        let mut page = include_str!("names/page.md").replace(
            "`stillcore VERB --help` has all options of a verb",
            "All options of each verb: [commands](commands.md)",
        );
        for (name, means) in SHARED {
            let _ = writeln!(page, "| `{name}` | {means} | {} |", options[*name].join(", "));
        }
        page.push_str("\n## Other names that are accepted\n\nA note on standard error gives the name of the table above: `note: resources --cpu is called --cpus`.\n\n| verb | accepted | name |\n|---|---|---|\n");
        for former in FORMER {
            let _ = writeln!(page, "| {} | `{}` | `{}` |", former.verbs.join(", "), former.name, former.now);
        }
        snapbox::assert_data_eq!(page, snapbox::file!["../../../docs/option-names.md"].raw());
    }
}
