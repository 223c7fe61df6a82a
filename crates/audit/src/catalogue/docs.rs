//! The catalogue as a page to read: `docs/mechanisms.md`, with Table III of the RTSS 2024 paper row
//! by row.

use super::kinds::{Change, Effective, Probe, Want};
use super::{Catalogue, Layer, Mechanism, shown};
use std::fmt::Write;

const HEAD: &str = "# Isolation mechanisms

The cheat-sheet: every way in which Linux keeps a core still that the catalogue knows (`catalogue/mechanisms/`, one file each), what
isolation wants of it, how it is read, how it is changed, what it costs. `stillcore audit` judges a machine by it, `stillcore isolate`
changes one, `stillcore explain ID` prints one entry. *Shown* says what shows a mechanism at work, beyond its being set; where nothing
does, the audit never says `ok` but \"asked; cannot be proven here\". `{isolated}` and `{housekeeping}` stand for CPU lists, with `:hex` for hex masks
without `0x`: the two are never interchangeable.

A test writes this page: `SNAPSHOTS=overwrite cargo test -p stillcore-audit --test it page`.
";

const TABLE: &str = "
## Table III of the RTSS 2024 paper, row by row

What the paper's list of existing mechanisms advises, and whether it holds.

| Row | Mechanism | The table advises | Verdict |
| --- | --- | --- | --- |
";

const LAYERS: [(Layer, &str); 9] = [
    (Layer::Build, "Kernel build"),
    (Layer::Boot, "Kernel command line"),
    (Layer::Firmware, "Firmware"),
    (Layer::Sysfs, "Files under /sys"),
    (Layer::Procfs, "Files under /proc"),
    (Layer::Irq, "Interrupts"),
    (Layer::Cgroup, "Control groups"),
    (Layer::Process, "Tasks and kernel threads"),
    (Layer::Service, "Services"),
];

/// Renders the page.
pub fn mechanisms_page(catalogue: &Catalogue) -> String {
    let mut page = format!("{HEAD}\n{}.\n{TABLE}", catalogue.count());
    let mut rows: Vec<_> =
        catalogue.mechanisms.iter().filter_map(|m| Some((m.table3.as_ref()?, &m.id))).collect();
    rows.sort_by_key(|(row, _)| row.row);
    for (row, id) in rows {
        let _ = writeln!(
            page,
            "| {} | [{id}](#{id}) | {} | {} |",
            row.row,
            cell(&row.advice),
            cell(&row.verdict)
        );
    }
    for (layer, title) in LAYERS {
        let mut of_layer =
            catalogue.mechanisms.iter().filter(|mechanism| mechanism.layer == layer).peekable();
        if of_layer.peek().is_some() {
            let _ = write!(page, "\n## {title}\n");
        }
        of_layer.for_each(|mechanism| section(&mut page, mechanism));
    }
    page
}

/// One mechanism, as the page has it.
pub fn mechanism_section(mechanism: &Mechanism) -> String {
    let mut text = String::new();
    section(&mut text, mechanism);
    text.trim_start().trim_start_matches("### ").to_owned()
}

