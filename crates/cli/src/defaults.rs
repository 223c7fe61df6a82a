//! Defaults of the command line that a machine has: `/etc/stillcore/config.toml`, and the file of
//! `--config`.
//!
//! The command line counts first, then the file of `--config`, then the machine's, then what is
//! built in. A default takes the place of an option that was not given, as if clap had it built in.
//! Both files are read as everything that root acts upon: their owners and modes are checked.

use anyhow::Context;
use clap::builder::ArgPredicate;
use clap::{Arg, Command};
use journal::trust::read_text;
use model::{Cpus, Error};
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The machine's own.
const SYSTEM: &str = "/etc/stillcore/config.toml";

/// The most that is read.
const MOST_BYTES: u64 = 1 << 16;

/// Verbs whose `--cpus` are those to be measured or isolated.
const MEASURED: &[&str] = &[
    "assess",
    "audit",
    "graph run",
    "isolate apply",
    "isolate hold",
    "isolate persist",
    "isolate plan",
    "measure",
];

/// Verbs whose `--out` is the directory of a run.
const RUNS: &[&str] = &["assess", "graph run", "measure", "trace watch"];

/// Keys of a file, the options that they set, and the verbs that have these.
#[cfg(test)]
pub(crate) fn keys() -> [(&'static str, &'static str, String); 3] {
    [
        ("cpus", "--cpus", MEASURED.join(", ")),
        ("state", "--state", "all that have it".to_owned()),
        ("output", "directory in which --out is made", RUNS.join(", ")),
    ]
}

/// What a file may hold.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct File {
    cpus: Option<Cpus>,
    state: Option<Spanned<PathBuf>>,
    output: Option<Spanned<PathBuf>>,
}

/// The defaults of this machine.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Defaults {
    /// CPUs that are measured and isolated.
    cpus: Option<Cpus>,
    /// Directory of the journal.
    state: Option<PathBuf>,
    /// Where directories of runs are made.
    output: Option<PathBuf>,
}

/// Adds the option that names a file.
pub(crate) fn option(command: Command) -> Command {
    command.arg(
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_hint(clap::ValueHint::FilePath)
            .value_parser(clap::value_parser!(PathBuf))
            .help("Defaults that count before those of /etc/stillcore/config.toml; stands before COMMAND"),
    )
}

impl Defaults {
    /// Those of a call: `words` begin with the program's name.
    pub(crate) fn read(words: &[OsString]) -> anyhow::Result<Self> {
        let system = from_file(Path::new(SYSTEM))?.unwrap_or_default();
        let Some(file) = named(words) else { return Ok(system) };
        let first = from_file(&file)?.with_context(|| {
            format!("--config {}: no file is there; expected one with cpus, state or output", file.display())
        })?;
        Ok(Self {
            cpus: first.cpus.or(system.cpus),
            state: first.state.or(system.state),
            output: first.output.or(system.output),
        })
    }

    /// The command with these defaults. `run` is the name that a new directory of a run gets.
    pub(crate) fn put_into(&self, command: Command, run: &Path) -> Command {
        if *self == Self::default() { command } else { self.put_below(command, "", run) }
    }

