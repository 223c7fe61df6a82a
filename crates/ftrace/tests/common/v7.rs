//! A small writer of version 7, for tests only: every section can be compressed, so that each codec
//! of the reader is tried without a program that has it. The layout follows trace-cmd.dat.v7(5).

use ftrace::TraceInput;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    None,
    Zlib,
    Zstd,
}

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    fn pack(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::None => data.to_vec(),
            Self::Zlib => miniz_oxide::deflate::compress_to_vec_zlib(data, 6),
            Self::Zstd => {
                ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
            }
        }
    }
}

struct Out {
    bytes: Vec<u8>,
    codec: Codec,
}

impl Out {
    fn section(&mut self, id: u16, content: &[u8]) -> u64 {
        let at = self.bytes.len() as u64;
        let packed = if self.codec == Codec::None { content.to_vec() } else { block(self.codec, content) };
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(u16::from(self.codec != Codec::None).to_le_bytes());
        self.bytes.extend(0_u32.to_le_bytes());
        self.bytes.extend((packed.len() as u64).to_le_bytes());
        self.bytes.extend(packed);
        at
    }
}

fn block(codec: Codec, content: &[u8]) -> Vec<u8> {
    let packed = codec.pack(content);
    let mut out = (packed.len() as u32).to_le_bytes().to_vec();
    out.extend((content.len() as u32).to_le_bytes());
    out.extend(packed);
    out
}

fn sized(content: &[u8]) -> Vec<u8> {
    let mut out = (content.len() as u64).to_le_bytes().to_vec();
    out.extend(content);
    out
}

fn option(id: u16, data: &[u8]) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend((data.len() as u32).to_le_bytes());
    out.extend(data);
    out
}

/// `input` as a file of version 7, with `chunk_pages` pages a chunk where it is compressed.
pub(crate) fn write(input: &TraceInput, codec: Codec, chunk_pages: usize) -> Vec<u8> {
    let mut out = Out { bytes: b"\x17\x08\x44tracing7\0\0\x08".to_vec(), codec };
    let page = input.page_size as usize;
    out.bytes.extend(input.page_size.to_le_bytes());
    out.bytes.extend(codec.name().as_bytes());
    out.bytes.extend(b"\x001.0\0");
    let options_place = out.bytes.len();
    out.bytes.extend([0; 8]);

    let header =
        [&b"header_page\0"[..], &sized(&input.header_page), b"header_event\0", &sized(&input.header_event)]
            .concat();
    let mut ftrace = (input.ftrace_formats.len() as u32).to_le_bytes().to_vec();
    input.ftrace_formats.iter().for_each(|f| ftrace.extend(sized(f)));
    // One "system" entry per event: allowed, and simpler than grouping.
    let mut events = (input.formats.len() as u32).to_le_bytes().to_vec();
    for (system, text) in &input.formats {
        events.extend(system.as_bytes());
        events.extend(b"\0\x01\0\0\0");
        events.extend(sized(text));
    }
    let mut kallsyms = (input.kallsyms.len() as u32).to_le_bytes().to_vec();
    kallsyms.extend(&input.kallsyms);

    let mut options = Vec::new();
    for (id, content) in
        [(16, header), (17, ftrace), (18, events), (19, kallsyms), (21, sized(&input.cmdlines))]
    {
        let at = out.section(id, &content);
        options.extend(option(id, &at.to_le_bytes()));
    }
    options.extend(option(5, format!("{}\0", input.uname).as_bytes()));

    let buffer_at = out.bytes.len() as u64;
    out.bytes.extend(3_u16.to_le_bytes());
    out.bytes.extend(u16::from(codec != Codec::None).to_le_bytes());
    out.bytes.extend([0; 12]);
    let mut buffer = buffer_at.to_le_bytes().to_vec();
    buffer.extend(format!("\0{}\0", input.clock).as_bytes());
    buffer.extend(input.page_size.to_le_bytes());
    buffer.extend((input.cpus.len() as u32).to_le_bytes());
    for (cpu, path) in &input.cpus {
        let pages = std::fs::read(path).unwrap();
        let at = out.bytes.len().next_multiple_of(page);
        out.bytes.resize(at, 0);
        if codec == Codec::None {
            out.bytes.extend(&pages);
        } else {
            let chunks: Vec<_> = pages.chunks(chunk_pages * page).collect();
            out.bytes.extend((chunks.len() as u32).to_le_bytes());
            for chunk in chunks {
                out.bytes.extend(block(codec, chunk));
            }
        }
        buffer.extend(cpu.to_le_bytes());
        buffer.extend((at as u64).to_le_bytes());
        buffer.extend(((out.bytes.len() - at) as u64).to_le_bytes());
    }
    // Two sections of options, to try the chain.
    // An empty instance before the top buffer: readers must not take the first for the top.
    let early =
        [&buffer_at.to_le_bytes()[..], b"early\0mono\0", &input.page_size.to_le_bytes(), &[0; 4]].concat();
    let mut last = option(3, &early);
    last.extend(option(3, &buffer));
    last.extend(option(0, &0_u64.to_le_bytes()));
    let last_at = out.section(0, &last);
    options.extend(option(0, &last_at.to_le_bytes()));
    let first_at = out.section(0, &options);
    out.bytes[options_place..options_place + 8].copy_from_slice(&first_at.to_le_bytes());
    out.bytes
}
