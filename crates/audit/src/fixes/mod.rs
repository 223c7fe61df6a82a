//! What kernels have learnt about interference, and what the running one still has.
//!
//! A version number is the last resort: stable kernels take fixes back years. What came with a fix,
//! and what it does, is looked for on the machine (`probe`); where neither is to be seen the
//! version speaks, and the finding says that it proves nothing.

mod page;
mod probe;

pub use page::fixes_page;
pub use probe::Probe;

use machine::{Root, Selection};
use model::fix::{FixFinding, FixState, Only};
use model::{Error, EventClass, Machine};
use probe::Scene;
use serde::Deserialize;

/// The file that ships with stillcore.
const EMBEDDED: &str = include_str!("../../../../catalogue/kernel-fixes.toml");

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
    /// Those of them that keep it off or make it rare where all are set.
    #[serde(default)]
    pub softened_by: Vec<String>,
    /// What it concerns, where it is not every kernel or every isolation.
    pub only: Option<Only>,
    /// The only architecture it concerns.
    pub arch: Option<String>,
    /// What the processor's name must contain for the fix to work there.
    pub cpu: Option<String>,
    /// What else the fix needs to work, which nothing shows: a clause.
    pub needs: Option<String>,
    /// How sure identifier, title and version are.
    pub checked: String,
    /// What else to know.
    pub note: Option<String>,
    /// What shows it. One that finds the fix decides; else one whose finding nothing means that it
    /// is not there; else nothing does.
    #[serde(default)]
    pub probe: Vec<Probe>,
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
        for probe in self.all.iter().flat_map(|fix| &fix.probe) {
            probe.select(&mut wanted);
        }
        wanted
    }

    /// Judges every fix on a machine.
    pub fn judge(&self, root: &Root, machine: &Machine) -> Vec<FixFinding> {
        let scene = Scene::new(root, machine, self.all.iter().flat_map(|fix| &fix.probe));
        self.all.iter().map(|fix| judge(&scene, fix)).collect()
    }
}

/// The newest kernel whose sources were looked at.
pub const NEWEST: (u32, u32) = (7, 3);

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
        softened_by: fix.softened_by.clone(),
        only: fix.only,
    }
}

fn state(scene: &Scene, fix: &Fix) -> (FixState, String, bool) {
    if fix.arch.as_ref().is_some_and(|arch| *arch != scene.machine.kernel.arch) {
        return (FixState::NotApplicable, "it concerns another architecture".to_owned(), false);
    }
    if fix.only == Some(Only::PreemptRt) && !scene.machine.kernel.realtime {
        return (FixState::NotApplicable, "it concerns kernels with PREEMPT_RT".to_owned(), false);
    }
    if let (Some(wanted), Some(model)) = (&fix.cpu, &scene.machine.cpu_model)
        && !model.contains(wanted.as_str())
    {
        return (FixState::Unfixed, format!("its fix works on {wanted} processors only"), true);
    }
    let seen = scene.probed(&fix.probe);
    if fix.kind == Kind::Groundwork {
        let nothing = "it removes nothing by itself".to_owned();
        return match seen {
            Some((_, seen)) => (FixState::NotApplicable, format!("{nothing}; seen: {seen}"), true),
            None => (FixState::NotApplicable, nothing, false),
        };
    }
    let has = |present: bool| match (present, fix.kind) {
        (true, Kind::Adds) | (false, Kind::Removes | Kind::Crash | Kind::Unmerged) => FixState::Unfixed,
        _ => FixState::Fixed,
    };
    if let Some((present, seen)) = seen {
        return match &fix.needs {
            Some(needs) if present => {
                (FixState::Unknown, format!("seen: {seen}, but it works only where {needs}"), true)
            }
            _ => (has(present), format!("seen: {seen}"), true),
        };
    }
    let running = version(&scene.machine.kernel.release);
    if fix.kind == Kind::Unmerged {
        let none = format!("by version, unproven: no mainline kernel up to {}.{} has it", NEWEST.0, NEWEST.1);
        return if running.is_some_and(|running| running > NEWEST) {
            (FixState::Unknown, format!("{none}, and this one is newer"), false)
        } else {
            (FixState::Unfixed, none, false)
        };
    }
    match (fix.first.as_deref().and_then(version), running) {
        (Some(first), Some(running)) => {
            let by = format!(
                "by version, unproven: first in {}, and stable kernels may have it earlier",
                fix.first.as_deref().unwrap_or_default()
            );
            (has(running >= first), by, false)
        }
        _ => (FixState::Unknown, "neither a trace of it nor a version can be read".to_owned(), false),
    }
}

