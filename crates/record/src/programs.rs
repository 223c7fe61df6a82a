//! Names for addresses of user space: which function of a process lies where in its memory.
//!
//! `/proc/PID/maps` shows which part of which file is where (Linux
//! Documentation/filesystems/proc.rst); the symbol tables of the file name the function (System V
//! ABI, gABI 4.1, "Symbol Table"). A process that has ended when the trace is named must have been
//! read while it lived, or its addresses stay numbers.

use model::user_frames::UserFrame;
use object::read::{Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The most processes that are kept: a look must end.
const MOST: usize = 16_384;
/// The largest program that is looked into, bytes, and the most of its symbols: whoever runs one
/// may have made it, and a file with holes claims tables of any size. A browser with all its
/// symbols has some 400 MB and a million of them.
const MOST_BYTES: u64 = 1 << 30;
const MOST_SYMBOLS: usize = 4 << 20;
/// All names of a program together, bytes: many symbols may share one that is long.
const MOST_NAMES: usize = 256 << 20;

/// Part of a file in the memory of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Mapping {
    from: u64,
    to: u64,
    /// Where in the file it begins.
    offset: u64,
    path: String,
}

/// The programs of the processes seen so far.
#[derive(Debug, Default)]
pub(super) struct Programs {
    of: BTreeMap<u32, BTreeSet<Mapping>>,
    /// Processes whose root is not this one's: when they have ended, nobody sees their files.
    elsewhere: BTreeSet<u32>,
}

impl Programs {
    /// Looks at all processes there are.
    pub(super) fn look(&mut self) {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        self.look_at(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()));
    }

    /// Looks at these processes, those of them that are there.
    pub(super) fn look_at(&mut self, tgids: impl IntoIterator<Item = u32>) {
        let own_root = root_of("self");
        for tgid in tgids {
            if self.of.len() >= MOST && !self.of.contains_key(&tgid) {
                return;
            }
            // First of all: of one that ends meanwhile nothing new is known, and nothing wrong.
            let Some(root) = root_of(&tgid.to_string()) else { continue };
            let Ok(maps) = fs::read_to_string(format!("/proc/{tgid}/maps")) else { continue };
            // Kernel threads have none.
            let mappings: BTreeSet<Mapping> = maps.lines().filter_map(mapping).collect();
            if !mappings.is_empty() {
                if Some(root) != own_root {
                    self.elsewhere.insert(tgid);
                }
                self.of.entry(tgid).or_default().extend(mappings);
            }
        }
    }

    /// Names for addresses, each given with its process; those of processes that nobody has seen
    /// have none.
    pub(super) fn name(&self, addresses: &BTreeSet<(u32, u64)>) -> Vec<UserFrame> {
        let mut files: HashMap<PathBuf, Option<Functions>> = HashMap::new();
        let mut name = |&(tgid, address): &(u32, u64)| {
            let place = |mapping: &&Mapping| (mapping.from..mapping.to).contains(&address);
            // The last of several that were there one after the other is as good a guess as another
            // one: none is made.
            let mut there = self.of.get(&tgid)?.iter().filter(place);
            let mapping = there.next().filter(|_| there.next().is_none())?;
            let offset = address - mapping.from + mapping.offset;
            let base = mapping.path.rsplit('/').next().unwrap_or(&mapping.path);
            let path = visible(tgid, &mapping.path);
            // Another file may have that name here.
            let here = Some(Path::new(&mapping.path)).filter(|_| !self.elsewhere.contains(&tgid));
            let functions = if here.is_none() && path == Path::new(&mapping.path) {
                &None
            } else {
                &*files.entry(path).or_insert_with_key(|path| Functions::of_either(path, here))
            };
            let function = functions.as_ref().and_then(|functions| functions.at(offset));
            let function = match function {
                Some(function) => format!("{function} ({base})"),
                None if mapping.path.starts_with('/') => format!("{base}+{offset:#x}"),
                None => base.to_owned(),
            };
            Some(UserFrame { tgid, address, function })
        };
        addresses.iter().filter_map(&mut name).collect()
    }
}

