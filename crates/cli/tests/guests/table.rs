//! Which machine runs which scripts.
//!
//! `fast`: the two machines of `make test`. `slow` and `slow-arm64`: what else one kernel shows, of
//! `make test-all`. `matrix`: every kernel of the lab, likewise.

use crate::machine::{Case, Guest, Machine, PLAIN};
use crate::{
    admission, asid, assess, boot_line, boxes, cards, counts, disturb_kill, every, exported, exposure, fixes,
    graph, guides, held, hold, install, isolate, keep, loaders, matrix, measure, misbooted, monitor,
    monitor_faults, monitor_quiet, owners, pages, planted, probes, study, theirs, time, truth, tutorial,
};

/// The kernels of the lab.
const KERNELS: [&str; 6] = ["5.10", "5.10-rt", "6.1", "6.1-rt", "6.12", "6.12-rt"];

/// CPUs 1 and 2 for the victim where CPU 2 is isolated at boot: a task that is pinned to such CPUs
/// alone is there on purpose.
const ASTRAY: &str = "6";

/// Modules that stressors need.
const MODULES: [&str; 12] = [
    "dummy",
    "veth",
    "wireguard",
    "bonding",
    "crc32c_generic",
    "loop",
    "ext4",
    "xfs",
    "ts_fsm",
    "msr",
    "af_packet",
    "nf_tables",
];

/// Programs that make boot configurations, and what every Debian has besides.
const LOADERS: [&str; 18] = [
    "grub2-common",
    "u-boot-menu",
    "systemd-boot",
    "systemd",
    "dash",
    "bash",
    "coreutils",
    "diffutils",
    "findutils",
    "grep",
    "sed",
    "mawk",
    "gettext-base",
    "debianutils",
    "perl-base",
    "util-linux",
    "mount",
    "e2fsprogs",
];

