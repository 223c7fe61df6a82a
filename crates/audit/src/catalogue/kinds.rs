//! The closed lists of the catalogue: where a value is read, what isolation wants of it, where the
//! truth is, how it is changed.

use serde::Deserialize;

/// How a value is spelled; CPU sets have two spellings, and many a text is valid in both with
/// different meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueType {
    /// Hex words without `0x`.
    Hexmask,
    /// Numbers and ranges.
    Cpulist,
    /// One word of a fixed choice.
    Word,
    /// On or off, spelled in any way that the kernel takes (`kstrtobool`).
    Switch,
    /// A number.
    Integer,
    /// The affinity of tasks.
    PidAffinity,
    /// A file that must stay open.
    HeldFd,
}

/// Where the value is read: a closed list, one file under `audit/src/probe/` a kind.
///
/// In paths `*` stands for any part of a name, `{cpu}` for each measured CPU, `{debugfs}`,
/// `{tracefs}`, `{cgroup2}` for where these are mounted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A build option.
    Kconfig {
        /// Its name, with `CONFIG_`.
        option: String,
        /// Options that do as well.
        #[serde(default)]
        or: Vec<String>,
        /// A file that exists only where the option is set, for kernels that hide their options.
        evidence: Option<String>,
        /// Whether its absence shows that the option is not set.
        #[serde(default)]
        exact: bool,
    },
    /// A parameter of the kernel command line.
    Cmdline {
        /// Its name.
        parameter: String,
        /// The build option without which the kernel ignores it.
        option: Option<String>,
        /// A file that exists exactly where the option is set, for kernels that do not show their
        /// options, or where the machine has besides what the parameter is about.
        evidence: Option<String>,
    },
    /// Files that hold one word.
    FileWord {
        /// Those that the machine has are read, and all must hold what is wanted; `*` stands for
        /// any part of a name.
        paths: Vec<String>,
    },
    /// Files that hold a choice of words, the one in force in brackets.
    FileBracketedWord {
        /// As for `file-word`.
        paths: Vec<String>,
    },
    /// Files that hold one number.
    FileInteger {
        /// As for `file-word`.
        paths: Vec<String>,
    },
    /// Files that hold a CPU list.
    CpulistFile {
        /// As for `file-word`.
        paths: Vec<String>,
    },
    /// Files that hold a hex mask.
    HexmaskFile {
        /// As for `file-word`.
        paths: Vec<String>,
    },
    /// One flag of a file that lists many, `NAME` or `NO_NAME`.
    Flag {
        /// Those that kernels have it in.
        paths: Vec<String>,
        /// Its name.
        flag: String,
    },
    /// Files that list what is active, one a line.
    Listing {
        /// As for `file-word`.
        paths: Vec<String>,
    },
    /// The shared pool of the kubelet's CPU manager.
    CpuManager {},
    /// The scheduling domains of the measured CPUs.
    SchedDomains {},
    /// Every interrupt that has a handler.
    IrqAffinity {},
    /// Kernel threads by name.
    KthreadAffinity {
        /// Their name; `*` stands for any part.
        name: String,
    },
    /// Threads of user space.
    Tasks {
        /// The process's name; every process without it.
        name: Option<String>,
    },
    /// SMT siblings of the measured CPUs.
    Siblings {},
    /// Idle states that the measured CPUs may enter.
    IdleStates {},
    /// The driver of idle states, against what the command line asks.
    IdleDriver {},
    /// The latency limit that processes hold on `/dev/cpu_dma_latency`.
    HeldLatency {},
    /// Cache and memory-bandwidth partitions.
    Resctrl {},
    /// Memory of the NUMA nodes that groups with the measured CPUs may use.
    CpusetMems {},
    /// Devices on the NUMA nodes of the measured CPUs.
    DeviceNodes {},
    /// systemd units that start by themselves; those enabled are found.
    Units {
        /// Their names; `*` stands for any part.
        units: Vec<String>,
    },
    /// The preemption model in force, whatever shows it.
    Preemption {},
    /// Nothing shows it and nothing switches it: what an application or an operator must keep to.
    Practice {
        /// What to keep to, as a sentence.
        advice: String,
    },
    /// `/proc/swaps`.
    Swaps {},
    /// A daemon.
    Daemon {
        /// Its systemd unit.
        unit: String,
        /// Its process name.
        process: String,
        /// The environment variable that names, as a CPU list, the CPUs to leave alone.
        spare_list: Option<String>,
        /// The same as a hex mask.
        spare_hex: Option<String>,
        /// Others that do the same.
        #[serde(default)]
        others: Vec<Daemon>,
    },
    /// The cpufreq governor of each measured CPU.
    Governor {},
    /// Active-state power management of each PCI Express link.
    Aspm {},
    /// Isolated cpuset partitions.
    CpusetPartition {},
}

