//! Captured results of each tool, whole, cut and changed.

use super::{option, parse};
use crate::groups::measured::{MeasuredRun, Samples, Tool};
use model::sample::ProbeKind;
use proptest::prelude::*;

/// The captured results; `fixtures/results/README.md` says how each was made.
const RESULTS: [(&str, &str); 6] = [
    ("cyclictest.json", include_str!("../../../../fixtures/results/cyclictest.json")),
    ("cyclictest.txt", include_str!("../../../../fixtures/results/cyclictest.txt")),
    ("oslat.json", include_str!("../../../../fixtures/results/oslat.json")),
    ("jitterdebugger.json", include_str!("../../../../fixtures/results/jitterdebugger.json")),
    ("rtla-timerlat.txt", include_str!("../../../../fixtures/results/rtla-timerlat.txt")),
    ("rtla-osnoise.txt", include_str!("../../../../fixtures/results/rtla-osnoise.txt")),
];

fn captured(name: &str) -> MeasuredRun {
    let (_, text) = RESULTS.into_iter().find(|(known, _)| *known == name).unwrap();
    parse(text, name.to_owned(), None).unwrap()
}

/// Median and p99 in us, largest in us, number.
fn summary(run: &MeasuredRun) -> [i64; 4] {
    let samples = &run.windows[0].samples;
    let us = |ns: Option<i64>| ns.map_or(-1, |ns| ns / 1000);
    [us(samples.quantile(50_000)), us(samples.quantile(99_000)), us(samples.max()), samples.n() as i64]
}

#[test]
fn cyclictest_says_the_same_in_both_of_its_formats() {
    // The two were written by one call; the tool's own least, largest and totals are in the text.
    let (json, text) = (captured("cyclictest.json"), captured("cyclictest.txt"));
    assert_eq!((json.tool, text.tool), (Tool::Cyclictest, Tool::Cyclictest));
    assert_eq!(summary(&json), summary(&text));
    assert_eq!(summary(&text), [23, 120, 950, 4000]);
    let window = &json.windows[0];
    assert_eq!((window.samples.min(), window.threads, window.period_ns), (Some(12_000), 2, Some(1_000_000)));
    assert_eq!(window.cpus.to_string(), "0,1");
    assert_eq!(window.policy.as_deref(), Some("fifo 80"));
    // Four samples lie beyond the last bin, at 400 us; of these only the largest is known.
    let Samples::Binned(bins) = &text.windows[0].samples else { panic!("a histogram") };
    assert_eq!((bins.over, bins.over_from_ns, bins.width_ns), (4, Some(400_000), 1_000));
    assert_eq!(text.windows[0].samples.at_least(500_000), None);
}

#[test]
fn a_cyclictest_file_that_is_not_whole_is_refused_in_words() {
    let (_, text) = RESULTS[0];
    for (from, to, why) in [
        ("\"return_code\": 0", "\"return_code\": 1", "\"return_code\" is 1; expected 0"),
        ("\"num_threads\": 2", "\"num_threads\": 3", "has 2 threads; expected 3"),
        ("\"385\": 1", "\"400\": 1", "has bin 400; expected bins below 400"),
        ("\"385\": 1", "\"385\": 9999", "no more than the 2000 in all"),
    ] {
        let odd = text.replacen(from, to, 1);
        assert_ne!(odd, text, "{from}");
        let error = parse(&odd, "odd".to_owned(), None).unwrap_err().to_string();
        assert!(error.contains(why), "{error}, not {why}");
    }
}

#[test]
fn an_oslat_file_of_a_call_that_failed_or_lacks_a_thread_is_refused() {
    let (_, text) = RESULTS[2];
    for (from, to, why) in [
        ("\"return_code\": 0", "\"return_code\": 1", "\"return_code\" is 1; expected 0"),
        ("\"num_threads\": 1", "\"num_threads\": 2", "has 1 threads; expected 2"),
    ] {
        let odd = text.replacen(from, to, 1);
        assert_ne!(odd, text, "{from}");
        let error = parse(&odd, "odd".to_owned(), None).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}, not {why}");
    }
}