/// A test that boots its guests through the command under test, by its name.
pub(crate) type OnThisHost = (&'static str, fn());

pub(crate) fn on_this_host() -> [OnThisHost; 3] {
    [
        (
            "slow::study::work_items_are_drawn",
            study::work_items_reach_a_cpu_that_is_not_isolated_and_are_drawn_with_their_sources,
        ),
        ("slow::study::graphs_are_counted", study::the_graphs_of_the_ros_2_experiment_are_counted),
        ("slow::lab_matrix", matrix::matrix_of_two_cells),
    ]
}

/// All machines, the fast ones first. Those of one tier boot in this order.
pub(crate) fn machines() -> Vec<Machine> {
    let mut all = fast();
    all.extend(slow());
    for kernel in KERNELS {
        all.extend(matrix_of(kernel));
    }
    for kernel in ["6.1", "5.10", "6.12"] {
        all.extend(boot_line::machines(kernel));
    }
    all.extend(["6.1", "6.12"].map(owned));
    all.push(exported());
    all.extend(KERNELS.iter().flat_map(|kernel| guided(kernel)));
    all
}

fn fast() -> Vec<Machine> {
    vec![
        machine(
            "fast::6.1",
            "6.1",
            vec![assessed("2s"), isolated_briefly(), provoked(true), tutorial::after()],
        ),
        machine(
            "fast::6.12-rt",
            "6.12-rt",
            vec![
                isolated_briefly(),
                Case::new("refused", "refused.sh", isolate::an_invalid_partition_is_refused),
                provoked(false),
            ],
        ),
    ]
}

fn slow() -> Vec<Machine> {
    let nic = modules_and(&["--nic", "virtio"]);
    vec![
        Machine {
            append: PLAIN,
            more: nic,
            ..machine(
                "slow::6.1-plain",
                "6.1",
                vec![
                    tutorial::before(),
                    Case::new("verify", "verify.sh", isolate::verify_names_what_others_do).with(&["2,3"]),
                    isolated("2,3", "4", "60", "v2"),
                ],
            )
        },
        Machine {
            more: modules_and(&["--nic", "virtio"]),
            // CPUs 2 and 3 are isolated at boot: only CPU 1 needs a partition.
            ..machine(
                "slow::6.1-cards",
                "6.1",
                vec![kept("1", "1", "2", "v2"), clients(), killed("dangerous")],
            )
        },
        Machine {
            smp: "4x2",
            append: PLAIN,
            more: vec!["--module", "zram"],
            ..machine(
                "slow::6.1-smt",
                "6.1",
                vec![
                    Case::new(
                        "deployments",
                        "deployments.sh",
                        isolate::deployments_and_a_journal_without_room,
                    )
                    .limit(600),
                    Case::new("others", "others.sh", isolate::others_are_at_work_too).limit(600),
                ],
            )
        },
        Machine {
            smp: "4x2",
            append: PLAIN,
            more: vec!["--module", "zram"],
            ..machine("slow::6.12-smt", "6.12", vec![every::case(), fair_server()])
        },
        Machine {
            append: PLAIN,
            more: LOADERS
                .iter()
                .flat_map(|name| ["--packages", *name])
                .chain(["--module", "zram", "--module", "crc32c_generic", "--module", "ext4"])
                .collect(),
            ..machine(
                "slow::6.1-loaders",
                "6.1",
                vec![
                    Case::new("loaders", "loaders.sh", loaders::what_is_written_survives_the_real_programs)
                        .with(&["2,3"]),
                ],
            )
        },
        Machine {
            append: PLAIN,
            more: modules_and(&[]),
            ..machine(
                "slow::6.1-install",
                "6.1",
                vec![Case::new("install", "install.sh", install::nothing_is_left).with(&["2,3"]).limit(1500)],
            )
        },
        // Two cards: one of the pages keeps an interrupt of `eth1` where it is.
        Machine {
            append: PLAIN,
            more: modules_and(&["--nic", "virtio"]),
            ..machine("slow::6.1-pages", "6.1", vec![pages::case()])
        },
        machine("slow::6.12", "6.12", vec![provoked(false)]),
        monitor_faults(),
        Machine {
            more: vec!["--packages", "rt-tests"],
            ..machine("slow::6.12-monitor-quiet", "6.12", vec![monitor_quiet::case()])
        },
        Machine { append: PLAIN, ..machine("slow::6.12-hold-hour", "6.12", hold::quiet_hour()) },
        machine("slow::6.12-rt", "6.12-rt", vec![assessed("4s"), isolated("2,3", ASTRAY, "60", "v2")]),
        machine("slow::6.1-rt", "6.1-rt", vec![assessed("4s")]),
        Machine {
            arm64: true,
            more: vec!["--packages", "rt-tests"],
            ..machine("slow-arm64::6.1-traces", "6.1", vec![traces()])
        },
        Machine {
            arm64: true,
            smp: "3",
            ..machine(
                "slow-arm64::6.1",
                "6.1",
                vec![Case::new("asid", "asid.sh", asid::address_spaces_run_out).limit(900)],
            )
        },
        Machine { arm64: true, ..machine("slow-arm64::6.1-probes", "6.1", vec![each_probe()]) },
        machine(
            "slow::6.1-hangs",
            "6.1",
            vec![Case::new("hangs", "hangs.sh", ended_in_the_second_boot).limit(10)],
        ),
        periods("slow::6.1-periods", &["300", "3000", "36s"], 300),
        periods("slow::6.1-long-periods", &["3000", "30000", "190s"], 600),
    ]
}

/// A kernel isolated at boot, without that, with two threads a core, and with the first version of
/// control groups.
fn matrix_of(kernel: &'static str) -> Vec<Machine> {
    let with_probes = !kernel.starts_with("6.12");
    let mut provoked_there = vec![provoked(with_probes)];
    if kernel == "6.1" {
        provoked_there.push(Case { name: "truth-without-probes", ..provoked(false) });
    }
    let mut at_boot = Vec::new();
    if kernel == "6.1" {
        // First: a kernel says only once that it throttles.
        at_boot.push(measured_ground());
    }
    at_boot.extend([assessed("4s"), isolated("2,3", ASTRAY, "80", "v2"), traces(), held_up()]);
    at_boot.extend(provoked_there);
    at_boot.extend([planted(), probed()]);
    at_boot.extend([
        Case::new("exposure", "exposure.sh", exposure::repeats).limit(900),
        Case::new("graph", "graph.sh", graph::graphs),
    ]);
    let mut plain = vec![
        kept("2,3", "3", "8", "v2"),
        Case::new("theirs", "theirs.sh", theirs::nothing_of_theirs_is_touched),
        isolated("2,3", "4", "80", "v2"),
    ];
    if kernel.starts_with("5.10") {
        // The partition made there leaves the kernel without some of its workers.
        plain.swap(1, 2);
    }
    let name = |what: &str| format!("matrix::{kernel}::{what}");
    vec![
        Machine { more: vec!["--packages", "rt-tests"], ..machine(&name("boot"), kernel, at_boot) },
        Machine { append: PLAIN, ..machine(&name("plain"), kernel, plain) },
        Machine {
            append: PLAIN,
            ..machine(
                &name("groups-v1"),
                kernel,
                vec![kept("2,3", "3", "8", "v1"), isolated("2,3", "4", "80", "v1")],
            )
        },
        Machine { append: PLAIN, ..machine(&name("hold"), kernel, hold::cases()) },
        monitored(&name("monitored"), kernel),
        Machine {
            append: misbooted::APPEND,
            ..machine(
                &name("misbooted"),
                kernel,
                vec![
                    Case::new("misbooted", "misbooted.sh", misbooted::the_wrong_half_is_not_green),
                    Case::new("fixes", "fixes.sh", fixes::what_is_seen_is_so),
                    Case::new("admission", "admission.sh", admission::the_kernel_lets_in_what_is_said),
                    planted::case("misbooted"),
                ],
            )
        },
        Machine {
            smp: "2x2",
            append: planted::RUN_TIME,
            more: planted::DEVICES.to_vec(),
            ..machine(&name("run-time"), kernel, vec![planted::case("run-time")])
        },
        Machine {
            append: planted::RIGHT,
            more: planted::DEVICES.to_vec(),
            ..machine(&name("right"), kernel, vec![planted::case("right")])
        },
        Machine {
            smp: "4x2",
            append: PLAIN,
            more: vec!["--module", "zram"],
            ..machine(&name("smt"), kernel, vec![isolated("4-7", "10", "80", "v2"), every::case()])
        },
        Machine {
            more: modules_and(&["--nic", "e1000"]),
            ..machine(&name("kill"), kernel, vec![clients(), killed("all")])
        },
    ]
}

/// Four CPUs, two of them isolated at boot, as the lab boots by itself.
fn machine(name: &str, kernel: &'static str, cases: Vec<Case>) -> Machine {
    let (name, more) = (name.to_owned(), Vec::new());
    Machine { name, arm64: false, kernel, smp: "4", append: "", more, cases }
}

/// A plain boot, and those with the command lines of guides.
fn guided(kernel: &'static str) -> Vec<Machine> {
    use guides::Boot::{Kthread, Line, Plain};
    let boots = [(Plain, PLAIN), (Line, guides::LINE), (Kthread, guides::KTHREAD)];
    boots
        .into_iter()
        .map(|(boot, append)| Machine {
            append,
            more: guides::more(),
            ..machine(&format!("matrix::{kernel}::{}", boot.name()), kernel, vec![guides::case(boot)])
        })
        .collect()
}

/// What tuned needs.
const OF_TUNED: [&str; 8] = ["tuned", "coreutils", "grep", "sed", "bash", "dash", "perl-base", "util-linux"];

/// Where all of tuned can run: Debian 12 lacks the module of Python that its plugin `scheduler`
/// uses, which is in `linux-perf` from Debian 13 on.
fn exported() -> Machine {
    let packages = OF_TUNED.into_iter().chain(["linux-perf"]).flat_map(|name| ["--packages", name]);
    Machine {
        append: PLAIN,
        more: packages.chain(["--memory", "3000"]).collect(),
        ..machine(
            "matrix::6.12::exported",
            "6.12",
            vec![Case::new("exported", "exported.sh", exported::tuned_does_what_we_do).limit(900)],
        )
    }
}

/// Where tuned can run.
fn owned(kernel: &'static str) -> Machine {
    Machine {
        append: PLAIN,
        more: OF_TUNED.iter().flat_map(|name| ["--packages", *name]).collect(),
        ..machine(
            &format!("matrix::{kernel}::owners"),
            kernel,
            vec![Case::new("owners", "owners.sh", owners::owners_keep_what_is_theirs).limit(900)],
        )
    }
}

fn modules_and(more: &[&'static str]) -> Vec<&'static str> {
    MODULES.iter().flat_map(|module| ["--module", *module]).chain(more.iter().copied()).collect()
}

fn assessed(duration: &'static str) -> Case {
    Case::new("assess", "assess.sh", assess::check).with(&[duration])
}

fn measured_ground() -> Case {
    Case::new("moves", "measure.sh", measure::ground_that_moves).with(&["moves"])
}

fn fair_server() -> Case {
    Case::new("fair", "measure.sh", measure::the_fair_server_serves).with(&["fair"])
}

/// `points`: at how many writes the call is killed at most, from the first one on.
fn isolated(cpus: &str, mask: &str, points: &str, groups: &str) -> Case {
    Case::new("isolate", "isolate.sh", isolate::applied_and_undone)
        .with(&[cpus, mask, points, groups, "1"])
        .limit(1200)
}

/// Killed at a handful of writes, other ones each time; `crates/isolate/tests/it/engine.rs` has
/// them all, on a tree that is no machine's.
fn isolated_briefly() -> Case {
    Case::new("isolate", "isolate.sh", isolate::applied_and_undone).with(&["2,3", ASTRAY, "6", "v2", "7"])
}

/// The CPUs to isolate, that of an application on them, its mask, the version of the control
/// groups.
fn kept(cpus: &'static str, cpu: &'static str, mask: &'static str, groups: &'static str) -> Case {
    Case::new("keep", "keep.sh", keep::the_application_continues_undisturbed)
        .with(&[cpus, cpu, mask, groups])
        .limit(600)
}

fn held_up() -> Case {
    Case::new("held", "held.sh", held::the_system_call_is_named)
}

fn traces() -> Case {
    Case::new("traces", "counts.sh", counts::traces).with(&["traces"])
}

fn each_probe() -> Case {
    Case::new("probes", "counts.sh", probes::every_release_is_accounted_for)
        .with(&["probes"])
        .usable(probes::done_in_time)
}

/// A hundred of each cause.
fn provoked(kprobes: bool) -> Case {
    Case::new("truth", "truth.sh", truth::causes_are_named).with(&["100", if kprobes { "1" } else { "0" }])
}

/// Ten of each holdup.
fn planted() -> Case {
    Case::new("boxes", "boxes.sh", boxes::holdups_are_in_their_boxes).with(&["10", "1"])
}

/// Twenty of each while a monitor watches.
fn monitored(name: &str, kernel: &'static str) -> Machine {
    let case = Case::new("monitor", "monitor.sh", monitor::breaches_are_those_that_were_planted);
    let case = case.with(&["20", "2", "1"]).limit(2400);
    Machine { append: PLAIN, ..machine(name, kernel, vec![case]) }
}

/// What may befall a monitor, and a few holdups behind each.
fn monitor_faults() -> Machine {
    let case = Case::new("faults", "monitor_faults.sh", monitor_faults::it_goes_on_behind_each);
    let cases = vec![case.with(&["2", "1"]).limit(2400)];
    Machine { append: PLAIN, ..machine("slow::6.12-monitor-faults", "6.12", cases) }
}

/// The same without stacks, and with probes on a function in which interrupts are off.
fn probed() -> Case {
    Case::new("probed", "boxes.sh", boxes::a_probed_function_is_seen_and_blamed).with(&["6", "2"])
}

/// A script that hangs costs a second boot, and no more.
fn ended_in_the_second_boot(guest: &Guest) {
    assert_eq!(guest.read("boot").trim(), "2");
}

fn clients() -> Case {
    Case::new("cards", "cards.sh", cards::clients_cross_both_cards)
}

/// Every stressor killed, or the dangerous ones.
fn killed(which: &str) -> Case {
    Case::new("kill", "disturb_kill.sh", disturb_kill::nothing_is_left).with(&[which]).limit(2400)
}

/// An emulated machine's counters agree, but its kernel takes them for unsynchronised and reads the
/// HPET instead. The emulator serves that under a lock for all devices: a job that looks at the
/// clock in a loop took some 500 ms for its 12.
fn periods(name: &str, arguments: &[&str], limit_s: u64) -> Machine {
    let case = Case::new("periods", "time.sh", time::periods_are_found).with(arguments);
    Machine {
        append: "isolcpus=2,3 nohz_full=2,3 rcu_nocbs=2,3 tsc=reliable",
        ..machine(name, "6.1", vec![case.limit(limit_s).usable(time::was_there)])
    }
}
