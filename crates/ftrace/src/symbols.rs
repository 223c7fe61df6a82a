//! Kernel addresses → names, from the text of `/proc/kallsyms`: "address type name [module]" a line.
//!
//! Addresses are all zero where the reader was not allowed to see them (`kernel.kptr_restrict`): such a table is empty.

/// A table of kernel symbols, sorted by address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Address, then start and end of the name in `names`.
    entries: Vec<(u64, u32, u32)>,
    names: String,
}

impl Symbols {
    /// Reads the text of kallsyms; lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            // Absolute per-CPU offsets and constants (`A`) are no code.
            if address == 0 || kind.eq_ignore_ascii_case("a") {
                continue;
            }
            let start = table.names.len();
            table.names.push_str(name);
            if let Ok(end) = u32::try_from(table.names.len()) {
                table.entries.push((address, start as u32, end));
            }
        }
        table.entries.sort_by_key(|e| e.0);
        table
    }

    /// The symbol at or below `address`, and how far above it the address is.
    ///
    /// `None` below the first symbol. The last symbol has no end: everything above counts as it.
    pub fn resolve(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.entries.partition_point(|e| e.0 <= address);
        let last = self.entries.get(after.checked_sub(1)?)?;
        // Of several names for one address, the first in the file is the one the kernel prints.
        let first = self.entries.partition_point(|e| e.0 < last.0);
        let (start, from, to) = *self.entries.get(first)?;
        Some((self.names.get(from as usize..to as usize)?, address - start))
    }

    /// The address of the symbol called `name`; the lowest where there are several. Looks through the whole table.
    pub fn find(&self, name: &str) -> Option<u64> {
        let of =
            |&&(_, from, to): &&(u64, u32, u32)| self.names.get(from as usize..to as usize) == Some(name);
        self.entries.iter().find(of).map(|entry| entry.0)
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none, as where the addresses were hidden.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
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
    }

    #[test]
    fn hidden_addresses_give_an_empty_table() {
        assert!(Symbols::parse("0000000000000000 T _text\n0000000000000000 T x\n").is_empty());
    }
}
