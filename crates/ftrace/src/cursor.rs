//! Reading the metadata of a trace from front to back, each piece bounded before it is allocated.

use std::fmt::Display;
use std::path::Path;

use crate::endian::Endian;
use crate::error::Error;
use crate::input::Input;

/// No single piece of metadata is larger: kallsyms of a large kernel is about 16 MiB.
pub(crate) const MAX_PIECE: u64 = 128 << 20;

const WINDOW: usize = 64 << 10;

/// A position in a part of an input.
pub(crate) struct Cursor<'a> {
    input: &'a Input,
    pub(crate) endian: Endian,
    at: u64,
    end: u64,
    /// The bytes from `window_at`, read ahead.
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(input: &'a Input, endian: Endian, at: u64, end: u64) -> Self {
        Self { input, endian, at, end: end.min(input.len()), window: Vec::new(), window_at: 0 }
    }

    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    pub(crate) fn path(&self) -> &Path {
        self.input.path()
    }

    /// An error about the value that ends at the current position and is `size` bytes long.
    pub(crate) fn malformed(
        &self,
        size: u64,
        what: &'static str,
        value: &dyn Display,
        expected: &dyn Display,
    ) -> Error {
        Error::Malformed {
            path: self.path().to_owned(),
            offset: self.at.saturating_sub(size),
            what,
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }

    fn truncated(&self, what: &'static str, need: u64) -> Error {
        Error::Truncated { path: self.path().to_owned(), offset: self.at, what, need }
    }

    /// Passes over `size` bytes.
    pub(crate) fn skip(&mut self, size: u64, what: &'static str) -> Result<(), Error> {
        if size > self.remaining() {
            return Err(self.truncated(what, size));
        }
        self.at += size;
        Ok(())
    }

    /// The next `size` bytes.
    pub(crate) fn bytes(&mut self, size: u64, what: &'static str) -> Result<Vec<u8>, Error> {
        if size > MAX_PIECE {
            return Err(self.malformed(
                0,
                what,
                &format!("{size} bytes long"),
                &format!("at most {MAX_PIECE} bytes"),
            ));
        }
        if size > self.remaining() {
            return Err(self.truncated(what, size));
        }
        let mut bytes = vec![0; size as usize];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    fn fill(&mut self, target: &mut [u8], what: &'static str) -> Result<(), Error> {
        let size = target.len() as u64;
        if size > self.remaining() {
            return Err(self.truncated(what, size));
        }
        if target.len() > WINDOW {
            if self.input.read_at(self.at, target)? < target.len() {
                return Err(self.truncated(what, size));
            }
        } else {
            let inside =
                self.at >= self.window_at && self.at + size <= self.window_at + self.window.len() as u64;
            if !inside {
                self.window.resize(WINDOW, 0);
                let got = self.input.read_at(self.at, &mut self.window)?;
                self.window.truncate(got);
                self.window_at = self.at;
            }
            let start = (self.at - self.window_at) as usize;
            let Some(source) = self.window.get(start..start + target.len()) else {
                return Err(self.truncated(what, size));
            };
            target.copy_from_slice(source);
        }
        self.at += size;
        Ok(())
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        Ok(self.endian.u16(self.array(what)?))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        Ok(self.endian.u32(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, Error> {
        Ok(self.endian.u64(self.array(what)?))
    }

    /// A NUL-terminated string of at most `max` bytes.
    pub(crate) fn string(&mut self, max: usize, what: &'static str) -> Result<String, Error> {
        let mut bytes = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(lossy(bytes)),
                _ if bytes.len() >= max => {
                    let expected = format!("a text of at most {max} bytes, ended by a zero byte");
                    return Err(self.malformed(bytes.len() as u64 + 1, what, &"a longer text", &expected));
                }
                byte => bytes.push(byte),
            }
        }
    }

    /// Checks that exactly `literal` comes next.
    pub(crate) fn expect(&mut self, literal: &'static [u8], what: &'static str) -> Result<(), Error> {
        let found = self.bytes(literal.len() as u64, what)?;
        if found == literal {
            return Ok(());
        }
        let show = |b: &[u8]| format!("`{}`", b.escape_ascii());
        Err(self.malformed(literal.len() as u64, what, &show(&found), &show(literal)))
    }
}

/// The bytes as text; what is not UTF-8 becomes U+FFFD.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}
