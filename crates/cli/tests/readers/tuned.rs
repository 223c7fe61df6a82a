//! Profiles of TuneD with all that they include, which others write and root compares with a plan.
//! Nothing of them is run.

use super::{Outcome, Reader, bundle, in_scratch, text, whole};
use exchange::read_profile;
use machine::Root;
use model::Cpus;
use std::fs;

/// The profile that is read.
const NAME: &str = "rt";

const TREES: [&[(&str, &str)]; 3] = [
    &[
        (
            "etc/tuned/profiles/rt/tuned.conf",
            "[main]\nsummary=Real time\ninclude=network-latency\n\n[variables]\ninclude=/etc/tuned/rt-variables.conf\n\
             isolated_cores=${f:cpulist_unpack:${isolated_cores}}\nothers=${f:cpulist_invert:${isolated_cores}}\n\
             mask=${f:cpulist2hex:${others}}\n\n[sysctl]\nkernel.sched_rt_runtime_us=-1\nvm.stat_interval=10\n\n\
             [sysfs]\n/sys/bus/workqueue/devices/writeback/cpumask=${mask}\n/sys/devices/virtual/workqueue/cpumask=0x${mask}\n\n\
             [bootloader]\ncmdline_rt=+isolcpus=${managed_irq}${isolated_cores} nohz_full=${isolated_cores}\n\n\
             [script]\nscript=${i:PROFILE_DIR}/script.sh\n\n[irqbalance]\nbanned_cpus=${isolated_cores}\n",
        ),
        ("etc/tuned/rt-variables.conf", "isolated_cores=2-3,5\nmanaged_irq=managed_irq,domain,\n"),
        (
            "usr/lib/tuned/network-latency/tuned.conf",
            "[main]\ninclude=-latency-performance\n[vm]\ntransparent_hugepages=never\n[sysctl]\nnet.core.busy_read=50\n\
             kernel.numa_balancing=0\n",
        ),
        ("proc/sys/vm/stat_interval", "1\n"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ],
    &[(
        "usr/lib/tuned/profiles/rt/tuned.conf",
        "[main]\ninclude=-a\n[scheduler]\nisolated_cores=${f:calc_isolated_cores:1}\ngroup.k=0:f:2:*:^\\[k\n\
         ps_blacklist=.*pmd.*;.*DPDK.*\n[cpu]\ngovernor=performance|schedutil\nforce_latency=cstate.id:1|3\n\
         [disk]\ndevices=sd*,!sda\nreadahead=>4096\n[net]\nchannels=combined ${f:check_net_queue_count:4}\n",
    )],
    &[
        (
            "etc/tuned/rt/tuned.conf",
            "[main]\ninclude=rt\n[variables]\na=${b}\nb=${a}\nc=${f:regex_search_ternary:${a}:^x$:yes:no}\n[x]\ntype=sysctl\nreplace=1\n\
             enabled=false\n[modules]\nkvm=+r nx_huge_pages=0\n[systemd]\ncpu_affinity=${c}\n",
        ),
        (
            "usr/lib/tuned/rt/tuned.conf",
            "[main]\n[acpi]\nplatform_profile=performance|balanced\n[rtentsk]\n[uncore]\n",
        ),
    ],
];

pub(crate) fn reader() -> Reader {
    let tree =
        |files: &&[(&str, &str)]| bundle::of(files.iter().map(|(name, text)| (*name, text.as_bytes())));
    let seeds = TREES.iter().map(tree).collect();
    Reader { name: "tuned-profile", seeds, damage: text, read, short: 300 }
}

/// What is read has a sentence for each of its settings, whatever stands in its files.
fn read(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        bundle::clear(scratch.path());
        let image = scratch.at("image");
        fs::create_dir(&image).unwrap();
        bundle::lay(bytes, &image);
        let Ok(root) = Root::open(&image) else { return Outcome::Refused };
        let cpus: Cpus = "2,3".parse().unwrap();
        let read = |cpus| read_profile(&root, &root, NAME, cpus);
        let (named, own) = (read(Some(&cpus)), read(None));
        assert!(named.is_ok() || own.is_err(), "with CPUs of ours it is no worse: {:?}", named.err());
        whole(own.is_ok())
    })
}
