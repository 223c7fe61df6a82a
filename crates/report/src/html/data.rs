//! The data behind the page, as JSON inside it: for a reader without the run directory.

use analysis::distribution::Distribution;
use analysis::events::ClassCount;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::windows::{CHARTS, list, worst_cpus};
use crate::{Document, Error, format, heading};

/// Schema of the object.
pub(super) const SCHEMA: &str = "stillcore.report/1";

pub(super) fn figures(document: &Document) -> minijinja::Value {
    let all: Vec<&Distribution> = document.analysis.distributions.iter().collect();
    minijinja::context! { left_out => list(&worst_cpus(&all, CHARTS).1) }
}

/// The object as text for the inside of a `script` element: nothing in it can end that.
pub(super) fn embedded(document: &Document) -> Result<String, Error> {
    let text = serde_json::to_string(&object(document))
        .map_err(|source| Error::Json { what: "the figures of the page", source })?;
    Ok(text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

fn object(document: &Document) -> Value {
    let run = &document.run;
    let all: Vec<&Distribution> = document.analysis.distributions.iter().collect();
    let (kept, left_out) = worst_cpus(&all, CHARTS);
    let ours = |cpu: u32| kept.contains(&cpu);
    let findings = document.findings.iter().map(|one| (one.id.as_str(), one.state));
    let windows = document.analysis.events.iter().filter(|window| ours(window.cpu));
    let events = windows.map(|window| {
        let came = window.classes.iter().filter(|row| row.count > 0);
        json!({
            "phase": window.phase, "probe": window.probe, "cpu": window.cpu, "thread": window.thread,
            "duration_ns": window.duration_ns, "classes": came.map(class).collect::<Vec<_>>(),
        })
    });
    let comparisons = document.analysis.comparisons.iter().filter(|one| ours(one.cpu)).map(|one| {
        let values = [one.idle_before, one.disturbed, one.idle_after].map(|value| value.map(six_digits));
        let versus = [one.versus_before, one.versus_after].map(|both| both.map(|ends| ends.map(six_digits)));
        json!({
            "figure": one.figure, "unit": one.unit, "cpu": one.cpu, "verdict": one.verdict,
            "values": values,
            "versus": versus,
        })
    });
    json!({
        "schema": SCHEMA,
        "title": heading::title(run),
        "command": run.command,
        "started_at": run.started_at,
        "tool_version": run.tool_version,
        "kernel": document.machine.machine.kernel.release,
        "complete": run.complete,
        "phases": run.phases,
        "losses": run.has_ended().then_some(run.losses),
        "outcome": document.outcome,
        "verdicts": crate::verdicts(document),
        "findings": findings.collect::<BTreeMap<_, _>>(),
        "distributions": all.iter().filter(|one| ours(one.cpu)).map(|one| distribution(one)).collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
        "comparisons": comparisons.collect::<Vec<_>>(),
        "cpus_left_out": left_out,
    })
}

/// More digits than six are noise, and take room.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Lower edges with their counts; quantiles by their names.
fn distribution(one: &Distribution) -> Value {
    let quantiles = crate::distribution::quantiles(one).iter();
    let quantiles = quantiles.map(|quantile| (format::quantile_name(quantile.p), quantile.value_ns));
    json!({
        "phase": one.phase, "probe": one.probe, "cpu": one.cpu, "thread": one.thread, "n": one.n,
        "missed": one.missed, "ring_lost": one.ring_lost, "duration_ns": one.duration_ns, "min_ns": one.min_ns,
        "observed_max_ns": one.observed_max_ns, "corrected_max_ns": one.corrected_max_ns,
        "quantiles": quantiles.collect::<BTreeMap<_, _>>(),
        "histogram": one.histogram.iter().map(|bucket| [bucket.low_ns, bucket.count]).collect::<Vec<_>>(),
    })
}

fn class(row: &ClassCount) -> Value {
    json!({
        "class": row.class, "count": row.count, "net_ns": row.net_ns, "max_ns": row.max_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn it_reads_back_and_cannot_end_its_element() {
        let mut document = fixture::document();
        document.run.command.push("</script><script>alert(1)</script>\u{2028}".into());
        let text = embedded(&document).unwrap();
        assert!(!text.contains('<') && !text.contains('\u{2028}'));
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["schema"], SCHEMA);
        assert_eq!(
            read["command"].as_array().unwrap().last().unwrap(),
            "</script><script>alert(1)</script>\u{2028}"
        );
        assert_eq!(read["distributions"].as_array().unwrap().len(), document.analysis.distributions.len());
    }
}
