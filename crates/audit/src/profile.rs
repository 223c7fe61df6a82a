//! A desired state as a file, `isolation.toml`: the same order as the options of `isolate apply`,
//! so that it can be kept in git, compared and held.
//!
//! | key | type | what |
//! |---|---|---|
//! | `schema` | string | [`SCHEMA`] |
//! | `cpus` | list of CPUs | those to isolate; without it those of all roles |
//! | `force`, `allow_split`, `move_pinned` | boolean | as the options |
//! | `placement` | string | `boot`, `partition`, `cpuset` or `affinity` |
//! | `keep` | list of strings | what stays where it is, as `--keep` takes it |
//! | `roles` | table | a name for some of the CPUs each |
//! | `mechanisms` | table | id → `true` (change it also) or `false` (leave it) |
//!
//! The file is data of whoever wrote it: sizes are bounded, and an unknown key, mechanism,
//! placement or CPU is refused by its line.

use crate::catalogue::Catalogue;
use crate::keep::Keep;
use crate::plan::Request;
use crate::purpose::Purpose;
use model::plan::Placement;
use model::{Cpus, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use toml::Spanned;

/// Schema of the file.
pub const SCHEMA: &str = "stillcore.isolation/1";

/// The largest file that is read, bytes.
pub const MOST_BYTES: u64 = 1 << 16;

/// The longest name of a role, bytes.
const LONGEST_ROLE: usize = 32;

/// What a key may be, for messages.
const KEYS: &str = "schema, cpus, force, allow_split, move_pinned, placement, keep, roles or mechanisms, \
                    as docs/isolate.md describes them";

/// An isolation as it is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The CPUs that are to be still.
    pub cpus: Cpus,
    /// Isolate CPU 0 too if it is among them, and CPUs that belong to somebody else.
    pub force: bool,
    /// Isolate some threads of a core and leave its others to housekeeping.
    pub allow_split: bool,
    /// Also move what somebody has put on these CPUs.
    pub move_pinned: bool,
    /// How to keep the scheduler off; the best possible where none is named.
    pub placement: Option<Placement>,
    /// What stays where it is, each as `--keep` takes it.
    pub keep: Vec<String>,
    /// Names of some of the CPUs.
    pub roles: BTreeMap<String, Cpus>,
    /// Mechanisms to change also (`true`) or to leave (`false`), by id.
    pub mechanisms: BTreeMap<String, bool>,
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: Spanned<String>,
    #[serde(default)]
    cpus: Option<Spanned<Cpus>>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    allow_split: bool,
    #[serde(default)]
    move_pinned: bool,
    #[serde(default)]
    placement: Option<Placement>,
    #[serde(default)]
    keep: Vec<Spanned<String>>,
    #[serde(default)]
    roles: BTreeMap<Spanned<String>, Spanned<Cpus>>,
    #[serde(default)]
    mechanisms: BTreeMap<Spanned<String>, bool>,
}

