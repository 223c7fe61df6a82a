//! One execution of the fuzzer over the analysis: a damaged trace decoded, classified and
//! attributed, with what must hold whatever the bytes. Shared by the test of the corpus and the
//! fuzzer (`examples/fuzz`).

use super::common::corpus::{self, Corpus};
use super::common::execute::Outcome;
use super::common::input;
use attribution::Error;
use attribution::attribute::table::Table;
use attribution::attribute::windows::{MeasuredWindow, spans_in};
use attribution::spans::MeasuredCpu;
use ftrace::TraceFile;
use model::cpus::MAX_CPU;
use model::events::EventCatalogue;
use std::fmt::Write as _;

/// Fields of the events that the fixture has no formats of, wide enough for all of them. The
/// decoder finds fields by name.
const FIELDS: [(&str, &str, usize); 18] = [
    ("unsigned long", "func", 8),
    ("unsigned long", "callsite", 8),
    ("unsigned long", "callback", 8),
    ("unsigned long", "csd", 8),
    ("unsigned int", "cpu", 4),
    ("__data_loc unsigned long[]", "cpumask", 4),
    ("__data_loc unsigned long[]", "target_cpus", 4),
    ("const char *", "reason", 8),
    ("int", "irq", 4),
    ("__data_loc char[]", "name", 4),
    ("void *", "handler", 8),
    ("s64", "delta_ns", 8),
    ("unsigned long", "address", 8),
    ("unsigned long", "ip", 8),
    ("void *", "work", 8),
    ("void *", "function", 8),
    ("pid_t", "pid", 4),
    ("int", "target_cpu", 4),
];

/// Seeds in which every event of the catalogue can occur: the dictionary turns records of one event
/// into those of another.
pub(crate) fn seeds(catalogue: &EventCatalogue) -> Corpus {
    let has: Vec<String> = input("whole")
        .formats
        .iter()
        .map(|(system, text)| {
            let text = String::from_utf8_lossy(text).into_owned();
            format!("{system}:{}", text.lines().next().unwrap_or_default().trim_start_matches("name: "))
        })
        .collect();
    let missing = catalogue.events.iter().filter(|event| !has.contains(&event.name)).enumerate();
    corpus::decodable(missing.map(|(at, event)| format_of(&event.name, 30_000 + at)).collect())
}

fn format_of(name: &str, id: usize) -> (String, Vec<u8>) {
    let (system, event) = name.split_once(':').unwrap_or(("", name));
    let mut text = format!(
        "name: {event}\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    );
    for (at, (kind, field, size)) in FIELDS.iter().enumerate() {
        // Short records of the corpus must have room for most of them, so they lie over each other.
        let offset = 8 + (at * 4) % 24;
        let _ = writeln!(text, "\tfield:{kind} {field};\toffset:{offset};\tsize:{size};\tsigned:0;");
    }
    (system.to_owned(), text.into_bytes())
}

/// Decodes and attributes all of a trace, every CPU measured.
pub(crate) fn attribute(catalogue: &EventCatalogue, bytes: Vec<u8>) -> Outcome {
    let Ok(file) = TraceFile::from_bytes("damaged", bytes) else { return Outcome::Refused };
    let measured: Vec<_> = file.cpus().iter().map(|cpu| MeasuredCpu { cpu: *cpu, tid: 0 }).collect();
    let names: Vec<&str> = file.buffers().iter().map(|buffer| buffer.name.as_str()).collect();
    let mut table = Table::default();
    let mut spans_seen = 0u64;
    let always = MeasuredWindow { t0_ns: i64::MIN, t1_ns: i64::MAX, measured, snapshot: false };
    let passed = spans_in(&file, catalogue, &names, &[always], |span, decoder| {
        assert!(span.t1_ns >= span.t0_ns && span.cpu <= MAX_CPU);
        assert!(span.net_ns <= span.t1_ns.abs_diff(span.t0_ns), "more net time than time: {span:?}");
        let _ = decoder.labels().text(span.label);
        table.add(span, span.net_ns);
        spans_seen += 1;
        Ok::<_, Error>(())
    });
    let Ok(passed) = passed else { return Outcome::Refused };
    assert!(passed.damaged <= passed.holes, "damage that was not told as a hole");
    if passed.damaged > 0 { Outcome::Partial } else { Outcome::Whole }
}
