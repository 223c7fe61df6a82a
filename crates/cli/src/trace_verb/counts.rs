//! `stillcore trace counts`: how many events of each name a trace holds, and what it lost.

use crate::args::CountsArgs;
use ftrace::{Counts, TraceFile};
use serde_json::json;

/// Counts a trace.
pub(super) fn run(args: &CountsArgs) -> anyhow::Result<u8> {
    let file = TraceFile::open(&args.file)?;
    let mut stream = match args.buffer.as_deref() {
        None => file.stream()?,
        Some("all") => {
            let names: Vec<_> = file.buffers().iter().map(|buffer| buffer.name.as_str()).collect();
            file.stream_buffers(&names)?
        }
        Some(name) => {
            let buffer = file.buffer(name).ok_or_else(|| unknown(&file, name))?;
            file.stream_buffer(buffer)?
        }
    };
    let counts = Counts::of(file.formats(), &mut stream)?;
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
        let answer = json!({
            "schema": "stillcore.trace-counts/1",
            "total": counts.total,
            "events": counts.events,
            "per_cpu": per_cpu,
            "lost": lost,
        });
        println!("{answer}");
    } else {
        print!("{}", table(&counts));
    }
    Ok(0)
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
    names.chain(total).chain(lost).collect()
}