impl Profile {
    /// Reads a file's text. `path` is its name in messages, which have the line.
    pub fn parse(text: &str, path: &str, catalogue: &Catalogue) -> Result<Self, Error> {
        let place = |start: usize| {
            let line = 1 + text.get(..start).unwrap_or_default().matches('\n').count();
            format!("{path}: line {line}")
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let what = error.message().lines().collect::<Vec<_>>().join(" ");
            Error::invalid(place(start), what, KEYS)
        })?;
        if file.schema.get_ref() != SCHEMA {
            let what = format!("schema {:?}", file.schema.get_ref());
            return Err(Error::invalid(place(file.schema.span().start), what, format!("{SCHEMA:?}")));
        }
        let mut roles = BTreeMap::new();
        let mut with_role = Cpus::default();
        for (name, cpus) in file.roles {
            role(&place(name.span().start), name.get_ref(), cpus.get_ref(), &with_role)?;
            with_role = with_role.or(cpus.get_ref());
            if let Some(all) = &file.cpus
                && !cpus.get_ref().is_subset(all.get_ref())
            {
                let what = format!("role {:?} has CPUs that are not in cpus", name.get_ref());
                let expected = format!("some of {}", all.get_ref());
                return Err(Error::invalid(place(cpus.span().start), what, expected));
            }
            roles.insert(name.into_inner(), cpus.into_inner());
        }
        let cpus_at = file.cpus.as_ref().map_or(0, |cpus| cpus.span().start);
        let cpus = file.cpus.map_or(with_role, Spanned::into_inner);
        if cpus.is_empty() {
            let expected = "cpus = \"2,3\", or a table of roles";
            return Err(Error::invalid(place(cpus_at), "no CPU is named", expected));
        }
        let mut keep = Vec::new();
        for what in file.keep {
            let kept: Keep = what.get_ref().parse().map_err(|error| at(&place(what.span().start), error))?;
            if !kept.is_lasting() {
                let named = format!("keep {:?}: a number does not outlive its process", what.get_ref());
                let expected = "its name, control group or policy";
                return Err(Error::invalid(place(what.span().start), named, expected));
            }
            keep.push(kept.to_string());
        }
        let mut mechanisms = BTreeMap::new();
        for (id, choice) in file.mechanisms {
            if catalogue.get(id.get_ref()).is_none() {
                let ids = catalogue.mechanisms.iter().map(|mechanism| &mechanism.id);
                let expected = "the id of a mechanism, as stillcore audit --all lists them";
                let unknown = Error::unknown(place(id.span().start), "mechanism", id.get_ref(), ids);
                return Err(unknown.expecting(expected));
            }
            mechanisms.insert(id.into_inner(), choice);
        }
        let File { force, allow_split, move_pinned, placement, .. } = file;
        Ok(Self { cpus, force, allow_split, move_pinned, placement, keep, roles, mechanisms })
    }

    /// The text of a file that reads as this one.
    pub fn to_toml(&self) -> String {
        let mut text = format!("schema = {}\ncpus = {}\n", quoted(SCHEMA), quoted(&self.cpus.to_string()));
        for (key, on) in
            [("force", self.force), ("allow_split", self.allow_split), ("move_pinned", self.move_pinned)]
        {
            if on {
                let _ = writeln!(text, "{key} = true");
            }
        }
        if let Some(placement) = self.placement {
            let _ = writeln!(text, "placement = {}", quoted(placement.name()));
        }
        if !self.keep.is_empty() {
            let each: Vec<_> = self.keep.iter().map(|what| quoted(what)).collect();
            let _ = writeln!(text, "keep = [{}]", each.join(", "));
        }
        if !self.roles.is_empty() {
            text.push_str("\n[roles]\n");
        }
        for (name, cpus) in &self.roles {
            let _ = writeln!(text, "{name} = {}", quoted(&cpus.to_string()));
        }
        if !self.mechanisms.is_empty() {
            text.push_str("\n# true: change it also; false: leave it.\n[mechanisms]\n");
        }
        for (id, choice) in &self.mechanisms {
            let _ = writeln!(text, "{} = {choice}", quoted(id));
        }
        text
    }

    /// Mechanisms that are named with this choice.
    pub fn named(&self, choice: bool) -> Vec<String> {
        let named = self.mechanisms.iter().filter(|(_, chosen)| **chosen == choice);
        named.map(|(id, _)| id.clone()).collect()
    }

    /// The request for a plan, around whoever is there on purpose.
    pub fn request(&self, purpose: Purpose) -> Request {
        Request {
            cpus: self.cpus.clone(),
            force: self.force,
            allow_split: self.allow_split,
            with: self.named(true),
            without: self.named(false),
            placement: self.placement,
            purpose,
            move_pinned: self.move_pinned,
            kernel: None,
            image: None,
        }
    }

    /// The catalogue with these choices made: a mechanism that is wanted is no choice any more, one
    /// that is left alone fails no audit.
    pub fn decide(&self, catalogue: &Catalogue) -> Catalogue {
        let mut decided = catalogue.clone();
        for mechanism in &mut decided.mechanisms {
            if let Some(wanted) = self.mechanisms.get(&mechanism.id) {
                mechanism.optional = !wanted;
            }
        }
        decided
    }
}

fn role(place: &str, name: &str, cpus: &Cpus, others: &Cpus) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > LONGEST_ROLE || !name.bytes().all(plain) {
        let expected = format!("at most {LONGEST_ROLE} letters, digits, - and _");
        return Err(Error::invalid(place, format!("the role {name:?} has no such name"), expected));
    }
    if cpus.is_empty() {
        return Err(Error::invalid(place, format!("the role {name:?} has no CPU"), "a list such as 2,3"));
    }
    let twice = cpus.and(others);
    if !twice.is_empty() {
        let what = format!("CPU {twice} has another role beside {name:?}");
        return Err(Error::invalid(place, what, "each CPU in one role"));
    }
    Ok(())
}

