//! BPF programs that some process holds open, by `/proc/PID/fdinfo`.
//!
//! Files: `bpf_prog_show_fdinfo()` and `bpf_link_show_fdinfo()` of `kernel/bpf/syscall.c`
//! (`prog_type`, `prog_id`, `link_type`, and with `kernel.bpf_stats_enabled` `run_cnt` on all
//! CPUs). Programs that are pinned, or attached and held by nobody, no file shows: bpf(2) does, to
//! root. So there is always a row that says so.

use super::scene::{Scene, some_of, unknown};
use model::resource::{Kind, Resource};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;

/// Names of `enum bpf_prog_type` (`include/uapi/linux/bpf.h`), by number.
const TYPES: [&str; 33] = [
    "unspecified",
    "socket_filter",
    "kprobe",
    "sched_cls",
    "sched_act",
    "tracepoint",
    "xdp",
    "perf_event",
    "cgroup_skb",
    "cgroup_sock",
    "lwt_in",
    "lwt_out",
    "lwt_xmit",
    "sock_ops",
    "sk_skb",
    "cgroup_device",
    "sk_msg",
    "raw_tracepoint",
    "cgroup_sock_addr",
    "lwt_seg6local",
    "lirc_mode2",
    "sk_reuseport",
    "flow_dissector",
    "cgroup_sysctl",
    "raw_tracepoint_writable",
    "cgroup_sockopt",
    "tracing",
    "struct_ops",
    "ext",
    "lsm",
    "sk_lookup",
    "syscall",
    "netfilter",
];

/// A program, as far as its descriptors describe it.
#[derive(Default)]
struct Program {
    kind: Option<usize>,
    links: BTreeSet<String>,
    holders: BTreeSet<String>,
    runs: Option<u64>,
}

/// A row for each program, and one for those that nobody holds.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    if !scene.root.is_live() {
        return vec![unknown(Kind::Bpf, "programs", "a capture does not hold the descriptors of processes")];
    }
    let mut programs = BTreeMap::<u32, Program>::new();
    let mut hidden = 0;
    for process in &scene.processes().user {
        let at = format!("proc/{}/fdinfo", process.pid);
        hidden += usize::from(
            fs::read_dir(scene.root.at(&at)).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied),
        );
        for fd in scene.root.names(&at) {
            let Some(text) = scene.root.maybe(&format!("{at}/{fd}")) else { continue };
            add(&mut programs, &text, &format!("{} ({})", process.name, process.pid));
        }
    }
    let rest = Resource {
        reason: Some("programs that are pinned or attached and held by no process are shown by bpf(2) alone: `bpftool prog`".to_owned()),
        ..Resource::new(Kind::Bpf, "programs without a descriptor")
    };
    let unread = (hidden > 0 || !scene.sees_all()).then(|| Resource {
        reason: Some(match hidden {
            0 => "not all processes are to be seen from here".to_owned(),
            // Not even root may where it lacks the capability.
            hidden => {
                format!("what {hidden} processes have open may not be read here (CAP_SYS_PTRACE may)")
            }
        }),
        ..Resource::new(Kind::Bpf, "programs of others")
    });
    programs.iter().map(row).chain(unread).chain([rest]).collect()
}

fn add(programs: &mut BTreeMap<u32, Program>, text: &str, holder: &str) {
    let value =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim));
    let Some(id) = value("prog_id").and_then(|id| id.parse().ok()) else { return };
    let program = programs.entry(id).or_default();
    program.holders.insert(holder.to_owned());
    program.links.extend(value("link_type").map(str::to_owned));
    program.kind = program.kind.or(value("prog_type").and_then(|kind| kind.parse().ok()));
    program.runs = program.runs.max(value("run_cnt").and_then(|runs| runs.parse().ok()));
}

fn row((id, program): (&u32, &Program)) -> Resource {
    let kind = program
        .kind
        .map(|kind| TYPES.get(kind).map_or_else(|| format!("type {kind}"), |name| (*name).to_owned()));
    let links: Vec<String> = program.links.iter().cloned().collect();
    let holders: Vec<String> = program.holders.iter().cloned().collect();
    let attached = !links.is_empty();
    Resource {
        effective: attached.then(|| format!("attached: {}", links.join(", "))),
        // Counted only while kernel.bpf_stats_enabled is set.
        observed: program.runs.filter(|runs| *runs > 0).map(|runs| format!("ran {runs} times on all CPUs")),
        owner: Some(some_of(&holders)),
        may_touch: Some(true),
        in_force: attached.then_some(true),
        movable: Some(true),
        reason: Some(
            "it runs on whatever CPU its hook is reached; it goes with its last link and descriptor"
                .to_owned(),
        ),
        ..Resource::new(
            Kind::Bpf,
            format!("program {id}{}", kind.map(|kind| format!(" {kind}")).unwrap_or_default()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn programs_and_links_are_brought_together_by_number() {
        let mut programs = BTreeMap::new();
        add(
            &mut programs,
            "pos:\t0\nprog_type:\t2\nprog_jited:\t1\nprog_id:\t12\nrun_cnt:\t5\n",
            "agent (7)",
        );
        add(&mut programs, "link_type:\tperf_event\nlink_id:\t3\nprog_tag:\tx\nprog_id:\t12\n", "agent (7)");
        add(&mut programs, "pos:\t0\nflags:\t02\n", "other (9)");
        add(&mut programs, "prog_type:\t99\nprog_id:\t13\n", "other (9)");
        let rows: Vec<_> = programs.iter().map(row).collect();
        let names: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.effective.as_deref())).collect();
        assert_eq!(
            names,
            [("program 12 kprobe", Some("attached: perf_event")), ("program 13 type 99", None)]
        );
        assert_eq!(rows[0].observed.as_deref(), Some("ran 5 times on all CPUs"));
        assert_eq!(rows[0].owner.as_deref(), Some("agent (7)"));
    }

    #[test]
    fn a_capture_says_that_it_does_not_know() {
        let (_dir, root) = tree(&[("proc/7/fdinfo/3", "prog_id:\t12\n")]);
        let rows = rows(&Scene::new(&root, 0));
        assert_eq!((rows.len(), rows[0].may_touch), (1, None));
    }
}
