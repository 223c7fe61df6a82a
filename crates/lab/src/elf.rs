//! The little of ELF that the lab needs: which machine, does it want a dynamic loader, and one section by name.
//!
//! Layout after the System V ABI, chapter 4 and 5 (ELF-64, little endian: what both guest architectures use). Every
//! offset comes from the file, so every read is checked; a malformed file is an error, never a panic.

/// `e_machine` of x86-64.
pub const EM_X86_64: u16 = 62;
/// `e_machine` of arm64.
pub const EM_AARCH64: u16 = 183;
const PT_INTERP: u32 = 3;

/// A 64-bit little-endian ELF file, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Elf<'a> {
    bytes: &'a [u8],
}

impl<'a> Elf<'a> {
    /// Accepts only ELF-64, little endian. The error says what was found.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.get(..4) != Some(b"\x7fELF") {
            return Err("no ELF magic at byte 0".into());
        }
        match bytes.get(4..6) {
            Some([2, 1]) if bytes.len() >= 64 => Ok(Self { bytes }),
            Some([2, 1]) => Err(format!("{} bytes, shorter than an ELF header", bytes.len())),
            _ => Err("not 64-bit little-endian (bytes 4 and 5)".into()),
        }
    }

    /// `e_machine`.
    pub fn machine(&self) -> Result<u16, String> {
        self.u16(18)
    }

    /// Whether the program needs a dynamic loader: a static one (static-pie too) has no
    /// `PT_INTERP`.
    pub fn wants_loader(&self) -> Result<bool, String> {
        let (table, entry_len, count) = (self.u64(32)?, self.u16(54)?, self.u16(56)?);
        for i in 0..u64::from(count) {
            let entry =
                table.checked_add(i * u64::from(entry_len)).ok_or("program header table out of range")?;
            if self.u32(entry)? == PT_INTERP {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Contents of the first section called `name`, or `None` where there is no such section.
    pub fn section(&self, name: &str) -> Result<Option<&'a [u8]>, String> {
        let (table, entry_len, count) = (self.u64(40)?, u64::from(self.u16(58)?), u64::from(self.u16(60)?));
        let header =
            |index: u64| table.checked_add(index * entry_len).ok_or("section header table out of range");
        let names = self.contents(header(u64::from(self.u16(62)?))?)?;
        for index in 0..count {
            let header = header(index)?;
            let at = self.u32(header)? as usize;
            let found = names.get(at..).and_then(|rest| rest.split(|byte| *byte == 0).next());
            if found == Some(name.as_bytes()) {
                return self.contents(header).map(Some);
            }
        }
        Ok(None)
    }

    fn contents(&self, header: u64) -> Result<&'a [u8], String> {
        let at = |field: u64| header.checked_add(field).ok_or("section header out of range");
        let (offset, len) = (self.u64(at(24)?)?, self.u64(at(32)?)?);
        self.slice(offset, len)
    }

    fn slice(&self, offset: u64, len: u64) -> Result<&'a [u8], String> {
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        range.and_then(|(offset, len)| self.bytes.get(offset..offset.checked_add(len)?)).ok_or_else(|| {
            format!("{len} bytes at offset {offset} lie outside the file of {} bytes", self.bytes.len())
        })
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], String> {
        let slice = self.slice(offset, N as u64)?;
        Ok(std::array::from_fn(|i| slice[i]))
    }

    fn u16(&self, offset: u64) -> Result<u16, String> {
        self.array(offset).map(u16::from_le_bytes)
    }

    fn u32(&self, offset: u64) -> Result<u32, String> {
        self.array(offset).map(u32::from_le_bytes)
    }

    fn u64(&self, offset: u64) -> Result<u64, String> {
        self.array(offset).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A relocatable file with one named section, as small as the format allows: header, contents, names, three
    /// section headers (null, the section, the name table).
    pub(crate) fn with_section(name: &str, contents: &[u8]) -> Vec<u8> {
        let mut names = vec![0];
        names.extend(name.as_bytes());
        names.push(0);
        let names_at = 64 + contents.len() as u64;
        let table = names_at + names.len() as u64;
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18..20].copy_from_slice(&EM_X86_64.to_le_bytes());
        elf[40..48].copy_from_slice(&table.to_le_bytes());
        elf[58..60].copy_from_slice(&64u16.to_le_bytes());
        elf[60..62].copy_from_slice(&3u16.to_le_bytes());
        elf[62..64].copy_from_slice(&2u16.to_le_bytes());
        elf.extend(contents);
        elf.extend(&names);
        elf.extend([0; 64]);
        for (name_at, offset, len) in
            [(1u32, 64u64, contents.len() as u64), (0, names_at, names.len() as u64)]
        {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&name_at.to_le_bytes());
            header[24..32].copy_from_slice(&offset.to_le_bytes());
            header[32..40].copy_from_slice(&len.to_le_bytes());
            elf.extend(header);
        }
        elf
    }

    /// A program with one program header of the given type.
    pub(crate) fn program(machine: u16, header_type: u32) -> Vec<u8> {
        let mut elf = vec![0; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[18..20].copy_from_slice(&machine.to_le_bytes());
        elf[32..40].copy_from_slice(&64u64.to_le_bytes());
        elf[54..56].copy_from_slice(&56u16.to_le_bytes());
        elf[56..58].copy_from_slice(&1u16.to_le_bytes());
        elf[64..68].copy_from_slice(&header_type.to_le_bytes());
        elf
    }

    #[test]
    fn finds_a_section() {
        let file = with_section(".modinfo", b"license=GPL\0");
        let elf = Elf::parse(&file).unwrap();
        assert_eq!(elf.section(".modinfo").unwrap(), Some(&b"license=GPL\0"[..]));
        assert_eq!(elf.section(".text").unwrap(), None);
    }

    #[test]
    fn distinguishes_static_from_dynamic() {
        let (dynamic, fixed) = (program(EM_X86_64, PT_INTERP), program(EM_AARCH64, 1));
        assert!(Elf::parse(&dynamic).unwrap().wants_loader().unwrap());
        let elf = Elf::parse(&fixed).unwrap();
        assert!(!elf.wants_loader().unwrap());
        assert_eq!(elf.machine().unwrap(), EM_AARCH64);
    }

    #[test]
    fn refuses_other_files() {
        assert!(Elf::parse(b"#!/bin/sh\n").unwrap_err().contains("magic"));
        assert!(Elf::parse(b"\x7fELF\x01\x01").unwrap_err().contains("64-bit"));
    }

    proptest! {
        #[test]
        fn mutated_files_never_panic(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut file = with_section(".modinfo", &[7; 120]);
            let len = file.len();
            file[at % len] = byte;
            file.truncate(len - cut % len);
            if let Ok(elf) = Elf::parse(&file) {
                let _ = elf.section(".modinfo");
                let _ = elf.wants_loader();
            }
        }
    }
}
