//! What kernels have learnt about interference, and what the running one still has.
//!
//! A version number is the last resort: stable kernels take fixes back years. Where a file or a function came with a fix, its presence
//! decides. Functions are looked up in the kernel's type information (`/sys/kernel/btf/vmlinux`), which lists names only once and is
//! read in a millisecond; `/proc/kallsyms` takes a hundred.

mod page;

pub use page::fixes_page;

use crate::machine::{Root, Selection, mounted_at, processes};
use model::fix::{FixFinding, FixState};
use model::{Cpus, Error, EventClass, Machine};
use serde::Deserialize;
use std::cell::OnceCell;

/// The file that ships with stillcore.
const EMBEDDED: &str = include_str!("../../../../../catalogue/kernel-fixes.toml");

/// Where the kernel keeps its type information.
pub(crate) const BTF: &str = "sys/kernel/btf/vmlinux";

/// What a fix is to interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Kernels without it have the interference.
    Removes,
    /// Kernels with it have the interference.
    Adds,
    /// Of no effect by itself.
    Groundwork,
    /// Mends a crash.
    Crash,
    /// No kernel has it.
    Unmerged,
}

/// What shows whether a kernel has a fix.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A file that came with it.
    FileExists {
        /// Its path; `{debugfs}` stands for where debugfs is mounted.
        path: String,
    },
    /// A global function or a type that came with it.
    Function {
        /// Its name.
        name: String,
    },
    /// A kernel thread that leaves CPUs isolated at boot alone.
    KthreadAvoids {
        /// Its name.
        thread: String,
    },
}

/// One fix.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fix {
    /// The commit, or a name.
    pub commit: String,
    /// Its subject.
    pub title: String,
    /// First mainline version that has it.
    pub first: Option<String>,
    /// Where.
    pub subsystem: String,
    /// What it is to interference.
    pub kind: Kind,
    /// What an isolated CPU suffers: a clause.
    pub interference: String,
    /// The events it shows as.
    pub classes: Vec<EventClass>,
    /// Mechanisms that soften or avoid it.
    pub mechanisms: Vec<String>,
    /// The only architecture it concerns.
    pub arch: Option<String>,
    /// What the processor's name must contain for the fix to work there.
    pub cpu: Option<String>,
    /// How sure identifier, title and version are.
    pub checked: String,
    /// What else to know.
    pub note: Option<String>,
    /// What shows it.
    pub probe: Option<Probe>,
}

/// All fixes, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixes {
    /// One entry each.
    #[serde(rename = "fix")]
    pub all: Vec<Fix>,
}

impl Fixes {
    /// The list that ships with stillcore.
    pub fn embedded() -> Result<Self, Error> {
        Self::parse("catalogue/kernel-fixes.toml", EMBEDDED)
    }

    /// Reads a list; an error names the line.
    pub fn parse(place: &str, text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..at].matches('\n').count() + 1;
            let what = error.message().lines().collect::<Vec<_>>().join(" ");
            Error::invalid(format!("{place}:{line}"), what, "a list of kernel fixes")
        })
    }

    /// What a capture must take, so that the captured machine can be judged.
    pub fn selection(&self) -> Selection {
        let mut wanted = Selection::default();
        for probe in self.all.iter().filter_map(|fix| fix.probe.as_ref()) {
            match probe {
                Probe::FileExists { path } => wanted.names.push(path.clone()),
                Probe::Function { name } => wanted.functions.push(name.clone()),
                Probe::KthreadAvoids { .. } => {}
            }
        }
        wanted
    }

    /// Judges every fix on a machine.
    pub fn judge(&self, root: &Root, machine: &Machine) -> Vec<FixFinding> {
        let scene = Scene { root, machine, btf: OnceCell::new() };
        self.all.iter().map(|fix| judge(&scene, fix)).collect()
    }
}

/// The newest kernel whose sources were looked at.
const NEWEST: (u32, u32) = (7, 2);

struct Scene<'a> {
    root: &'a Root,
    machine: &'a Machine,
    /// The type information; empty where the kernel has none.
    btf: OnceCell<Vec<u8>>,
}

fn judge(scene: &Scene, fix: &Fix) -> FixFinding {
    let (state, basis, seen) = state(scene, fix);
    FixFinding {
        commit: fix.commit.clone(),
        title: fix.title.clone(),
        state,
        basis,
        seen,
        interference: fix.interference.clone(),
        classes: fix.classes.clone(),
        mechanisms: fix.mechanisms.clone(),
    }
}

