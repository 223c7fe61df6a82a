//! The samples of a record, as statistics take them.

use model::run::ProbeRecord;
use model::sample::{ProbeKind, Sample, SampleMeta};
use std::path::Path;

/// Samples as statistics use them: less the shortest iteration of the busy loop, if requested.
pub(crate) fn unbiased(record: &ProbeRecord, mut samples: Vec<Sample>) -> Vec<Sample> {
    let bias_ns = record.bias_ns().min(i64::MAX as u64) as i64;
    samples
        .iter_mut()
        .for_each(|sample| sample.value_ns = (sample.value_ns - bias_ns).max(sample.value_ns.min(0)));
    samples
}

/// The samples, if the file itself states that it holds all samples of the record.
pub(crate) fn belonging(
    record: &ProbeRecord,
    path: &Path,
    meta: &SampleMeta,
    samples: Vec<Sample>,
) -> Result<Vec<Sample>, model::Error> {
    belongs(record, path, meta, samples.len() as u64)?;
    Ok(samples)
}

/// Whether a samples file with this number of rows states that it is the record's, and complete.
pub fn belongs(record: &ProbeRecord, path: &Path, meta: &SampleMeta, rows: u64) -> Result<(), model::Error> {
    let origin = |probe: ProbeKind, cpu: u32, phase: &str| {
        format!("samples of the {} probe on CPU {cpu} in phase {phase}", probe.name())
    };
    let found = origin(meta.probe, meta.cpu, &meta.phase);
    let wanted = origin(record.probe(), record.cpu, &record.phase);
    if found != wanted {
        return Err(model::Error::invalid(path.display(), found, wanted));
    }
    if rows != record.samples {
        let wanted = format!("the {} that the probe wrote", record.samples);
        return Err(model::Error::invalid(path.display(), format!("{rows} samples"), wanted));
    }
    Ok(())
}
