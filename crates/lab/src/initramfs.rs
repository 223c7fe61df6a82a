//! The guest's first (and only) file system: our program as `/init`, the modules it loads, and what
//! the user adds.
//!
//! | path | what |
//! |---|---|
//! | `/init`, `/usr/bin/stillcore` | the first program, which is also the default command |
//! | `/usr/bin/NAME` | `--binary` |
//! | `/stillcore-lab.json` | its orders ([`crate::guest_config`]) |
//! | `/lab/NN-name.ko` | modules in loading order, decompressed |
//! | `/boot/config-RELEASE` | the kernel's build options, where its package had them |
//! | `/dev/console`, `/dev/null` | what there must be before devtmpfs is mounted |
//! | `/bin`, `/sbin`, `/lib`, `/lib64` | links into `/usr`, as on every Debian of today |

use crate::arch::Arch;
use crate::error::{Error, IoContext, Result};
use crate::guest_config::{CONFIG_PATH, GREETING, GuestConfig};
use crate::modules::Module;
use crate::spec::Addition;
use cpio::newc::{self, ModeFileType};
use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What goes into the archive.
#[derive(Debug)]
pub struct Contents<'a> {
    /// First program.
    pub init: &'a Path,
    /// Another program for the command.
    pub binary: Option<&'a Path>,
    /// Its orders; `modules` must be [`module_paths`] of the list below.
    pub config: &'a GuestConfig,
    /// In loading order.
    pub modules: &'a [Module],
    /// Where distributions keep a kernel's build options, and these.
    pub options: Option<(String, Vec<u8>)>,
    /// The user's files.
    pub add: &'a [Addition],
    /// Trees of unpacked packages, laid over the root.
    pub trees: &'a [PathBuf],
}

/// Guest paths of modules, in the same order.
pub fn module_paths(modules: &[Module]) -> Vec<String> {
    modules.iter().enumerate().map(|(i, module)| format!("/lab/{i:02}-{}.ko", module.name)).collect()
}

/// Guest path of the program that runs the command.
pub fn program_path(binary: Option<&Path>) -> String {
    let name =
        binary.and_then(|path| path.file_name()).map_or("stillcore".into(), |name| name.to_string_lossy());
    format!("/usr/bin/{name}")
}

/// The remedy for a program that is not static.
const STATIC: &str = "give --binary with a static one (cargo build --target ARCH-unknown-linux-musl)";

