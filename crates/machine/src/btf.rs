//! The kernel's type information (`/sys/kernel/btf/vmlinux`, Linux Documentation/bpf/btf.rst): it
//! lists the names of functions, types and enumerators between zero bytes, and where each member of
//! a structure is.

use crate::Root;
use model::kernel_locks::{Memory, Offsets};

/// Where the kernel keeps it.
pub const BTF: &str = "sys/kernel/btf/vmlinux";

/// Whether it lists a name.
pub fn has_name(btf: &[u8], name: &str) -> bool {
    let wanted: Vec<u8> = [&[0], name.as_bytes(), &[0]].concat();
    memchr::memmem::find(btf, &wanted).is_some()
}

/// The names among `wanted` that it lists, in its own form: what a capture takes of it.
pub fn names_in(btf: &[u8], wanted: &[String]) -> Vec<u8> {
    let found = wanted.iter().filter(|name| has_name(btf, name));
    let mut bytes = vec![0];
    found.for_each(|name| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    });
    bytes
}

/// Where this kernel has the owners of its locks; `None` where it does not say.
pub fn lock_offsets(root: &Root) -> Option<Offsets> {
    let btf = root.bytes(BTF).ok().flatten()?;
    let types = Types::parse(&btf)?;
    let sum = |first: Option<u32>, second: Option<u32>| first?.checked_add(second?);
    let owner = types.offset("rt_mutex_base", "owner");
    let rt_mutex = types.offset("rwbase_rt", "rtmutex");
    let memory = || {
        let lock = types.offset("mm_struct", "mmap_lock")?;
        let of_semaphore = sum(types.offset("rw_semaphore", "rwbase"), rt_mutex);
        let rt_mutex = sum(Some(lock), of_semaphore);
        Some(Memory { of_task: types.offset("task_struct", "mm")?, lock, rt_mutex })
    };
    Some(Offsets {
        pid: types.offset("task_struct", "pid")?,
        mutex: types.offset("mutex", "owner"),
        rwsem: types.offset("rw_semaphore", "owner"),
        rt_mutex: owner,
        rwbase: sum(rt_mutex, owner),
        memory: memory(),
    })
}

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Anonymous structures within one another: more are a circle.
const DEEPEST: usize = 8;

/// The types of a kernel, in this machine's order of bytes.
struct Types<'a> {
    strings: &'a [u8],
    /// Where each one begins; the first has the number 1.
    all: Vec<&'a [u8]>,
}

impl<'a> Types<'a> {
    /// `None` where the bytes are of another form, or cut short.
    fn parse(btf: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(*btf.first_chunk()?) != MAGIC {
            return None;
        }
        let header = |at: usize| number(btf, at).map(|value| value as usize);
        let [head, type_at, types, string_at, strings] = [4, 8, 12, 16, 20].map(header);
        let part = |at: usize, length: usize| {
            let from = head?.checked_add(at)?;
            btf.get(from..from.checked_add(length)?)
        };
        let (mut rest, strings) = (part(type_at?, types?)?, part(string_at?, strings?)?);
        let mut all = Vec::new();
        while !rest.is_empty() {
            all.push(rest);
            rest = rest.get(12 + behind(number(rest, 4)?)?..)?;
        }
        Some(Self { strings, all })
    }

    /// Where a member of a structure begins, bytes. `None` where there is none of these names, or
    /// where several structures of that name differ.
    fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        let of = |ty: &&&[u8]| is_structure(ty) && self.name(number(ty, 0)) == Some(structure.as_bytes());
        let mut bits = self.all.iter().filter(of).map(|ty| self.member(ty, member.as_bytes(), 0));
        let first = bits.next()??;
        (first % 8 == 0 && bits.all(|other| other == Some(first))).then_some(first / 8)
    }

    /// Where a member begins, bits; those of anonymous structures are the outer one's.
    fn member(&self, ty: &[u8], wanted: &[u8], depth: usize) -> Option<u32> {
        let info = number(ty, 4)?;
        (0..(info & 0xffff) as usize).find_map(|at| {
            let member = ty.get(12 + 12 * at..)?;
            let offset = number(member, 8)?;
            // With this flag the upper byte is the width of a bit field.
            let offset = if info >> 31 == 1 { offset & 0xff_ffff } else { offset };
            match self.name(number(member, 0))? {
                name if name == wanted => Some(offset),
                [] if depth < DEEPEST => {
                    let inner = self.all.get((number(member, 4)? as usize).checked_sub(1)?)?;
                    let within = is_structure(inner).then(|| self.member(inner, wanted, depth + 1))??;
                    offset.checked_add(within)
                }
                _ => None,
            }
        })
    }

    fn name(&self, at: Option<u32>) -> Option<&'a [u8]> {
        self.strings.get(at? as usize..)?.split(|byte| *byte == 0).next()
    }
}

