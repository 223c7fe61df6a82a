//! Boot lines booted: the rules give for an existing line, and for the one proposed in its place,
//! what the kernel itself reports.

use crate::machine::{Case, Guest, Machine};
use boot::{Effects, Kernel, Lines, Wanted, effects, merge};
use model::Cpus;
use model::boot::BootLine;

/// Four CPUs; the lab's own parameters are switched off by empty ones.
pub(crate) const CPUS: u32 = 4;

/// An existing line, the CPU to isolate, and the replacing parameters, as derived by hand from the
/// kernel's rules.
struct Sample {
    old: &'static str,
    cpu: &'static str,
    new: &'static str,
}

/// A kernel with one CPU set per kind of isolation and all isolation options.
const ON_6_1: [Sample; 12] = [
    Sample {
        old: "isolcpus=2 rcu_nocbs=2",
        cpu: "3",
        new: "isolcpus=managed_irq,domain,2,3 rcu_nocbs=2,3 nohz_full=3",
    },
    Sample {
        old: "isolcpus=1 isolcpus=2",
        cpu: "3",
        new: "isolcpus=managed_irq,domain,1,3 nohz_full=3 rcu_nocbs=3",
    },
    Sample { old: "nohz_full=1", cpu: "3", new: "nohz_full=1,3 isolcpus=managed_irq,domain,3 rcu_nocbs=1,3" },
    Sample {
        old: "isolcpus=managed_irq,1-3",
        cpu: "3",
        new: "isolcpus=managed_irq,1-3 isolcpus=domain,3 nohz_full=3 rcu_nocbs=3",
    },
    Sample {
        old: "isolcpus=nohz,domain,1",
        cpu: "2",
        new: "isolcpus=nohz,managed_irq,domain,1,2 nohz_full=1,2 rcu_nocbs=1,2",
    },
    Sample {
        old: "isolcpus=nohz,1",
        cpu: "3",
        new: "isolcpus=nohz,1,3 isolcpus=managed_irq,domain,3 nohz_full=1,3 rcu_nocbs=1,3",
    },
    Sample {
        old: "isolcpus=1 nohz_full=2",
        cpu: "3",
        new: "isolcpus=managed_irq,domain,1,3 nohz_full=2,3 rcu_nocbs=2,3",
    },
    Sample {
        old: "rcu_nocbs=1 rcu_nocbs=2",
        cpu: "3",
        new: "rcu_nocbs=2,3 isolcpus=managed_irq,domain,3 nohz_full=3",
    },
    Sample { old: "rcu_nocbs", cpu: "3", new: "rcu_nocbs=3 isolcpus=managed_irq,domain,3 nohz_full=3" },
    Sample { old: "rcu_nocbs=2-9", cpu: "3", new: "isolcpus=managed_irq,domain,3 nohz_full=3" },
    Sample { old: "isolcpus=2-9", cpu: "3", new: "isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3" },
    Sample { old: "nohz_full=all", cpu: "2", new: "isolcpus=managed_irq,domain,2" },
];

/// Debian's has neither dynticks nor offloading, knows fewer words of lists, and skips flags that
/// it does not know.
const ON_5_10: [Sample; 6] = [
    Sample { old: "isolcpus=2", cpu: "3", new: "isolcpus=managed_irq,domain,2,3" },
    Sample { old: "isolcpus=1 isolcpus=2", cpu: "3", new: "isolcpus=managed_irq,domain,1,3" },
    Sample { old: "isolcpus=io_queue,foo,1", cpu: "3", new: "isolcpus=managed_irq,domain,1,3" },
    Sample { old: "isolcpus=2-N", cpu: "1", new: "isolcpus=managed_irq,domain,1" },
    Sample { old: "isolcpus=nohz,domain,1", cpu: "3", new: "isolcpus=managed_irq,domain,3" },
    Sample { old: "nohz_full=1 isolcpus=2", cpu: "3", new: "isolcpus=managed_irq,domain,2,3" },
];

/// As 6.1; of lists that name the CPU that boots, and of words that 5.13 brought.
const ON_6_12: [Sample; 6] = [
    Sample { old: "nohz_full=1", cpu: "3", new: "nohz_full=1,3 isolcpus=managed_irq,domain,3 rcu_nocbs=1,3" },
    Sample {
        old: "nohz_full=0-1",
        cpu: "3",
        new: "nohz_full=1,3 isolcpus=managed_irq,domain,3 rcu_nocbs=1,3",
    },
    Sample {
        old: "isolcpus=nohz,1",
        cpu: "3",
        new: "isolcpus=nohz,1,3 isolcpus=managed_irq,domain,3 nohz_full=1,3 rcu_nocbs=1,3",
    },
    Sample {
        old: "isolcpus=1 nohz_full=2",
        cpu: "3",
        new: "isolcpus=managed_irq,domain,1,3 nohz_full=2,3 rcu_nocbs=2,3",
    },
    Sample { old: "rcu_nocbs=2-N", cpu: "1", new: "rcu_nocbs=1-3 isolcpus=managed_irq,domain,1 nohz_full=1" },
    Sample {
        old: "isolcpus=domain,io-queue,1 rcu_nocbs=All:1/2",
        cpu: "3",
        new: "isolcpus=managed_irq,domain,3 rcu_nocbs=0,2,3 nohz_full=3",
    },
];

