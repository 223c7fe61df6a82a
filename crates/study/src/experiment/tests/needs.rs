//! What cells need of a machine, on machines that were booted one way or the other.

use super::*;
use model::booted::Parameter;
use model::{Booted, Cpus, Machine};

fn cpus(list: &str) -> Cpus {
    if list.is_empty() { Cpus::default() } else { list.parse().unwrap() }
}

/// Four CPUs, of which 2 and 3 are measured, as a kernel without surprises makes them of a boot
/// line.
fn booted(line: &str) -> Ground {
    let parameters: Vec<Parameter> = line
        .split_whitespace()
        .map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let flags: Vec<String> = value
                .split(',')
                .take_while(|part| part.starts_with(char::is_alphabetic))
                .map(str::to_owned)
                .collect();
            let rest = value.split(',').skip(flags.len()).collect::<Vec<_>>().join(",");
            Parameter { name: name.to_owned(), value: value.to_owned(), flags, cpus: rest.parse().ok() }
        })
        .collect();
    let of = |name: &str| {
        let found = parameters.iter().find(|one| one.name == name);
        found.and_then(|one| one.cpus.clone()).unwrap_or_default()
    };
    let mut machine = Machine { cmdline: line.to_owned(), memory_kib: Some(1 << 20), ..Machine::default() };
    machine.kernel.release = "6.1.0-18-amd64".to_owned();
    machine.topology.online = cpus("0-3");
    machine.topology.isolated = of("isolcpus");
    machine.topology.nohz_full = of("nohz_full");
    let offloaded = Ok(of("rcu_nocbs").or(&machine.topology.nohz_full));
    let irq = of("irqaffinity");
    let irq_default = Some(if irq.is_empty() { cpus("0-3") } else { irq });
    Ground {
        booted: Booted { parameters, ignored: Vec::new(), offloaded, irq_default, pmu: None },
        machine,
        cpus: cpus("2-3"),
        housekeeping: cpus("0-1"),
    }
}

fn needs(boot: &str) -> Needs {
    Needs { boot: vec![boot.split_whitespace().map(str::to_owned).collect()], ..Needs::default() }
}

fn unmet(boot: &str, line: &str) -> Option<String> {
    needs(boot).unmet(&booted(line))
}

const ALL: &str =
    "isolcpus=domain,managed_irq,{cpus} nohz_full={cpus} rcu_nocbs={cpus} irqaffinity={housekeeping}";

#[test]
fn a_boot_line_is_that_of_the_machine_or_the_cell_needs_another() {
    let line = "isolcpus=managed_irq,domain,2,3 nohz_full=2-3 rcu_nocbs=2,3 irqaffinity=0,1";
    assert_eq!(unmet(ALL, line), None);
    assert_eq!(
        unmet(ALL, "quiet").unwrap(),
        "needs a boot with isolcpus=domain,managed_irq,2,3 nohz_full=2,3 rcu_nocbs=2,3 irqaffinity=0,1"
    );
    assert_eq!(unmet("isolcpus= nohz_full={cpus}", line).unwrap(), "needs a boot without isolcpus");
    // More CPUs than are measured are isolated, too; fewer are not enough.
    assert_eq!(unmet("nohz_full={cpus}", "nohz_full=1-3"), None);
    assert_eq!(unmet("nohz_full={cpus}", "nohz_full=3").unwrap(), "needs a boot with nohz_full=2,3");
    // Without a flag it isolates the domain, and nothing else.
    assert_eq!(unmet("isolcpus=domain,{cpus}", "isolcpus=2-3"), None);
    assert!(unmet("isolcpus=domain,managed_irq,{cpus}", "isolcpus=2-3").is_some());
    assert_eq!(unmet("nohz_full={cpus}", "isolcpus=nohz,domain,2-3 nohz_full=2-3"), None);
    assert_eq!(unmet("kthread_cpus={housekeeping}", "kthread_cpus=0-1"), None, "the same CPUs");
    // Other words literally, the last one.
    assert_eq!(unmet("mitigations=off", "mitigations=auto mitigations=off"), None);
    assert_eq!(
        unmet("mitigations=off", "mitigations=off mitigations=auto").unwrap(),
        "needs a boot with mitigations=off"
    );
    assert_eq!(unmet("skew_tick=1 nosmt", "skew-tick=1").unwrap(), "needs a boot with nosmt");
}

