//! Raw per-CPU dumps: what was read from `per_cpu/cpuN/trace_pipe_raw`, with the formats of the
//! kernel that wrote it.

use ftrace::{Counts, Endian, Formats, stream_raw};
use std::fs;
use std::path::{Path, PathBuf};

/// Counts the dumps in `raw`: `cpuN`, `cpuN.raw` or `cpuN/trace_pipe_raw`. `events` is a copy of
/// tracefs' directory `events`.
pub(super) fn counts(raw: &Path, events: &Path) -> anyhow::Result<Counts> {
    let formats = formats(events)?;
    let mut dumps: Vec<(u32, PathBuf)> = entries(raw)?.into_iter().filter_map(dump).collect();
    dumps.sort();
    anyhow::ensure!(
        !dumps.is_empty(),
        "{}: holds no dump: expected files cpu0.raw, cpu1.raw and so on, or cpu0/trace_pipe_raw",
        raw.display()
    );
    Ok(Counts::of(&formats, &mut stream_raw(&formats, &dumps)?)?)
}

fn dump(path: PathBuf) -> Option<(u32, PathBuf)> {
    let name = path.file_name()?.to_str()?.strip_prefix("cpu")?;
    let cpu = name.strip_suffix(".raw").unwrap_or(name).parse().ok()?;
    Some((cpu, if path.is_dir() { path.join("trace_pipe_raw") } else { path }))
}

/// The formats below `events`. The dumps are assumed to have this machine's byte order.
fn formats(events: &Path) -> anyhow::Result<Formats> {
    let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
    let mut formats = Formats::new(endian, &read(&events.join("header_page"))?, size_of::<usize>())?;
    for system in entries(events)?.into_iter().filter(|path| path.is_dir()) {
        let name = system.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for event in entries(&system)? {
            let format = event.join("format");
            if format.is_file() {
                formats.add(&name, &read(&format)?)?;
            }
        }
    }
    Ok(formats)
}

fn entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = |source| ftrace::Error::Io { path: directory.to_owned(), action: "list", source };
    let mut paths = fs::read_dir(directory)
        .map_err(failed)?
        .map(|entry| Ok(entry.map_err(failed)?.path()))
        .collect::<Result<Vec<_>, ftrace::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let failed = |source| ftrace::Error::Io { path: path.to_owned(), action: "read", source };
    Ok(String::from_utf8_lossy(&fs::read(path).map_err(failed)?).into_owned())
}
