//! A swap area of a stressor's own: a file in a directory for temporary files, switched on for as
//! long as it runs.
//!
//! A file system that has no blocks of its own (tmpfs) or moves them (btrfs) refuses to be swapped
//! to (swapon(8), "Files with holes"); there the file is bound to a loop device first, which
//! unbinds itself once it is no longer swapped to. The header is that of `mkswap` (Linux
//! `include/linux/swap.h`, `union swap_header`).

use super::Error;
use super::loops::Loop;
use journal::session::changes::{made_if, patiently};
use journal::settings::{Settings, reach};
use journal::{Change, Earlier, Form, Kind, Present, earlier_entry};
use machine::{Root, swaps};
use rustix::fs::{Mode, OFlags, open};
use rustix::param::page_size;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use sys::swap;

/// Where it is made: the first that is there. It is meant to be on a disk.
const PLACES: [&str; 2] = ["/var/tmp", "/tmp"];
const PREFIX: &str = "stillcore-swap-";
/// The kernel's own choice of a priority: below those of all other areas.
const WEAKEST: i32 = -1;

/// The file, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapFile {
    /// Where it is.
    pub path: PathBuf,
}

impl SwapFile {
    /// The file of a stressor with this mark; `None` where there is no place for one.
    pub(super) fn of(id: &str) -> Option<Self> {
        let place = PLACES.iter().map(Path::new).find(|place| place.is_dir())?;
        Some(Self { path: place.join(format!("{PREFIX}{id}")) })
    }

    /// Makes it and switches it on; what has been made goes with what is returned.
    pub(super) fn switch_on(&self, bytes: usize) -> Result<Area, Error> {
        let mut area = Area { file: self.clone(), device: None };
        let file = self.create(bytes).map_err(|error| Error::io("make", &self.path, error))?;
        match swap::on(self.path.as_os_str().as_bytes(), WEAKEST) {
            Ok(()) => return Ok(area),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINVAL) => {}
                Some(libc::EPERM) => return Err(Error::absent("swap needs CAP_SYS_ADMIN")),
                Some(libc::ENOSYS) => return Err(Error::absent("this kernel has no swap (CONFIG_SWAP)")),
                _ => return Err(Error::io("switch on swap at", &self.path, error)),
            },
        }
        let place = self.path.display();
        let lacks = |error| {
            Error::absent(format!(
                "{place} cannot be swapped to, and there is no loop device for it: {error}"
            ))
        };
        let device = Loop::bind(&file).map_err(lacks)?;
        swap::on(device.path.as_os_str().as_bytes(), WEAKEST)
            .map_err(|error| Error::io("switch on swap at", &device.path, error))?;
        area.device = Some(device);
        Ok(area)
    }

    fn create(&self, bytes: usize) -> io::Result<File> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(&self.path, flags, Mode::RUSR | Mode::WUSR)?);
        // Written, not lengthened: a swap file has no holes.
        file.write_all_at(&vec![0; bytes], 0)?;
        file.write_all_at(&header(bytes / page_size()), 0)?;
        file.sync_all()?;
        Ok(file)
    }

    /// Switches off what swaps to it, and removes it.
    fn take_away(&self) -> io::Result<()> {
        let areas = swaps(&Root::live()).map_err(io::Error::other)?.unwrap_or_default();
        for area in areas.iter().filter(|area| self.backs(&area.path)) {
            swap::off(area.path.as_bytes())?;
        }
        if self.is_ours() { fs::remove_file(&self.path) } else { Ok(()) }
    }

    /// Whether an area of `/proc/swaps` is this file, or a loop device that it is bound to.
    fn backs(&self, area: &str) -> bool {
        let bound = area.strip_prefix("/dev/").filter(|name| name.starts_with("loop"));
        let backing = bound.map(|name| format!("/sys/block/{name}/loop/backing_file"));
        let file = backing.and_then(|path| fs::read_to_string(path).ok());
        Path::new(file.as_deref().map_or(area, str::trim_end)) == self.path
    }

    /// A file of this name that somebody else has put there is left alone.
    fn is_ours(&self) -> bool {
        let owner = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_file() && found.uid() == owner)
    }
}

/// A swap area that is on, until it is dropped.
pub(super) struct Area {
    file: SwapFile,
    /// Bound for as long as it is swapped to.
    device: Option<Loop>,
}

impl Area {
    /// What is swapped to.
    pub(super) fn path(&self) -> &Path {
        self.device.as_ref().map_or(&self.file.path, |device| &device.path)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // The supervisor removes what is left.
        let _ = self.file.take_away();
    }
}

/// The first page of an area with as many pages: version 1, its last page, no bad ones, and the
/// magic word at its end.
fn header(pages: usize) -> Vec<u8> {
    let mut page = vec![0; page_size()];
    page[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&(pages.saturating_sub(1) as u32).to_ne_bytes());
    let end = page.len();
    page[end - 10..].copy_from_slice(b"SWAPSPACE2");
    page
}

impl Kind for SwapFile {
    const FORM: Form = Form { kind: "swap file", version: 1 };

    /// Journals without versions had none.
    fn of_earlier(_: &earlier_entry::Entry) -> Earlier<Self> {
        None
    }
}

impl Change for SwapFile {
    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn bounds(&self) -> Result<(), sys::Error> {
        let may = reach::is_plain(&self.path)
            && reach::below(&self.path, &PLACES)
            && reach::is_named(&self.path, PREFIX);
        reach::allow(may, "a swap file", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, sys::Error> {
        let areas = swaps(&Root::live())?.unwrap_or_default();
        Ok(made_if(self.is_ours() || areas.iter().any(|area| self.backs(&area.path))))
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), sys::Error> {
        patiently(|| self.take_away().map_err(|error| Error::io("take away", &self.path, error).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_that_of_mkswap() {
        let page = header(2048);
        assert_eq!(page.len(), page_size());
        assert_eq!(
            (&page[1024..1028], &page[1028..1032]),
            (&1u32.to_ne_bytes()[..], &2047u32.to_ne_bytes()[..])
        );
        assert!(page.ends_with(b"SWAPSPACE2"));
    }

    #[test]
    fn only_its_own_file_is_an_area_of_it() {
        let file = SwapFile { path: "/var/tmp/stillcore-swap-7-0".into() };
        assert!(file.bounds().is_ok());
        assert!(file.backs("/var/tmp/stillcore-swap-7-0"));
        assert!(!file.backs("/var/tmp/stillcore-swap-7-01") && !file.backs("/dev/loop99999"));
        for path in ["/var/tmp/other", "/etc/stillcore-swap-1", "/var/tmp/../etc/stillcore-swap-1"] {
            assert!(SwapFile { path: path.into() }.bounds().is_err(), "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_taken_away_already() {
        let file = SwapFile { path: "/var/tmp/stillcore-swap-no-such".into() };
        assert!(file.take_away().is_ok());
    }
}
