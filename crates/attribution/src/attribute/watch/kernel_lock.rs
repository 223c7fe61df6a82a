//! The owner of a lock of the kernel, out of an event of `model::kernel_locks`.

use super::event::Owner;
use crate::labels::{LabelId, Labels};
use ftrace::{Field, Symbols};
use model::kernel_locks::{MMAP_LOCK, MMAP_RT_MUTEX, OwnedKind};

/// The fields of the event.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    lock: Field,
    flags: Field,
    /// Of the kinds of locks whose owner this kernel shows.
    kinds: Vec<(OwnedKind, Words)>,
    /// Where the lock of a process's memory is in that, and the rt-mutex in that one.
    mmap_lock: Option<[Field; 2]>,
}

/// What the event shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) lock: u64,
    pub(super) kind: OwnedKind,
    pub(super) owner: Owner,
    /// Whether it is the lock of its owner's memory.
    pub(super) is_mmap_lock: bool,
}

#[derive(Debug, Clone)]
struct Words {
    word: Field,
    /// The task's number, by the value of the flags in the word.
    tasks: Vec<Field>,
    /// Its memory's address, likewise.
    memories: Vec<Field>,
    again: Field,
}

impl Fields {
    pub(super) fn of(field: &impl Fn(&str) -> Option<Field>) -> Option<Self> {
        let words = |kind: OwnedKind| {
            let name = kind.field();
            let tasks = kind.flags().map(|flags| field(&format!("{name}{flags}"))).collect::<Option<_>>()?;
            let memories =
                kind.memory_flags().map_while(|flags| field(&format!("{name}_mm{flags}"))).collect();
            Some((
                kind,
                Words { word: field(name)?, tasks, memories, again: field(&format!("{name}_again"))? },
            ))
        };
        let kinds = OwnedKind::ALL.into_iter().filter_map(words).collect();
        let mmap_lock = || Some([field(MMAP_LOCK)?, field(MMAP_RT_MUTEX)?]);
        Some(Self { lock: field("lock")?, flags: field("flags")?, kinds, mmap_lock: mmap_lock() })
    }

    /// `own`: the task that waits; `value`: that of a field. `None` where the owner changed while
    /// it was read, and for locks without one.
    pub(super) fn read(&self, own: i32, value: &impl Fn(&Field) -> Option<u64>) -> Option<Seen> {
        let kind = OwnedKind::of_flags(value(&self.flags)?)?;
        let (_, words) = self.kinds.iter().find(|(of, _)| *of == kind)?;
        let word = value(&words.word)?;
        if value(&words.again)? != word {
            return None;
        }
        // Tasks begin at multiples of more than eight bytes.
        let (pointer, flags) = (word & !7, word & 7);
        let owner = match (kind, words.tasks.get(usize::try_from(flags).ok()?)) {
            (OwnedKind::RwSemaphore, _) if flags & 1 != 0 => Owner::Readers,
            _ if pointer == 0 => Owner::Nobody,
            (_, task) => match value(task?)? as i32 {
                // A writer has it already, and waits for the readers before it.
                task if task == own && kind == OwnedKind::RwBase => Owner::Readers,
                // It is handed over to the task that looks.
                task if task == own => Owner::Nobody,
                task if task > 0 => Owner::Task(task),
                _ => return None,
            },
        };
        let lock = value(&self.lock)?;
        let memory =
            words.memories.get(usize::try_from(flags).ok()?).filter(|_| pointer != 0).and_then(value);
        let place = |memory: u64, field: &Field| value(field).map(|place| memory.wrapping_add(place));
        let is_mmap_lock = memory.filter(|memory| *memory != 0).is_some_and(|memory| {
            self.mmap_lock.iter().flatten().any(|field| place(memory, field) == Some(lock))
        });
        Some(Seen { lock, kind, owner, is_mmap_lock })
    }
}

