//! The kernel's stacks in a trace: the records of `ftrace:kernel_stack`, which option and trigger
//! `stacktrace` make.
//!
//! Its format declares eight frames whatever their number (kernel/trace/trace_entries.h,
//! `FTRACE_STACK_ENTRIES`); a record has as many as its field `size` says.

use crate::endian::Endian;
use crate::format::{Field, FieldKind};
use crate::formats::Formats;

/// Where the frames of a stack stand in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLayout {
    /// The number of the event.
    pub id: u16,
    count: Field,
    first: usize,
    /// Bytes of an address.
    word: usize,
    endian: Endian,
}

impl StackLayout {
    /// That of this trace; `None` where its formats do not tell.
    pub fn of(formats: &Formats) -> Option<Self> {
        let format = formats.by_name("ftrace:kernel_stack")?;
        let callers = format.field("caller")?;
        let word = match callers.kind {
            FieldKind::Array { element_size, .. } => element_size,
            _ => 8,
        };
        let (count, first, endian) = (format.field("size")?.clone(), callers.offset, formats.endian());
        Some(Self { id: format.id, count, first, word, endian })
    }

    /// The addresses of a record, innermost first: where each function goes on, or was interrupted.
    pub fn frames<'d>(&self, data: &'d [u8]) -> impl Iterator<Item = u64> + use<'d> {
        let count = self.count.uint(data, self.endian).unwrap_or(0) as usize;
        let (first, word, endian) = (self.first, self.word, self.endian);
        (0..count).map_while(move |at| endian.uint_at(data, first + at * word, word))
    }

    /// Their bytes, by which equal stacks are known.
    pub fn bytes<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        let count = self.count.uint(data, self.endian).unwrap_or(0) as usize;
        let frames = data.get(self.first..).unwrap_or_default();
        &frames[..frames.len().min(count.saturating_mul(self.word))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 5.10 to 6.18 write it on 64-bit machines.
    const FORMAT: &str = "name: kernel_stack\nID: 4\nformat:\n\
                          \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                          \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
                          \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

    fn layout() -> StackLayout {
        let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
        formats.add("ftrace", FORMAT).unwrap();
        StackLayout::of(&formats).unwrap()
    }

    fn record(count: u32, frames: &[u64]) -> Vec<u8> {
        let mut data = vec![0; 8];
        data.extend(count.to_le_bytes());
        data.extend([0; 4]);
        data.extend(frames.iter().flat_map(|frame| frame.to_le_bytes()));
        data
    }

    #[test]
    fn a_stack_has_as_many_frames_as_its_record_says_not_eight() {
        let layout = layout();
        let frames: Vec<u64> = (1..=11).collect();
        let data = record(11, &frames);
        assert_eq!(layout.frames(&data).collect::<Vec<_>>(), frames);
        assert_eq!(layout.frames(&record(2, &frames)).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(layout.bytes(&record(2, &frames)).len(), 16);
    }

    #[test]
    fn a_record_that_is_too_short_gives_what_it_has() {
        let layout = layout();
        assert_eq!(layout.frames(&record(u32::MAX, &[7])).collect::<Vec<_>>(), [7]);
        assert_eq!(layout.bytes(&record(u32::MAX, &[7])).len(), 8);
        assert_eq!(layout.frames(&[0; 10]).count(), 0);
        assert!(layout.bytes(&[]).is_empty());
    }
}
