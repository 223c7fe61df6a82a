//! The disk of a machine that boots by itself: GRUB in its first sectors, a partition with its menu
//! and kernels, and one for what outlasts a boot.
//!
//! Sources: GRUB's manual, "Images" (`boot.img` loads `core.img` from the sectors after it);
//! mke2fs(8) (`-d`).

use super::common::Failed;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const SECTOR: u64 = 512;
/// Where the first partition begins; GRUB's core is before it.
const FIRST: u64 = 2048;
const BOOT_MIB: u64 = 640;
const DATA_MIB: u64 = 256;
/// Bytes of the first sector that are code; after them disk signature and partition table.
const CODE: usize = 440;
/// The folder of GRUB's images, package grub-pc-bin.
const GRUB: &str = "/usr/lib/grub/i386-pc";
/// What the core needs to read the menu, to forget a choice and to start Linux.
const MODULES: [&str; 12] = [
    "biosdisk",
    "part_msdos",
    "ext2",
    "normal",
    "linux",
    "loadenv",
    "test",
    "echo",
    "serial",
    "terminal",
    "configfile",
    "reboot",
];

/// A kernel of the menu.
pub(crate) struct Kernel {
    /// `uname -r`.
    pub(crate) release: String,
    pub(crate) image: PathBuf,
    /// None: it panics, because there is nothing to mount.
    pub(crate) initramfs: Option<PathBuf>,
}

/// Makes the disk; the first kernel is the one that boots by itself. The replication is stopped
/// after `stop_after` cells.
pub(crate) fn make(
    place: &Path,
    kernels: &[Kernel],
    line: &str,
    stop_after: Option<u32>,
) -> Result<PathBuf, Failed> {
    let tree = place.join("boot");
    fs::create_dir_all(tree.join("grub"))?;
    for kernel in kernels {
        fs::copy(&kernel.image, tree.join(format!("vmlinuz-{}", kernel.release)))?;
        if let Some(initramfs) = &kernel.initramfs {
            fs::copy(initramfs, tree.join(format!("initrd.img-{}", kernel.release)))?;
        }
    }
    fs::write(tree.join("grub/grub.cfg"), menu(kernels, line))?;
    if let Some(cells) = stop_after {
        fs::write(tree.join("stop-after"), cells.to_string())?;
    }
    let disk = place.join("disk");
    let core = place.join("core.img");
    let mut mkimage = Command::new("grub-mkimage");
    mkimage.args(["-O", "i386-pc", "-p", "(hd0,msdos1)/grub", "-o"]).arg(&core).args(MODULES);
    call(&mut mkimage)?;
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&disk)?;
    file.set_len((FIRST + (BOOT_MIB + DATA_MIB + 1) * 2048) * SECTOR)?;
    file.write_all(&fs::read(format!("{GRUB}/boot.img"))?[..CODE])?;
    file.seek(SeekFrom::Start(CODE as u64 + 6))?;
    let mut from = FIRST;
    for mib in [BOOT_MIB, DATA_MIB] {
        file.write_all(&partition(from, mib * 2048))?;
        from += mib * 2048;
    }
    file.seek(SeekFrom::Start(SECTOR - 2))?;
    file.write_all(&[0x55, 0xaa])?;
    let core = fs::read(core)?;
    assert!((core.len() as u64) < (FIRST - 1) * SECTOR, "GRUB's core fits before the first partition");
    file.write_all(&core)?;
    // No journal: GRUB does not read one, and what was written last must be there for it.
    let parts: [(&str, u64, u64, Option<&Path>); 2] =
        [("ext2", FIRST, BOOT_MIB, Some(&tree)), ("ext4", FIRST + BOOT_MIB * 2048, DATA_MIB, None)];
    for (kind, at, mib, from) in parts {
        let image = place.join(kind);
        let mut make = Command::new("mke2fs");
        make.args(["-q", "-F", "-t", kind]);
        from.into_iter().for_each(|tree| _ = make.arg("-d").arg(tree));
        call(make.arg(&image).arg(format!("{mib}M")))?;
        copy_into(&image, &mut file, at * SECTOR)?;
        fs::remove_file(image)?;
    }
    Ok(disk)
}

/// An entry of the partition table: type 83, Linux, addressed by sector alone.
fn partition(from: u64, sectors: u64) -> [u8; 16] {
    let mut entry = [0, 0xfe, 0xff, 0xff, 0x83, 0xfe, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
    entry[8..12].copy_from_slice(&(from as u32).to_le_bytes());
    entry[12..].copy_from_slice(&(sectors as u32).to_le_bytes());
    entry
}

/// Copies what is not empty, so that the disk takes no more room than its files.
fn copy_into(image: &Path, disk: &mut File, at: u64) -> Result<(), Failed> {
    let mut from = File::open(image)?;
    let mut block = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let n = from.read(&mut block)?;
        if n == 0 {
            return Ok(());
        }
        if block[..n].iter().any(|byte| *byte != 0) {
            disk.seek(SeekFrom::Start(at + offset))?;
            disk.write_all(&block[..n])?;
        }
        offset += n as u64;
    }
}

/// A menu with the parts of the one that Debian's generator makes: the choice for one boot is
/// stored empty before anything starts, and entries of others are read at the end.
fn menu(kernels: &[Kernel], line: &str) -> String {
    let mut menu = "serial --unit=0 --speed=115200\nterminal_output serial\n\
        if [ -s $prefix/grubenv ]; then\n  load_env\nfi\n\
        if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   save_env next_entry\n   \
        set boot_once=true\nelse\n   set default=\"0\"\nfi\n\
        menuentry_id_option=\"--id\"\nset timeout=0\n"
        .to_owned();
    for Kernel { release, initramfs, .. } in kernels {
        let initrd =
            if initramfs.is_some() { format!("\tinitrd\t/initrd.img-{release}\n") } else { String::new() };
        let _ = write!(
            menu,
            "menuentry 'Debian GNU/Linux, with Linux {release}' --class debian $menuentry_id_option 'gnulinux-{release}-advanced' {{\n\
             \techo\t'Loading Linux {release} ...'\n\tlinux\t/vmlinuz-{release} {line}\n{initrd}}}\n"
        );
    }
    menu + "if [ -f  $prefix/custom.cfg ]; then\n  source $prefix/custom.cfg\nfi\n"
}

/// What a file of the second partition holds; `None` where there is none, or none that could be
/// read before the file system is mounted again.
pub(crate) fn read(disk: &Path, path: &str) -> Result<Option<String>, Failed> {
    let at = (FIRST + BOOT_MIB * 2048) * SECTOR;
    let to = tempfile::NamedTempFile::new()?;
    let request = format!("dump {path} {}", to.path().display());
    let mut debugfs = Command::new("debugfs");
    debugfs.args(["-R", &request]).arg(format!("{}?offset={at}", disk.display()));
    let output = debugfs.output().map_err(|error| Failed(format!("debugfs: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // After a power cut it is whole again once the machine has mounted it.
    if said.contains("File not found") || said.contains("Filesystem not open") {
        return Ok(None);
    }
    Ok(Some(fs::read_to_string(to.path())?))
}

/// Copies a folder of the second partition.
pub(crate) fn copy(disk: &Path, path: &str, to: &Path) -> Result<(), Failed> {
    let at = (FIRST + BOOT_MIB * 2048) * SECTOR;
    let request = format!("rdump {path} {}", to.display());
    call(Command::new("debugfs").args(["-R", &request]).arg(format!("{}?offset={at}", disk.display())))
}

fn call(command: &mut Command) -> Result<(), Failed> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Failed(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failed(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
