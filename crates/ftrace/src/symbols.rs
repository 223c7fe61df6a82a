//! Kernel addresses → names, from the text of `/proc/kallsyms`: "address type name [module]" a
//! line.
//!
//! Addresses are all zero where the reader was not allowed to see them (`kernel.kptr_restrict`):
//! such a table is empty.

mod compact;

use compact::{Compact, Packer};
use std::borrow::Cow;
use std::io::BufRead;
use std::sync::{Arc, OnceLock};

/// Kernel symbols. Clones share the table, which is made when the first address is looked up: many
/// traces have none.
#[derive(Clone, Debug)]
pub struct Symbols(Arc<Kept>);

#[derive(Debug)]
enum Kept {
    Text(Text),
    Compact(Compact),
}

/// The text, and what was made of it.
#[derive(Debug, Default)]
struct Text {
    all: String,
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

    /// The same, of a text that nobody else needs.
    pub fn of(text: String) -> Self {
        Self(Arc::new(Kept::Text(Text { all: text, table: OnceLock::new() })))
    }

    /// Functions alone (nm(1): t, T, w, W), packed, for whoever keeps the table
    /// for long.
    pub fn functions(mut lines: impl BufRead) -> std::io::Result<Self> {
        let (mut packer, mut line) = (Packer::default(), String::new());
        while lines.read_line(&mut line)? > 0 {
            let is_function = matches!(line.split(' ').nth(1), Some("t" | "T" | "w" | "W"));
            if let Some((address, name)) = symbol(&line).filter(|_| is_function) {
                packer.add(address, name);
            }
            line.clear();
        }
        Ok(Self(Arc::new(Kept::Compact(packer.finish()))))
    }

    /// The symbol at or below `address`, and how far above it the address is.
    ///
    /// `None` below the first symbol. The last symbol has no end: everything above counts as it.
    pub fn resolve(&self, address: u64) -> Option<(Cow<'_, str>, u64)> {
        match &*self.0 {
            Kept::Text(text) => text.resolve(address).map(|(name, offset)| (Cow::Borrowed(name), offset)),
            Kept::Compact(compact) => {
                compact.resolve(address).map(|(name, offset)| (Cow::Owned(name), offset))
            }
        }
    }

    /// Whether a symbol begins there.
    pub fn begins(&self, address: u64) -> bool {
        match &*self.0 {
            Kept::Text(text) => text.resolve(address).is_some_and(|(_, offset)| offset == 0),
            Kept::Compact(compact) => compact.begins(address),
        }
    }

    /// The address of the symbol called `name`; the lowest where there are several. Looks through
    /// the whole text.
    pub fn find(&self, name: &str) -> Option<u64> {
        match &*self.0 {
            Kept::Text(text) => text.find(name),
            Kept::Compact(compact) => compact.find(name),
        }
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        match &*self.0 {
            Kept::Text(text) => text.entries().len(),
            Kept::Compact(compact) => compact.len(),
        }
    }

    /// Whether there are none, as where the addresses were hidden.
    pub fn is_empty(&self) -> bool {
        match &*self.0 {
            Kept::Text(text) => text.all.lines().all(|line| symbol(line).is_none()),
            Kept::Compact(compact) => compact.len() == 0,
        }
    }
}

impl Default for Symbols {
    fn default() -> Self {
        Self::of(String::new())
    }
}

impl Text {
    fn entries(&self) -> &[(u64, u32, u32)] {
        &self.table.get_or_init(|| Table::of(&self.all)).entries
    }

    fn resolve(&self, address: u64) -> Option<(&str, u64)> {
        let entries = self.entries();
        let after = entries.partition_point(|e| e.0 <= address);
        let last = entries.get(after.checked_sub(1)?)?;
        // Of several names for one address, the first in the file is the one the kernel prints.
        let first = entries.partition_point(|e| e.0 < last.0);
        let (start, from, to) = *entries.get(first)?;
        Some((self.all.get(from as usize..to as usize)?, address - start))
    }

    fn find(&self, name: &str) -> Option<u64> {
        let mut text = self.all.as_str();
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
        assert_eq!(table.resolve(0xffff_ffff_8100_0010), Some(("_text".into(), 0x10)));
        assert_eq!(table.resolve(0xffff_ffff_8100_02ff), Some(("later".into(), 0xff)));
        assert_eq!(table.resolve(0xffff_ffff_8100_0300), Some(("helper".into(), 0)));
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
    fn functions_alone_are_resolved_as_in_the_whole_table() {
        let text = TEXT.to_owned() + "ffffffff81000400 d data\n";
        let table = Symbols::functions(text.as_bytes()).unwrap();
        assert_eq!((table.len(), table.is_empty()), (4, false));
        for address in [0xffff_ffff_8100_0010, 0xffff_ffff_8100_02ff, 0xffff_ffff_8100_0300, 0x1000] {
            assert_eq!(table.resolve(address), Symbols::parse(TEXT).resolve(address));
        }
        assert_eq!((table.find("later"), table.find("late")), (Some(0xffff_ffff_8100_0200), None));
        let both = ["_text", "startup_64"].map(|name| table.find(name));
        assert_eq!(both, [Some(0xffff_ffff_8100_0000); 2]);
        assert!(Symbols::functions(&b"0000000000000000 T _text\n"[..]).unwrap().is_empty());
    }

    #[test]
    fn hidden_addresses_give_an_empty_table() {
        assert!(Symbols::parse("0000000000000000 T _text\n0000000000000000 T x\n").is_empty());
    }
}
