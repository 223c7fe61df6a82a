//! One event's layout, parsed from the text of `events/<system>/<name>/format`.
//!
//! Fields are found by name, never by position: names are stable across kernels, offsets and types
//! are not. Source: Documentation/trace/events.rst §2.2 (event formats),
//! include/linux/trace_events.h (`__data_loc`: the low 16 bits are the offset from the start of the
//! record, the high 16 bits the length; `__rel_loc`, since 5.17: the offset counts from the end of
//! the field itself).

use std::borrow::Cow;

use crate::endian::Endian;
use crate::error::Error;

/// The layout of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// Directory under `events/`, as "irq".
    pub system: String,
    /// The event's own name, as "irq_handler_entry".
    pub name: String,
    /// Its number on the traced kernel (differs from boot to boot): `common_type` of its records.
    pub id: u16,
    /// All fields in file order, the common ones first.
    pub fields: Vec<Field>,
}

/// One field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name without brackets, as "`prev_comm`".
    pub name: String,
    /// C type without name, brackets and `__data_loc`, as "unsigned long" or "char".
    pub type_name: String,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Bytes in the record (4 for the locator of a `__data_loc`, 0 for an open-ended array).
    pub size: usize,
    /// Whether the kernel says the (element) type is signed.
    pub signed: bool,
    /// How the value is stored.
    pub kind: FieldKind,
}

/// How a field's value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One number or pointer of `size` bytes (or a struct, if `size` is none of 1, 2, 4, 8).
    Scalar,
    /// `count` elements in place.
    Array {
        /// Number of elements.
        count: usize,
        /// Bytes of an element.
        element_size: usize,
    },
    /// `type name[]` of size 0: from `offset` to the end of the record.
    Tail,
    /// `__data_loc`: a 32-bit locator with an offset from the start of the record.
    DataLoc,
    /// `__rel_loc`: a 32-bit locator with an offset from the end of the locator.
    RelLoc,
}

impl EventFormat {
    /// Parses the text of a `format` file of `system`.
    pub fn parse(system: &str, text: &str) -> Result<Self, Error> {
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        for (index, raw) in text.lines().enumerate() {
            let line = raw.trim();
            let fail = |expected| {
                let event = format!("{system}:{}", name.unwrap_or("?"));
                Error::Format { event, line: index + 1, text: line.chars().take(120).collect(), expected }
            };
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = Some(rest.trim().parse::<u16>().map_err(|_| fail("`ID: ` and a number below 65536"))?);
            } else if line.starts_with("field:") {
                let field = Field::parse(line);
                fields.push(field.ok_or_else(|| fail("`field:TYPE NAME; offset:N; size:N; signed:N;`"))?);
            } else if line.starts_with("print fmt:") {
                // The print format is for text only, and not always parseable (research:
                // `__get_cpumask`).
                break;
            }
        }
        let missing = |expected| Error::Format {
            event: format!("{system}:{}", name.unwrap_or("?")),
            line: 1,
            text: text.lines().next().unwrap_or("").chars().take(120).collect(),
            expected,
        };
        let name = name.filter(|n| !n.is_empty()).ok_or_else(|| missing("a line `name: NAME`"))?;
        let id = id.ok_or_else(|| missing("a line `ID: NUMBER`"))?;
        Ok(Self { system: system.to_owned(), name: name.to_owned(), id, fields })
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// "system:name", as "`irq:irq_handler_entry`".
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }
}

/// Records are at most one sub-buffer long; anything above is a broken format file.
const MAX_OFFSET: usize = 1 << 24;