#[test]
fn what_the_kernel_shows_goes_before_what_it_was_asked_for() {
    let with = |change: fn(&mut Ground), boot: &str, line: &str| {
        let mut ground = booted(line);
        change(&mut ground);
        needs(boot).unmet(&ground)
    };
    // A list that the kernel dropped.
    let refused = with(
        |ground| ground.machine.topology.nohz_full = Cpus::default(),
        "nohz_full={cpus}",
        "nohz_full=2-3",
    );
    assert!(refused.as_deref().unwrap().contains("the kernel shows CPUs 2,3 without it"), "{refused:?}");
    let drop_it = |ground: &mut Ground| {
        ground.booted.parameters[0].cpus = None;
        (ground.machine.topology.isolated, ground.machine.topology.nohz_full) =
            (Cpus::default(), Cpus::default());
    };
    let dropped = |word: &str| with(drop_it, word, word).unwrap();
    assert!(dropped("nohz_full=2-9").contains("the kernel shows CPUs 2-9 without it"));
    assert!(dropped("isolcpus=managed_irq,2-9").contains("and the kernel drops it"));
    assert!(dropped("irqaffinity=0-9").contains("and the kernel drops it"));
    // A partition is neither a boot line nor the absence of one.
    let partition = |ground: &mut Ground| ground.machine.topology.isolated = cpus("2-3");
    assert!(with(partition, "isolcpus=domain,{cpus}", "quiet").unwrap().contains("a boot with isolcpus"));
    assert!(with(partition, "isolcpus=", "quiet").unwrap().contains("without isolated CPUs (CPUs 2,3)"));
    // A kernel that offloads all CPUs unasked.
    let all = |ground: &mut Ground| ground.booted.offloaded = Ok(cpus("0-3"));
    assert!(with(all, "rcu_nocbs=", "quiet").unwrap().contains("without offloaded RCU callbacks (CPUs 0-3)"));
    // Not known is not there, either way.
    let unknown = |ground: &mut Ground| ground.booted.offloaded = Err("no threads can be seen".to_owned());
    for boot in ["rcu_nocbs=", "rcu_nocbs={cpus}"] {
        assert!(
            with(unknown, boot, if boot.ends_with('=') { "quiet" } else { "rcu_nocbs=2-3" })
                .unwrap()
                .contains("no threads can be seen")
        );
    }
    let anywhere = |ground: &mut Ground| ground.booted.irq_default = Some(cpus("0-3"));
    assert!(with(anywhere, "irqaffinity={housekeeping}", "irqaffinity=0-1").is_some());
    let moved = |ground: &mut Ground| ground.booted.irq_default = Some(cpus("0-1"));
    assert!(with(moved, "irqaffinity=", "quiet").is_some());
}

#[test]
fn a_kernel_that_is_built_without_a_word_is_the_level_of_others_and_not_of_that_word_alone() {
    let mut ground = booted("isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1");
    ground.booted.ignored = vec!["nohz_full".to_owned(), "rcu_nocbs".to_owned()];
    ground.booted.offloaded = Ok(Cpus::default());
    ground.machine.topology.nohz_full = Cpus::default();
    assert_eq!(needs(ALL).unmet(&ground), None);
    let apart = Needs {
        boot: needs(ALL).boot[0].iter().map(|word| vec![word.clone()]).collect(),
        ..Needs::default()
    };
    let reason = apart.unmet(&ground).unwrap();
    assert_eq!(
        reason,
        "needs a kernel built for nohz_full=2,3, which this one ignores; a kernel built for rcu_nocbs=2,3, which this one ignores"
    );
    // Word by word it would be two subsets at once.
    assert!(needs("nohz_full=").unmet(&ground).is_some());
}