fn samples(release: &str) -> &'static [Sample] {
    match release {
        "5.10" => &ON_5_10,
        "6.12" => &ON_6_12,
        _ => &ON_6_1,
    }
}

/// Four CPUs, and a kernel built as Debian builds it.
pub(crate) fn kernel(release: &str) -> Kernel {
    let cpus: Cpus = (0..CPUS).collect();
    // As Debian builds them.
    let mut options = vec!["CONFIG_CPU_ISOLATION", "CONFIG_CPUMASK_OFFSTACK", "CONFIG_PM_SLEEP_SMP"];
    if release != "5.10" {
        options.extend(["CONFIG_NO_HZ_FULL", "CONFIG_RCU_NOCB_CPU"]);
    }
    let config = options.iter().map(|name| ((*name).to_owned(), "y".to_owned())).collect();
    Kernel {
        release: release.to_owned(),
        arch: "x86_64".to_owned(),
        possible: cpus.clone(),
        present: cpus,
        config: Some(config),
        ..Kernel::default()
    }
}

fn proposed(kernel: &Kernel, sample: &Sample) -> BootLine {
    let cpu = sample.cpu;
    let wanted = [
        ("isolcpus", format!("isolcpus=managed_irq,domain,{cpu}"), "CONFIG_CPU_ISOLATION"),
        ("nohz_full", format!("nohz_full={cpu}"), "CONFIG_NO_HZ_FULL"),
        ("rcu_nocbs", format!("rcu_nocbs={cpu}"), "CONFIG_RCU_NOCB_CPU"),
    ];
    let wanted: Vec<_> = wanted
        .into_iter()
        .map(|(id, parameter, option)| Wanted {
            mechanism: id.to_owned(),
            parameter,
            option: Some(option.to_owned()),
        })
        .collect();
    merge(kernel, Lines { current: sample.old, base: sample.old }, &cpu.parse().unwrap(), &wanted)
}

/// Two machines per sample: the existing line, and the proposed one.
pub(crate) fn machines(kernel_name: &'static str) -> Vec<Machine> {
    let kernel = kernel(kernel_name);
    let options = kernel.config.iter().flatten().map(|(name, value)| format!("{name}={value}\n"));
    let options = options.collect::<Vec<_>>().concat();
    let mut all = Vec::new();
    for (at, sample) in samples(kernel_name).iter().enumerate() {
        let line = proposed(&kernel, sample);
        assert_eq!(line.words(), sample.new, "{}", sample.old);
        for (what, append, check) in
            [("old", sample.old.to_owned(), old as fn(&Guest)), ("new", line.line.clone(), new)]
        {
            let mut words = vec!["irqaffinity=".to_owned()];
            for name in ["isolcpus", "nohz_full", "rcu_nocbs"] {
                if !append.split(' ').any(|word| word.split('=').next() == Some(name)) {
                    words.push(format!("{name}="));
                }
            }
            words.push(append);
            all.push(Machine {
                name: format!("matrix::{kernel_name}::boot-line-{}-{what}", at + 1),
                arm64: false,
                kernel: kernel_name,
                smp: "4",
                append: words.join(" ").leak(),
                more: Vec::new(),
                cases: vec![
                    Case::new("line", "boot_line.sh", check)
                        .with(&[sample.cpu])
                        .file("config", options.clone()),
                ],
            });
        }
    }
    all
}

/// What the guest's kernel reports: scheduling domains, dynticks, offloaded callbacks.
fn reported(guest: &Guest) -> [Cpus; 3] {
    let list = |text: &str| Cpus::parse_list(text).unwrap_or_default();
    let log = guest.read("log");
    let offloaded = log.lines().find_map(|line| line.split_once("Offload RCU callbacks from CPUs: "));
    let offloaded = offloaded.map_or("", |(_, list)| list.trim().trim_end_matches('.'));
    [list(&guest.read("isolated")), list(&guest.read("nohz_full")), list(offloaded)]
}

fn computed(guest: &Guest) -> Effects {
    effects(&kernel(guest.kernel()), &guest.read("cmdline"))
}

fn agree(guest: &Guest) -> [Cpus; 3] {
    let Effects { domain, nohz_full, rcu_nocbs, .. } = computed(guest);
    let reported = reported(guest);
    assert_eq!(reported, [domain, nohz_full, rcu_nocbs], "{}", guest.read("cmdline"));
    reported
}

/// For an existing line, the rules give what the kernel made of it.
fn old(guest: &Guest) {
    agree(guest);
}

/// The proposed line isolates the CPU in each way that the kernel is built for, and the plan made
/// there wants no other.
fn new(guest: &Guest) {
    let cpu: Cpus = guest.case.arguments[0].parse().unwrap();
    let ways = if guest.kernel() == "5.10" { 1 } else { 3 };
    for set in agree(guest).iter().take(ways) {
        assert!(cpu.is_subset(set), "{}", guest.read("cmdline"));
    }
    assert_eq!(guest.read("plan.code").trim(), "0", "{}", guest.read("plan.err"));
    let plan = guest.json("plan.json");
    assert_eq!(plan["boot_line"]["changes"], serde_json::json!([]), "{}", guest.read("cmdline"));
}
