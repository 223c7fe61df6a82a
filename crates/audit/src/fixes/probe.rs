//! What shows on a machine whether its kernel has a fix: what came with it, or what it does.
//!
//! Names are looked up in the kernel's type information (`/sys/kernel/btf/vmlinux`, Linux
//! Documentation/bpf/btf.rst), which lists those of functions, types and enumerators between zero
//! bytes and is read in a millisecond. A kernel without it, or whose build leaves out the part that
//! a fix is in, shows nothing: each name has one `beside` it that was there before.

use machine::btf::{BTF, has_name};
use machine::{
    CallQuestion, CodeQuestions, KernelCode, Root, Selection, isolated_at_boot, kernel_code, placed,
    processes,
};
use model::{Cpus, Machine};
use serde::Deserialize;
use std::cell::OnceCell;

/// What shows whether a kernel has a fix.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Probe {
    /// A file that came with it.
    FileExists {
        /// Its path; `{debugfs}` stands for where debugfs is mounted.
        path: String,
    },
    /// A name in the kernel's type information that came with it.
    Name {
        /// That name, and those that later kernels gave the same thing.
        names: Vec<String>,
        /// A name of the same part of the kernel that was there before: one that lacks it as well
        /// shows nothing. None for a static function, which a compiler may inline: then its absence
        /// shows nothing.
        beside: Option<String>,
    },
    /// A name that went with it.
    NameGone {
        /// That name.
        name: String,
        /// As for `name`, and it is there after.
        beside: String,
        /// Whether a kernel that has the name still may have the fix.
        #[serde(default)]
        one_sided: bool,
    },
    /// A function or a variable in the kernel's list of symbols that came with it.
    Symbol {
        /// Its name.
        name: String,
        /// As for `name`: one of the same kind.
        beside: Option<String>,
    },
    /// A function or a variable that went with it.
    SymbolGone {
        /// Its name.
        name: String,
        /// As for `name-gone`.
        beside: String,
    },
    /// A call that came with it, in the code of the running kernel.
    Calls {
        /// Functions, one of which makes it.
        functions: Vec<String>,
        /// Functions, one of which is called.
        callees: Vec<String>,
    },
    /// A call that went with it.
    CallsNot {
        /// As for `calls`.
        functions: Vec<String>,
        /// As for `calls`.
        callees: Vec<String>,
    },
    /// A kernel thread that leaves CPUs isolated at boot alone.
    KthreadAvoids {
        /// Its name.
        thread: String,
    },
    /// Files with CPU lists that leave out CPUs isolated at boot.
    ListsAvoid {
        /// Their path, with `*` for any part of a name.
        path: String,
    },
}

impl Probe {
    /// Adds what a capture must take of it.
    pub(super) fn select(&self, wanted: &mut Selection) {
        match self {
            Self::FileExists { path } => wanted.names.push(path.clone()),
            Self::Name { names, beside } => {
                wanted.functions.extend(names.iter().chain(beside).cloned());
            }
            Self::NameGone { name, beside, .. } => {
                wanted.functions.extend([name, beside].map(String::clone));
            }
            Self::Symbol { .. } | Self::SymbolGone { .. } | Self::Calls { .. } | Self::CallsNot { .. } => {
                self.ask(&mut wanted.code);
            }
            Self::KthreadAvoids { .. } => {}
            Self::ListsAvoid { path } => wanted.files.push(path.clone()),
        }
    }

    /// Adds what it asks of the kernel's code.
    fn ask(&self, asked: &mut CodeQuestions) {
        match self {
            Self::Symbol { name, beside } => {
                asked.symbols.extend([name].into_iter().chain(beside).cloned());
            }
            Self::SymbolGone { name, beside } => {
                asked.symbols.extend([name, beside].map(String::clone));
            }
            Self::Calls { functions, callees } | Self::CallsNot { functions, callees } => {
                asked.calls.push(question(functions, callees));
            }
            _ => {}
        }
    }
}

fn question(functions: &[String], callees: &[String]) -> CallQuestion {
    CallQuestion { callers: functions.to_vec(), callees: callees.to_vec() }
}

/// Whether the fix is there, as far as one probe shows it.
enum Shown {
    Present(String),
    Absent(String),
    Nothing,
}

impl Shown {
    fn of(present: bool, seen: String) -> Self {
        if present { Self::Present(seen) } else { Self::Absent(seen) }
    }
}