fn state(scene: &Scene, fix: &Fix) -> (FixState, String, bool) {
    if fix.arch.as_ref().is_some_and(|arch| *arch != scene.machine.kernel.arch) {
        return (FixState::NotApplicable, "it concerns another architecture".to_owned(), false);
    }
    if let (Some(wanted), Some(model)) = (&fix.cpu, &scene.machine.cpu_model)
        && !model.contains(wanted.as_str())
    {
        return (FixState::Unfixed, format!("it works on {wanted} processors only"), true);
    }
    match fix.kind {
        Kind::Groundwork => {
            return (FixState::NotApplicable, "it removes nothing by itself".to_owned(), false);
        }
        Kind::Unmerged => {
            let newer = version(&scene.machine.kernel.release).is_some_and(|running| running > NEWEST);
            let told = format!("no mainline kernel up to {}.{} has the fix", NEWEST.0, NEWEST.1);
            return if newer {
                (FixState::Unknown, format!("{told}, and this one is newer"), false)
            } else {
                (FixState::Unfixed, told, false)
            };
        }
        _ => {}
    }
    let has = |present: bool| match (present, fix.kind) {
        (true, Kind::Adds) | (false, Kind::Removes | Kind::Crash) => FixState::Unfixed,
        _ => FixState::Fixed,
    };
    if let Some((present, seen)) = fix.probe.as_ref().and_then(|probe| probed(scene, probe)) {
        return (has(present), format!("seen: {seen}"), true);
    }
    match (fix.first.as_deref().and_then(version), version(&scene.machine.kernel.release)) {
        (Some(first), Some(running)) => {
            let by = format!(
                "by version only: first in {}, and stable kernels may have it earlier",
                fix.first.as_deref().unwrap_or_default()
            );
            (has(running >= first), by, false)
        }
        _ => (FixState::Unknown, "neither a trace of it nor a version can be read".to_owned(), false),
    }
}

/// Whether the fix is there, and what shows it; `None` where this machine cannot show it.
fn probed(scene: &Scene, probe: &Probe) -> Option<(bool, String)> {
    match probe {
        Probe::FileExists { path } => file(scene, path),
        Probe::Function { name } => {
            let btf = scene.btf.get_or_init(|| scene.root.bytes(BTF).ok().flatten().unwrap_or_default());
            let found = contains(btf, name);
            let told = if found { "the kernel has" } else { "the kernel lacks" };
            (!btf.is_empty()).then(|| (found, format!("{told} {name}")))
        }
        Probe::KthreadAvoids { thread } => {
            // nohz_full= tells kernel threads from 5.9 on, isolcpus= from 7.0 on: CPUs in both prove the one or the other.
            let isolated = scene.root.cpus("sys/devices/system/cpu/isolated").unwrap_or_default();
            let told = isolated.and(&scene.machine.topology.nohz_full);
            let kernel = processes(scene.root).kernel;
            let found = kernel.iter().find(|one| one.name == *thread)?;
            let hit: Cpus = found.allowed.and(&told);
            (!told.is_empty()).then(|| (hit.is_empty(), format!("{thread} may run on {}", found.allowed)))
        }
    }
}

/// A file whose directory is not there either shows nothing.
fn file(scene: &Scene, path: &str) -> Option<(bool, String)> {
    let placed = match path.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((kind, rest)) => format!("{}{rest}", mounted_at(scene.root, kind)?),
        None => path.to_owned(),
    };
    let folder = placed.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default();
    let shown = format!("/{}", placed.trim_start_matches('/'));
    if scene.root.has(&placed) {
        return Some((true, format!("{shown} is there")));
    }
    // Without the right to enter a directory its files look absent.
    (!scene.root.names(&folder).is_empty()).then(|| (false, format!("{shown} is not there")))
}