impl Field {
    /// Parses `field:TYPE NAME; offset:N; size:N; signed:N;`; `None` where it is not of that form.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (mut declaration, mut offset, mut size, mut signed) = (None, None, None, None);
        for part in line.split(';') {
            let Some((key, value)) = part.split_once(':') else { continue };
            match key.trim() {
                "field" => declaration = Some(value.trim()),
                "offset" => offset = value.trim().parse::<usize>().ok(),
                "size" => size = value.trim().parse::<usize>().ok(),
                "signed" => signed = Some(value.trim() == "1"),
                _ => {}
            }
        }
        let (offset, size) = (offset?, size?);
        if offset > MAX_OFFSET || size > MAX_OFFSET {
            return None;
        }
        let declaration = Declaration::split(declaration?)?;
        let kind = declaration.kind(size);
        Some(Self {
            name: declaration.name.to_owned(),
            type_name: declaration.type_name.to_owned(),
            offset,
            size,
            // Kernels before 2.6.33 do not say; they had no signed event fields of interest.
            signed: signed.unwrap_or(false),
            kind,
        })
    }

    /// The bytes of the value in a record: resolved through the locator where there is one.
    ///
    /// `None` where the record is too short.
    #[inline]
    pub fn bytes<'a>(&self, data: &'a [u8], endian: Endian) -> Option<&'a [u8]> {
        match self.kind {
            FieldKind::Scalar | FieldKind::Array { .. } => data.get(self.offset..)?.get(..self.size),
            FieldKind::Tail => data.get(self.offset..),
            FieldKind::DataLoc => self.located(data, endian, 0),
            FieldKind::RelLoc => self.located(data, endian, self.offset + self.size),
        }
    }

    fn located<'a>(&self, data: &'a [u8], endian: Endian, base: usize) -> Option<&'a [u8]> {
        let locator = endian.uint_at(data, self.offset, 4)? as u32;
        let start = base + (locator & 0xffff) as usize;
        data.get(start..)?.get(..(locator >> 16) as usize)
    }

    /// The value of a number or pointer, zero-extended.
    ///
    /// `None` for arrays, strings and structs, and where the record is too short.
    #[inline]
    pub fn uint(&self, data: &[u8], endian: Endian) -> Option<u64> {
        if self.kind != FieldKind::Scalar {
            return None;
        }
        endian.uint_at(data, self.offset, self.size)
    }

    /// The value of a number, sign-extended if the field is signed.
    ///
    /// `None` as for [`Field::uint`].
    #[inline]
    pub fn int(&self, data: &[u8], endian: Endian) -> Option<i64> {
        let value = self.uint(data, endian)?;
        if !self.signed {
            return Some(value as i64);
        }
        Some(match self.size {
            1 => i64::from(value as u8 as i8),
            2 => i64::from(value as u16 as i16),
            4 => i64::from(value as u32 as i32),
            _ => value as i64,
        })
    }

    /// The text of a character array or string, up to the first NUL; bytes that are not UTF-8
    /// become U+FFFD.
    ///
    /// `None` for numbers and where the record is too short.
    pub fn text<'a>(&self, data: &'a [u8], endian: Endian) -> Option<Cow<'a, str>> {
        if self.kind == FieldKind::Scalar || !self.has_byte_elements() {
            return None;
        }
        let bytes = self.bytes(data, endian)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]))
    }

    fn has_byte_elements(&self) -> bool {
        match self.kind {
            FieldKind::Array { element_size, .. } => element_size == 1,
            _ => element_size(&self.type_name) == Some(1),
        }
    }
}

/// A C declaration taken apart.
struct Declaration<'a> {
    locator: Option<FieldKind>,
    type_name: &'a str,
    name: &'a str,
    /// The text between the brackets.
    extent: Option<&'a str>,
}

impl<'a> Declaration<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let (locator, text) = if let Some(rest) = text.strip_prefix("__data_loc ") {
            (Some(FieldKind::DataLoc), rest.trim())
        } else if let Some(rest) = text.strip_prefix("__rel_loc ") {
            (Some(FieldKind::RelLoc), rest.trim())
        } else {
            (None, text)
        };
        // `char name[16]`: brackets after the name; `__data_loc char[] name`: brackets before it.
        let (head, extent) = match text.strip_suffix(']') {
            Some(open) => {
                let (head, extent) = open.rsplit_once('[')?;
                (head.trim_end(), Some(extent))
            }
            None => (text, None),
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let start =
            head.rfind(|c| !is_word(c)).map_or(0, |i| i + head[i..].chars().next().map_or(1, char::len_utf8));
        let (type_name, name) = (head[..start].trim(), &head[start..]);
        if name.is_empty() || type_name.is_empty() {
            return None;
        }
        let type_name = type_name.strip_suffix("[]").unwrap_or(type_name).trim_end();
        Some(Self { locator, type_name, name, extent })
    }

    fn kind(&self, size: usize) -> FieldKind {
        if let Some(kind) = self.locator {
            return kind;
        }
        let Some(extent) = self.extent else { return FieldKind::Scalar };
        if size == 0 {
            return FieldKind::Tail;
        }
        // The extent may be a macro of the kernel (`TASK_COMM_LEN` before 5.14): then go by the
        // element type.
        let by_extent = extent.trim().parse::<usize>().ok().filter(|n| *n > 0 && size.is_multiple_of(*n));
        let by_type = element_size(self.type_name).filter(|s| size.is_multiple_of(*s)).map(|s| size / s);
        let count = by_extent.or(by_type).unwrap_or(1);
        FieldKind::Array { count, element_size: size / count }
    }
}

/// Bytes of a C type whose size does not depend on the machine.
fn element_size(type_name: &str) -> Option<usize> {
    let base = type_name.trim_start_matches("const ").trim();
    match base {
        "char" | "unsigned char" | "signed char" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "int8_t"
        | "bool" => Some(1),
        "short" | "unsigned short" | "u16" | "s16" | "__u16" | "__s16" | "uint16_t" | "__le16" | "__be16" => {
            Some(2)
        }
        "int" | "unsigned int" | "unsigned" | "u32" | "s32" | "__u32" | "__s32" | "uint32_t" | "__le32"
        | "__be32" => Some(4),
        "long long" | "unsigned long long" | "u64" | "s64" | "__u64" | "__s64" | "uint64_t" => Some(8),
        _ => None,
    }
}