/// What the probes look at.
pub(super) struct Scene<'a> {
    pub(super) root: &'a Root,
    pub(super) machine: &'a Machine,
    asked: CodeQuestions,
    /// The type information; empty where the kernel has none.
    btf: OnceCell<Vec<u8>>,
    code: OnceCell<KernelCode>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(root: &'a Root, machine: &'a Machine, probes: impl Iterator<Item = &'a Probe>) -> Self {
        let mut asked = CodeQuestions::default();
        probes.for_each(|probe| probe.ask(&mut asked));
        Self { root, machine, asked, btf: OnceCell::new(), code: OnceCell::new() }
    }

    /// Whether the fix is there, and what shows it; `None` where nothing on this machine does.
    pub(super) fn probed(&self, probes: &[Probe]) -> Option<(bool, String)> {
        let mut absent = None;
        for probe in probes {
            match self.one(probe) {
                Shown::Present(seen) => return Some((true, seen)),
                Shown::Absent(seen) => absent = absent.or(Some((false, seen))),
                Shown::Nothing => {}
            }
        }
        absent
    }

    fn one(&self, probe: &Probe) -> Shown {
        match probe {
            Probe::FileExists { path } => self.file(path),
            Probe::Name { names, beside } => match names.iter().find(|name| self.lists(name)) {
                Some(name) => Shown::Present(format!("the kernel has {name}")),
                None if beside.as_ref().is_some_and(|beside| self.lists(beside)) => {
                    Shown::Absent(format!("the kernel lacks {}", names.join(" and ")))
                }
                None => Shown::Nothing,
            },
            Probe::NameGone { name, beside, one_sided } => {
                match gone(name, self.lists(name), self.lists(beside)) {
                    Shown::Absent(_) if *one_sided => Shown::Nothing,
                    shown => shown,
                }
            }
            Probe::Symbol { name, .. } if self.has_symbol(name) => {
                Shown::Present(format!("the kernel has {name}"))
            }
            Probe::Symbol { name, beside } => match beside {
                Some(beside) if self.has_symbol(beside) => Shown::Absent(format!("the kernel lacks {name}")),
                _ => Shown::Nothing,
            },
            Probe::SymbolGone { name, beside } => gone(name, self.has_symbol(name), self.has_symbol(beside)),
            Probe::Calls { functions, callees } => self.call(&question(functions, callees), true),
            Probe::CallsNot { functions, callees } => self.call(&question(functions, callees), false),
            Probe::KthreadAvoids { thread } => self.thread(thread),
            Probe::ListsAvoid { path } => self.lists_of_cpus(path),
        }
    }

    /// Whether the type information lists a name.
    fn lists(&self, name: &str) -> bool {
        let btf = self.btf.get_or_init(|| self.root.bytes(BTF).ok().flatten().unwrap_or_default());
        has_name(btf, name)
    }

    fn code(&self) -> &KernelCode {
        self.code.get_or_init(|| kernel_code(self.root, &self.asked))
    }

    fn has_symbol(&self, name: &str) -> bool {
        self.code().symbols.contains(name)
    }

    fn call(&self, question: &CallQuestion, wanted: bool) -> Shown {
        let Some(calls) = self.code().calls.get(question) else { return Shown::Nothing };
        let verb = if *calls { "calls" } else { "does not call" };
        let seen = format!("{} {verb} {}", question.callers[0], question.callees.join(" or "));
        Shown::of(*calls == wanted, seen)
    }

    /// CPUs that kernel threads leave alone are those of `nohz_full=` from 5.9 on, of `isolcpus=`
    /// from 7.0 on: CPUs in both prove the one or the other.
    fn thread(&self, thread: &str) -> Shown {
        let proving = isolated_at_boot(self.root).and(&self.machine.topology.nohz_full);
        let kernel = processes(self.root).kernel;
        let Some(found) = kernel.iter().find(|one| one.name == thread).filter(|_| !proving.is_empty()) else {
            return Shown::Nothing;
        };
        let hit: Cpus = found.allowed.and(&proving);
        Shown::of(hit.is_empty(), format!("{thread} may run on {}", found.allowed))
    }

    /// Together the lists of one kind have every CPU that is online, but for those left out.
    fn lists_of_cpus(&self, path: &str) -> Shown {
        let isolated = isolated_at_boot(self.root).and(&self.machine.topology.online);
        let lists = self.root.glob(path).into_iter().filter_map(|file| self.root.cpus(&file));
        let listed = lists.fold(Cpus::default(), |all, list| all.or(&list));
        if isolated.is_empty() || listed.is_empty() {
            return Shown::Nothing;
        }
        let hit = listed.and(&isolated);
        Shown::of(hit.is_empty(), format!("/{path} list CPUs {listed}, with {isolated} isolated at boot"))
    }

    /// A file whose directory is not there either shows nothing.
    fn file(&self, path: &str) -> Shown {
        let Some(placed) = placed(self.root, path) else { return Shown::Nothing };
        let folder = placed.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default();
        let shown = format!("/{}", placed.trim_start_matches('/'));
        if self.root.has(&placed) {
            return Shown::Present(format!("{shown} is there"));
        }
        // Without the right to enter a directory its files look absent.
        if self.root.names(&folder).is_empty() {
            return Shown::Nothing;
        }
        Shown::Absent(format!("{shown} is not there"))
    }
}

/// What shows a fix that took a name away.
fn gone(name: &str, has: bool, beside: bool) -> Shown {
    match (has, beside) {
        (true, _) => Shown::Absent(format!("the kernel has {name} still")),
        (false, true) => Shown::Present(format!("the kernel has {name} no more")),
        (false, false) => Shown::Nothing,
    }
}
