//! All event layouts of one trace, by number and by name, with the layout of its sub-buffers.

use std::collections::HashMap;

use crate::endian::Endian;
use crate::error::Error;
use crate::format::{EventFormat, Field};
use crate::page::PageLayout;

/// The layouts needed to decode the records of one trace.
#[derive(Clone, Debug)]
pub struct Formats {
    endian: Endian,
    page: PageLayout,
    common: CommonFields,
    events: Vec<EventFormat>,
    /// Index into `events` + 1 by event number; 0 means unknown.
    by_id: Vec<u32>,
    by_full_name: HashMap<String, usize>,
    by_name: HashMap<String, usize>,
}

/// Where the fields are that every record begins with.
///
/// Kernels may add common fields (5.10-rt has `common_migrate_disable`), so even these are looked
/// up by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonFields {
    /// Offset of the 16-bit `common_type`.
    pub id: usize,
    /// Offset of the 8-bit `common_flags`.
    pub flags: usize,
    /// Offset of the 32-bit `common_pid`.
    pub pid: usize,
}

impl Default for CommonFields {
    fn default() -> Self {
        Self { id: 0, flags: 2, pid: 4 }
    }
}

impl CommonFields {
    /// Bytes a record must have for all common fields to be inside.
    #[inline]
    pub(crate) fn needed(self) -> usize {
        (self.id + 2).max(self.flags + 1).max(self.pid + 4)
    }

    fn of(format: &EventFormat) -> Option<Self> {
        let at = |name: &str, size: usize| -> Option<usize> {
            format.field(name).filter(|f: &&Field| f.size == size).map(|f| f.offset)
        };
        Some(Self { id: at("common_type", 2)?, flags: at("common_flags", 1)?, pid: at("common_pid", 4)? })
    }
}

impl Formats {
    /// An empty set for a trace of this byte order, with the layout from the text of
    /// `events/header_page`.
    ///
    /// `long_size` (4 or 8) is used where the text is empty, as in traces of kernels before 2.6.31.
    pub fn new(endian: Endian, header_page: &str, long_size: usize) -> Result<Self, Error> {
        Ok(Self {
            endian,
            page: PageLayout::parse(header_page, long_size)?,
            common: CommonFields::default(),
            events: Vec::new(),
            by_id: Vec::new(),
            by_full_name: HashMap::new(),
            by_name: HashMap::new(),
        })
    }

    /// Parses and adds the text of `events/<system>/<name>/format`; a later format of the same
    /// number wins.
    pub fn add(&mut self, system: &str, text: &str) -> Result<(), Error> {
        let format = EventFormat::parse(system, text)?;
        if self.events.is_empty()
            && let Some(common) = CommonFields::of(&format)
        {
            self.common = common;
        }
        let index = self.events.len();
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, 0);
        }
        self.by_id[id] = index as u32 + 1;
        self.by_full_name.insert(format.full_name(), index);
        self.by_name.entry(format.name.clone()).or_insert(index);
        self.events.push(format);
        Ok(())
    }

    /// The layout of records with this `common_type`.
    #[inline]
    pub fn by_id(&self, id: u16) -> Option<&EventFormat> {
        let index = *self.by_id.get(usize::from(id))?;
        self.events.get((index as usize).checked_sub(1)?)
    }

    /// The event called `name`: "system:name", or the bare name (the first one added, if several
    /// systems have it).
    pub fn by_name(&self, name: &str) -> Option<&EventFormat> {
        let index = self.by_full_name.get(name).or_else(|| self.by_name.get(name))?;
        self.events.get(*index)
    }

    /// All layouts in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &EventFormat> {
        self.events.iter()
    }

    /// Number of layouts.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is no layout at all.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Byte order of the traced machine.
    #[inline]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Layout of the sub-buffers.
    #[inline]
    pub fn page(&self) -> &PageLayout {
        &self.page
    }

    /// Where the common fields are.
    #[inline]
    pub fn common(&self) -> CommonFields {
        self.common
    }
}
