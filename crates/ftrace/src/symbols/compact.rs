//! Names of functions for who keeps them for weeks: packed, with four bytes an address.

use std::sync::{Arc, Mutex, PoisonError};

/// Names that are packed together. More take less memory, and longer to look one up.
const TOGETHER: usize = 128;
/// Blocks of names that are kept unpacked: stacks of a program pass the same few.
const RECENT: usize = 16;
/// Effort of the packing, of 10.
const LEVEL: u8 = 6;

/// Functions by address.
#[derive(Debug, Default)]
pub(super) struct Compact {
    /// Two tables: those that came in order, and those that came behind a higher one.
    tables: [Vec<Block>; 2],
    /// Unpacked, the latest first.
    recent: Mutex<Vec<(At, Arc<str>)>>,
}

/// Table and block in it.
type At = (usize, usize);

/// Neighbours.
#[derive(Debug)]
struct Block {
    first: u64,
    /// Of each name, behind `first`.
    offsets: Box<[u32]>,
    /// The names, a line each; raw deflate.
    names: Box<[u8]>,
    /// Bytes that these become.
    bytes: usize,
}

/// Packs names while they come. The kernel lists its own functions by address, so that they are
/// packed on the way; those of modules come as each module has them, and are sorted at the end.
#[derive(Debug, Default)]
pub(super) struct Packer {
    in_order: Table,
    others: Vec<(u64, Box<str>)>,
}

/// A table that is being packed.
#[derive(Debug, Default)]
struct Table {
    blocks: Vec<Block>,
    /// The block to come.
    first: u64,
    last: u64,
    offsets: Vec<u32>,
    names: String,
}

impl Packer {
    /// Takes the next. Of several names for one address the first is the one that counts.
    pub(super) fn add(&mut self, address: u64, name: &str) {
        if address < self.in_order.last {
            self.others.push((address, name.into()));
        } else {
            self.in_order.add(address, name);
        }
    }

    pub(super) fn finish(mut self) -> Compact {
        self.others.sort_by_key(|other| other.0);
        let mut sorted = Table::default();
        self.others.iter().for_each(|(address, name)| sorted.add(*address, name));
        Compact { tables: [self.in_order.finish(), sorted.finish()], recent: Mutex::default() }
    }
}

impl Table {
    /// Takes the next, which is at or above the last.
    fn add(&mut self, address: u64, name: &str) {
        // Names of one address stay together.
        if self.offsets.len() >= TOGETHER && address != self.last {
            self.pack();
        }
        let offset = match u32::try_from(address - self.first) {
            Ok(offset) if !self.offsets.is_empty() => offset,
            _ => {
                self.pack();
                self.first = address;
                0
            }
        };
        if !self.offsets.is_empty() {
            self.names.push('\n');
        }
        self.offsets.push(offset);
        self.names.push_str(name);
        self.last = address;
    }

    fn pack(&mut self) {
        if self.offsets.is_empty() {
            return;
        }
        let names = miniz_oxide::deflate::compress_to_vec(self.names.as_bytes(), LEVEL).into();
        let offsets = self.offsets.as_slice().into();
        self.blocks.push(Block { first: self.first, offsets, names, bytes: self.names.len() });
        self.offsets.clear();
        self.names.clear();
    }

    fn finish(mut self) -> Vec<Block> {
        self.pack();
        self.blocks
    }
}

impl Compact {
    /// Number of names.
    pub(super) fn len(&self) -> usize {
        self.tables.iter().flatten().map(|block| block.offsets.len()).sum()
    }

    /// Block and place of the function at or below an address, and how far above it that is.
    fn place(&self, address: u64) -> Option<(At, usize, u64)> {
        let places = (0..self.tables.len()).filter_map(|table| self.place_in(table, address));
        places.min_by_key(|(.., offset)| *offset)
    }

    fn place_in(&self, table: usize, address: u64) -> Option<(At, usize, u64)> {
        let blocks = self.tables.get(table)?;
        let at = blocks.partition_point(|block| block.first <= address).checked_sub(1)?;
        let block = blocks.get(at)?;
        let above = address - block.first;
        let last = block.offsets.partition_point(|offset| u64::from(*offset) <= above).checked_sub(1)?;
        let offset = *block.offsets.get(last)?;
        let function = block.offsets.partition_point(|other| *other < offset);
        Some(((table, at), function, above - u64::from(offset)))
    }

