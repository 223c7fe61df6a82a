//! Against the text that the kernel itself printed for the same trace.

use super::*;
use std::path::Path;

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/timerlat-6.12-rt").join(name)
}

fn results(over_ns: u64, keep: usize) -> KernelResults {
    let file = TraceFile::open(&fixture("trace.dat")).unwrap();
    kernel_results(&file, &[""], &Wanted { over_ns, keep, release_ns: None }).unwrap().unwrap()
}

/// Number, context and latency of each sample in tracefs' text:
/// `... #2 context irq timer_latency 178694 ns`.
fn printed() -> Vec<(u64, String, u64)> {
    let text = std::fs::read_to_string(fixture("samples.txt")).unwrap();
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "context")?;
        let seq = words.get(at - 1)?.strip_prefix('#')?.parse().ok()?;
        Some((seq, words[at + 1].to_owned(), words[at + 3].parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn every_sample_is_read_as_the_kernel_prints_it() {
    let (results, printed) = (results(0, 1000), printed());
    assert!(printed.len() > 50);
    let mut ours = Vec::new();
    for sample in &results.worst {
        assert_eq!(sample.cpu, 2);
        ours.extend(sample.irq_latency_ns.map(|ns| (sample.seq, "irq".to_owned(), ns)));
        ours.extend(sample.thread_latency_ns.map(|ns| (sample.seq, "thread".to_owned(), ns)));
    }
    ours.sort();
    let mut theirs = printed.clone();
    theirs.sort();
    assert_eq!(ours, theirs);
    let most = |context: &str| printed.iter().filter(|one| one.1 == context).map(|one| one.2).max().unwrap();
    assert_eq!(
        (results.timerlat[0].irq_max_ns, results.timerlat[0].thread_max_ns),
        (most("irq"), most("thread"))
    );
    assert!(results.worst.is_sorted_by_key(|sample| std::cmp::Reverse(sample.latency_ns())));
}

#[test]
fn a_sample_is_taken_apart_to_the_nanosecond_and_its_noise_lies_inside() {
    let results = results(0, 1000);
    assert_eq!(results.timerlat[0].thread_samples, results.worst.len() as u64);
    for sample in &results.worst {
        let latency_ns = sample.thread_latency_ns.unwrap();
        // Only the twenty latest samples of a CPU keep paths.
        let Some(path) = sample.path.as_ref() else { continue };
        assert_eq!(path.parts.iter().map(|part| part.ns).sum::<u64>(), latency_ns, "{}", sample.seq);
        assert!(path.parts.len() > 2, "{path:?}");
        assert!(!sample.noise.is_empty());
        for noise in &sample.noise {
            assert!(noise.end_ns > sample.release_ns, "{noise:?}");
        }
        // The timer's own interrupt is in both accounts.
        let timer = sample.noise.iter().find(|noise| noise.what.starts_with("local_timer")).unwrap();
        assert!(
            timer.ours.as_deref().is_some_and(|ours| ours.starts_with("timer.") || ours.starts_with("self")),
            "{timer:?}"
        );
    }
    assert_eq!(results.worst.iter().filter(|sample| sample.path.is_some()).count(), 20);
    assert!(results.worst.iter().flat_map(|sample| &sample.noise).any(|noise| noise.source.is_some()));
}

#[test]
fn the_threshold_keeps_what_is_at_least_as_late_and_counts_it() {
    let all = results(0, 1000);
    let over_ns = all.worst[all.worst.len() / 2].latency_ns();
    let late = all.worst.iter().filter(|sample| sample.latency_ns() >= over_ns).count();
    let results = results(over_ns, 1000);
    assert_eq!((results.worst.len(), results.timerlat[0].over), (late, late as u64));
    assert!(late < all.worst.len());
    let one = all.worst[all.worst.len() - 1].clone();
    let wanted = Wanted { over_ns: 0, keep: 3, release_ns: Some(one.release_ns) };
    let file = TraceFile::open(&fixture("trace.dat")).unwrap();
    let results = kernel_results(&file, &[""], &wanted).unwrap().unwrap();
    assert_eq!((results.worst.len(), results.worst[0].seq, results.timerlat), (1, one.seq, all.timerlat));
}

#[test]
fn a_trace_without_the_tracers_has_none() {
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small/trace.dat");
    let wanted = Wanted { over_ns: 0, keep: 3, release_ns: None };
    assert_eq!(kernel_results(&TraceFile::open(&other).unwrap(), &[""], &wanted).unwrap(), None);
}
