//! Shared memory under Miri, whose interpreter has no `memfd_create` and no shared mapping: one
//! allocation for each file, which all its mappings are.

use rustix::fd::{AsFd, OwnedFd};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::Mutex;

/// The allocation of each file, by its inode. They are never freed: a test ends soon.
static FILES: Mutex<BTreeMap<u64, Memory>> = Mutex::new(BTreeMap::new());

struct Memory(NonNull<u8>);

// SAFETY: plain memory, as a mapping is.
unsafe impl Send for Memory {}

/// A file that is nothing but an inode; its name is gone.
pub(super) fn file(bytes: usize) -> io::Result<OwnedFd> {
    let mut files = FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = std::env::temp_dir().join(format!("stillcore-miri-{}-{}", std::process::id(), files.len()));
    let file = File::create_new(&path)?;
    fs::remove_file(&path)?;
    let layout = Layout::from_size_align(bytes, 4096).map_err(io::Error::other)?;
    // SAFETY: nobody asks for shared memory of no bytes.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
    files.insert(file.metadata()?.ino(), Memory(start));
    Ok(file.into())
}

/// Where its memory begins.
pub(super) fn start(file: &impl AsFd) -> io::Result<NonNull<u8>> {
    let inode = File::from(file.as_fd().try_clone_to_owned()?).metadata()?.ino();
    let files = FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let memory = files.get(&inode).ok_or(io::ErrorKind::NotFound)?;
    Ok(memory.0)
}