/// A daemon by its names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    /// Its systemd unit.
    pub unit: String,
    /// Its process name, of which the kernel keeps 15 bytes.
    pub process: String,
}

/// Where the truth is read, for mechanisms whose setting and effect differ.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effective {
    /// The CPUs outside the scheduler's domains, as the kernel reports them.
    IsolatedCpus {},
    /// The CPUs with full dynticks, as the kernel reports them.
    NohzFullCpus {},
    /// The CPUs whose RCU callbacks have threads.
    RcuOffload {},
    /// A file that holds a hex mask.
    HexmaskFile {
        /// Its path.
        path: String,
    },
    /// The fair server's runtime on the measured CPUs.
    FairServer {},
    /// A file that holds a word or a number, judged in place of the parameter.
    File {
        /// Its path; a choice in brackets is read as the word in force.
        path: String,
        /// What it holds where the parameter is in force.
        value: String,
    },
    /// Whether threads of offloaded callbacks poll: the parameter is given, and there are threads.
    RcuPoll {},
    /// Whether the clocks' watchdog has a time-stamp counter to watch.
    TscWatched {},
    /// A hex mask within which the probe's own masks are in force.
    Within {
        /// Its path.
        path: String,
    },
}

/// What isolation wants.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Want {
    /// This value.
    Literal {
        /// As the file spells it.
        value: String,
    },
    /// A set that has every isolated CPU.
    Covers {},
    /// A set that has no isolated CPU: the housekeeping CPUs.
    Avoids {},
    /// One of these values.
    OneOf {
        /// As the file spells them.
        values: Vec<String>,
    },
    /// A number no smaller than this.
    AtLeast {
        /// The number.
        value: i64,
        /// Smaller ones that mean "never".
        #[serde(default)]
        or: Vec<i64>,
    },
    /// A number no larger than this.
    AtMost {
        /// The number.
        value: i64,
    },
    /// Not given, or given as anything but these values.
    NotOneOf {
        /// As on the command line.
        values: Vec<String>,
    },
    /// Not set: no such option in the kernel's build, no such parameter on its command line.
    Unset {},
    /// None of them: no swap, no such daemon.
    None {},
    /// Nothing: every value will do.
    Any {
        /// Why, as a sentence.
        note: String,
    },
    /// One of several; the field does not agree on which.
    Contested {
        /// The values argued for.
        values: Vec<String>,
        /// What speaks for each, as a sentence.
        note: String,
    },
}

/// One way to reach the wanted state; the first that the machine allows is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Build the kernel with an option.
    Option {
        /// As in `.config`.
        value: String,
    },
    /// Boot with a parameter.
    Parameter {
        /// As on the command line, with CPU sets by name.
        value: String,
    },
    /// Write a file now.
    Write {
        /// Which; without it the probe's files that hold another value.
        path: Option<String>,
        /// What, with CPU sets by name.
        value: String,
        /// What the write does not do, where it does less than the mechanism at its best: a clause.
        caveat: Option<String>,
    },
    /// Move the kernel threads or tasks of the probe to the housekeeping CPUs now.
    Affinity {},
    /// Keep a file open with a value in it now.
    Hold {
        /// Which.
        path: String,
        /// What.
        value: String,
    },
    /// Close the idle states that are too deep now.
    Idle {},
    /// Stop and disable the units of the probe now.
    Disable {},
    /// What no program can do for the user.
    Advice {
        /// What to do: a clause that can follow "to do by hand:".
        what: String,
        /// Whether it needs another boot.
        #[serde(default)]
        boot: bool,
    },
    /// Move interrupts to the housekeeping CPUs now.
    Irqs {},
    /// Stop the daemon of the probe now.
    Stop {},
    /// Give all swap back now.
    Swapoff {},
    /// Switch the flag of the probe now.
    Flag {
        /// `on` or `off`.
        value: String,
    },
    /// Set the governor of the measured CPUs now.
    Governor {
        /// Which.
        value: String,
    },
    /// Make an isolated partition of the measured CPUs now.
    Partition {},
}

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At once.
    Now,
    /// At the next boot.
    Boot,
    /// With another kernel.
    Build,
}

impl Change {
    /// When it takes effect.
    pub fn when(&self) -> When {
        match self {
            Self::Option { .. } => When::Build,
            Self::Parameter { .. } | Self::Advice { boot: true, .. } => When::Boot,
            _ => When::Now,
        }
    }

    /// What it does not do.
    pub fn caveat(&self) -> Option<&str> {
        match self {
            Self::Write { caveat, .. } => caveat.as_deref(),
            _ => None,
        }
    }
}
