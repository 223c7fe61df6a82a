//! Stacks in a trace: the records of `ftrace:kernel_stack`, which option and trigger `stacktrace`
//! make, and of `ftrace:user_stack`, which the option `userstacktrace` makes.
//!
//! Both formats declare eight frames (kernel/trace/trace_entries.h, `FTRACE_STACK_ENTRIES`). A
//! record of the kernel's stack has as many as its field `size` says; one of user space has eight,
//! of which those that were not found are zero.

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
    /// That of this trace; `None` where its formats do not say.
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

    /// The addresses of a record, innermost first: where each function resumes, or was interrupted.
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

/// Where the frames of a stack of user space stand in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserStackLayout {
    /// The number of the event.
    pub id: u16,
    process: Field,
    frames: usize,
    first: usize,
    /// Bytes of an address.
    word: usize,
    endian: Endian,
}

impl UserStackLayout {
    /// That of this trace; `None` where its formats do not say.
    pub fn of(formats: &Formats) -> Option<Self> {
        let format = formats.by_name("ftrace:user_stack")?;
        let callers = format.field("caller")?;
        let FieldKind::Array { element_size: word, .. } = callers.kind else { return None };
        let (process, first) = (format.field("tgid")?.clone(), callers.offset);
        let frames = callers.size.checked_div(word)?;
        Some(Self { id: format.id, process, frames, first, word, endian: formats.endian() })
    }

    /// The number of the process, and the addresses of a record, innermost first. Beyond the
    /// innermost they are found by frame pointers, and end where a function keeps none.
    pub fn frames<'d>(&self, data: &'d [u8]) -> (u32, impl Iterator<Item = u64> + use<'d>) {
        let process = self.process.uint(data, self.endian).unwrap_or(0) as u32;
        let Self { frames, first, word, endian, .. } = *self;
        let addresses = (0..frames).map_while(move |at| endian.uint_at(data, first + at * word, word));
        (process, addresses.take_while(|address| *address != 0 && *address != u64::MAX))
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
    fn a_stack_of_user_space_ends_where_nothing_more_was_found() {
        let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
        let format = FORMAT.replace("kernel_stack", "user_stack").replace("int size", "unsigned int tgid");
        formats.add("ftrace", &format).unwrap();
        let layout = UserStackLayout::of(&formats).unwrap();
        let mut data = record(77, &[5, 6, 7]);
        data.resize(80, 0);
        let (process, frames) = layout.frames(&data);
        assert_eq!((process, frames.collect::<Vec<_>>()), (77, vec![5, 6, 7]));
        assert_eq!(layout.frames(&record(1, &[9])).1.collect::<Vec<_>>(), [9]);
        assert_eq!(layout.frames(&[0; 4]).1.count(), 0);
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