/// The first two numbers of a version.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use fixture::tree;
    use machine;
    use machine::btf::BTF;

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
            assert!(fix.softened_by.iter().all(|id| fix.mechanisms.contains(id)), "{:?}", fix.softened_by);
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
        assert!(blind.basis.starts_with("by version, unproven: first in 6.11"), "{}", blind.basis);
    }

    #[test]
    fn names_are_found_whole_and_their_absence_shows_nothing_where_their_neighbour_is_absent_too() {
        let with = |names: &str| {
            let found = judged("7ee988770326", &[("proc/sys/kernel/osrelease", "6.12.0"), (BTF, names)]);
            (found.state, found.seen)
        };
        let neighbour = "timer_migration_handler";
        assert_eq!(with("\0schedule\0tmigr_cpu_activate\0x\0"), (FixState::Fixed, true));
        let lacks = format!("\0{neighbour}\0tmigr_cpu_activated\0x\0");
        assert_eq!(with(&lacks), (FixState::Unfixed, true));
        // A build without that part of the kernel, and a kernel without type information.
        assert_eq!(with("\0schedule\0x\0"), (FixState::Fixed, false));
        assert_eq!(with(""), (FixState::Fixed, false));
    }

    #[test]
    fn a_name_that_later_kernels_lack_shows_a_fix_only_where_it_was() {
        let with = |names: &str| judged("443c2accd1b6", &[(BTF, names)]);
        assert_eq!(with("\0drain_all_pages\0").state, FixState::Fixed);
        assert_eq!(with("\0drain_all_pages\0drain_local_pages_wq\0").state, FixState::Unfixed);
        assert!(!with("\0schedule\0").seen);
        // What sent the interrupts is gone: a kernel that has it may have the fix or not.
        let reading = |names: &str| {
            let x86 = ("proc/sys/kernel/arch", "x86_64");
            judged("cc9e303c91f5", &[x86, (BTF, names)]).seen
        };
        assert!(reading("\0arch_freq_get_on_cpu\0"));
        assert!(!reading("\0arch_freq_get_on_cpu\0arch_freq_prepare_all\0"));
    }

    #[test]
    fn a_call_in_the_kernel_s_code_shows_a_fix_and_one_that_is_gone_too() {
        let with = |commit: &str, line: &str| {
            let found = judged(commit, &[("stillcore-kernel-code", line)]);
            (found.state, found.seen, found.basis)
        };
        let calls = |answer: &str| format!("call vmstat_shepherd housekeeping_test_cpu {answer}");
        let (state, seen, basis) = with("be5e015d107d", &calls("yes"));
        assert_eq!((state, seen), (FixState::Fixed, true));
        assert_eq!(basis, "seen: vmstat_shepherd calls housekeeping_test_cpu");
        assert_eq!(with("be5e015d107d", &calls("no")).0, FixState::Unfixed);
        assert!(!with("be5e015d107d", "").1);
        let (state, seen, _) =
            with("not-merged-tlbsync", "call tlb_remove_table_sync_one smp_call_function yes");
        assert_eq!((state, seen), (FixState::Unfixed, true));
        let (state, ..) = with("not-merged-tlbsync", "call tlb_remove_table_sync_one smp_call_function no");
        assert_eq!(state, FixState::Fixed);
        assert_eq!(with("94ad2e3cedb8", "symbol tick_next_period").0, FixState::Fixed);
        assert_eq!(with("94ad2e3cedb8", "symbol tick_next_period\nsymbol tick_period").0, FixState::Unfixed);
    }

    #[test]
    fn lists_of_cpus_show_a_fix_where_some_are_isolated_at_boot() {
        let with = |isolated: &str, second: &str| {
            let files = [
                ("sys/devices/system/cpu/isolated", isolated),
                ("sys/block/loop0/mq/0/cpu_list", "0, 1"),
                ("sys/block/loop1/mq/0/cpu_list", second),
            ];
            let found = judged("a46c27026da1", &files);
            (found.state, found.seen)
        };
        assert_eq!(with("2-3", "0, 1"), (FixState::Fixed, true));
        assert_eq!(with("2-3", "0, 1, 2, 3"), (FixState::Unfixed, true));
        assert!(!with("", "0, 1, 2, 3").1);
    }

    #[test]
    fn what_came_with_another_commit_shows_nothing_of_a_series() {
        let files = [
            ("proc/sys/kernel/osrelease", "6.19.3"),
            ("sys/devices/system/cpu/housekeeping", "0-1"),
            (BTF, "\0housekeeping_affine\0"),
        ];
        let found = judged("cpuset-hk-series", &files);
        assert_eq!((found.state, found.seen), (FixState::Unfixed, true), "{}", found.basis);
    }

    #[test]
    fn a_fix_that_needs_what_nothing_shows_is_unknown_where_it_is_there() {
        let files = [("proc/sys/kernel/arch", "x86_64"), (BTF, "\0mm_free_global_asid\0")];
        let found = judged("4afeb0ed1753", &files);
        assert_eq!((found.state, found.seen), (FixState::Unknown, true), "{}", found.basis);
    }

    #[test]
    fn most_fixes_have_a_probe() {
        let fixes = Fixes::embedded().unwrap();
        let probed = fixes.all.iter().filter(|fix| !fix.probe.is_empty()).count();
        assert!(probed >= 36, "{probed} of {}", fixes.all.len());
    }

    #[test]
    fn a_kernel_thread_is_evidence_only_where_cpus_were_isolated_and_without_tick_at_boot() {
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
    fn what_concerns_real_time_kernels_is_not_said_of_others() {
        let of = |files: &[(&str, &str)]| judged("80d2eefcb4c8", files).state;
        let old = ("proc/sys/kernel/osrelease", "6.1.0-50-amd64");
        assert_eq!(of(&[old]), FixState::NotApplicable);
        assert_eq!(of(&[old, ("sys/kernel/realtime", "1")]), FixState::Unfixed);
    }

    #[test]
    fn what_adds_interference_is_reported_where_it_is_there() {
        let mounted = ("proc/mounts", "d /d debugfs rw 0 0");
        let with = judged("557a6bfc662c", &[mounted, ("d/sched/fair_server/cpu0/runtime", "5")]);
        assert_eq!(with.state, FixState::Unfixed);
        assert_eq!(judged("557a6bfc662c", &[mounted, ("d/sched/features", "x")]).state, FixState::Fixed);
    }

    #[test]
    fn a_corrupt_list_is_reported_with_its_line() {
        let text = EMBEDDED.replacen("kind = \"removes\"", "kind = \"removed\"", 1);
        let line = text.lines().position(|line| line == "kind = \"removed\"").unwrap() + 1;
        let error = Fixes::parse("x.toml", &text).unwrap_err().to_string();
        assert!(error.contains(&format!("x.toml:{line}: ")), "{error}");
    }
}
