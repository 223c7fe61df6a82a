//! `stillcore trace counts`: how many events of each name a trace holds, and what it lost.

use super::raw;
use crate::trace_verb::options::CountsArgs;
use ftrace::{Counts, TraceFile};
use model::store;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Counts a trace.
pub(super) fn run(args: &CountsArgs) -> anyhow::Result<u8> {
    let (counts, damage) = match (&args.raw, &args.formats, &args.file) {
        (Some(raw), Some(formats), _) => (raw::counts(raw, formats)?, Vec::new()),
        (_, _, Some(file)) => of_file(file, args.buffer.as_deref())?,
        _ => anyhow::bail!("nothing to count: a trace.dat, a text, or --raw with --formats is needed"),
    };
    if args.json {
        let per_cpu: serde_json::Map<_, _> =
            counts.per_cpu.iter().map(|(cpu, events)| (cpu.to_string(), json!(events))).collect();
        let lost: serde_json::Map<_, _> = counts
            .lost
            .iter()
            .map(|(cpu, lost)| {
                (cpu.to_string(), json!({ "events": lost.events, "unknown_pages": lost.unknown_pages }))
            })
            .collect();
        let mut answer = json!({
            "schema": "stillcore.trace-counts/1",
            "total": counts.total,
            "events": counts.events,
            "per_cpu": per_cpu,
            "lost": lost,
        });
        if counts.lost_somewhere > 0 {
            answer["lost_somewhere"] = json!(counts.lost_somewhere);
        }
        if !damage.is_empty() {
            answer["damage"] = json!(damage);
        }
        println!("{answer}");
    } else {
        print!("{}", table(&counts));
        damage.iter().for_each(|one| println!("INCOMPLETE: the trace is damaged: {one}"));
    }
    Ok(0)
}

/// The trace of a run, where the path is a run's.
pub(super) fn trace_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(store::TRACE) } else { path.to_owned() }
}

/// The counts, and where the file is damaged or cut off.
fn of_file(path: &Path, buffer: Option<&str>) -> anyhow::Result<(Counts, Vec<String>)> {
    let path = &trace_of(path);
    if buffer.is_none()
        && let Some(text) = text(path)?
    {
        return Ok((Counts::of_text(path, text)?, Vec::new()));
    }
    let file = TraceFile::open(path)?;
    let mut stream = file.stream_buffers(&buffers(&file, buffer)?)?;
    let counts = Counts::of(file.formats(), &mut stream)?;
    Ok((counts, stream.damage().map(ToString::to_string).collect()))
}

/// The buffers that the user asked for, by name.
pub(super) fn buffers<'f>(file: &'f TraceFile, asked: Option<&'f str>) -> anyhow::Result<Vec<&'f str>> {
    match asked {
        None => Ok(vec![""]),
        Some("all") => Ok(file.buffers().iter().map(|buffer| buffer.name.as_str()).collect()),
        Some(name) if file.buffer(name).is_some() => Ok(vec![name]),
        Some(name) => Err(unknown(file, name).into()),
    }
}

/// The file, if it begins as the text of a trace.
fn text(path: &Path) -> anyhow::Result<Option<BufReader<File>>> {
    let failed = |source| ftrace::Error::Io { path: path.to_owned(), action: "read", source };
    let mut text = BufReader::new(File::open(path).map_err(failed)?);
    let start = text.fill_buf().map_err(failed)?;
    Ok(ftrace::is_text_trace(start).then_some(text))
}

fn unknown(file: &TraceFile, name: &str) -> model::Error {
    let names: Vec<_> =
        file.buffers().iter().map(|buffer| buffer.name.as_str()).filter(|name| !name.is_empty()).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    model::Error::invalid(
        file.path().display(),
        format!("it has no buffer {name:?}"),
        format!("all, or one beside the top one: {known}"),
    )
}

fn table(counts: &Counts) -> String {
    let names = counts.events.iter().map(|(name, count)| format!("{count:>12}  {name}\n"));
    let total = std::iter::once(format!("{:>12}  in all\n", counts.total));
    let lost = counts.lost.iter().filter(|(_, lost)| lost.events > 0 || lost.unknown_pages > 0).map(
        |(cpu, lost)| {
            format!(
                "CPU {cpu} lost {} events, and an unknown number on {} pages\n",
                lost.events, lost.unknown_pages
            )
        },
    );
    let somewhere = (counts.lost_somewhere > 0)
        .then(|| format!("{} more were written, by the head of the text\n", counts.lost_somewhere));
    names.chain(total).chain(lost).chain(somewhere).collect()
}
