//! Addresses of constant kernel texts → the texts, from `printk_formats`: `0xADDRESS : "TEXT"` a
//! line.
//!
//! An event field of type `const char *` holds only such an address (arm64's `ipi:ipi_entry`, for
//! one); the kernel lists the texts it may point to (`Documentation/trace/events.rst`;
//! `kernel/trace/trace_printk.c`).

use std::collections::HashMap;

/// The texts by address.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    texts: HashMap<u64, String>,
}

impl Constants {
    /// Reads the text of `printk_formats`; lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (address, text) = line.split_once(" : ")?;
            let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
            let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
            (address != 0).then(|| (address, text.to_owned()))
        };
        Self { texts: text.lines().filter_map(line).collect() }
    }

    /// Every address with its text, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        self.texts.iter().map(|(address, text)| (*address, text.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_address_and_odd_lines_are_left_out() {
        let text =
            "0xffff800009c50b70 : \"Rescheduling interrupts\"\n0x0 : \"hidden\"\nnonsense\n0x12 : unquoted\n";
        let constants = Constants::parse(text);
        assert_eq!(
            constants.iter().collect::<Vec<_>>(),
            [(0xffff_8000_09c5_0b70, "Rescheduling interrupts")]
        );
        assert!(Constants::parse("").is_empty());
    }
}
