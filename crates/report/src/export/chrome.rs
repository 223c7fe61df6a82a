//! Chrome trace events: JSON that chrome://tracing, Perfetto and Speedscope open.
//!
//! "Trace Event Format" (Duffy and others, 2016): complete events (`X`), instants (`i`), counters
//! (`C`) and names of tracks (`M`). Times are microseconds with three decimals, so no nanosecond is
//! lost.

use super::tracks::{Place, Track, Tracks};
use super::{Exporter, Origin, Taken, name, sources};
use crate::Error;
use attribution::attribute::events::Attributed;
use model::sample::Sample;
use serde_json::{Value, json};
use std::io::Write;

/// The process that tracks of what ran, and of samples, belong to.
const RAN: u32 = 1;
const SAMPLES: u32 = 2;

/// A file of Chrome trace events.
#[derive(Debug)]
pub struct Chrome<W> {
    out: W,
    tracks: Tracks,
}

impl<W: Write> Chrome<W> {
    /// Begins the file.
    pub fn new(mut out: W, origin: &Origin) -> Result<Self, Error> {
        let of = serde_json::to_string(origin)
            .map_err(|source| Error::Json { what: "the origin of an export", source })?;
        writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{of},\"traceEvents\":[")?;
        let mut chrome = Self { out, tracks: Tracks::default() };
        chrome.meta("process_name", RAN, 0, "what ran on measured CPUs")?;
        writeln!(chrome.out, ",")?;
        chrome.meta("process_name", SAMPLES, 0, "samples")?;
        Ok(chrome)
    }

    fn meta(&mut self, what: &str, process: u32, thread: u64, name: &str) -> Result<(), Error> {
        let event =
            json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } });
        Ok(write!(self.out, "{event}")?)
    }

    /// One span, or an instant where it has no length.
    fn span(
        &mut self,
        track: Track,
        [t0_ns, t1_ns]: [i64; 2],
        category: &str,
        name: &str,
        args: &Value,
    ) -> Result<(), Error> {
        let process = if track.probe.is_some() { SAMPLES } else { RAN };
        let Place { number, first, end_ns } = self.tracks.place(track, t0_ns, t1_ns);
        if first {
            writeln!(self.out, ",")?;
            self.meta("thread_name", process, number, &track.name())?;
        }
        let (name, category) = (Value::from(name), Value::from(category));
        write!(self.out, ",\n{{\"name\":{name},\"cat\":{category},\"pid\":{process},\"tid\":{number}")?;
        let kind = match end_ns {
            Some(end_ns) => format!("\"ph\":\"X\",\"dur\":{}", micros(end_ns.saturating_sub(t0_ns))),
            None => "\"ph\":\"i\",\"s\":\"t\"".to_owned(),
        };
        Ok(write!(self.out, ",{kind},\"ts\":{},\"args\":{args}}}", micros(t0_ns))?)
    }
}

impl<W: Write> Exporter for Chrome<W> {
    fn event(&mut self, event: &Attributed) -> Result<(), Error> {
        let mut args = json!({
            "class": event.class.name(), "label": event.label, "net_ns": event.net_ns, "counts": event.counts,
        });
        if let (Value::Object(args), Some((source, confidence))) = (&mut args, event.sources.first()) {
            args.insert("source".into(), sources(event).into());
            args.insert("site".into(), source.site.clone().into());
            args.insert("began".into(), source.began.clone().into());
            args.insert("stack".into(), source.functions().join("\n").into());
            args.insert("confidence".into(), confidence.word().into());
        }
        let track = Track { cpu: event.cpu, probe: None };
        self.span(track, [event.t0_ns, event.t1_ns], event.class.name(), name(event), &args)
    }