/// Names stand between zero bytes.
fn contains(btf: &[u8], name: &str) -> bool {
    let wanted: Vec<u8> = [&[0], name.as_bytes(), &[0]].concat();
    memchr::memmem::find(btf, &wanted).is_some()
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The names among `wanted` that the type information lists, in its own form: what a capture takes of it.
pub(crate) fn names_in(btf: &[u8], wanted: &[String]) -> Vec<u8> {
    let found = wanted.iter().filter(|name| contains(btf, name));
    let mut bytes = vec![0];
    found.for_each(|name| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolate::Catalogue;
    use crate::machine::{self, tree::tree};

    fn judged(commit: &str, files: &[(&str, &str)]) -> FixFinding {
        let all = [&[("sys/devices/system/cpu/online", "0-3")], files].concat();
        let (_dir, root) = tree(&all);
        let machine = machine::read(&root).unwrap();
        let findings = Fixes::embedded().unwrap().judge(&root, &machine);
        findings.into_iter().find(|finding| finding.commit == commit).unwrap()
    }

    #[test]
    fn every_fix_is_named_once_and_leads_to_mechanisms() {
        let fixes = Fixes::embedded().unwrap();
        let catalogue = Catalogue::embedded().unwrap();
        let ids: std::collections::BTreeSet<_> = fixes.all.iter().map(|fix| &fix.commit).collect();
        assert!(ids.len() == fixes.all.len() && ids.len() >= 46);
        for fix in &fixes.all {
            let quiet = matches!(fix.kind, Kind::Groundwork | Kind::Crash);
            assert!(quiet || !fix.interference.is_empty(), "{}", fix.commit);
            assert_eq!(fix.first.is_none(), fix.kind == Kind::Unmerged, "{}", fix.commit);
            assert!(fix.mechanisms.iter().all(|id| catalogue.get(id).is_some()), "{:?}", fix.mechanisms);
            assert!(fix.first.as_deref().is_none_or(|first| version(first).is_some()));
        }
    }

    #[test]
    fn what_is_seen_outweighs_the_version() {
        let old = ("proc/sys/kernel/osrelease", "6.1.0-50-amd64");
        let parameters = "sys/module/rcutree/parameters/";
        let (has, other) =
            (format!("{parameters}nohz_full_patience_delay"), format!("{parameters}kthread_prio"));
        let seen = judged("68d124b09999", &[old, (&has, "0")]);
        assert_eq!((seen.state, seen.seen), (FixState::Fixed, true), "{}", seen.basis);
        let absent = judged("68d124b09999", &[("proc/sys/kernel/osrelease", "6.12.0"), (&other, "0")]);
        assert_eq!((absent.state, absent.seen), (FixState::Unfixed, true), "{}", absent.basis);
        let blind = judged("68d124b09999", &[old]);
        assert_eq!((blind.state, blind.seen), (FixState::Unfixed, false));
        assert!(blind.basis.starts_with("by version only: first in 6.11"), "{}", blind.basis);
    }

    #[test]
    fn functions_are_found_by_their_whole_name() {
        let with = |names: &str| judged("7ee988770326", &[(BTF, names)]).state;
        assert_eq!(with("\0schedule\0tmigr_cpu_activate\0x\0"), FixState::Fixed);
        assert_eq!(with("\0schedule\0tmigr_cpu_activated\0x\0"), FixState::Unfixed);
        assert_eq!(names_in(b"\0a\0bc\0", &["bc".to_owned(), "b".to_owned()]), b"\0bc\0");
    }

    #[test]
    fn a_kernel_thread_tells_only_where_cpus_were_isolated_and_without_tick_at_boot() {
        let thread = |nohz_full| {
            judged(
                "9cc5b8656892",
                &[
                    ("sys/devices/system/cpu/nohz_full", nohz_full),
                    ("sys/devices/system/cpu/isolated", "2-3"),
                    ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
                    ("proc/2/status", "Cpus_allowed_list:\t0-1"),
                ],
            )
        };
        assert_eq!((thread("2-3").state, thread("2-3").seen), (FixState::Fixed, true));
        assert!(!thread("").seen);
    }

    #[test]
    fn what_adds_interference_is_told_where_it_is_there() {
        let mounted = ("proc/mounts", "d /d debugfs rw 0 0");
        let with = judged("557a6bfc662c", &[mounted, ("d/sched/fair_server/cpu0/runtime", "5")]);
        assert_eq!(with.state, FixState::Unfixed);
        assert_eq!(judged("557a6bfc662c", &[mounted, ("d/sched/features", "x")]).state, FixState::Fixed);
    }

    #[test]
    fn a_corrupt_list_is_told_with_its_line() {
        let text = EMBEDDED.replacen("kind = \"removes\"", "kind = \"removed\"", 1);
        let line = text.lines().position(|line| line == "kind = \"removed\"").unwrap() + 1;
        let error = Fixes::parse("x.toml", &text).unwrap_err().to_string();
        assert!(error.contains(&format!("x.toml:{line}: ")), "{error}");
    }
}
