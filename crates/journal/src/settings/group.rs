//! Control groups: their directories, and the controllers that version 2 hands to the groups below.
//!
//! Taking a controller away from the groups below takes their settings with it, without a word
//! (Linux `Documentation/admin-guide/cgroup-v2.rst`, "Enabling and Disabling"); only where one of
//! them hands it on does the kernel refuse.

use machine::OURS;
use rustix::io::Errno;
use std::fs;
use std::path::Path;
use sys::Error;

pub(super) fn read(directory: &str) -> String {
    if Path::new(directory).is_dir() { "present" } else { "absent" }.to_owned()
}

pub(super) fn write(directory: &str, value: &str) -> Result<(), Error> {
    if value == "present" {
        return fs::create_dir(directory).map_err(|error| Error::os("create", directory, error));
    }
    // A group whose last task has just ended is busy for a moment.
    let give_up = sys::clock::now_ns() + sys::clock::SECOND_NS;
    loop {
        match fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                if sys::clock::now_ns() > give_up {
                    return Err(Error::os("remove", directory, error));
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::os("remove", directory, error));
            }
            _ => return Ok(()),
        }
    }
}

/// `DIRECTORY#CONTROLLER`.
fn split(target: &str) -> Result<(String, &str), Error> {
    let (directory, controller) =
        target.rsplit_once('#').ok_or_else(|| Error::failed("controller", format!("no # in {target}")))?;
    Ok((format!("{directory}/cgroup.subtree_control"), controller))
}

pub(super) fn read_controller(target: &str) -> Result<Option<String>, Error> {
    let (file, controller) = split(target)?;
    match fs::read_to_string(&file) {
        Ok(text) => {
            let on = text.split_whitespace().any(|word| word == controller);
            Ok(Some(if on { "on" } else { "off" }.to_owned()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::os("read", file, error)),
    }
}

pub(super) fn write_controller(target: &str, value: &str) -> Result<(), Error> {
    let (file, controller) = split(target)?;
    let sign = if value == "on" { '+' } else { '-' };
    fs::write(&file, format!("{sign}{controller}")).map_err(|error| Error::os("write", file, error))
}

/// A group below, not of our making, that has been given something by the controller, or hands it
/// on.
pub(super) fn user(target: &str) -> Option<String> {
    let (directory, controller) = target.rsplit_once('#')?;
    let below = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let mut groups: Vec<_> = below.filter(|path| path.is_dir() && !path.ends_with(OURS)).collect();
    groups.sort();
    groups.into_iter().find(|group| uses(group, controller)).map(|group| group.display().to_string())
}

fn uses(group: &Path, controller: &str) -> bool {
    let read = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
    let hands_on = read("cgroup.subtree_control").split_whitespace().any(|word| word == controller);
    let set = |name: &str| !matches!(read(name).trim(), "" | "member");
    hands_on
        || (controller == "cpuset"
            && ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.exclusive", "cpuset.cpus.partition"]
                .iter()
                .any(|name| set(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_used_where_a_group_of_others_has_something_of_it() {
        let place = tempfile::tempdir().unwrap();
        let target = format!("{}#cpuset", place.path().display());
        let write = |file: &str, text: &str| {
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cgroup.subtree_control", "cpuset memory\n");
        write(&format!("{OURS}/cpuset.cpus"), "2-3\n");
        for (file, text) in
            [("cpuset.cpus", "\n"), ("cpuset.mems", "\n"), ("cpuset.cpus.partition", "member\n")]
        {
            write(&format!("idle.slice/{file}"), text);
        }
        write("idle.slice/cgroup.subtree_control", "memory\n");
        assert_eq!(user(&target), None);
        for (file, before, after) in [
            ("idle.slice/cpuset.cpus", "\n", "1\n"),
            ("idle.slice/cpuset.mems", "\n", "0\n"),
            ("idle.slice/cpuset.cpus.partition", "member\n", "root\n"),
            ("idle.slice/cgroup.subtree_control", "memory\n", "cpuset memory\n"),
        ] {
            write(file, after);
            assert!(user(&target).is_some_and(|group| group.ends_with("idle.slice")), "{file}");
            write(file, before);
        }
        assert_eq!(user(&target), None);
    }
}