fn is_structure(ty: &[u8]) -> bool {
    number(ty, 4).is_some_and(|info| [STRUCT, UNION].contains(&kind(info)))
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// Bytes behind a type, by its kind; `None`: of a kind that is not known, whose length is not
/// either.
fn behind(info: u32) -> Option<usize> {
    let n = (info & 0xffff) as usize;
    Some(match kind(info) {
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections of data, enumerators of 64 bits.
        STRUCT | UNION | 15 | 19 => 12 * n,
        // Enumerators, prototypes of functions.
        6 | 13 => 8 * n,
        // Pointers, forward declarations, other names, qualifiers, functions, floats, tags of
        // types.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `int`, `mutex { …; owner @8 }`, `task_struct { bits; union { x; pid @4 } @16 }`, and a
    /// `mutex` of somebody else.
    fn types(other_owner: u32) -> Vec<u8> {
        let strings = b"\0int\0mutex\0owner\0task_struct\0pid\0x\0";
        let at = |name: &str| {
            let wanted = [&[0], name.as_bytes(), &[0]].concat();
            strings.windows(wanted.len()).position(|window| window == wanted).unwrap() as u32 + 1
        };
        let flag = 1 << 31;
        let words = [
            vec![at("int"), 1 << 24, 4, 32],
            vec![at("mutex"), STRUCT << 24 | 2, 16, at("x"), 1, 0, at("owner"), 1, 64],
            vec![0, UNION << 24 | 2, 8, at("x"), 1, 0, at("pid"), 1, 32],
            vec![at("task_struct"), flag | STRUCT << 24 | 2, 24, at("x"), 1, 3 << 24 | 5, 0, 3, 128],
            vec![at("mutex"), STRUCT << 24 | 1, 16, at("owner"), 1, other_owner],
        ];
        let types: Vec<u8> = words.concat().iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (length, strings_length) = (types.len() as u32, strings.len() as u32);
        let mut all = MAGIC.to_ne_bytes().to_vec();
        all.extend([1, 0]);
        all.extend([24, 0, length, length, strings_length].iter().flat_map(|word| word.to_ne_bytes()));
        [all, types, strings.to_vec()].concat()
    }

    #[test]
    fn members_are_where_the_kernel_says_also_within_anonymous_unions() {
        let btf = types(64);
        let types = Types::parse(&btf).unwrap();
        assert_eq!(types.offset("mutex", "owner"), Some(8));
        assert_eq!(types.offset("task_struct", "pid"), Some(20));
        assert_eq!((types.offset("mutex", "pid"), types.offset("int", "x")), (None, None));
    }

    #[test]
    fn what_is_not_clear_has_no_offset() {
        let btf = types(128);
        assert_eq!(Types::parse(&btf).unwrap().offset("mutex", "owner"), None, "two that differ");
        for length in 0..btf.len() {
            // Cut anywhere: no panic, and nothing that is not there.
            let cut = Types::parse(&btf[..length]).and_then(|types| types.offset("task_struct", "pid"));
            assert_eq!(cut, None, "{length}");
        }
    }

    /// Where this kernel has such information, a task's own number is in it.
    #[test]
    fn this_kernel_has_its_mutexes() {
        let Some(offsets) = lock_offsets(&Root::live()) else {
            println!("skipped: this kernel has no type information");
            return;
        };
        assert!(offsets.pid > 0 && offsets.pid % 4 == 0, "{offsets:?}");
        assert!(offsets.mutex.is_some() || offsets.rt_mutex.is_some(), "{offsets:?}");
    }

    #[test]
    fn whole_names_are_taken() {
        assert_eq!(names_in(b"\0a\0bc\0", &["bc".to_owned(), "b".to_owned()]), b"\0bc\0");
    }
}
