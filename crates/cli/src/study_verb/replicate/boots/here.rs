//! This boot, and the kernels of this machine that can be booted instead.

use anyhow::Context;
use boot::{Installed, Kernel};
use journal::enter;
use machine::Root;
use model::{Cpus, Error, Machine};
use study::boots::{BootOf, Chain, Home, Stage};
use study::experiment::{kernel_name, kernel_named};

/// A kernel that panics boots again after so many seconds, and then as the machine does by itself.
const PANIC: &str = "panic=10";

/// This boot of this machine.
pub(super) struct Here {
    pub(super) boot_id: String,
    pub(super) root: Root,
    /// CPUs to measure.
    pub(super) cpus: String,
    machine: Machine,
    line: String,
    installed: Vec<Installed>,
}

impl Here {
    /// Reads it; the CPUs are those that the user named, else the isolated ones, else the highest.
    pub(super) fn read(cpus: Option<&Cpus>) -> anyhow::Result<Self> {
        let root = Root::live();
        let machine = machine::read(&root)?;
        let default = || -> anyhow::Result<Cpus> {
            let reachable = enter::reachable(&machine.topology.online).context("asking for CPUs")?;
            Ok(machine::cpus_default(&machine, &reachable)?)
        };
        let cpus = cpus.cloned().map_or_else(default, Ok)?;
        Ok(Self {
            boot_id: journal::boot_id()?,
            cpus: cpus.to_string(),
            line: machine.cmdline.trim().to_owned(),
            installed: boot::installed(&root),
            machine,
            root,
        })
    }

    /// The kernels to boot, by the lab's names: all of them, or those that were asked for. Error:
    /// one that no entry of the boot loader starts.
    pub(super) fn kernels(&self, asked: &[String]) -> anyhow::Result<Vec<String>> {
        let mut all: Vec<String> = self.installed.iter().map(|one| self.name(one)).collect();
        all.push(kernel_name(&self.machine));
        all.sort();
        all.dedup();
        if let Some(missing) = asked.iter().find(|one| !all.contains(one)) {
            let expected = format!("kernels that the boot loader starts: {}", all.join(", "));
            return Err(Error::invalid("--kernels", missing, expected).into());
        }
        Ok(if asked.is_empty() { all } else { asked.to_vec() })
    }

    pub(super) fn housekeeping(&self, cpus: &str) -> anyhow::Result<String> {
        let cpus: Cpus = cpus.parse()?;
        let others = machine::housekeeping(&self.machine, &cpus);
        Ok(others.unwrap_or_else(|_| self.machine.topology.online.clone()).to_string())
    }

    /// As the machine's own boot.
    pub(super) fn home(&self) -> Home {
        Home { release: self.machine.kernel.release.clone(), line: self.line.clone() }
    }

    /// Whether it is that one.
    pub(super) fn is(&self, home: &Home) -> bool {
        home.release == self.machine.kernel.release && boot::same_line(&home.line, &self.line)
    }

    /// Why it is not the boot of a stage; nothing where it is.
    pub(super) fn differs(&self, stage: &Stage) -> Option<String> {
        stage.boot.kernel.as_ref()?;
        let release = &self.machine.kernel.release;
        if *release != stage.release {
            return Some(format!("kernel {release} runs, not {}", stage.release));
        }
        (!boot::same_line(&stage.line, &self.line))
            .then(|| format!("the kernel was given {:?}, not {:?}", self.line, stage.line))
    }

    /// How many boots that are waiting are others than this one.
    pub(super) fn further(&self, chain: &Chain) -> usize {
        chain.waiting().filter(|&at| self.differs(&chain.stages[at]).is_some()).count()
    }

    /// The stages for these boots; one whose kernel is not there is given up from the beginning.
    pub(super) fn stages(&self, boots: Vec<BootOf>) -> Vec<Stage> {
        boots.into_iter().map(|boot| self.stage(boot)).collect()
    }

    fn stage(&self, boot: BootOf) -> Stage {
        let mut stage = Stage {
            release: String::new(),
            line: String::new(),
            failures: 0,
            done: false,
            given_up: None,
            boot,
        };
        let plain = stage.boot.with.is_empty() && stage.boot.without.is_empty();
        match (&stage.boot.kernel, self.entry(&stage.boot)) {
            (None, _) => {}
            // What runs needs no entry.
            (Some(kernel), None) if plain && *kernel == kernel_name(&self.machine) => {
                stage.release.clone_from(&self.machine.kernel.release);
                stage.line.clone_from(&self.line);
            }
            (Some(_), Some(entry)) => {
                stage.release.clone_from(&entry.release);
                stage.line = self.line_of(&stage.boot, entry).line;
            }
            (Some(kernel), None) => {
                stage.given_up = Some(format!("no entry of the boot loader starts a kernel {kernel}"));
            }
        }
        stage
    }

    /// The first entry in the loader's order that starts the kernel of a boot.
    pub(super) fn entry(&self, boot: &BootOf) -> Option<&Installed> {
        let kernel = boot.kernel.as_ref()?;
        self.installed.iter().find(|one| self.name(one) == *kernel)
    }

    /// The line of a boot. Words that the machine's own boots have stay, where the boot does not
    /// say otherwise.
    pub(super) fn line_of(&self, boot: &BootOf, entry: &Installed) -> model::boot::BootLine {
        let mut with = boot.with.clone();
        let has_panic = entry.line.split_whitespace().any(|word| word.starts_with("panic="));
        if !has_panic {
            with.push(PANIC.to_owned());
        }
        let arch = self.machine.kernel.arch.clone();
        let kernel = Kernel { release: entry.release.clone(), arch, ..Kernel::default() };
        boot::line_with(&kernel, entry, &with, &boot.without)
    }

    /// The lab's name of an installed kernel.
    fn name(&self, one: &Installed) -> String {
        let config = machine::build_options(&self.root, &one.release);
        let realtime = config.map_or_else(
            || one.release.split('-').any(|part| part == "rt"),
            |options| options.get("CONFIG_PREEMPT_RT").is_some_and(|value| value == "y"),
        );
        kernel_named(&one.release, realtime)
    }
}