/// Totals that a tool states twice must agree.
#[test]
fn figures_that_contradict_each_other_are_refused_in_words() {
    for (which, from, to, why) in [
        (1, "000018 000183", "000018 900183", "902000 samples in column 1; expected 2000, as its total says"),
        (1, "# Max Latencies: 00338", "# Max Latencies: 00033", "expected none above the largest, 33000 ns"),
        (1, "# Min Latencies: 00012", "# Min Latencies: 00002", "expected one as the smallest, 2000 ns"),
        (0, "\"max\": 338", "\"max\": 33", "none above the largest, 33000 ns"),
        (3, "\"max\": 167", "\"max\": 16", "none above the largest, 16000 ns"),
        (4, "count:     1932", "count:     1933", "1932 samples in column 1; expected 1933"),
        (5, "over:        16", "over:        61", "256 samples in column 1; expected 211"),
    ] {
        let odd = RESULTS[which].1.replacen(from, to, 1);
        assert_ne!(odd, RESULTS[which].1, "{from}");
        let error = parse(&odd, "odd".to_owned(), None).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}, not {why}");
    }
}

#[test]
fn oslat_is_noise_with_its_time() {
    let run = captured("oslat.json");
    let window = &run.windows[0];
    assert_eq!((run.tool, window.probe, window.threads), (Tool::Oslat, ProbeKind::Noise, 1));
    assert_eq!(window.duration_ns, Some(2_005_000_000));
    // The file's own counts: 212 in its last bin, which holds everything longer; 291 from 20 us on.
    assert_eq!(window.samples.at_least(32_000), Some(212));
    assert_eq!(window.samples.at_least(20_000), Some(291));
    assert_eq!(window.samples.at_least(33_000), None);
    assert_eq!(window.samples.max(), Some(20_322_000));
}

#[test]
fn jitterdebugger_counts_what_it_says() {
    let run = captured("jitterdebugger.json");
    assert_eq!((run.tool, summary(&run)), (Tool::Jitterdebugger, [17, 42, 167, 2000]));
    let beyond = r#"{"cpu": {"0": {"histogram": {"3": 90, "5": 7}, "count": 100, "min": 3, "max": 1700, "avg": 9.5}}}"#;
    let run = parse(beyond, "old".into(), None).unwrap();
    assert_eq!((run.windows[0].samples.n(), run.windows[0].samples.max()), (100, Some(1_700_000)));
}

#[test]
fn rtla_s_series_are_kept_apart() {
    let (_, text) = RESULTS[4];
    let thread = captured("rtla-timerlat.txt");
    assert_eq!((thread.tool, thread.windows[0].threads), (Tool::RtlaTimerlatThread, 2));
    assert_eq!(thread.windows[0].duration_ns, Some(2 * 4_000_000_000), "two CPUs");
    // The file's own rows `ALL:` with count, min and max of each series.
    for (part, [count, least, most]) in
        [("irq", [3868, 15, 240_411]), ("thread", [3868, 27, 240_477]), ("user", [3868, 42, 240_615])]
    {
        let run = parse(text, "rtla".into(), Some(part)).unwrap();
        let samples = &run.windows[0].samples;
        assert_eq!(samples.n() as i64, count, "{part}");
        assert_eq!((samples.min(), samples.max()), (Some(least * 1000), Some(most * 1000)), "{part}");
        assert_eq!(samples.resolution_ns(), 2_000);
    }
    assert!(parse(text, "rtla".into(), Some("x")).unwrap_err().to_string().contains("no series x"));
    let noise = captured("rtla-osnoise.txt");
    assert_eq!((noise.tool, noise.windows[0].probe), (Tool::RtlaOsnoise, ProbeKind::Noise));
    assert_eq!((noise.windows[0].samples.n(), noise.windows[0].samples.max()), (4_509, Some(201_334_000)));
}

