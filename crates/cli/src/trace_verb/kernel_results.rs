//! `stillcore trace explain FILE`: what the kernel's own tracers timerlat and osnoise have
//! measured, each late sample taken apart.

use crate::trace_verb::explain_text::{describe, who, word};
use crate::trace_verb::options::TraceExplainArgs;
use attribution::timerlat::{
    KernelResults, Noise, NoiseKind, OsnoiseCpu, TimerlatCpu, TimerlatSample, Wanted, kernel_results,
};
use ftrace::TraceFile;
use model::sample::ProbeKind;
use report::{format, trace_answer};
use serde_json::json;
use std::fmt::Write;

/// Noise events that are printed of a sample, longest first.
const NOISE: usize = 12;

/// What the tracers have left in a trace, if they have.
pub(super) fn results(file: &TraceFile, args: &TraceExplainArgs) -> anyhow::Result<Option<KernelResults>> {
    let over_ns = args.over.map_or(0, |over| u64::try_from(over.as_nanos()).unwrap_or(u64::MAX));
    let wanted = Wanted { over_ns, release_ns: args.sample, keep: args.of_each() };
    Ok(kernel_results(file, &[""], &wanted)?)
}

/// Prints it.
pub(super) fn print(
    file: &TraceFile,
    results: &KernelResults,
    args: &TraceExplainArgs,
) -> anyhow::Result<()> {
    if let Some(wanted) = args.sample {
        anyhow::ensure!(
            !results.worst.is_empty(),
            "{}: no sample was due at {} s: expected the time of one that this command lists",
            args.run.display(),
            format::instant(wanted)
        );
    }
    if args.json {
        let answer = json!({
            "schema": trace_answer::SCHEMA,
            "kernel": file.uname(),
            "clock": file.clock(),
            "kernel_results": results,
        });
        println!("{answer}");
    } else {
        print!("{}", text(results));
    }
    Ok(())
}

fn text(results: &KernelResults) -> String {
    let mut text = String::new();
    results.timerlat.iter().for_each(|one| text.push_str(&timerlat(one)));
    results.osnoise.iter().for_each(|one| text.push_str(&osnoise(one)));
    text.push('\n');
    results.worst.iter().for_each(|sample| text.push_str(&story(sample)));
    if results.holes > 0 {
        let _ = writeln!(
            text,
            "note: the trace misses events in {} places: samples are missing, and noise of those around",
            results.holes
        );
    }
    text
}

fn ns(ns: u64) -> String {
    format::ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn timerlat(one: &TimerlatCpu) -> String {
    format!(
        "timerlat, CPU {}: n = {}; observed maximum of the timer's handler {}, of the thread {} (n = {})\n",
        one.cpu,
        one.irq_samples,
        ns(one.irq_max_ns),
        ns(one.thread_max_ns),
        one.thread_samples
    )
}

fn osnoise(one: &OsnoiseCpu) -> String {
    format!(
        "osnoise, CPU {}: {} of {} in {} periods, at most {} at once; {} without an event, {} NMIs, {} interrupts, {} softirqs, {} tasks\n",
        one.cpu,
        ns(one.noise_ns),
        ns(one.runtime_ns),
        one.periods,
        ns(one.max_ns),
        one.hardware,
        one.nmis,
        one.irqs,
        one.softirqs,
        one.threads
    )
}

fn story(sample: &TimerlatSample) -> String {
    let late = |latency: Option<u64>| latency.map_or_else(|| "not recorded".to_owned(), ns);
    let mut text = format!(
        "Sample {} of CPU {}, due at {} s: handler {}, thread {}",
        sample.seq,
        sample.cpu,
        format::instant(sample.release_ns),
        late(sample.irq_latency_ns),
        late(sample.thread_latency_ns)
    );
    if let Some(user_ns) = sample.user_latency_ns {
        let _ = write!(text, ", back in user space {}", ns(user_ns));
    }
    text.push('\n');
    if let Some(path) = &sample.path {
        text.push_str("  the way of the thread:\n");
        for part in &path.parts {
            let _ =
                writeln!(text, "    {:>9}  {}", ns(part.ns), describe(part, sample.cpu, ProbeKind::Wakeup));
        }
    }
    if !sample.noise.is_empty() {
        text.push_str("  what the kernel counted as noise meanwhile, net:\n");
        let mut noise: Vec<&Noise> = sample.noise.iter().collect();
        noise.sort_by_key(|one| std::cmp::Reverse(one.net_ns));
        noise.iter().take(NOISE).for_each(|one| text.push_str(&noise_line(one)));
        if noise.len() > NOISE {
            let _ = writeln!(text, "    and {} shorter ones", noise.len() - NOISE);
        }
    }
    text.push('\n');
    text
}

fn noise_line(one: &Noise) -> String {
    let kind = match one.kind {
        NoiseKind::Nmi => "NMI",
        NoiseKind::Irq => "interrupt",
        NoiseKind::Softirq => "softirq",
        NoiseKind::Thread => "task",
    };
    let ours = one.ours.as_ref().map(|ours| format!(": {ours}")).unwrap_or_default();
    let by = match (&one.source, one.confidence) {
        (Some(source), Some(confidence)) => format!(", by {} ({})", who(source), word(confidence)),
        _ => String::new(),
    };
    format!("    {:>9}  {kind} {}{ours}{by}\n", ns(one.net_ns), one.what)
}
