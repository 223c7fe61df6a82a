//! Statistics of samples in NumPy arrays from anywhere: those that `analysis.json` has for each
//! window of a run.

use crate::error::{Answer, Wrong};
use analysis::distribution::distribution;
use model::Sample;
use model::probe::ProbeDetail;
use model::run::ProbeRecord;
use model::sample::{Policy, ProbeKind};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use stats::bounds::share_upper;

/// Every probe by its name.
pub(crate) fn probe(name: &str) -> Answer<ProbeKind> {
    let known = ProbeKind::ALL;
    let found = known.iter().find(|probe| probe.name() == name).copied();
    let names = || known.iter().map(|probe| probe.name()).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| Wrong::new("probe", format!("{name:?}"), format!("one of {}", names())))
}

/// What is known of samples besides their values.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct About {
    probe: String,
    period_ns: Option<u64>,
    threshold_ns: Option<u64>,
    spin_ns: Option<u64>,
}

/// Statistics of samples, as JSON: those of one window of `analysis.json`.
#[pyfunction]
pub(crate) fn describe(
    py: Python<'_>,
    values: PyReadonlyArray1<'_, i64>,
    t_ns: Option<PyReadonlyArray1<'_, i64>>,
    missed: Option<PyReadonlyArray1<'_, u32>>,
    flags: Option<PyReadonlyArray1<'_, u32>>,
    about: About,
) -> PyResult<String> {
    let values = values.as_array();
    let (t_ns, missed) = (t_ns.as_ref().map(|t| t.as_array()), missed.as_ref().map(|m| m.as_array()));
    let flags = flags.as_ref().map(|flags| flags.as_array());
    let lengths = [
        ("t_ns", t_ns.map(|t| t.len())),
        ("missed", missed.map(|m| m.len())),
        ("flags", flags.map(|f| f.len())),
    ];
    for (name, length) in lengths {
        if let Some(length) = length.filter(|length| *length != values.len()) {
            return Err(Wrong::new(
                name,
                format!("{length} values"),
                format!("{}, as many as values", values.len()),
            )
            .into());
        }
    }
    let kind = probe(&about.probe)?;
    let step = about.period_ns.unwrap_or(1).min(i64::MAX as u64) as i64;
    let sample = |(row, &value_ns): (usize, &i64)| Sample {
        t_ns: t_ns.map_or_else(|| (row as i64).saturating_mul(step), |t| t[row]),
        value_ns,
        seq: row as u64,
        missed: missed.map_or(0, |missed| missed[row]),
        flags: flags.map_or(0, |flags| flags[row]),
    };
    let samples: Vec<Sample> = values.iter().enumerate().map(sample).collect();
    let json = py.detach(|| {
        let times = || samples.iter().map(|sample| sample.t_ns);
        let mut detail = kind.detail();
        if let ProbeDetail::Noise(noise) = &mut detail {
            noise.threshold_ns = about.threshold_ns.unwrap_or(0);
            noise.spin_ns = about.spin_ns.unwrap_or(0);
        } else if let Some(releases) = detail.releases_mut() {
            releases.period_ns = about.period_ns.unwrap_or(0);
        }
        if let Some(served) = detail.served_mut() {
            served.missed = samples.iter().map(|sample| u64::from(sample.missed)).sum();
        }
        let record = ProbeRecord {
            detail,
            samples: samples.len() as u64,
            t0_ns: times().min().unwrap_or(0),
            t1_ns: times().max().map_or(0, |last| last.saturating_add(step)),
            ..ProbeRecord::of(kind, 0, Policy::other())
        };
        serde_json::to_string(&distribution(&record, &samples))
    });
    Ok(json.map_err(Wrong::sentence)?)
}

/// Upper bound of a probability after `count` events in `n` independent trials, one-sided, 95 %.
#[pyfunction]
pub(crate) fn share_bound(count: u64, n: u64) -> PyResult<f64> {
    if count > n {
        return Err(Wrong::new("count", count, format!("at most n, {n}")).into());
    }
    Ok(share_upper(count as f64, n as f64))
}