#[test]
fn malformed_results_are_one_sentence() {
    let cases = [
        ("", "a text of no tool"),
        ("{", "whole JSON"),
        ("{}", "JSON of no tool"),
        (r#"{"cpu": {"0": {"histogram": {"x": 1}, "count": 1}}}"#, "whole numbers"),
        (r#"{"cpu": {"0": {"histogram": {"1": -1}, "count": 1}}}"#, "whole numbers"),
        (r#"{"cpu": {"0": {"histogram": {"1": 1}}}}"#, "cpu.0.count"),
        (r#"{"cpu": {"0": {"histogram": {}, "count": 0}}}"#, "empty"),
        (r#"{"cpu": {"0": {"histogram": {"9223372036854775807": 1}, "count": 1}}}"#, "whole numbers"),
        (r#"{"thread": {"0": 5}, "resolution_in_ns": 0}"#, "thread.0.histogram"),
        (r#"{"thread": {"0": {"freq": 1, "histogram": {"1": 2}, "duration": -1}}}"#, "duration"),
        ("# RTLA timerlat histogram\nIndex IRQ-x\n", "columns such as"),
        ("# RTLA timerlat histogram\nIndex   Thr-001\n0  1 2\n", "one for each of 1 columns"),
        ("# RTLA timerlat histogram\nIndex   Thr-001\n0  x\n", "a whole number"),
        ("# RTLA osnoise histogram\n", "no columns of CPUs"),
        (
            "000001 18446744073709551615 1\n# Min Latencies: 1 1\n# Max Latencies: 2 2\n# Histogram Overflows: 0 0\n",
            "samples of less than",
        ),
        ("000001 5\n# Max Latencies: 2\n", "breaks off"),
        (r#"{"cpu": {"0": {"histogram": {"-9000000000000000": 1}, "count": 1}}}"#, "a latency"),
        ("000001 5\n000002 5 5\n# Max Latencies: 2\n", "rows without the same number"),
        ("000001 5x\n# Max Latencies: 2\n", "a whole number"),
    ];
    for (text, expected) in cases {
        let error = parse(text, "file".into(), None).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.starts_with("file") && !error.contains('\n'),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn options_are_found_as_they_are_typed() {
    for line in ["x -i1000 -q", "x -i 1000", "x --interval=1000", "x --interval 1000 -q"] {
        assert_eq!(option(line, "-i", "--interval"), Some("1000"), "{line}");
    }
    assert_eq!(option("x --intervals=5 -q", "-i", "--interval"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    // Cut anywhere, with bytes changed: an answer or an error, never a panic.
    #[test]
    fn mutilated_results_are_no_panic(which in 0..RESULTS.len(), cut in 0.0f64..1.0, at in 0.0f64..1.0, byte in "[0-9{}:,\\-e\"x \n]") {
        let text = RESULTS[which].1;
        let mut bytes = text.as_bytes()[..(text.len() as f64 * cut) as usize].to_vec();
        if !bytes.is_empty() {
            let place = ((bytes.len() - 1) as f64 * at) as usize;
            bytes[place] = byte.as_bytes()[0];
        }
        let _ = parse(&String::from_utf8_lossy(&bytes), "file".into(), None);
        let mut whole = text.as_bytes().to_vec();
        let place = ((whole.len() - 1) as f64 * at) as usize;
        whole[place] = byte.as_bytes()[0];
        let _ = parse(&String::from_utf8_lossy(&whole), "file".into(), None);
    }
}

/// A text that was cut between two lines reads well, and says that nothing was as long as what is
/// missing.
#[test]
fn a_histogram_that_breaks_off_is_refused() {
    for (name, text) in RESULTS.into_iter().filter(|(_, text)| !text.starts_with('{')) {
        let largest = captured(name).windows[0].samples.max();
        let lines: Vec<&str> = text.lines().collect();
        for kept in 1..lines.len() {
            if let Ok(run) = parse(&lines[..kept].join("\n"), name.to_owned(), None) {
                assert_eq!(run.windows[0].samples.max(), largest, "{name}, {kept} lines");
            }
        }
        assert!(parse(&lines[..lines.len() / 2].join("\n"), name.to_owned(), None).is_err(), "{name}");
    }
}
