//! Copies what the readers read of a machine into a directory, so that the machine can be audited
//! elsewhere.
//!
//! No secrets: only the files named here are taken. Of a task only its name, its parent, when it
//! started, where it may run, where it last ran, policy and priority; of a named daemon also its
//! control groups and the selected environment variables. Of the kernel command line the values of
//! parameters that are judged, and the names of the others; of the mounts those of the kernel's own
//! file systems; of a PCI device's configuration the part before its extended capabilities, which
//! include serial numbers.

use super::boot_log::{self, BOOT_LOG};
use super::capture_files::{FILES, NAMES};
use super::kernel_code::{CODE, CodeQuestions, kernel_code};
use super::root::MODES;
use super::{KUBELET, Root, mounts, nodes, partitions};
use crate::btf::{BTF, names_in};
use model::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Lines of `/proc/cpuinfo` and `/proc/meminfo` that are read; the rest is length and counters.
const CPUINFO: &[&str] = &["processor", "model name", "flags", "CPU implementer", "CPU part"];
const MEMINFO: &[&str] = &["MemTotal"];

/// What a catalogue reads beyond the machine's own readers.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Files, with `*` for any part of a name.
    pub files: Vec<String>,
    /// Files of which only the name is read.
    pub names: Vec<String>,
    /// Functions that are looked for in the kernel's type information.
    pub functions: Vec<String>,
    /// Questions about the kernel's code, of which the answers are taken.
    pub code: CodeQuestions,
    /// Names of daemons.
    pub daemons: Vec<String>,
    /// Environment variables that are taken of these daemons.
    pub variables: Vec<String>,
    /// Parameters of the kernel command line whose values are taken.
    pub parameters: Vec<String>,
}

/// Copies the machine under `root` into `destination`, which must not exist or be empty. What
/// cannot be read is left out, as it would be for an audit in place.
pub fn capture(root: &Root, destination: &Path, selection: &Selection) -> Result<(), Error> {
    let used = fs::read_dir(destination).is_ok_and(|mut entries| entries.next().is_some());
    if used || destination.is_file() {
        return Err(Error::invalid(destination.display(), "it exists", "a new or empty directory"));
    }
    let out = Out { destination };
    let mut modes = String::new();
    for file in files(root, selection) {
        if let Ok(Some(bytes)) = root.bytes(&file) {
            out.write(&file, &without_secrets(&file, bytes, selection))?;
            if root.writable(&file) == Some(false) && !read_only_by_nature(&file) {
                let _ = writeln!(modes, "444 {file}");
            }
        }
    }
    for (file, wanted) in [("proc/cpuinfo", CPUINFO), ("proc/meminfo", MEMINFO)] {
        out.lines(root, file, file, wanted)?;
    }
    let names = selection.names.iter().map(String::as_str).chain([NAMES]);
    for file in names.flat_map(|pattern| found(root, pattern)) {
        let file = if root.is_directory(&file) { format!("{file}/.keep") } else { file };
        // One whose text is wanted too has been taken.
        if !destination.join(&file).exists() {
            out.write(&file, b"")?;
        }
    }
    if let Ok(Some(btf)) = root.bytes(BTF) {
        out.write(BTF, &names_in(&btf, &selection.functions))?;
    }
    directories(root, &out)?;
    processes(root, &out, selection)?;
    if root.is_live() {
        // uname(2) knows the architecture; `/proc/sys/kernel/arch` is new in 6.1.
        out.write("proc/sys/kernel/arch", rustix::system::uname().machine().to_bytes())?;
    } else if let Some(arch) = root.maybe("proc/sys/kernel/arch") {
        out.write("proc/sys/kernel/arch", arch.as_bytes())?;
    }
    let log = boot_log::lines(root);
    if !log.is_empty() {
        out.write(BOOT_LOG, (log.join("\n") + "\n").as_bytes())?;
    }
    let code = kernel_code(root, &selection.code).lines();
    if !code.is_empty() {
        out.write(CODE, code.as_bytes())?;
    }
    let noted = root.text(MODES)?.unwrap_or(modes);
    out.write(MODES, noted.as_bytes())
}

/// Parameters that the readers know besides those of the catalogue.
const PARAMETERS: &[&str] = &["isolcpus", "preempt", "pcie_aspm", "intel_idle.max_cstate", "tsc"];
/// File systems of the kernel's own, which have neither a server nor a user.
const FILE_SYSTEMS: &[&str] =
    &["cgroup", "cgroup2", "cpuset", "debugfs", "devtmpfs", "proc", "resctrl", "sysfs", "tmpfs", "tracefs"];
/// Where the configuration space of PCI proper ends.
const PCI_BYTES: usize = 256;

