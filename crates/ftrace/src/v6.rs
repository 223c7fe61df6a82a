//! trace.dat version 6: one part after the other, then the CPU tables. Source: trace-cmd.dat.v6(5).

use crate::buffer::{Buffer, CpuData};
use crate::compress::Codec;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::formats::Formats;
use crate::input::Input;
use crate::meta::{MAX_CPUS, Meta, clock_name, read_header_page, read_piece};

/// Reads everything behind the page size of the first header.
pub(crate) fn read(
    input: &Input,
    cursor: &mut Cursor,
    long_size: usize,
    page_size: u32,
) -> Result<Meta, Error> {
    let header_page = read_header_page(cursor)?;
    let mut meta = Meta::new(Formats::new(cursor.endian, &header_page, long_size)?);
    meta.read_ftrace_formats(cursor)?;
    meta.read_event_formats(cursor)?;
    meta.kallsyms = Some(read_piece(cursor, input, "kallsyms")?);
    meta.printk = Some(read_piece(cursor, input, "printk formats")?);
    meta.read_cmdlines(cursor)?;

    let cpus = cursor.u32("number of CPUs")?;
    let mut kind = cursor.bytes(10, "start of the options or the data")?;
    if kind.starts_with(b"options") {
        read_options(&mut meta, cursor)?;
        kind = cursor.bytes(10, "start of the data")?;
    }
    let cpus = meta.options.cpu_count.unwrap_or(cpus);
    if cpus > MAX_CPUS {
        return Err(cursor.malformed(0, "number of CPUs", &cpus, &format!("at most {MAX_CPUS}")));
    }
    check_kind(&kind, cursor)?;
    let top = read_cpu_table(cursor, cpus)?;
    if meta.options.has_clock {
        // Files with a damaged clock exist; trace-cmd then takes "local", we the option's text.
        let size = cursor.u64("size of the clock name")?;
        if size <= cursor.remaining().min(4096) {
            let text = crate::cursor::lossy(cursor.bytes(size, "clock name")?);
            meta.options.clock = clock_name(&text).or(meta.options.clock.take());
        }
    }
    let clock = meta.options.clock.clone();
    let buffer = |name: String, cpus| Buffer {
        name,
        clock: clock.clone(),
        page_size,
        cpus,
        codec: Codec::None,
        compressed: false,
    };
    let mut buffers = vec![buffer(String::new(), top)];
    for (name, offset) in std::mem::take(&mut meta.options.buffers_v6) {
        let mut cursor = Cursor::new(input, cursor.endian, offset, u64::MAX);
        let kind = cursor.bytes(10, "start of a buffer's data")?;
        check_kind(&kind, &cursor)?;
        let cpus = read_cpu_table(&mut cursor, cpus)?;
        buffers.push(buffer(name, cpus));
    }
    meta.buffers = buffers;
    Ok(meta)
}

fn read_options(meta: &mut Meta, cursor: &mut Cursor) -> Result<(), Error> {
    loop {
        let id = cursor.u16("id of an option")?;
        if id == 0 {
            return Ok(());
        }
        let size = cursor.u32("size of an option")?;
        let data = cursor.bytes(u64::from(size), "option")?;
        meta.options.add(id, data, cursor, false)?;
    }
}

fn check_kind(kind: &[u8], cursor: &Cursor) -> Result<(), Error> {
    if kind.starts_with(b"flyrecord") {
        return Ok(());
    }
    if kind.starts_with(b"latency") {
        return Err(Error::Unsupported {
            path: cursor.path().to_owned(),
            what: "kind of data",
            value: "latency (the text of a trace)".to_owned(),
            expected: "flyrecord (raw pages)".to_owned(),
        });
    }
    Err(cursor.malformed(
        10,
        "kind of data",
        &format!("`{}`", kind.escape_ascii()),
        &"`flyrecord` or `latency`",
    ))
}

fn read_cpu_table(cursor: &mut Cursor, cpus: u32) -> Result<Vec<CpuData>, Error> {
    let mut table = Vec::new();
    for cpu in 0..cpus {
        let offset = cursor.u64("offset of a CPU's data")?;
        let size = cursor.u64("size of a CPU's data")?;
        table.push(CpuData { cpu, offset, size });
    }
    Ok(table)
}
