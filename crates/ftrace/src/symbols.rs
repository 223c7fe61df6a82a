//! Kernel addresses → names, from the text of `/proc/kallsyms`: "address type name [module]" a
//! line.
//!
//! Addresses are all zero where the reader was not allowed to see them (`kernel.kptr_restrict`):
//! such a table is empty.

use std::sync::{Arc, OnceLock};

/// Kernel symbols. Clones share the table, which is made when the first address is looked up: many
/// traces have none.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Arc<Text>);

/// The text, and what was made of it.
#[derive(Debug, Default)]
struct Text {
    text: String,
    table: OnceLock<Table>,
}

/// Symbols sorted by address.
#[derive(Debug, Default)]
struct Table {
    /// Address, then start and end of the name in the text.
    entries: Vec<(u64, u32, u32)>,
}

/// Address and name in a line; `None` where it has another form, or is no code.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(address, 16).ok()?;
    // Absolute per-CPU offsets and constants (`A`) are no code.
    (address != 0 && !kind.eq_ignore_ascii_case("a")).then_some((address, name))
}

impl Table {
    fn of(text: &str) -> Self {
        let place = |name: &str| {
            let from = name.as_ptr().addr() - text.as_ptr().addr();
            Some((u32::try_from(from).ok()?, u32::try_from(from + name.len()).ok()?))
        };
        let entry = |line| {
            let (address, name) = symbol(line)?;
            let (from, to) = place(name)?;
            Some((address, from, to))
        };
        let mut entries: Vec<_> = text.lines().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.0);
        Self { entries }
    }
}

impl Symbols {
    /// Reads the text of kallsyms; lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        Self::of(text.to_owned())
    }

    /// The same of a text that is given away.
    pub(crate) fn of(text: String) -> Self {
        Self(Arc::new(Text { text, table: OnceLock::new() }))
    }

    fn entries(&self) -> &[(u64, u32, u32)] {
        &self.0.table.get_or_init(|| Table::of(&self.0.text)).entries
    }

    /// The symbol at or below `address`, and how far above it the address is.
    ///
    /// `None` below the first symbol. The last symbol has no end: everything above counts as it.
    pub fn resolve(&self, address: u64) -> Option<(&str, u64)> {
        let entries = self.entries();
        let after = entries.partition_point(|e| e.0 <= address);
        let last = entries.get(after.checked_sub(1)?)?;
        // Of several names for one address, the first in the file is the one the kernel prints.
        let first = entries.partition_point(|e| e.0 < last.0);
        let (start, from, to) = *entries.get(first)?;
        Some((self.0.text.get(from as usize..to as usize)?, address - start))
    }

    /// The address of the symbol called `name`; the lowest where there are several. Looks through
    /// the whole text.
    pub fn find(&self, name: &str) -> Option<u64> {
        let mut text = self.0.text.as_str();
        let mut lowest: Option<u64> = None;
        while let Some(at) = text.find(name) {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
            if let Some((address, found)) = symbol(&text[start..end])
                && found == name
            {
                lowest = Some(lowest.map_or(address, |known| known.min(address)));
            }
            text = &text[end..];
        }
        lowest
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are none, as where the addresses were hidden.
    pub fn is_empty(&self) -> bool {
        self.0.text.lines().all(|line| symbol(line).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\nffffffff81000000 T startup_64\n\
                        ffffffff81000300 t helper\t[mod]\nnot a line\nffffffff81000200 T later\n";

    #[test]
    fn resolves_to_the_symbol_below() {
        let table = Symbols::parse(TEXT);
        assert_eq!(table.len(), 4);
        assert_eq!(table.resolve(0xffff_ffff_8100_0010), Some(("_text", 0x10)));
        assert_eq!(table.resolve(0xffff_ffff_8100_02ff), Some(("later", 0xff)));
        assert_eq!(table.resolve(0xffff_ffff_8100_0300), Some(("helper", 0)));
        assert_eq!(table.resolve(0x1000), None);
        assert_eq!((table.find("later"), table.find("late")), (Some(0xffff_ffff_8100_0200), None));
        assert_eq!(
            (table.find("helper"), table.find("fixed_percpu_data")),
            (Some(0xffff_ffff_8100_0300), None)
        );
        let twice = Symbols::parse(
            "ffffffffc0000000 t twice\t[mod]\nffffffff81000000 t not_twice\nffffffff81000100 T twice",
        );
        assert_eq!(twice.find("twice"), Some(0xffff_ffff_8100_0100));
    }

    #[test]
    fn hidden_addresses_give_an_empty_table() {
        assert!(Symbols::parse("0000000000000000 T _text\n0000000000000000 T x\n").is_empty());
    }
}
