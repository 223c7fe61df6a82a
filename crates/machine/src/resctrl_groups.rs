//! Groups that share out cache and memory bandwidth.
//!
//! Files: Linux `Documentation/filesystems/resctrl.rst` (`schemata`, `cpus_list`, `mode`). The
//! monitoring files are left alone: reading one sends an IPI to a CPU of the domain.

use super::{Root, mounts};
use model::Cpus;

/// What the kernel shares out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resctrl {
    /// This kernel does not know the file system.
    Absent,
    /// It is not mounted, and everything is shared by all.
    Unmounted,
    /// Its groups, the default group first.
    Groups(Vec<ResctrlGroup>),
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResctrlGroup {
    /// Its directory; empty for the default group.
    pub name: String,
    /// The CPUs whose tasks use its share.
    pub cpus: Cpus,
    /// Whether others may use it too; empty where the kernel does not show it.
    pub mode: String,
    /// Its shares, one resource a line: `L3:0=ff0;1=fff`.
    pub schemata: String,
}

/// Directories of the file system that are no groups.
const NO_GROUPS: [&str; 3] = ["info", "mon_groups", "mon_data"];

/// Reads the groups.
pub fn resctrl(root: &Root) -> Resctrl {
    let Some(mount) = mounts::mounts(root).into_iter().find(|mount| mount.kind == "resctrl") else {
        return if mounts::is_known(root, "resctrl") { Resctrl::Unmounted } else { Resctrl::Absent };
    };
    let top = mount.target;
    let group = |name: String| {
        let at = format!("{top}/{name}");
        Some(ResctrlGroup {
            cpus: root.cpus(&format!("{at}/cpus_list")).unwrap_or_default(),
            mode: root.maybe(&format!("{at}/mode")).unwrap_or_default(),
            schemata: root.maybe(&format!("{at}/schemata"))?,
            name,
        })
    };
    let names = root.names(&top).into_iter().filter(|name| !NO_GROUPS.contains(&name.as_str()));
    Resctrl::Groups(std::iter::once(String::new()).chain(names).filter_map(group).collect())
}
