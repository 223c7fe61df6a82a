//! Commands of guides typed in guests: whether each does what it is said to do, by counts before
//! and after.
//!
//! `guides/rows.toml` has the commands, `guides.sh` types them, `guides/counts.sh` counts. A row
//! whose effect cannot be shown in a guest says so and why.

mod judge;

use crate::machine::{Case, Guest};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

/// The plain machine has nothing of the guides' boot line.
pub(crate) const LINE: &str = "isolcpus=2,3 nohz_full=2,3 rcu_nocbs=2,3 irqaffinity=0-1 pcie_aspm=off";

/// An additional parameter of the replication.
pub(crate) const KTHREAD: &str = "isolcpus= nohz_full= rcu_nocbs= irqaffinity= kthread_cpus=0-1";

/// Packages of the typed commands.
const PACKAGES: [&str; 12] = [
    "bash",
    "coreutils",
    "dash",
    "grep",
    "irqbalance",
    "kmod",
    "linux-cpupower",
    "mawk",
    "mount",
    "perl-base",
    "procps",
    "util-linux",
];

/// Further arguments of the machine: those programs, and what they act on.
pub(crate) fn more() -> Vec<&'static str> {
    let packages = PACKAGES.iter().flat_map(|name| ["--packages", *name]);
    packages.chain(["--nic", "e1000", "--module", "zram", "--module", "pcrypt"]).collect()
}

/// Where the tables of the script are.
const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests");

/// The boots of each kernel.
const BOOTS: [Boot; 3] = [Boot::Plain, Boot::Line, Boot::Kthread];

/// Which command line a machine is booted with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Boot {
    /// Nothing is isolated.
    #[default]
    Plain,
    /// `LINE`.
    Line,
    /// `KTHREAD`.
    Kthread,
}

impl Boot {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "guides",
            Self::Line => "guides-line",
            Self::Kthread => "guides-kthread",
        }
    }
}

/// `guides/rows.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// What each function of `counts.sh` counts.
    counts: BTreeMap<String, String>,
    row: Vec<Guide>,
}

/// A command of a guide.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guide {
    name: String,
    from: String,
    mechanism: String,
    typed: String,
    claim: String,
    count: String,
    /// On the command line of that boot, and not typed.
    boot: Option<Boot>,
    /// The boot in which it is typed.
    #[serde(default)]
    on: Boot,
    #[serde(default)]
    before: String,
    #[serde(default)]
    undo: String,
    #[serde(default)]
    files: String,
    #[serde(default)]
    settle: u32,
    /// The reason of its effect, where that is not obvious.
    #[serde(default)]
    because: String,
    /// The word that the catalogue's entry stands for.
    catalogue: Option<String>,
    #[serde(default)]
    not_on: Vec<String>,
}

impl Guide {
    /// Whether a machine of this boot has a count of it.
    fn counted_on(&self, boot: Boot) -> bool {
        match self.boot {
            Some(with) => boot == with || boot == Boot::Plain,
            None => boot == self.on,
        }
    }
}

fn table() -> Table {
    toml::from_str(include_str!("guides/rows.toml")).unwrap()
}

fn text(name: &str) -> String {
    std::fs::read_to_string(Path::new(TABLES).join(name)).unwrap()
}

/// The script with its tables.
pub(crate) fn case(boot: Boot) -> Case {
    let check = match boot {
        Boot::Plain => plain,
        Boot::Line => line,
        Boot::Kthread => kthread,
    };
    let case = Case::new("guides", "guides.sh", check).limit(1200);
    let case = case.file("evidence.sh", text("planted/evidence.sh"));
    case.file("counts.sh", text("guides/counts.sh")).file("rows.sh", orders(&table(), boot))
}

fn plain(guest: &Guest) {
    counted(guest, Boot::Plain);
}

fn line(guest: &Guest) {
    counted(guest, Boot::Line);
}

fn kthread(guest: &Guest) {
    counted(guest, Boot::Kthread);
}

/// Input of the guest's script: the commands as files, and a call per row.
fn orders(table: &Table, boot: Boot) -> String {
    let mut script = String::new();
    let file =
        |name: &str, number: usize, text: &str| format!("cat >{name}.{number} <<'GUIDE'\n{text}\nGUIDE\n");
    for (number, row) in table.row.iter().enumerate().filter(|(_, row)| row.counted_on(boot)) {
        if row.boot.is_some() {
            writeln!(script, "boot_row {number} {}", row.count).unwrap();
            continue;
        }
        for (name, text) in [("typed", &row.typed), ("before", &row.before), ("undo", &row.undo)] {
            script += &file(name, number, text);
        }
        writeln!(script, "row {number} {} '{}' {}", row.count, row.files, row.settle).unwrap();
    }
    script
}

/// A count, or why there is none.
type Count = Result<u64, String>;

fn count(text: &str) -> Count {
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => {
            Err(text.strip_prefix("- ").map_or_else(|| format!("the count reads `{text}`"), str::to_owned))
        }
    }
}

/// The result of a row on a machine.
#[derive(Debug, Clone)]
struct Typed {
    before: Count,
    after: Count,
    /// Exit code, lines of complaint, and the end of the first of them.
    code: i32,
    complaints: usize,
    first: String,
}

/// The counts of the machines of a kernel.
#[derive(Debug, Default)]
struct Seen {
    boots: Vec<Boot>,
    typed: BTreeMap<usize, Typed>,
    /// Counts of effects decided at boot, by row and boot.
    booted: BTreeMap<(usize, Boot), Count>,
}

static ALL: Mutex<BTreeMap<&str, Seen>> = Mutex::new(BTreeMap::new());

/// Takes the counts of a machine; prints the rows of its kernel with its last machine.
fn counted(guest: &Guest, boot: Boot) {
    let table = table();
    let mut all = ALL.lock().unwrap();
    let seen = all.entry(guest.kernel()).or_default();
    seen.boots.push(boot);
    for line in guest.read("counted").lines() {
        let words: Vec<&str> = line.splitn(7, '\t').collect();
        let [number, before, after, code, complaints, undone, first] = words[..] else {
            panic!("no row: {line}")
        };
        let number: usize = number.parse().unwrap();
        assert_eq!(undone, "yes", "{}: {} is not undone", guest.machine.name, table.row[number].name);
        let (code, complaints) = (code.parse().unwrap(), complaints.parse().unwrap());
        let typed =
            Typed { before: count(before), after: count(after), code, complaints, first: first.to_owned() };
        seen.typed.insert(number, typed);
    }
    for line in guest.read("booted").lines() {
        let (number, result) = line.split_once('\t').unwrap();
        seen.booted.insert((number.parse().unwrap(), boot), count(result));
    }
    for (number, row) in table.row.iter().enumerate().filter(|(_, row)| row.counted_on(boot)) {
        let is_there = seen.typed.contains_key(&number) || seen.booted.contains_key(&(number, boot));
        assert!(
            is_there,
            "{}: nothing was counted of {}: {}",
            guest.machine.name,
            row.name,
            guest.read("script.err")
        );
    }
    if BOOTS.iter().all(|boot| seen.boots.contains(boot)) {
        judge::print(guest.kernel(), &table, seen);
    }
}