/// The files with code in the text of a process's `maps`.
pub(super) fn files(maps: &str) -> BTreeSet<String> {
    let paths = maps.lines().filter_map(mapping).map(|one| one.path);
    paths.filter(|path| path.starts_with('/') && !path.ends_with(" (deleted)")).collect()
}

/// Where the code at an address of this process is: file and offset.
pub(super) fn place_of(address: u64) -> Option<(String, u64)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut mappings = maps.lines().filter_map(mapping);
    let mapping = mappings.find(|one| (one.from..one.to).contains(&address))?;
    Some((mapping.path, address - mapping.from + mapping.offset))
}

/// Where in a file functions of these names begin; several places where it has several versions of
/// one.
pub(super) fn offsets<'n>(path: &Path, names: &[&'n str]) -> Vec<(&'n str, u64)> {
    let Some(cache) = cache(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&cache) else { return Vec::new() };
    let segments: Vec<_> =
        file.segments().map(|segment| (segment.address(), segment.size(), segment.file_range().0)).collect();
    let symbols = file.symbols().chain(file.dynamic_symbols()).take(MOST_SYMBOLS);
    let functions = symbols.filter(|one| one.kind() == SymbolKind::Text && one.is_definition());
    let mut found: Vec<(&str, u64)> = functions
        .filter_map(|one| {
            let symbol = one.name().ok()?;
            let name = names.iter().find(|name| **name == symbol)?;
            let within = |(from, size, _): &&(u64, u64, u64)| {
                (*from..from.saturating_add(*size)).contains(&one.address())
            };
            let (from, _, offset) = segments.iter().find(within)?;
            Some((*name, one.address() - from + offset))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The file as the process sees it, in its own root; as this one does where that is gone.
pub(super) fn visible(tgid: u32, path: &str) -> PathBuf {
    let own = PathBuf::from(format!("/proc/{tgid}/root{path}"));
    if path.starts_with('/') && own.exists() { own } else { PathBuf::from(path) }
}

/// The root directory of a process: device and inode.
fn root_of(process: &str) -> Option<(u64, u64)> {
    let root = fs::metadata(format!("/proc/{process}/root/")).ok()?;
    Some((root.dev(), root.ino()))
}

/// `55d0c0a5c000-55d0c0a5d000 r-xp 00001000 fe:00 1234 /usr/bin/worker`: what can be executed.
fn mapping(line: &str) -> Option<Mapping> {
    // A name may have spaces in it.
    let words: Vec<&str> = line.splitn(6, ' ').collect();
    let [range, rights, offset, _device, _inode, rest @ ..] = &words[..] else { return None };
    let (from, to) = range.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let path = rest.first().map(|path| path.trim()).filter(|path| !path.is_empty());
    let path = path.unwrap_or("[anonymous]").to_owned();
    rights.contains('x').then_some(Mapping { from: hex(from)?, to: hex(to)?, offset: hex(offset)?, path })
}

/// A file to look into.
fn cache(path: &Path) -> Option<ReadCache<fs::File>> {
    // A device, a socket or a pipe may keep who reads it, and a pipe who opens it: by now it may
    // have the name of the program.
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    let is_one = |data: fs::Metadata| data.is_file() && data.len() <= MOST_BYTES;
    let file = Some(file).filter(|file| file.metadata().is_ok_and(is_one))?;
    Some(ReadCache::new(file))
}

/// The functions of a file.
struct Functions {
    /// Where in the file, and where in memory, each loaded part begins, and its length.
    segments: Vec<[u64; 3]>,
    /// Address, length (0 where the file does not give it), and name, by address.
    functions: Vec<(u64, u64, String)>,
}

impl Functions {
    fn of(path: &Path) -> Option<Self> {
        Self::read(&cache(path)?)
    }

    /// Of a file as its process sees it, or as it is seen here: the process may end at any moment,
    /// and its root with it.
    fn of_either(path: &Path, here: Option<&Path>) -> Option<Self> {
        Self::of(path).or_else(|| Self::of(here.filter(|here| *here != path)?))
    }

    fn read<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            [offset, segment.address(), length]
        });
        let symbols = file.symbols().chain(file.dynamic_symbols()).take(MOST_SYMBOLS);
        let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let mut room = MOST_NAMES;
        let entries = functions.filter_map(|one| {
            let name = one.name().ok()?;
            room = room.checked_sub(name.len())?;
            Some((one.address(), one.size(), name.to_owned()))
        });
        let mut functions: Vec<_> = entries.collect();
        functions.sort_unstable();
        functions.dedup_by_key(|one| one.0);
        Some(Self { segments: segments.collect(), functions })
    }

    /// The function at a place in the file.
    fn at(&self, offset: u64) -> Option<String> {
        let within =
            |[start, _, length]: &&[u64; 3]| (*start..start.saturating_add(*length)).contains(&offset);
        let [start, address, _] = self.segments.iter().find(within)?;
        let address = (offset - start).wrapping_add(*address);
        let after = self.functions.partition_point(|one| one.0 <= address);
        let (from, length, name) = &self.functions[after.checked_sub(1)?];
        // The instruction behind a call may be the first behind the function.
        (*length == 0 || address <= from.saturating_add(*length)).then(|| readable(name))
    }
}

