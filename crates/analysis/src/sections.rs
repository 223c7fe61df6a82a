//! The sections of probes whose samples are of several kinds, separated by their own columns: one
//! entry of [`Sections`] per kind.

use crate::clocks::{Clocks, clocks};
use crate::ipi::{Way, ways};
use crate::overheads::{Overheads, overheads};
use crate::periodic::{Process, process};
use crate::schedule::FirstJobs;
use crate::tail::Tail;
use crate::taskset::{MeasuredTask, measured};
use attribution::Error;
use model::run::{ProbeRecord, TRACED};
use model::sample::ProbeKind;
use model::{Sample, samples_file};
use std::path::Path;

/// Results of the probes with their own columns.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    pub(crate) ipi: Vec<Way>,
    pub(crate) periodic: Vec<Process>,
    pub(crate) taskset: Vec<MeasuredTask>,
    pub(crate) first_jobs: Vec<FirstJobs>,
    pub(crate) overheads: Vec<Overheads>,
    pub(crate) clocks: Option<Clocks>,
    pub(crate) tail: Vec<Tail>,
}

impl Sections {
    /// Adds the results of one samples file; nothing for a probe without columns of its own.
    pub(crate) fn add(&mut self, record: &ProbeRecord, path: &Path, samples: &[Sample]) -> Result<(), Error> {
        if record.phase == TRACED {
            return Ok(());
        }
        let columns = || samples_file::read_columns(path);
        match record.probe() {
            ProbeKind::Ipi => self.ipi.extend(ways(record, samples, &columns()?)?),
            ProbeKind::Periodic => self.periodic.push(process(record, samples, &columns()?)?),
            ProbeKind::Taskset => {
                let columns = columns()?;
                self.taskset.extend(measured(record, samples, &columns)?);
                self.first_jobs.extend(FirstJobs::of(record, samples, &columns)?);
            }
            ProbeKind::Overheads => self.overheads.push(overheads(record, samples, &columns()?)?),
            ProbeKind::Clocks => self.clocks = Some(clocks(record, samples, &columns()?)?),
            // Values alone; those of a graph's edges are in `graph.json`, with the accounts that no
            // samples file has.
            _ => {}
        }
        Ok(())
    }
}
