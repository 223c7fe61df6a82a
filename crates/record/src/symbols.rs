//! What a trace refers to by address: the part of `/proc/kallsyms` that it needs, and where
//! programs were.
//!
//! The whole file is 5 to 15 MB; a trace names a few hundred functions. Kept are the symbols that
//! any pointer-sized field of any recorded event falls into, and any address of a recorded stack,
//! so that every tool that opens the file resolves what it can show.

use ftrace::{Formats, Item, StackLayout, Symbols, UserStackLayout};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

/// What recorded pages refer to.
pub(super) struct Referenced {
    /// Lines of `kallsyms`.
    pub(super) kallsyms: String,
    /// Processes and addresses in their memory.
    pub(super) users: BTreeSet<(u32, u64)>,
}

/// What the recorded pages refer to. `Err` when they cannot be read.
pub(super) fn referenced(
    kallsyms: &str,
    formats: &Formats,
    cpus: &[(u32, PathBuf)],
) -> Result<Referenced, ftrace::Error> {
    let symbols = Symbols::parse(kallsyms);
    let (mut addresses, mut users) = (BTreeSet::new(), BTreeSet::new());
    let of_users = UserStackLayout::of(formats);
    let (stacks, mut known) = (StackLayout::of(formats), HashSet::<Vec<u8>>::new());
    let mut stream = ftrace::stream_raw(formats, cpus)?;
    while let Some(item) = stream.next()? {
        let Item::Event(event) = item else { continue };
        if let Some(layout) = of_users.as_ref().filter(|layout| layout.id == event.id) {
            let (process, frames) = layout.frames(event.data);
            users.extend(frames.map(|address| (process, address)));
            continue;
        }
        let Some(format) = formats.by_id(event.id) else { continue };
        let pointers = format.fields.iter().filter(|field| field.size == 8 && !field.signed);
        let values = pointers.filter_map(|field| field.uint(event.data, formats.endian()));
        let stack = stacks.as_ref().filter(|layout| layout.id == event.id);
        // Most stacks come many times.
        let stack = stack.filter(|layout| {
            let bytes = layout.bytes(event.data);
            !known.contains(bytes) && known.insert(bytes.to_vec())
        });
        let frames = stack.into_iter().flat_map(|layout| layout.frames(event.data));
        let values = values.chain(frames);
        // Kernel text lies in the upper half of the address space on every 64-bit architecture.
        addresses.extend(values.filter(|value| value >> 63 == 1));
    }
    let starts: BTreeSet<u64> = addresses
        .iter()
        .filter_map(|address| symbols.resolve(*address).map(|(_, offset)| address - offset))
        .collect();
    let keep = |line: &&str| {
        let address = line.split(' ').next().and_then(|word| u64::from_str_radix(word, 16).ok());
        address.is_some_and(|address| starts.contains(&address))
    };
    let kallsyms = kallsyms.lines().filter(keep).fold(String::new(), |text, line| text + line + "\n");
    Ok(Referenced { kallsyms, users })
}
