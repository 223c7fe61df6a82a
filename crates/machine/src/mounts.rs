//! What is mounted where: `/proc/mounts`.
//!
//! Format: proc(5), `/proc/pid/mounts`: device, target, type, options, two numbers; blanks in names
//! as `\040`.

use super::Root;

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub target: String,
    /// File system type.
    pub kind: String,
    /// Options, separated by commas.
    pub options: String,
}

/// The mounts, in the kernel's order.
pub fn mounts(root: &Root) -> Vec<Mount> {
    let text = root.maybe("proc/mounts").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let mut words = line.split_whitespace().skip(1).map(str::to_owned);
    Some(Mount { target: unescape(&words.next()?), kind: words.next()?, options: words.next()? })
}

/// A name whose blanks and backslashes are octal escapes.
fn unescape(name: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(name.to_owned(), |name, (escape, character)| name.replace(escape, character))
}

/// Where a file system type is mounted: `usual` if there, else the first place.
pub(super) fn find(root: &Root, kind: &str, usual: &str) -> Option<String> {
    let places: Vec<_> = mounts(root).into_iter().filter(|mount| mount.kind == kind).collect();
    let best = places.iter().find(|mount| mount.target == usual).or_else(|| places.first());
    best.map(|mount| mount.target.clone())
}

/// Where debugfs is mounted.
pub fn debugfs(root: &Root) -> Option<String> {
    find(root, "debugfs", "/sys/kernel/debug")
}

/// Where tracefs is mounted.
pub(super) fn tracefs(root: &Root) -> Option<String> {
    find(root, "tracefs", "/sys/kernel/tracing")
}

/// Where the file system that a pattern of the catalogue names (`debugfs`, `tracefs`, `cgroup2`) is
/// mounted.
pub fn mounted_at(root: &Root, kind: &str) -> Option<String> {
    match kind {
        "debugfs" => debugfs(root),
        "tracefs" => tracefs(root),
        "cgroup2" => find(root, "cgroup2", "/sys/fs/cgroup"),
        _ => None,
    }
}

/// A path of the machine for one that begins with `{debugfs}`, `{tracefs}` or `{cgroup2}`; `None`
/// where that is not mounted. Other paths stay as they are.
pub fn placed(root: &Root, pattern: &str) -> Option<String> {
    match pattern.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((kind, rest)) => mounted_at(root, kind).map(|place| format!("{place}{rest}")),
        None => Some(pattern.to_owned()),
    }
}

/// Whether the kernel can mount file systems of this type: `/proc/filesystems`.
pub(super) fn is_known(root: &Root, kind: &str) -> bool {
    let known = root.maybe("proc/filesystems").unwrap_or_default();
    known.split_whitespace().any(|word| word == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_the_usual_place_wins() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let text = "tracefs /t\\040x tracefs rw 0 0\nproc /proc proc rw 0 0\nbroken\ntracefs /sys/kernel/tracing tracefs ro 0 0\n";
        std::fs::write(dir.path().join("proc/mounts"), text).unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(mounts(&root).len(), 3);
        assert_eq!(tracefs(&root).as_deref(), Some("/sys/kernel/tracing"));
        assert_eq!(debugfs(&root), None);
        assert_eq!(find(&root, "tracefs", "/none").as_deref(), Some("/t x"));
    }
}