/// Checks that a file can run in the guest without a dynamic loader; `first` requires the lab's own
/// program too.
pub fn check_program(path: &Path, arch: Arch, first: bool) -> Result<()> {
    let remedy = |text: &str| text.replace("ARCH", &arch.to_string());
    let refuse =
        |reason: String, text: &str| Err(Error::Program { path: path.into(), reason, remedy: remedy(text) });
    let bytes = fs::read(path).context("read", path)?;
    let header = FileHeader64::<LittleEndian>::parse(&bytes[..]);
    let read = header.and_then(|header| Ok((header, header.program_headers(LittleEndian, &bytes[..])?)));
    let Ok((header, segments)) = read else {
        return refuse("it is not a 64-bit ELF program".into(), STATIC);
    };
    if header.e_machine(LittleEndian) != arch.elf_machine() {
        return refuse(format!("it is not a program for {arch}"), STATIC);
    }
    if segments.iter().any(|segment| segment.p_type(LittleEndian) == elf::PT_INTERP) {
        return refuse("it is dynamically linked".into(), STATIC);
    }
    if first && !contains(&bytes, GREETING.as_bytes()) {
        return refuse(
            "it cannot be the first program of a guest".into(),
            "give --binary with a stillcore for ARCH",
        );
    }
    Ok(())
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Writes the archive to a new file.
pub fn write(contents: &Contents<'_>, path: &Path) -> Result<()> {
    let file = File::create(path).context("create", path)?;
    build(contents, BufWriter::new(file)).map_err(|(path, reason)| Error::Io { action: "pack", path, reason })
}

/// An I/O error with the host file it came from.
type Failed = (PathBuf, io::Error);

fn build(contents: &Contents<'_>, out: impl Write) -> std::result::Result<(), Failed> {
    let mut tree = Tree { out, dirs: BTreeSet::new() };
    let own = |error: io::Error| (PathBuf::from("initramfs"), error);
    tree.skeleton().map_err(own)?;
    // Packages first: where names collide, what comes later wins.
    for root in contents.trees {
        tree.overlay(root, "")?;
    }
    tree.base_files(contents.config).map_err(own)?;
    tree.copy(contents.init, "init", Some(0o755))?;
    tree.symlink("usr/bin/stillcore", "/init").map_err(own)?;
    if let Some(binary) = contents.binary {
        tree.copy(binary, &program_path(Some(binary)), Some(0o755))?;
    }
    for (module, path) in contents.modules.iter().zip(module_paths(contents.modules)) {
        tree.file(&path, 0o644, &module.elf).map_err(own)?;
    }
    if let Some((path, text)) = &contents.options {
        tree.file(path, 0o644, text).map_err(own)?;
    }
    for addition in contents.add {
        tree.add(&addition.host, &addition.guest)?;
    }
    newc::trailer(tree.out).and_then(|mut out| out.flush()).map_err(own)
}

/// The archive under construction. Owners are root and times zero, so that the same input gives the
/// same bytes on every machine. Directories come before what is in them.
struct Tree<W: Write> {
    out: W,
    /// Directories (and links to directories) that exist already, without a leading slash.
    dirs: BTreeSet<String>,
}

impl<W: Write> Tree<W> {
    /// Adds an entry of `len` bytes; fewer bytes are an error.
    fn entry(&mut self, name: &str, node: newc::Builder, len: u64, data: &mut dyn Read) -> io::Result<()> {
        let len32 = u32::try_from(len).map_err(|_| {
            io::Error::other(format!("{name}: {len} bytes, the format holds less than 4 GiB"))
        })?;
        let mut entry = node.write(&mut self.out, len32);
        let copied = io::copy(&mut data.take(len), &mut entry)?;
        if copied != len {
            return Err(io::Error::other(format!("{name}: {copied} of {len} bytes")));
        }
        entry.finish().map(drop)
    }

    fn symlink(&mut self, name: &str, target: &str) -> io::Result<()> {
        let node = node(name, ModeFileType::Symlink, 0o777);
        self.entry(name, node, target.len() as u64, &mut target.as_bytes())
    }

    fn char_dev(&mut self, name: &str, major: u32, minor: u32) -> io::Result<()> {
        let node = node(name, ModeFileType::Char, 0o600).rdev_major(major).rdev_minor(minor);
        self.entry(name, node, 0, &mut io::empty())
    }

    fn skeleton(&mut self) -> io::Result<()> {
        for dir in [
            "dev",
            "etc",
            "lab",
            "proc",
            "root",
            "run",
            "sys",
            "tmp",
            "usr/bin",
            "usr/sbin",
            "usr/lib",
            "usr/lib64",
            "var",
        ] {
            self.dir(dir)?;
        }
        for link in ["bin", "sbin", "lib", "lib64"] {
            self.symlink(link, &format!("usr/{link}"))?;
            self.dirs.insert(link.into());
        }
        self.symlink("var/run", "/run")?;
        self.dirs.insert("var/run".into());
        self.char_dev("dev/console", 5, 1)?;
        self.char_dev("dev/null", 1, 3)
    }

    fn base_files(&mut self, config: &GuestConfig) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(config).map_err(io::Error::other)?;
        self.file(CONFIG_PATH, 0o644, &json)?;
        self.file(
            "etc/passwd",
            0o644,
            b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        )?;
        self.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n")?;
        let hosts = format!("127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {}\n", config.hostname);
        self.file("etc/hosts", 0o644, hosts.as_bytes())
    }

    /// Makes a directory with all its parents.
    fn dir(&mut self, name: &str) -> io::Result<()> {
        let name = name.trim_matches('/');
        if name.is_empty() || self.dirs.contains(name) {
            return Ok(());
        }
        self.parents(name)?;
        self.entry(name, node(name, ModeFileType::Directory, 0o755), 0, &mut io::empty())?;
        self.dirs.insert(name.into());
        Ok(())
    }

    fn parents(&mut self, name: &str) -> io::Result<()> {
        name.trim_start_matches('/').rsplit_once('/').map_or(Ok(()), |(parent, _)| self.dir(parent))
    }

    fn file(&mut self, name: &str, mode: u32, data: &[u8]) -> io::Result<()> {
        self.parents(name)?;
        self.entry(name, node(name, ModeFileType::Regular, mode), data.len() as u64, &mut { data })
    }

    fn copy(&mut self, host: &Path, name: &str, mode: Option<u32>) -> std::result::Result<(), Failed> {
        let mut copy = || {
            let mut file = File::open(host)?;
            let data = file.metadata()?;
            self.parents(name)?;
            let mode = mode.unwrap_or(data.permissions().mode() & 0o7777);
            self.entry(name, node(name, ModeFileType::Regular, mode), data.len(), &mut file)
        };
        copy().map_err(|error| (host.into(), error))
    }

    /// Adds a file, or a directory with all that is in it. Links are followed: the target may not
    /// be in the guest.
    fn add(&mut self, host: &Path, name: &str) -> std::result::Result<(), Failed> {
        let failed = |error| (host.to_path_buf(), error);
        if !fs::metadata(host).map_err(failed)?.is_dir() {
            return self.copy(host, name, None);
        }
        self.dir(name).map_err(failed)?;
        for (path, file_name) in children(host)? {
            self.add(&path, &format!("{}/{file_name}", name.trim_end_matches('/')))?;
        }
        Ok(())
    }

    /// Lays an unpacked package over the root, links kept as links, top directories moved into
    /// `/usr`.
    fn overlay(&mut self, host: &Path, name: &str) -> std::result::Result<(), Failed> {
        for (path, file_name) in children(host)? {
            let failed = |error| (path.clone(), error);
            let name = merged(&if name.is_empty() { file_name } else { format!("{name}/{file_name}") });
            let data = fs::symlink_metadata(&path).map_err(failed)?;
            if data.is_dir() {
                self.dir(&name).map_err(failed)?;
                self.overlay(&path, &name)?;
            } else if data.is_symlink() {
                let target = fs::read_link(&path).map_err(failed)?;
                if !self.dirs.contains(&name) {
                    self.parents(&name).map_err(failed)?;
                    self.symlink(&name, &target.to_string_lossy()).map_err(failed)?;
                }
            } else if data.is_file() {
                self.copy(&path, &name, None)?;
            }
        }
        Ok(())
    }
}

