//! One CPU of one machine, and what several readers need of it, read at most once.

use super::table::{self, Row};
use crate::resources::irq_here::{self, IrqHere};
use crate::resources::refusal::Refusal;
use crate::{Mount, Processes, Root, UserThread, mounts, processes, user_threads};
use model::Cpus;
use model::resource::{Kind, Resource};
use std::cell::OnceCell;

/// The CPU that is asked about, on its machine.
pub(super) struct Scene<'a> {
    pub(super) root: &'a Root,
    pub(super) cpu: u32,
    processes: OnceCell<Processes>,
    threads: OnceCell<Vec<UserThread>>,
    interrupts: OnceCell<Result<Vec<Row>, Refusal>>,
    irqs: OnceCell<Vec<IrqHere>>,
    mounts: OnceCell<Vec<Mount>>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(root: &'a Root, cpu: u32) -> Self {
        Self {
            root,
            cpu,
            processes: OnceCell::new(),
            threads: OnceCell::new(),
            interrupts: OnceCell::new(),
            irqs: OnceCell::new(),
            mounts: OnceCell::new(),
        }
    }

    /// The CPU's directory in sysfs.
    pub(super) fn own(&self, file: &str) -> String {
        format!("sys/devices/system/cpu/cpu{}/{file}", self.cpu)
    }

    /// Whether the CPU is in the set, where the set is known.
    pub(super) fn within(&self, cpus: Option<&Cpus>) -> Option<bool> {
        cpus.map(|cpus| cpus.contains(self.cpu))
    }

    /// A file's text, `None` where the machine has no such file; otherwise why it cannot be read.
    pub(super) fn look(&self, file: &str) -> Result<Option<String>, Refusal> {
        self.root.text(file).map_err(|error| Refusal::of(self.root, error))
    }

    /// A file that holds CPU numbers with blanks between them, commas or not, as cpufreq and block
    /// queues write them.
    pub(super) fn spaced(&self, file: &str) -> Option<Cpus> {
        let text = self.root.maybe(file)?;
        let words: Vec<_> = text.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        Cpus::parse_list(&words.join(",")).ok()
    }

    /// Whether all processes are to be seen: a PID namespace and `hidepid=` leave out kernel
    /// threads, which are everywhere.
    pub(super) fn sees_all(&self) -> bool {
        !self.processes().kernel.is_empty()
    }

    pub(super) fn processes(&self) -> &Processes {
        self.processes.get_or_init(|| processes(self.root))
    }

    pub(super) fn threads(&self) -> &[UserThread] {
        self.threads.get_or_init(|| user_threads(self.root, &self.processes().user))
    }

    /// The rows of `/proc/interrupts`, or why there are none.
    pub(super) fn interrupts(&self) -> Result<&[Row], &Refusal> {
        let read = || table::read(self.root, self.cpu, "proc/interrupts");
        self.interrupts.get_or_init(read).as_deref()
    }

    /// The numbered interrupts.
    pub(super) fn irqs(&self) -> &[IrqHere] {
        self.irqs.get_or_init(|| irq_here::read(self.root, self.interrupts().ok()))
    }

    pub(super) fn mounts(&self) -> &[Mount] {
        self.mounts.get_or_init(|| mounts(self.root))
    }

    /// The value of `KEY=value` in a device's `uevent`.
    pub(super) fn uevent(&self, device: &str, key: &str) -> Option<String> {
        let text = self.root.maybe(&format!("{device}/uevent"))?;
        text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned()))
    }
}

/// A row of which only its name is known, and why no more is.
pub(super) fn unknown(kind: Kind, name: impl Into<String>, why: impl ToString) -> Resource {
    Resource { reason: Some(why.to_string()), ..Resource::new(kind, name) }
}

/// Names, at most eight of them, the rest as a number.
pub(super) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use model::Error;
    use std::io;
    use std::path::Path;

    /// A kernel thread, as every machine has where all processes are to be seen.
    pub(in super::super) const KTHREADD: [(&str, &str); 2] = [
        ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0"),
        ("proc/2/status", "Cpus_allowed_list:\t0-3"),
    ];

    #[test]
    fn rights_and_lockdown_are_distinguished() {
        let refused = |code: i32| {
            let error = Error::io("read", Path::new("/d/x"), io::Error::from_raw_os_error(code));
            Refusal::of(&Root::live(), error).to_string()
        };
        assert_eq!(refused(13), "only root may read /d/x");
        assert_eq!(refused(1), "the kernel lets nobody read /d/x, as under lockdown");
        assert!(refused(5).starts_with("cannot read /d/x: "), "{}", refused(5));
    }

    #[test]
    fn lists_with_blanks_between() {
        let (_dir, root) = crate::tree::tree(&[("a", "0, 1, 3"), ("b", "0 1 2"), ("c", "0x3"), ("d", "")]);
        let scene = Scene::new(&root, 0);
        assert_eq!(scene.spaced("a").unwrap().to_string(), "0,1,3");
        assert_eq!(scene.spaced("b").unwrap().to_string(), "0-2");
        assert_eq!((scene.spaced("c"), scene.spaced("none")), (None, None));
        assert_eq!(scene.spaced("d"), Some(Cpus::default()));
    }

    #[test]
    fn long_lists_are_cut_and_say_so() {
        let names: Vec<_> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(some_of(&names), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
        assert_eq!(some_of(&names[..8]), "0, 1, 2, 3, 4, 5, 6, 7");
    }
}
