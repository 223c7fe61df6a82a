//! Loop devices that no end of a process can leave behind, and small file systems for them, in
//! memory.
//!
//! `loop(4)`. One call, LOOP_CONFIGURE (Linux 5.8), configures the device and makes it release its
//! file when nobody has it open (LO_FLAGS_AUTOCLEAR). Older kernels need two calls: a process
//! killed between them would leave it bound for ever, so there it is absent. The images were made
//! by `fixtures/images/make.sh`, and hold only the blocks that are not all zero.

use super::Error;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const LOOP_CTL_GET_FREE: u64 = 0x4C82;
const LOOP_CONFIGURE: u64 = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// How often the next free device is requested when somebody else was faster.
const ATTEMPTS: u32 = 32;
const BLOCK: usize = 512;
const MOST_BYTES: usize = 4 << 20;

/// `struct loop_config` with its `struct loop_info64`, `include/uapi/linux/loop.h`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    device: [u64; 5],
    numbers: [u32; 3],
    flags: u32,
    names: [[u8; 64]; 2],
    key: [u8; 32],
    init: [u64; 2],
    reserved: [u64; 8],
}

/// A loop device with a file: bound as long as this is held or the device is mounted.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) path: PathBuf,
    _device: OwnedFd,
}

impl Loop {
    /// Binds the next free device to a file.
    pub(super) fn bind(file: &File) -> io::Result<Self> {
        let control = open("/dev/loop-control", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        for _ in 0..ATTEMPTS {
            // SAFETY: the request takes no argument. Its type differs between libcs.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
            let config = Config {
                fd: file.as_raw_fd() as u32,
                block_size: 0,
                device: [0; 5],
                numbers: [0; 3],
                flags: LO_FLAGS_AUTOCLEAR,
                names: [[0; 64]; 2],
                key: [0; 32],
                init: [0; 2],
                reserved: [0; 8],
            };
            // SAFETY: the kernel reads one `loop_config`, whose layout `Config` has and which lives
            // until the call returns.
            match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) } {
                0 => return Ok(Self { path, _device: device }),
                _ if io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY) => {}
                _ => return Err(io::Error::last_os_error()),
            }
        }
        Err(Errno::BUSY.into())
    }
}

/// For `map_err` on the first device: what there is no permission, device or call for is absent.
pub(super) fn lacking(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::absent("a loop device needs root"),
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => Error::absent("this machine has no loop devices"),
        Some(libc::EINVAL | libc::ENOTTY) => Error::absent(
            "this kernel cannot bind a loop device that unbinds itself in one call (before 5.8)",
        ),
        _ => Error::refused("bind a loop device")(error),
    }
}

/// A small empty file system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image {
    bytes: u64,
    blocks: &'static [u8],
}

pub(super) const EXT4: Image =
    Image { bytes: 4 << 20, blocks: include_bytes!("../fixtures/images/ext4.blocks") };
pub(super) const XFS: Image =
    Image { bytes: 16 << 20, blocks: include_bytes!("../fixtures/images/xfs.blocks") };

impl Image {
    /// A file in memory that holds it, and goes with its last descriptor.
    pub(super) fn file(self) -> Result<File, Error> {
        let invalid = || Error::refused("unpack an image")(io::Error::from(io::ErrorKind::InvalidData));
        let blocks = miniz_oxide::inflate::decompress_to_vec_with_limit(self.blocks, MOST_BYTES)
            .map_err(|_| invalid())?;
        let file = empty_file(self.bytes)?;
        for block in blocks.chunks(4 + BLOCK) {
            let (number, bytes) = block.split_first_chunk::<4>().ok_or_else(invalid)?;
            let place = u64::from(u32::from_le_bytes(*number)) * BLOCK as u64;
            file.write_all_at(bytes, place).map_err(Error::refused("unpack an image"))?;
        }
        Ok(file)
    }
}

/// A file in memory that holds zeros, and goes with its last descriptor.
pub(super) fn empty_file(bytes: u64) -> Result<File, Error> {
    let file =
        memfd_create("stillcore", MemfdFlags::CLOEXEC).map_err(Error::refused("make a file in memory"))?;
    let file = File::from(file);
    file.set_len(bytes).map_err(Error::refused("make a file in memory"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_as_long_as_the_kernel_says() {
        assert_eq!(size_of::<Config>(), 304);
        assert_eq!(std::mem::offset_of!(Config, flags), 60);
    }

    #[test]
    fn images_hold_the_file_systems_that_they_are_called_after() {
        let at = |image: Image, place: u64| {
            let file = image.file().unwrap();
            assert_eq!(file.metadata().unwrap().len(), image.bytes);
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, place).unwrap();
            bytes
        };
        // Magic numbers: `s_magic` of the superblock, which is at 1024, and `XFSB`.
        assert_eq!(at(EXT4, 1024 + 56)[..2], [0x53, 0xEF]);
        assert_eq!(&at(XFS, 0), b"XFSB");
    }
}