fn section(page: &mut String, mechanism: &Mechanism) {
    let paragraph = mechanism.why.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = write!(page, "\n### {}\n\n**{}.** {paragraph}\n\n", mechanism.id, mechanism.title);
    let removes: Vec<_> = mechanism.removes.iter().map(|class| format!("`{class}`")).collect();
    let since = mechanism.since.as_ref().map(|since| format!("kernel {since}"));
    let disturbs: Vec<_> = mechanism.disturbs.iter().map(|path| code(&format!("/{path}"))).collect();
    let changes: Vec<_> = mechanism.change.iter().map(change).collect();
    let lines = [
        ("Read", Some(read(mechanism))),
        ("Shown", Some(shown::line(mechanism))),
        ("Wanted", Some(want(&mechanism.want))),
        ("Without it", Some(mechanism.harm.clone()).filter(|_| !changes.is_empty())),
        ("Change", Some(changes.join("; else ")).filter(|text| !text.is_empty())),
        ("Removes", Some(removes.join(", ")).filter(|text| !text.is_empty())),
        ("Cost", Some(mechanism.cost.clone())),
        ("Kernel computes anew", Some(disturbs.join(", ")).filter(|text| !text.is_empty())),
        ("In a plan", mechanism.optional.then(|| "only when asked for".to_owned())),
        ("Since", since),
        ("Needs", Some(mechanism.requires.join(", ")).filter(|text| !text.is_empty())),
        ("Clashes with", Some(mechanism.conflicts.join(", ")).filter(|text| !text.is_empty())),
        ("Sources", Some(mechanism.sources.join("; "))),
    ];
    for (name, text) in lines.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
        let _ = writeln!(page, "- {name}: {text}");
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn read(mechanism: &Mechanism) -> String {
    let asked = match &mechanism.probe {
        Probe::Kconfig { option, .. } => format!("{} in the kernel's build options", code(option)),
        Probe::Cmdline { parameter, .. } => {
            format!("{} on the kernel command line", code(&format!("{parameter}=")))
        }
        Probe::FileWord { paths }
        | Probe::FileBracketedWord { paths }
        | Probe::FileInteger { paths }
        | Probe::CpulistFile { paths }
        | Probe::HexmaskFile { paths } => files(paths),
        Probe::IrqAffinity {} => "`/proc/irq/*/smp_affinity_list` and `effective_affinity_list`".to_owned(),
        Probe::Flag { paths, flag } => format!("{} in {}", code(flag), files(paths)),
        Probe::Listing { paths } => format!("what {} lists", files(paths)),
        Probe::SchedDomains {} => "`/proc/schedstat`".to_owned(),
        Probe::CpuManager {} => "`/var/lib/kubelet/cpu_manager_state`".to_owned(),
        Probe::KthreadAffinity { name } => format!("affinity of the kernel threads named {}", code(name)),
        Probe::Swaps {} => "`/proc/swaps`".to_owned(),
        Probe::Daemon { process, others, spare_list, spare_hex, .. } => {
            let all: Vec<_> = others.iter().map(|other| code(&other.process)).collect();
            let others = if all.is_empty() { String::new() } else { format!(" or {}", all.join(", ")) };
            let reads_environment = spare_list.is_some() || spare_hex.is_some();
            format!(
                "whether {}{others} runs{}",
                code(process),
                if reads_environment { ", and its environment" } else { "" }
            )
        }
        Probe::Governor {} => "`/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`".to_owned(),
        Probe::Aspm {} => "the Link Control register of every PCI Express device".to_owned(),
        Probe::CpusetPartition {} => "`cpuset.cpus.partition` of the control groups".to_owned(),
        Probe::Tasks { name: None } => "affinity and last CPU of every user thread".to_owned(),
        Probe::Tasks { name: Some(name) } => format!("affinity of the threads of {}", code(name)),
        Probe::Siblings {} => "`thread_siblings_list` of the CPUs".to_owned(),
        Probe::IdleStates {} => "`latency` and `disable` of each CPU's idle states".to_owned(),
        Probe::IdleDriver {} => "`cpuidle/current_driver`, against the command line".to_owned(),
        Probe::HeldLatency {} => "`/dev/cpu_dma_latency`".to_owned(),
        Probe::Resctrl {} => "the groups of `/sys/fs/resctrl`".to_owned(),
        Probe::CpusetMems {} => "the nodes of the CPUs and `cpuset.mems` of the groups".to_owned(),
        Probe::DeviceNodes {} => "`numa_node` of network and block devices".to_owned(),
        Probe::Units { units } => {
            let units: Vec<_> = units.iter().map(|unit| code(unit)).collect();
            format!("whether {} are enabled", units.join(", "))
        }
        Probe::Preemption {} => {
            "`sched/preempt` in debugfs, else the command line and the build options".to_owned()
        }
        Probe::Practice { .. } => "nothing shows it but a trace".to_owned(),
    };
    match &mechanism.effective {
        Some(effective) => format!("{asked}; in force: {}", in_force(effective)),
        None => asked,
    }
}

fn files(paths: &[String]) -> String {
    paths.iter().map(|path| code(&format!("/{path}"))).collect::<Vec<_>>().join(", ")
}

fn in_force(effective: &Effective) -> String {
    match effective {
        Effective::IsolatedCpus {} => {
            "`/sys/devices/system/cpu/isolated` and `cpuset.cpus.isolated`".to_owned()
        }
        Effective::NohzFullCpus {} => "`/sys/devices/system/cpu/nohz_full`".to_owned(),
        Effective::RcuOffload {} => "the boot log, else `rcu_nocbs=` and `nohz_full=` as the kernel reads them, where there are threads `rcuop/N`".to_owned(),
        Effective::HexmaskFile { path } => code(&format!("/{path}")),
        Effective::File { path, value } => format!("{} is {}", code(&format!("/{path}")), code(value)),
        Effective::Within { path } => format!("what of it is in {}", code(&format!("/{path}"))),
        Effective::TscWatched {} => "not known where the counter is not offered as a clock".to_owned(),
        Effective::RcuPoll {} => "where callbacks of the CPUs are offloaded".to_owned(),
        Effective::FairServer {} => "`fair_server/cpu*/runtime` in debugfs as well".to_owned(),
    }
}

fn want(want: &Want) -> String {
    match want {
        Want::Literal { value } if value.is_empty() => "given".to_owned(),
        Want::Literal { value } => code(value),
        Want::NotOneOf { values } => {
            format!(
                "anything but {}",
                values.iter().map(|value| code(value)).collect::<Vec<_>>().join(" or ")
            )
        }
        Want::Covers {} => "every isolated CPU".to_owned(),
        Want::Avoids {} => "no isolated CPU".to_owned(),
        Want::OneOf { values } if values.iter().any(String::is_empty) => "given".to_owned(),
        Want::OneOf { values } => values.iter().map(|value| code(value)).collect::<Vec<_>>().join(" or "),
        Want::AtLeast { value, or } if or.is_empty() => format!("{value} or more"),
        Want::AtLeast { value, or } => {
            let or: Vec<_> = or.iter().map(i64::to_string).collect();
            format!("{value} or more, or {}", or.join(" or "))
        }
        Want::AtMost { value } => format!("{value} or less"),
        Want::Unset {} => "not set".to_owned(),
        Want::None {} => "none".to_owned(),
        Want::Any { note } => note.clone(),
        Want::Contested { values, note } => format!("{} ({note})", values.join(" or ")),
    }
}

fn change(change: &Change) -> String {
    match change {
        Change::Option { value } => format!("build with {}", code(value)),
        Change::Parameter { value } => format!("boot with {}", code(value)),
        Change::Write { path, value, caveat } => {
            let place = path.as_ref().map(|path| format!(" to {}", code(&format!("/{path}"))));
            let less = caveat.as_ref().map(|caveat| format!(" ({caveat})"));
            format!("write {}{}{}", code(value), place.unwrap_or_default(), less.unwrap_or_default())
        }
        Change::Affinity {} => "move the threads (sched_setaffinity)".to_owned(),
        Change::Irqs {} => "write `{housekeeping}` to the `smp_affinity_list` of each".to_owned(),
        Change::Hold { path, value } => {
            format!("keep {} open with {}", code(&format!("/{path}")), code(value))
        }
        Change::Idle {} => "write `1` to the `disable` of each state that is too deep".to_owned(),
        Change::Disable {} => "`systemctl disable --now` them".to_owned(),
        Change::Advice { what, .. } => what.clone(),
        Change::Stop {} => "stop and disable it".to_owned(),
        Change::Swapoff {} => "`swapoff -a`".to_owned(),
        Change::Flag { value } => format!("switch it {value} there"),
        Change::Governor { value } => format!("write {} to each `scaling_governor`", code(value)),
        Change::Partition {} => "make a group with `{isolated}` and the word `isolated`".to_owned(),
    }
}