/// What of a file is taken.
fn without_secrets(file: &str, mut bytes: Vec<u8>, selection: &Selection) -> Vec<u8> {
    let name = file.trim_start_matches('/');
    if name.starts_with("sys/bus/pci/") {
        bytes.truncate(PCI_BYTES);
    }
    match name {
        "proc/cmdline" => cmdline(&String::from_utf8_lossy(&bytes), selection).into_bytes(),
        "proc/mounts" => mounted(&String::from_utf8_lossy(&bytes)).into_bytes(),
        "proc/schedstat" => names_of_domains(&String::from_utf8_lossy(&bytes)).into_bytes(),
        _ if name == KUBELET => pool(&bytes),
        _ if name.ends_with("-variables.conf") || name.ends_with("/tuned.conf") => {
            isolated_cores(&String::from_utf8_lossy(&bytes)).into_bytes()
        }
        _ if name.ends_with("/kprobes/list") => {
            without_addresses(&String::from_utf8_lossy(&bytes)).into_bytes()
        }
        _ => bytes,
    }
}

/// Behind the names are counters: a CPU's from its second word on, a domain's from its third or,
/// where it is named, its fourth.
fn names_of_domains(text: &str) -> String {
    let kept = |line: &str| {
        let words = if line.starts_with("domain") { 3 } else { 1 };
        let words: Vec<_> = line.split_whitespace().take(words).collect();
        words.join(" ") + "\n"
    };
    text.lines().map(kept).collect()
}

/// The names of pods and containers are private and are left out; their CPUs are kept.
fn pool(bytes: &[u8]) -> Vec<u8> {
    let whole: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let mut kept: serde_json::Map<_, _> =
        ["policyName", "defaultCpuSet"].map(|key| (key.to_owned(), whole[key].clone())).into_iter().collect();
    let pods = whole["entries"].as_object().into_iter().flat_map(|pods| pods.values());
    let sets = pods.filter_map(|pod| pod.as_object()).flat_map(|pod| pod.values());
    let sets: serde_json::Map<_, _> =
        sets.enumerate().map(|(at, set)| (format!("container{at}"), set.clone())).collect();
    if !sets.is_empty() {
        kept.insert("entries".to_owned(), serde_json::json!({ "pods": sets }));
    }
    serde_json::Value::from(kept).to_string().into_bytes()
}

/// Of tuned's files, what leads to its isolated cores.
fn isolated_cores(text: &str) -> String {
    let names = ["isolated_cores", "include"];
    let kept = |line: &&str| line.split_once('=').is_some_and(|(name, _)| names.contains(&name.trim()));
    text.lines().filter(kept).flat_map(|line| [line, "\n"]).collect()
}

/// Addresses of the kernel would reveal where it was loaded.
fn without_addresses(text: &str) -> String {
    let kept = |line: &str| {
        let (_, rest) = line.split_once(char::is_whitespace).unwrap_or(("", line));
        format!("0 {}\n", rest.trim_start())
    };
    text.lines().map(kept).collect()
}

fn cmdline(text: &str, selection: &Selection) -> String {
    let own = PARAMETERS.iter().copied();
    let known: Vec<_> = own.chain(selection.parameters.iter().map(String::as_str)).collect();
    let word = |(name, value): (&str, &str)| match value {
        "" => name.to_owned(),
        _ if !known.iter().any(|one| super::same_name(one, name)) => format!("{name}=withheld"),
        value if value.contains(char::is_whitespace) => format!("{name}=\"{value}\""),
        value => format!("{name}={value}"),
    };
    super::parameters(text).map(word).collect::<Vec<_>>().join(" ") + "\n"
}

fn mounted(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (target, kind, options) = (words.get(1)?, words.get(2)?, words.get(3)?);
        FILE_SYSTEMS.contains(kind).then(|| format!("{kind} {target} {kind} {options} 0 0\n"))
    };
    text.lines().filter_map(line).collect()
}

/// The files that a pattern names; `{debugfs}` and its like stand for where these are mounted.
fn found(root: &Root, pattern: &str) -> Vec<String> {
    mounts::placed(root, pattern).map(|pattern| root.glob(&pattern)).unwrap_or_default()
}

/// The files whose text a capture would take, without those of processes.
pub fn planned(root: &Root, selection: &Selection) -> Vec<String> {
    files(root, selection)
}

