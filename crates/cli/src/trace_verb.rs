//! `stillcore trace counts`: how many events of each name a trace holds, and what it lost.

use crate::args::CountsArgs;
use ftrace::{Counts, TraceFile};
use serde_json::json;

/// Counts a trace.
pub(crate) fn counts(args: &CountsArgs) -> anyhow::Result<u8> {
    let file = TraceFile::open(&args.file)?;
    let counts = Counts::of(file.formats(), &mut file.stream()?)?;
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