/// `mode` holds the permission bits.
fn node(name: &str, kind: ModeFileType, mode: u32) -> newc::Builder {
    newc::Builder::new(name.trim_start_matches('/')).mode(mode & 0o7777).set_mode_file_type(kind)
}

fn children(dir: &Path) -> std::result::Result<Vec<(PathBuf, String)>, Failed> {
    let failed = |error| (dir.to_path_buf(), error);
    let mut children = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        children.push((entry.path(), entry.file_name().to_string_lossy().into_owned()));
    }
    children.sort();
    Ok(children)
}

/// `usr/lib/x` for `lib/x`: packages of before the merge still ship files there.
fn merged(name: &str) -> String {
    let top = name.split('/').next().unwrap_or_default();
    if matches!(top, "bin" | "sbin" | "lib" | "lib64") { format!("usr/{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::{EM_AARCH64, EM_X86_64, Machine};
    use std::collections::BTreeMap;

    /// One entry as a reader of the format sees it.
    struct Entry {
        name: String,
        mode: u32,
        device: (u32, u32),
        data: Vec<u8>,
    }

    fn read(mut archive: &[u8]) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            let mut reader = newc::Reader::new(archive).unwrap();
            let entry = reader.entry().clone();
            if entry.is_trailer() {
                return entries;
            }
            let mut data = Vec::new();
            reader.read_to_end(&mut data).unwrap();
            let device = (entry.rdev_major(), entry.rdev_minor());
            entries.push(Entry { name: entry.name().to_owned(), mode: entry.mode(), device, data });
            archive = reader.finish().unwrap();
        }
    }

    /// A program with one program header of the given type.
    fn program(machine: Machine, header_type: u32) -> Vec<u8> {
        let mut elf = vec![0; 64 + 56];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[18..20].copy_from_slice(&machine.0.to_le_bytes());
        elf[32..40].copy_from_slice(&64u64.to_le_bytes());
        elf[54..56].copy_from_slice(&56u16.to_le_bytes());
        elf[56..58].copy_from_slice(&1u16.to_le_bytes());
        elf[64..68].copy_from_slice(&header_type.to_le_bytes());
        elf
    }

    fn config(modules: Vec<String>) -> GuestConfig {
        GuestConfig {
            schema: "s".into(),
            hostname: "lab".into(),
            argv: vec!["/usr/bin/stillcore".into()],
            env: BTreeMap::new(),
            cwd: "/root".into(),
            modules,
            port: "p".into(),
            serial: None,
            deadline_s: 1,
            limit_s: None,
        }
    }

    fn entries(contents: &Contents<'_>) -> Vec<Entry> {
        let mut archive = Vec::new();
        build(contents, &mut archive).unwrap();
        read(&archive)
    }

    fn find<'a>(entries: &'a [Entry], name: &str) -> &'a Entry {
        entries.iter().rfind(|entry| entry.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn holds_what_the_guest_needs_parents_first() {
        let dir = tempfile::tempdir().unwrap();
        let (init, tree) = (dir.path().join("stillcore"), dir.path().join("tree"));
        fs::write(&init, "program").unwrap();
        fs::create_dir_all(tree.join("lib/x86_64-linux-gnu")).unwrap();
        fs::create_dir_all(dir.path().join("sets/deep")).unwrap();
        fs::write(dir.path().join("sets/deep/a.toml"), "a").unwrap();
        fs::write(tree.join("lib/x86_64-linux-gnu/libc.so.6"), "libc").unwrap();
        std::os::unix::fs::symlink("libc.so.6", tree.join("lib/x86_64-linux-gnu/libc.so")).unwrap();
        let modules = [
            Module { name: "virtio".into(), elf: vec![1] },
            Module { name: "virtio_pci".into(), elf: vec![2] },
        ];
        let config = config(module_paths(&modules));
        let add = [Addition { host: dir.path().join("sets"), guest: "/opt/in/sets".into() }];
        let entries = entries(&Contents {
            init: &init,
            binary: None,
            config: &config,
            modules: &modules,
            options: Some(("boot/config-6.1.0".into(), b"CONFIG_SMP=y".to_vec())),
            add: &add,
            trees: &[tree],
        });

        assert_eq!(find(&entries, "init").mode, 0o100_755);
        assert_eq!(find(&entries, "lab/01-virtio_pci.ko").data, [2]);
        assert_eq!(find(&entries, "opt/in/sets/deep/a.toml").data, b"a");
        assert_eq!(find(&entries, "usr/lib/x86_64-linux-gnu/libc.so.6").data, b"libc");
        assert_eq!(find(&entries, "usr/lib/x86_64-linux-gnu/libc.so").data, b"libc.so.6");
        assert_eq!(find(&entries, "boot/config-6.1.0").data, b"CONFIG_SMP=y");
        assert_eq!(find(&entries, "dev/console").device, (5, 1));
        let modes = ["dev/console", "bin", "dev"].map(|name| find(&entries, name).mode);
        assert_eq!(modes, [0o020_600, 0o120_777, 0o040_755]);
        assert_eq!(find(&entries, "bin").data, b"usr/bin");
        let stored: GuestConfig = serde_json::from_slice(&find(&entries, "stillcore-lab.json").data).unwrap();
        assert_eq!(stored, config);

        for (at, entry) in entries.iter().enumerate() {
            if let Some((parent, _)) = entry.name.rsplit_once('/') {
                assert!(
                    entries[..at].iter().any(|earlier| earlier.name == parent),
                    "{} comes before {parent}",
                    entry.name
                );
            }
        }
        let dirs: Vec<_> = entries
            .iter()
            .filter(|entry| entry.mode & 0o170_000 == 0o040_000)
            .map(|entry| &entry.name)
            .collect();
        assert_eq!(dirs.len(), dirs.iter().collect::<BTreeSet<_>>().len(), "a directory comes twice");
    }

    #[test]
    fn a_missing_addition_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("init"), "").unwrap();
        let add = [Addition { host: "/nonexistent/x".into(), guest: "/x".into() }];
        let contents = Contents {
            init: &dir.path().join("init"),
            binary: None,
            config: &config(vec![]),
            modules: &[],
            options: None,
            add: &add,
            trees: &[],
        };
        let error = write(&contents, &dir.path().join("out")).unwrap_err().to_string();
        assert!(error.starts_with("cannot pack /nonexistent/x:"), "{error}");
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        let mut tree = Tree { out: Vec::new(), dirs: BTreeSet::new() };
        let file = node("x", ModeFileType::Regular, 0o644);
        assert!(tree.entry("x", file, 5, &mut &b"abc"[..]).is_err());
    }

    #[test]
    fn programs_that_cannot_run_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let check = |bytes: Vec<u8>, arch, first| {
            fs::write(&path, bytes).unwrap();
            check_program(&path, arch, first).map_err(|error| error.to_string())
        };
        assert!(
            check(b"#!/bin/sh".to_vec(), Arch::X86_64, false)
                .unwrap_err()
                .contains("not a 64-bit ELF program")
        );
        assert!(
            check(program(EM_X86_64, 3), Arch::X86_64, false).unwrap_err().contains("dynamically linked")
        );
        assert!(
            check(program(EM_X86_64, 1), Arch::Aarch64, false)
                .unwrap_err()
                .contains("aarch64-unknown-linux-musl")
        );
        assert!(check(program(EM_AARCH64, 1), Arch::Aarch64, false).is_ok());
        assert!(check(program(EM_AARCH64, 1), Arch::Aarch64, true).unwrap_err().contains("first program"));
        let mut own = program(EM_X86_64, 1);
        own.extend(GREETING.as_bytes());
        assert!(check(own, Arch::X86_64, true).is_ok());
    }
}