    fn sample(&mut self, taken: Taken<'_>, sample: &Sample) -> Result<(), Error> {
        let Sample { t_ns, value_ns, missed, flags, .. } = *sample;
        let track = Track { cpu: taken.cpu, probe: Some(taken.probe) };
        let args = json!({ "latency_ns": value_ns, "phase": taken.phase, "missed": missed, "flags": flags });
        let end_ns = t_ns.saturating_add(value_ns);
        self.span(track, [t_ns, end_ns], "sample", taken.probe.name(), &args)?;
        let counter = json!({ "ns": value_ns });
        let name = Value::from(track.name());
        write!(self.out, ",\n{{\"name\":{name},\"cat\":\"sample\",\"pid\":{SAMPLES},\"ph\":\"C\"")?;
        Ok(write!(self.out, ",\"ts\":{},\"args\":{counter}}}", micros(end_ns.max(t_ns)))?)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        write!(self.out, "\n]}}\n")?;
        Ok(self.out.flush()?)
    }
}

/// Nanoseconds as microseconds, exactly.
fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::{event, origin, served};
    use model::sample::ProbeKind;

    fn written(fill: impl FnOnce(&mut Chrome<&mut Vec<u8>>)) -> Value {
        let mut bytes = Vec::new();
        let mut chrome = Chrome::new(&mut bytes, &origin()).unwrap();
        fill(&mut chrome);
        Box::new(chrome).finish().unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn of<'a>(file: &'a Value, phase: &str) -> Vec<&'a Value> {
        file["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == phase).collect()
    }

    #[test]
    fn a_file_without_events_is_whole() {
        let file = written(|_| ());
        assert_eq!(file["otherData"]["clock"], "mono");
        assert_eq!(of(&file, "M").len(), 2);
    }

    #[test]
    fn an_event_says_what_ran_and_who_asked() {
        let file = written(|chrome| {
            chrome.event(&served(2, 86_400_000_001_234, 86_400_000_003_567)).unwrap();
            chrome.event(&event(2, 86_400_000_002_000, 86_400_000_002_000)).unwrap();
        });
        let spans = of(&file, "X");
        assert_eq!(spans.len(), 1);
        assert_eq!((&spans[0]["name"], &spans[0]["cat"]), (&json!("do_sync_core"), &json!("ipi.call")));
        assert_eq!((&spans[0]["ts"], &spans[0]["dur"]), (&json!(86_400_000_001.234), &json!(2.333)));
        assert_eq!(
            spans[0]["args"]["source"],
            "bash[812] on CPU 0 by smp_call_function_many_cond (exact); interrupt: TIMER on CPU 1 (by order)"
        );
        assert_eq!(spans[0]["args"]["confidence"], "exact");
        let instants = of(&file, "i");
        assert_eq!(instants[0]["name"], "eth0 \"rx\"\n");
        assert_eq!(instants[0]["tid"], spans[0]["tid"]);
        let names: Vec<_> = of(&file, "M").iter().map(|event| event["args"]["name"].clone()).collect();
        assert_eq!(names[2..], [json!("CPU 2")]);
    }

    #[test]
    fn samples_have_a_track_of_their_own_and_crossing_ones_lanes() {
        let taken = Taken { probe: ProbeKind::Wakeup, cpu: 2, phase: "idle" };
        let file = written(|chrome| {
            for (t_ns, value_ns) in [(1_000, 500), (2_000, 1_700), (3_000, 900), (5_000, -7)] {
                chrome.sample(taken, &Sample { t_ns, value_ns, ..Sample::default() }).unwrap();
            }
        });
        let spans = of(&file, "X");
        assert_eq!(spans.len(), 3);
        assert_ne!(spans[1]["tid"], spans[2]["tid"]);
        assert_eq!(of(&file, "i")[0]["args"]["latency_ns"], -7);
        let counted: Vec<_> = of(&file, "C").iter().map(|event| event["args"]["ns"].clone()).collect();
        assert_eq!(counted, [json!(500), json!(1_700), json!(900), json!(-7)]);
    }

    #[test]
    fn times_keep_every_nanosecond() {
        assert_eq!([micros(0), micros(-1), micros(1_000_001)], ["0.000", "-0.001", "1000.001"]);
        assert_eq!(micros(i64::MAX), "9223372036854775.807");
    }
}