fn files(root: &Root, selection: &Selection) -> Vec<String> {
    let own = FILES.iter().map(|file| (*file).to_owned());
    // The others' file shows the way to those below.
    let all = partitions::groups(root).into_iter().map(|group| format!("{group}/cpuset.cpus.partition"));
    let theirs = super::partitions(root).into_iter();
    let theirs =
        theirs.flat_map(|one| ["", ".effective"].map(|end| format!("{}/cpuset.cpus{end}", one.group)));
    let groups = all.chain(theirs);
    let version1 = super::cpusets_v1(root).into_iter().flat_map(|groups| {
        let (place, prefix) = (groups.place, groups.prefix);
        let names = ["cpus", "mems", "sched_load_balance"].map(|name| format!("{prefix}{name}"));
        let deep = ["", "/*", "/*/*"].map(|deep| format!("{place}{deep}"));
        let named = |deep: &String| names.clone().map(|name| format!("{deep}/{name}"));
        deep.iter().flat_map(named).collect::<Vec<_>>()
    });
    let patterns = own.chain(groups).chain(version1).chain(nodes::files());
    let patterns = patterns.chain(selection.files.iter().cloned());
    let mut files: Vec<_> = patterns.flat_map(|pattern| found(root, &pattern)).collect();
    files.sort();
    files.dedup();
    files
}

/// Whether nobody expects to write the file, so that its mode carries no information.
fn read_only_by_nature(file: &str) -> bool {
    let settable = ["smp_affinity_list", "cpumask", "parameters/", "default_smp_affinity"];
    !settable.iter().any(|part| file.contains(part))
}

/// Directories whose names alone are read: interrupt handlers, NUMA nodes, tracing instances.
fn directories(root: &Root, out: &Out) -> Result<(), Error> {
    let mut patterns = vec![
        "proc/irq/*/*".to_owned(),
        "sys/devices/system/cpu/cpu*/node*".to_owned(),
        "run/systemd/system".to_owned(),
    ];
    patterns.extend(mounts::tracefs(root).map(|at| format!("{at}/instances/*")));
    for directory in patterns.iter().flat_map(|pattern| root.glob(pattern)) {
        if root.is_directory(&directory) {
            // Version control keeps no empty directory.
            out.write(&format!("{directory}/.keep"), b"")?;
        }
    }
    Ok(())
}

fn processes(root: &Root, out: &Out, selection: &Selection) -> Result<(), Error> {
    let found = super::processes(root);
    for thread in &found.kernel {
        out.task(root, &format!("proc/{}", thread.pid))?;
    }
    for process in &found.user {
        out.task(root, &format!("proc/{}", process.pid))?;
    }
    for thread in super::user_threads(root, &found.user) {
        out.task(root, &format!("proc/{}/task/{}", thread.pid, thread.tid))?;
    }
    for process in found.user.iter().filter(|process| selection.daemons.contains(&process.name)) {
        let own = format!("proc/{}", process.pid);
        if let Some(groups) = root.maybe(&format!("{own}/cgroup")) {
            out.write(&format!("{own}/cgroup"), groups.as_bytes())?;
        }
        let Ok(Some(environment)) = root.bytes(&format!("{own}/environ")) else { continue };
        let named = |entry: &&[u8]| {
            selection
                .variables
                .iter()
                .any(|name| entry.starts_with(name.as_bytes()) && entry.get(name.len()) == Some(&b'='))
        };
        let kept: Vec<_> = environment.split(|&byte| byte == 0).filter(named).collect();
        out.write(&format!("{own}/environ"), &kept.join(&0))?;
    }
    Ok(())
}

struct Out<'a> {
    destination: &'a Path,
}