/// An error of a value, with the line it stands in.
fn at(place: &str, error: Error) -> Error {
    match error {
        Error::Invalid { what, expected, .. } => Error::invalid(place, what, expected),
        other => other,
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().unwrap());

    fn parse(text: &str) -> Result<Profile, String> {
        Profile::parse(text, "x.toml", &CATALOGUE).map_err(|error| error.to_string())
    }

    const WHOLE: &str = "schema = \"stillcore.isolation/1\"\ncpus = \"2-3,5\"\nforce = true\nallow_split = true\n\
                         move_pinned = true\nplacement = \"partition\"\nkeep = [\"rtapp\", \"irq:eth0*\"]\n\
                         [roles]\ncontrol = \"2\"\nio = \"3\"\n[mechanisms]\nsched_rt_runtime = true\nnohz_full = false\n";

    #[test]
    fn every_key_is_read_and_becomes_the_request_of_the_same_options() {
        let profile = parse(WHOLE).unwrap();
        let request = profile.request(Purpose::default());
        assert_eq!(request.cpus, "2,3,5".parse().unwrap());
        assert!(request.force && request.allow_split && request.move_pinned);
        assert_eq!(request.placement, Some(Placement::Partition));
        assert_eq!(
            (request.with, request.without),
            (vec!["sched_rt_runtime".into()], vec!["nohz_full".into()])
        );
        assert_eq!(profile.keep, ["comm:rtapp", "irq:eth0*"]);
        assert_eq!(profile.roles["io"], "3".parse().unwrap());
        let roles = parse("schema = \"stillcore.isolation/1\"\n[roles]\na = \"2\"\nb = \"4-5\"\n").unwrap();
        assert_eq!(roles.cpus, "2,4,5".parse().unwrap(), "those of all roles");
    }

    #[test]
    fn what_is_wrong_is_refused_by_its_line() {
        let first = "schema = \"stillcore.isolation/1\"\n";
        for (text, line, part) in [
            ("", 1, "schema"),
            ("schema = \"stillcore.isolation/2\"\ncpus = \"2\"", 1, "stillcore.isolation/1"),
            (&format!("{first}\ncpu = \"2\"\n"), 3, "`cpu`"),
            (&format!("{first}cpus = \"2-\"\n"), 2, "expected"),
            (&format!("{first}cpus = \"\"\n"), 2, "no CPU is named"),
            (first, 1, "no CPU is named"),
            (&format!("{first}cpus = \"2\"\nplacement = \"sideways\"\n"), 3, "sideways"),
            (&format!("{first}cpus = \"2\"\nkeep = [\n\"a\",\n\"policy:fast\"]\n"), 5, "names nothing"),
            (&format!("{first}cpus = \"2\"\nkeep = [\"812\"]\n"), 3, "does not outlive its process"),
            (&format!("{first}cpus = \"2\"\n[roles]\na = \"3\"\n"), 4, "not in cpus"),
            (&format!("{first}[roles]\na = \"2\"\nb = \"2\"\n"), 4, "another role"),
            (&format!("{first}[roles]\n\"a b\" = \"2\"\n"), 3, "no such name"),
            (&format!("{first}[roles]\na = \"\"\n"), 3, "has no CPU"),
            (&format!("{first}cpus = \"2\"\n[mechanisms]\nnohz_fulll = true\n"), 4, "nohz_fulll"),
            (&format!("{first}cpus = \"2\"\n[mechanisms]\nnohz_full = \"off\"\n"), 4, "boolean"),
            (&format!("{first}cpus = \"2\"\ncpus = \"3\"\n"), 3, "duplicate"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(&format!("x.toml: line {line}: ")), "{text}: {error}");
            assert!(error.contains(part) && error.lines().count() == 1, "{text}: {error}");
        }
    }

    #[test]
    fn an_audit_fails_for_what_is_wanted_and_for_nothing_that_is_left() {
        let decided = parse(WHOLE).unwrap().decide(&CATALOGUE);
        assert!(!decided.get("sched_rt_runtime").unwrap().optional);
        assert!(decided.get("nohz_full").unwrap().optional && !CATALOGUE.get("nohz_full").unwrap().optional);
    }

    fn profiles() -> impl Strategy<Value = Profile> {
        let ids: Vec<_> = CATALOGUE.mechanisms.iter().map(|mechanism| mechanism.id.clone()).collect();
        let placements = [None, Some(Placement::Boot), Some(Placement::Partition), Some(Placement::Affinity)];
        (
            proptest::collection::btree_set(0u32..200, 1..6),
            any::<[bool; 3]>(),
            proptest::sample::select(placements.to_vec()),
            proptest::collection::vec("[ -~é\t]{1,12}", 0..3),
            proptest::collection::btree_map(proptest::sample::select(ids), any::<bool>(), 0..4),
            "[a-zA-Z0-9_-]{1,8}",
        )
            .prop_map(
                |(cpus, [force, allow_split, move_pinned], placement, keep, mechanisms, role)| {
                    let first = Cpus(cpus.iter().take(1).copied().collect());
                    let keep = keep.into_iter().map(|name| format!("comm:{name}")).collect();
                    let roles = BTreeMap::from([(role, first)]);
                    let cpus = Cpus(cpus);
                    Profile { cpus, force, allow_split, move_pinned, placement, keep, roles, mechanisms }
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(profile in profiles()) {
            prop_assert_eq!(parse(&profile.to_toml()).unwrap(), profile);
        }
    }
}
