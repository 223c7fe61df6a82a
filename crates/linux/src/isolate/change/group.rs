//! Control groups: their directories, and the controllers that version 2 hands to the groups below.

use crate::error::Error;
use rustix::io::Errno;
use std::fs;
use std::path::Path;

pub(super) fn read(directory: &str) -> String {
    if Path::new(directory).is_dir() { "present" } else { "absent" }.to_owned()
}

pub(super) fn write(directory: &str, value: &str) -> Result<(), Error> {
    if value == "present" {
        return fs::create_dir(directory).map_err(|error| Error::os("create", directory, error));
    }
    // A group whose last task has just ended is busy for a moment.
    let give_up = crate::sys::clock::now_ns() + crate::sys::clock::SECOND_NS;
    loop {
        match fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                if crate::sys::clock::now_ns() > give_up {
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