impl Out<'_> {
    fn write(&self, file: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.destination.join(file.trim_start_matches('/'));
        let folder = path.parent().unwrap_or(self.destination);
        fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
        fs::write(&path, bytes).map_err(|source| Error::io("write", &path, source))
    }

    /// What is known of a task: see the head of this file. Other fields of `stat` are counters and
    /// addresses.
    fn task(&self, root: &Root, own: &str) -> Result<(), Error> {
        /// Counted after the name: state, parent, flags, start, last CPU, priority and policy.
        const KEPT: [usize; 7] = [0, 1, 6, 19, 36, 37, 38];
        let Some(stat) = root.maybe(&format!("{own}/stat")) else { return Ok(()) };
        let Some((name, fields)) = stat.rsplit_once(')') else { return Ok(()) };
        let fields = fields.split_whitespace().enumerate();
        let fields = fields.map(|(at, field)| if KEPT.contains(&at) { field } else { "0" });
        let text = format!("{name}) {}\n", fields.collect::<Vec<_>>().join(" "));
        self.write(&format!("{own}/stat"), text.as_bytes())?;
        let status = format!("{own}/status");
        self.lines(root, &status, &status, &["Name", "PPid", "Cpus_allowed_list"])
    }

    /// Copies the lines that start with one of the names.
    fn lines(&self, root: &Root, from: &str, to: &str, names: &[&str]) -> Result<(), Error> {
        let Some(text) = root.maybe(from) else { return Ok(()) };
        let kept = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        let text: String = kept.flat_map(|line| [line, "\n"]).collect();
        self.write(to, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_captured_machine_reads_as_the_machine_did() {
        let dir = tempfile::tempdir().unwrap();
        let live = Root::live();
        capture(&live, dir.path(), &Selection::default()).unwrap();
        let captured = Root::open(dir.path()).unwrap();
        let (mut was, is) = (super::super::read(&live).unwrap(), super::super::read(&captured).unwrap());
        was.limits = is.limits.clone();
        was.cmdline = is.cmdline.clone();
        assert_eq!(was, is);
        let (was, is) =
            (super::super::state(&live, BTreeMap::new()), super::super::state(&captured, BTreeMap::new()));
        assert_eq!(was.irq_affinity, is.irq_affinity);
    }

    #[test]
    fn a_file_whose_name_is_wanted_too_keeps_its_text() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = "sys/module/rcutree/parameters/nohz_full_patience_delay".to_owned();
        fs::create_dir_all(from.path().join(&file).parent().unwrap()).unwrap();
        fs::write(from.path().join(&file), "1000\n").unwrap();
        let selection =
            Selection { files: vec![file.clone()], names: vec![file.clone()], ..Selection::default() };
        capture(&Root::open(from.path()).unwrap(), to.path(), &selection).unwrap();
        assert_eq!(fs::read_to_string(to.path().join(&file)).unwrap(), "1000\n");
    }

    #[test]
    fn secrets_stay_at_home() {
        let selection = Selection { parameters: vec!["nohz_full".to_owned()], ..Selection::default() };
        let line = "quiet isolcpus=domain,2 nohz-full=2 rd.iscsi.password=hush root=/dev/sda";
        let taken = "quiet isolcpus=domain,2 nohz-full=2 rd.iscsi.password=withheld root=withheld\n";
        assert_eq!(cmdline(line, &selection), taken);
        let mounts = "//host/x /mnt cifs username=me 0 0\nme@host:/ /h fuse.sshfs rw 0 0\ncgroup2 /cg cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(mounted(mounts), "cgroup2 /cg cgroup2 rw,nsdelegate 0 0\n");
        assert_eq!(
            without_addresses("ffffffff81234560  k  vfs_read+0x0    [FTRACE]\n"),
            "0 k  vfs_read+0x0    [FTRACE]\n"
        );
        let checkpoint = r#"{"policyName":"static","defaultCpuSet":"0-1","entries":{"a-pod":{"web":"2"}}}"#;
        let kept = r#"{"defaultCpuSet":"0-1","entries":{"pods":{"container0":"2"}},"policyName":"static"}"#;
        assert_eq!(String::from_utf8(pool(checkpoint.as_bytes())).unwrap(), kept);
        let without = r#"{"defaultCpuSet":"","policyName":"none"}"#;
        assert_eq!(String::from_utf8(pool(without.as_bytes())).unwrap(), without);
        let profile = "[main]\nsummary=secret\ninclude=realtime\n[variables]\nisolated_cores = 2-3\n";
        assert_eq!(isolated_cores(profile), "include=realtime\nisolated_cores = 2-3\n");
        let statistics = "version 15\ncpu0 0 0 12\ndomain0 00000003 7 8\n";
        assert_eq!(names_of_domains(statistics), "version\ncpu0\ndomain0 00000003 7\n");
        let config = without_secrets("sys/bus/pci/devices/0000:00:00.0/config", vec![7; 4096], &selection);
        assert_eq!(config.len(), PCI_BYTES);
    }

    #[test]
    fn only_the_selected_variables_are_taken_and_the_target_must_be_new() {
        let from = tempfile::tempdir().unwrap();
        fs::create_dir_all(from.path().join("proc/7")).unwrap();
        fs::write(from.path().join("proc/7/stat"), "7 (irqbalance) S 1 0 0 0 -1 4194560 0").unwrap();
        fs::write(from.path().join("proc/7/cgroup"), "0::/system.slice/irqbalance.service\n").unwrap();
        fs::write(
            from.path().join("proc/7/environ"),
            "TOKEN=x\0IRQBALANCE_BANNED_CPUS=c\0IRQBALANCE_BANNED_CPUSX=1\0",
        )
        .unwrap();
        let selection = Selection {
            daemons: vec!["irqbalance".into()],
            variables: vec!["IRQBALANCE_BANNED_CPUS".into()],
            ..Selection::default()
        };
        let to = tempfile::tempdir().unwrap();
        let root = Root::open(from.path()).unwrap();
        capture(&root, to.path(), &selection).unwrap();
        let taken = fs::read_to_string(to.path().join("proc/7/cgroup")).unwrap();
        assert_eq!(taken, "0::/system.slice/irqbalance.service");
        let taken = fs::read(to.path().join("proc/7/environ")).unwrap();
        assert_eq!(taken, b"IRQBALANCE_BANNED_CPUS=c");
        assert!(capture(&root, to.path(), &selection).unwrap_err().to_string().contains("it exists"));
    }
}