/// The name as the program's author has written it (Itanium C++ ABI, "External Names"; Rust RFC
/// 2603).
fn readable(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let cpp =
        cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    cpp.unwrap_or_else(|| name.split('@').next().unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn somewhere() -> u64 {
        somewhere as fn() -> u64 as usize as u64
    }

    #[test]
    fn a_function_of_this_program_has_its_name() {
        let (tgid, mut programs) = (std::process::id(), Programs::default());
        programs.look();
        let named = programs.name(&[(tgid, somewhere() + 1), (tgid, 16), (u32::MAX, 16)].into());
        assert_eq!(named.len(), 1, "nothing is where nobody has anything: {named:?}");
        // A test program may have been stripped of its symbols.
        let own = Functions::of(Path::new("/proc/self/exe")).unwrap();
        let name = if own.functions.is_empty() { "+0x" } else { "programs::tests::somewhere (" };
        assert!(named[0].function.contains(name), "{named:?}");
    }

    #[test]
    fn a_process_may_end_before_its_file_is_read() {
        let own = fs::read_link("/proc/self/exe").unwrap();
        let gone = Path::new("/proc/4294967295/root").join(own.strip_prefix("/").unwrap());
        assert!(Functions::of_either(&gone, Some(&own)).is_some());
        assert!(Functions::of_either(&gone, None).is_none());
        assert!(Functions::of_either(&gone, Some(&gone)).is_none());
        // What was known of it stays known.
        let mut programs = Programs::default();
        programs.look_at([std::process::id()]);
        let known = programs.of.len();
        programs.look_at([u32::MAX]);
        assert_eq!((programs.of.len(), programs.elsewhere.len()), (known, 0));
    }

    /// Of a container that is gone the path is left: here it leads to another file.
    #[test]
    fn files_of_an_ended_process_with_another_root_are_not_looked_for_here() {
        let own = fs::read_to_string("/proc/self/maps").unwrap();
        let mappings = own.lines().filter_map(mapping).collect();
        let mut programs = Programs { of: [(u32::MAX, mappings)].into(), ..Programs::default() };
        let address = [(u32::MAX, somewhere() + 1)].into();
        let here = programs.name(&address);
        programs.elsewhere.insert(u32::MAX);
        let gone = programs.name(&address);
        assert!(gone[0].function.contains("+0x"), "{gone:?}");
        let is_stripped = here[0].function.contains("+0x");
        assert!(is_stripped || here[0].function.contains("somewhere"), "{here:?}");
    }

    #[test]
    fn lines_of_maps_are_parts_of_files_that_can_be_executed() {
        let of = |line: &str| mapping(line).map(|one| (one.from, one.to, one.offset, one.path));
        let text = of("7f0c1000-7f0c2000 r-xp 00002000 fe:00 14 /usr/lib/a b.so (deleted)");
        assert_eq!(text, Some((0x7f0c_1000, 0x7f0c_2000, 0x2000, "/usr/lib/a b.so (deleted)".to_owned())));
        assert_eq!(of("7f0c1000-7f0c2000 rw-p 00002000 fe:00 14 /usr/lib/a.so"), None);
        assert_eq!(of("1000-2000 r-xp 00000000 00:00 0").unwrap().3, "[anonymous]");
        assert_eq!((of(""), of("x-y r-xp 0 0 0")), (None, None));
    }

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(readable("_ZN3ros8Executor4spinEv"), "ros::Executor::spin");
        assert_eq!(readable("_ZN4core3ptr4read17h0123456789abcdefE"), "core::ptr::read");
        assert_eq!((readable("main"), readable("write@@GLIBC_2.2.5")), ("main".into(), "write".into()));
    }

    #[test]
    fn what_is_no_program_has_no_functions() {
        assert!(Functions::of(Path::new("/proc/self/status")).is_none());
        assert!(
            Functions::of(Path::new("/dev/zero")).is_none() && Functions::of(Path::new("/none")).is_none()
        );
    }

    /// A program can be mapped, and its name be that of a pipe afterwards.
    #[test]
    fn a_pipe_in_the_place_of_a_program_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("program");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || said.send(Functions::of(&pipe).is_none()));
        let limit = std::time::Duration::from_secs(30);
        assert_eq!(heard.recv_timeout(limit), Ok(true), "it waits for a writer");
    }

    /// An ELF file of so many functions, which share one name of so many bytes.
    fn program(count: usize, name: usize) -> Vec<u8> {
        let (symbols, names) = (64 + 3 * 64, 64 + 3 * 64 + 24 * count);
        let mut bytes = vec![0u8; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[16..24].copy_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
        bytes[40..48].copy_from_slice(&64u64.to_le_bytes());
        bytes[52..64].copy_from_slice(&[64, 0, 56, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
        // Kind, offset, size, link, size of an entry: nothing, SHT_SYMTAB, SHT_STRTAB.
        for (kind, offset, size, link, entry) in
            [(0u32, 0, 0, 0u32, 0), (2, symbols, 24 * count, 2, 24), (3, names, name + 2, 0, 0)]
        {
            let mut header = [0u8; 64];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
            header[40..44].copy_from_slice(&link.to_le_bytes());
            header[56..64].copy_from_slice(&(entry as u64).to_le_bytes());
            bytes.extend(header);
        }
        for at in 0..count as u64 {
            // Name 1, a global function, of section 1; the first of a table is none (gABI 4.1,
            // "Symbol Table").
            bytes.extend([1, 0, 0, 0, 0x12, 0, 1, 0]);
            bytes.extend((0x1000 + at * 16).to_le_bytes());
            bytes.extend(16u64.to_le_bytes());
        }
        bytes.push(0);
        bytes.resize(bytes.len() + name, b'a');
        bytes.push(0);
        bytes
    }

    /// Tables of a file with holes may have any size.
    #[test]
    fn what_is_larger_than_any_program_is_not_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        fs::write(&path, program(4, 9)).unwrap();
        let resize = |length| {
            fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(length)).unwrap();
        };
        resize(MOST_BYTES);
        assert_eq!(Functions::of(&path).unwrap().functions.len(), 3);
        resize(MOST_BYTES + 1);
        assert!(Functions::of(&path).is_none());
    }

    /// As many symbols as fit into a small file, all of one long name.
    #[test]
    fn a_long_name_is_not_kept_as_often_as_it_is_named() {
        const NAME: usize = 1 << 20;
        let bytes = program(MOST_NAMES / NAME + 50, NAME);
        let functions = Functions::read(&bytes[..]).unwrap().functions;
        let all: usize = functions.iter().map(|one| one.2.len()).sum();
        assert!(functions.len() > 10 && all <= MOST_NAMES, "{} names of {all} bytes", functions.len());
    }

    /// Damaged at each place in turn, its tables included.
    #[test]
    fn a_damaged_program_has_functions_or_none() {
        let whole = program(40, 9);
        assert_eq!(Functions::read(&whole[..]).unwrap().functions.len(), 39);
        for (at, flipped) in (0..whole.len()).flat_map(|at| [0x01, 0x81, 0xff].map(|bits| (at, bits))) {
            let mut bytes = whole.clone();
            bytes[at] ^= flipped;
            if let Some(functions) = Functions::read(&bytes[..]) {
                let _ = (functions.at(0), functions.at(u64::MAX), functions.at(0x1000));
            }
        }
    }
}