    /// Whether a function begins there.
    pub(super) fn begins(&self, address: u64) -> bool {
        self.place(address).is_some_and(|(.., offset)| offset == 0)
    }

    /// The function at or below `address`, and how far above it the address is.
    pub(super) fn resolve(&self, address: u64) -> Option<(String, u64)> {
        let (at, function, offset) = self.place(address)?;
        let names = self.names(at)?;
        Some((names.lines().nth(function)?.to_owned(), offset))
    }

    /// The lowest address with this name. Looks through all of them.
    pub(super) fn find(&self, name: &str) -> Option<u64> {
        let in_block = |block: &Block| {
            let names = block.unpacked()?;
            let at = names.lines().position(|known| known == name)?;
            Some(block.first + u64::from(*block.offsets.get(at)?))
        };
        self.tables.iter().filter_map(|blocks| blocks.iter().find_map(in_block)).min()
    }

    fn names(&self, at: At) -> Option<Arc<str>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|(block, _)| *block == at);
        let names = match known {
            Some(place) => recent.remove(place).1,
            None => self.tables.get(at.0)?.get(at.1)?.unpacked()?.into(),
        };
        recent.insert(0, (at, Arc::clone(&names)));
        recent.truncate(RECENT);
        Some(names)
    }
}

impl Block {
    fn unpacked(&self) -> Option<String> {
        let names = miniz_oxide::inflate::decompress_to_vec_with_limit(&self.names, self.bytes).ok()?;
        String::from_utf8(names).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed<'a>(entries: impl Iterator<Item = (u64, &'a str)>) -> Compact {
        let mut packer = Packer::default();
        entries.for_each(|(address, name)| packer.add(address, name));
        packer.finish()
    }

    #[test]
    fn the_first_of_two_names_counts_also_where_a_block_ends_and_both_are_found() {
        let names: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
        // Three names an address.
        let table = packed(names.iter().enumerate().map(|(at, name)| (at as u64 / 3 * 16, name.as_str())));
        let blocks = &table.tables[0];
        assert_eq!((table.len(), blocks.len(), blocks[0].offsets.len()), (300, 3, 129));
        for at in 0..100 {
            assert_eq!(table.resolve(at * 16 + 3), Some((format!("f{}", at * 3), 3)));
            assert!(table.begins(at * 16) && !table.begins(at * 16 + 1));
        }
        let found = ["f298", "f299", "f128", "f"].map(|name| table.find(name));
        assert_eq!(found, [Some(99 * 16), Some(99 * 16), Some(42 * 16), None]);
    }

    proptest! {
        #[test]
        fn it_answers_as_the_plain_list(
            addresses in proptest::collection::btree_set(any::<u64>(), 0..600),
            near in proptest::collection::btree_set(0u64..2_000, 0..600),
            order in any::<u64>(),
            asked in proptest::collection::vec(prop_oneof![any::<u64>(), 0u64..2_100], 0..50),
        ) {
            let all: Vec<u64> = addresses.union(&near).copied().collect();
            let names: Vec<String> = all.iter().map(|address| format!("f_{address:x}")).collect();
            let mut entries: Vec<_> = all.iter().copied().zip(names.iter().map(String::as_str)).collect();
            // The last third is in any order, as modules are.
            let third = entries.len() / 3;
            let in_order = entries.len() - third;
            entries.rotate_left((order % (in_order as u64 + 1)) as usize);
            entries[..in_order].sort_unstable();
            entries[in_order..].sort_by_key(|(address, _)| address.wrapping_mul(order | 1));
            let table = packed(entries.into_iter());
            prop_assert_eq!(table.len(), all.len());
            for address in asked.into_iter().chain(all.iter().copied().take(9)) {
                let below = all.iter().rev().find(|known| **known <= address);
                let expected = below.map(|known| (format!("f_{known:x}"), address - known));
                prop_assert_eq!(table.resolve(address), expected);
                prop_assert_eq!(table.begins(address), all.contains(&address));
            }
        }
    }
}