/// The name of a lock of the kernel's own; those in allocated memory have none.
pub(super) fn name(symbols: &Symbols, labels: &mut Labels, lock: u64) -> Option<LabelId> {
    match symbols.resolve(lock) {
        Some((name, 0)) => Some(labels.id(&name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftrace::FieldKind;
    use std::collections::BTreeMap;

    /// A field whose offset is its name's place among all.
    fn fields(names: &[String]) -> Fields {
        let field = |name: &str| {
            let at = names.iter().position(|one| one == name)?;
            Some(Field {
                name: name.to_owned(),
                type_name: "u64".to_owned(),
                offset: 8 * at,
                size: 8,
                signed: false,
                kind: FieldKind::Scalar,
            })
        };
        Fields::of(&field).unwrap()
    }

    fn read(kind: OwnedKind, flags: u64, word: u64, again: u64, tasks: &[u64]) -> Option<Owner> {
        let name = kind.field();
        let mut values = BTreeMap::from([
            ("lock".to_owned(), 0xf00),
            ("flags".to_owned(), flags),
            (name.to_owned(), word),
            (format!("{name}_again"), again),
        ]);
        values.extend(
            kind.flags().map(|flags| {
                (format!("{name}{flags}"), tasks.get(flags as usize).copied().unwrap_or(0xdead))
            }),
        );
        let names: Vec<String> = values.keys().cloned().collect();
        let fields = fields(&names);
        let seen = fields.read(7, &|field: &Field| values.get(&field.name).copied())?;
        assert_eq!((seen.lock, seen.kind), (0xf00, kind));
        Some(seen.owner)
    }

    #[test]
    fn the_flags_choose_which_number_is_the_owners() {
        use OwnedKind::{Mutex, RtMutex, RwBase, RwSemaphore};
        let task = 0xffff_8880_0000_0040;
        assert_eq!(read(Mutex, 32, task, task, &[77, 1, 2]), Some(Owner::Task(77)));
        assert_eq!(read(Mutex, 33, task | 3, task | 3, &[1, 2, 3, 77]), Some(Owner::Task(77)));
        assert_eq!(read(Mutex, 32, 1, 1, &[]), Some(Owner::Nobody));
        assert_eq!(read(RwSemaphore, 4, task, task, &[77]), Some(Owner::Task(77)));
        assert_eq!(read(RwSemaphore, 2, task | 3, task | 3, &[]), Some(Owner::Readers));
        assert_eq!(read(RwSemaphore, 4, 1, 1, &[]), Some(Owner::Readers));
        assert_eq!(read(RtMutex, 8, task | 1, task | 1, &[5, 77]), Some(Owner::Task(77)));
        assert_eq!(read(RwBase, 12, task, task, &[7]), Some(Owner::Readers), "its own");
        assert_eq!(read(Mutex, 33, task | 5, task | 5, &[1, 2, 3, 4, 5, 7]), Some(Owner::Nobody));
        assert_eq!(read(RwBase, 10, task, task, &[78]), Some(Owner::Task(78)));
    }

    #[test]
    fn the_lock_of_the_owners_memory_is_known_by_its_place_in_that() {
        let task = 0xffff_8880_0000_0040;
        let of = |flags: u64, place: u64| {
            let mut values: BTreeMap<String, u64> =
                [("lock", 0xf00), ("flags", 4), (MMAP_LOCK, place), (MMAP_RT_MUTEX, 0x110)]
                    .map(|(name, value)| (name.to_owned(), value))
                    .into();
            for name in ["rwsem", "rwsem_again"] {
                values.insert(name.to_owned(), task | flags);
            }
            values.insert("rwsem0".to_owned(), 77);
            for k in 0..4 {
                values.insert(format!("rwsem_mm{k}"), if k == flags { 0xe00 } else { 0xdead });
            }
            let names: Vec<String> = values.keys().cloned().collect();
            fields(&names).read(7, &|field: &Field| values.get(&field.name).copied()).unwrap().is_mmap_lock
        };
        // Also while readers hold it.
        assert_eq!([of(0, 0x100), of(3, 0x100), of(0, 0x108)], [true, true, false]);
    }

    #[test]
    fn an_owner_that_changed_while_it_was_read_is_none() {
        let task = 0xffff_8880_0000_0040;
        assert_eq!(read(OwnedKind::Mutex, 32, task, task | 1, &[77, 77]), None);
        // Flags that no writer's word has, and a number that is none.
        assert_eq!(read(OwnedKind::RwSemaphore, 4, task | 2, task | 2, &[77]), None);
        assert_eq!(read(OwnedKind::Mutex, 32, task, task, &[0]), None);
    }
}