#[test]
fn of_all_subsets_of_mechanisms_one_boot_is_one_at_most() {
    let words: Vec<&str> = ALL.split_whitespace().collect();
    let off = |word: &str| format!("{}=", word.split('=').next().unwrap());
    let subset = |bits: usize| {
        let word =
            |(bit, word): (usize, &&str)| if bits >> bit & 1 == 1 { (*word).to_owned() } else { off(word) };
        words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    };
    for line in 0..16 {
        let on = |(bit, word): (usize, &&str)| {
            (line >> bit & 1 == 1).then(|| super::boot_line(word, "2,3", "0,1"))
        };
        let text: Vec<String> = words.iter().enumerate().filter_map(on).collect();
        let met: Vec<usize> =
            (0..16).filter(|bits| unmet(&subset(*bits), &text.join(" ")).is_none()).collect();
        assert_eq!(met, [line], "{text:?}");
    }
    // Half a boot line is none of them.
    assert!((0..16).all(|bits| unmet(&subset(bits), "isolcpus=2-3").is_some()));
}

#[test]
fn kernels_cpus_memory_and_counters_are_checked() {
    let ground = booted("quiet");
    assert_eq!(kernel_name(&ground.machine), "6.1");
    let of = |release: &str, realtime: bool| {
        let mut machine = ground.machine.clone();
        (machine.kernel.release, machine.kernel.realtime) = (release.to_owned(), realtime);
        kernel_name(&machine)
    };
    assert_eq!(of("6.12.9-rt5", true), "6.12-rt");
    assert_eq!(of("5.10.0-60.18.0.50.oe2203.aarch64", false), "5.10-openeuler");
    assert_eq!(of("own", false), "own");
    let kernel = Needs { kernel: Some("5.10-rt".to_owned()), ..Needs::default() };
    assert_eq!(kernel.unmet(&ground).unwrap(), "needs kernel 5.10-rt (this is 6.1)");
    let wants = |wants: Wants| Needs { wants: vec![wants], ..Needs::default() }.unmet(&ground);
    assert_eq!(wants(Wants { cpus: Some(4), memory_mib: Some(1024), counters: false }), None);
    let lacks = wants(Wants { cpus: Some(8), memory_mib: Some(4096), counters: true }).unwrap();
    let expected =
        "needs 8 CPUs (online are 4); 4096 MiB of memory (there are 1024); performance counters of the core";
    assert_eq!(lacks, expected);
    let isolated = |isolated: bool, line: &str| {
        Needs { isolated: Some(isolated), ..Needs::default() }.unmet(&booted(line))
    };
    assert_eq!(isolated(true, "quiet").unwrap(), "needs isolated CPUs (CPUs 2,3 are not)");
    assert_eq!(isolated(true, "isolcpus=2-3"), None);
    assert_eq!(isolated(false, "isolcpus=3").unwrap(), "needs a machine without isolated CPUs (CPUs 3 are)");
}

#[test]
fn levels_and_the_file_add_up() {
    let text = TEXT.replace("kernels = [\"6.1\"]", "kernels = [\"6.1\"]\nneeds = { cpus = 2 }").replace(
        "{ name = \"boot\", isolated = true }",
        "{ name = \"boot\", boot = \"nohz_full={cpus}\", needs = { memory_mib = 64 } }",
    );
    let experiment = read(&text);
    let plan = Plan::of(&experiment, &["6.1".to_owned()], 1, 1.0).unwrap();
    let boot = plan.cells.iter().find(|one| one.cell.factors["isolation"] == "boot").unwrap();
    let expected = Needs {
        boot: vec![vec!["nohz_full={cpus}".to_owned()]],
        isolated: None,
        kernel: Some("6.1".to_owned()),
        wants: vec![
            Wants { memory_mib: Some(64), ..Wants::default() },
            Wants { cpus: Some(2), ..Wants::default() },
        ],
    };
    assert_eq!(boot.needs, expected);
    assert_eq!(boot.needs.further(&booted("quiet")).unwrap(), "a boot: kernel 6.1, with nohz_full=2,3");
    // An image by its path has the name that it was called by.
    let path = Plan::of(&experiment, &["/boot/vmlinuz-6.1".to_owned()], 1, 1.0).unwrap();
    assert!(path.cells.iter().all(|one| one.needs.kernel.is_none()));
    let wrong = wrong(&TEXT.replace("boot = \"isolcpus=\"", "boot = \"isolcpus={cpu_list}\""));
    assert!(wrong.contains("{cpu_list} in a boot line; expected cpus, cpu or housekeeping"), "{wrong}");
}