    fn put_below(&self, command: Command, path: &str, run: &Path) -> Command {
        let is_one_of = |verbs: &[&str]| {
            let covers = |verb: &&str| {
                path.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            verbs.iter().any(covers)
        };
        let mut command = command;
        if let Some(cpus) = self.cpus.as_ref().filter(|_| is_one_of(MEASURED)) {
            command = with_default(command, "cpus", cpus.to_string().into());
        }
        if let Some(state) = &self.state {
            command = with_default(command, "state", state.into());
        }
        if let Some(output) = self.output.as_ref().filter(|_| is_one_of(RUNS)) {
            command = with_default(command, "out", output.join(run).into());
        }
        let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        verbs.iter().fold(command, |command, verb| {
            let below = format!("{path} {verb}");
            command.mut_subcommand(verb, |verb| self.put_below(verb, below.trim_start(), run))
        })
    }
}

/// Gives an option a default, if the verb has that option. With `--root` a verb reads another
/// machine, for which this machine's default does not count.
fn with_default(command: Command, long: &str, value: OsString) -> Command {
    let id = |long: &str| {
        let found = command.get_arguments().find(|one| one.get_long() == Some(long));
        found.map(|one| one.get_id().clone())
    };
    let Some(option) = id(long) else { return command };
    let root = id("root");
    // Without a feature of clap that makes it larger, values live as long as the process.
    let value: &'static OsStr = Box::leak(value.into_boxed_os_str());
    command.mut_arg(option, |option| {
        let option = option.default_value(value).hide_default_value(true);
        match root {
            Some(root) => option.default_value_if(root, ArgPredicate::IsPresent, None::<&str>),
            None => option,
        }
    })
}

/// The file that stands behind `--config`, which stands before the verb.
fn named(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter().skip(1);
    let first = words.next()?;
    if first == "--config" {
        return words.next().map(PathBuf::from);
    }
    first.to_str()?.strip_prefix("--config=").map(|file| PathBuf::from(OsStr::new(file)))
}

/// The defaults in a file; `None` where there is none.
fn from_file(path: &Path) -> anyhow::Result<Option<Defaults>> {
    let Some(text) = read_text(path, MOST_BYTES)? else { return Ok(None) };
    Ok(Some(parse(&text, path)?))
}

fn parse(text: &str, path: &Path) -> Result<Defaults, Error> {
    let place = |start: usize| {
        let line = 1 + text.get(..start).unwrap_or_default().matches('\n').count();
        format!("{}: line {line}", path.display())
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let what = error.message().lines().collect::<Vec<_>>().join(" ");
        Error::invalid(place(start), what, "cpus, state or output")
    })?;
    let absolute = |value: Option<Spanned<PathBuf>>| match value {
        Some(value) if !value.get_ref().is_absolute() => {
            let what = format!("{} is no absolute path", value.get_ref().display());
            Err(Error::invalid(place(value.span().start), what, "a path that begins with /"))
        }
        value => Ok(value.map(Spanned::into_inner)),
    };
    Ok(Defaults { cpus: file.cpus, state: absolute(file.state)?, output: absolute(file.output)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn the_named_file_counts_before_the_machine_s_and_the_command_line_before_both() {
        let folder = folder();
        let file = folder.path().join("mine.toml");
        fs::write(&file, "cpus = \"1\"\nstate = \"/srv/state\"\n").unwrap();
        let line = format!("stillcore --config {} assess", file.display());
        let defaults = Defaults::read(&words(&line)).unwrap();
        assert_eq!(defaults.state.as_deref(), Some(Path::new("/srv/state")));
        let verbs = || {
            let long = |name: &'static str| Arg::new(name).long(name);
            let audit = Command::new("audit").args(["cpus", "root", "out"].map(long));
            let run = Command::new("wakeup").args(["cpus", "out", "state"].map(long));
            let disturb = Command::new("disturb").args(["cpus"].map(long));
            let all = Command::new("stillcore").subcommands([audit, disturb]);
            option(all.subcommand(Command::new("measure").subcommand(run)))
        };
        let defaults = Defaults { output: Some("/srv/runs".into()), ..defaults };
        let parsed = |line: &str| defaults.put_into(verbs(), Path::new("r")).get_matches_from(words(line));
        let value = |line: &str, name: &str| {
            let all = parsed(line);
            let mut inner = &all;
            while let Some((_, verb)) = inner.subcommand() {
                inner = verb;
            }
            inner.get_one::<String>(name).cloned()
        };
        assert_eq!(value("stillcore audit", "cpus").as_deref(), Some("1"));
        assert_eq!(value("stillcore audit --cpus 3", "cpus").as_deref(), Some("3"));
        assert_eq!(value("stillcore audit --root /x", "cpus"), None, "another machine");
        assert_eq!(value("stillcore audit", "out"), None, "no run");
        assert_eq!(value("stillcore disturb", "cpus"), None, "those that disturb");
        assert_eq!(value("stillcore measure wakeup", "out").as_deref(), Some("/srv/runs/r"));
        assert_eq!(value("stillcore measure wakeup", "state").as_deref(), Some("/srv/state"));
    }

    #[test]
    fn unknown_keys_and_relative_paths_are_refused_by_file_and_line() {
        let wrong = |text: &str| parse(text, Path::new("/etc/x.toml")).unwrap_err().to_string();
        let unknown = wrong("# comment\ncpus = \"2\"\ncpu = \"3\"\n");
        assert!(unknown.contains("/etc/x.toml: line 3") && unknown.contains("`cpu`"), "{unknown}");
        assert!(wrong("\nstate = \"state\"").contains("line 2: state is no absolute path"));
        assert!(wrong("cpus = \"2-\"").contains("line 1"));
        assert_eq!(parse("# nothing\n", Path::new("x")).unwrap(), Defaults::default());
    }

    #[test]
    fn the_file_of_the_packages_sets_nothing_and_shows_every_key() {
        let shipped = include_str!("../../../deploy/packages/config.toml");
        assert_eq!(parse(shipped, Path::new("x")).unwrap(), Defaults::default());
        let keys =
            shipped.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| !line.starts_with(' '));
        let all = parse(&keys.collect::<Vec<_>>().join("\n"), Path::new("x")).unwrap();
        assert!(all.cpus.is_some() && all.state.is_some() && all.output.is_some(), "{all:?}");
    }

    #[test]
    fn a_file_that_others_may_write_is_refused() {
        let folder = folder();
        let file = folder.path().join("open.toml");
        fs::write(&file, "cpus = \"1\"").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(from_file(&file).unwrap_err().to_string().contains("others may write"));
        assert_eq!(from_file(&folder.path().join("none.toml")).unwrap(), None);
        let line = format!("stillcore --config={} audit", folder.path().join("none.toml").display());
        assert!(Defaults::read(&words(&line)).unwrap_err().to_string().contains("no file"));
    }
}
