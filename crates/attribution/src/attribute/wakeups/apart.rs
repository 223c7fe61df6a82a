//! The results, with names for numbers.

use super::chosen::NOBODY;
use crate::attribute::paths::{PathSums, Paths};
use crate::attribute::table::Table;
use crate::attribute::thread_paths::{CpuSources, ThreadPaths};
use crate::by_cpu::ByCpu;
use crate::decode::Decoder;
use crate::spans::MeasuredCpu;
use ftrace::TraceFile;
use model::sample::ProbeKind;

/// The result of the reading.
pub(crate) struct Apart {
    /// The most late time first.
    pub(crate) paths: Vec<ThreadPaths>,
    /// By CPU.
    pub(crate) attribution: Vec<CpuSources>,
    /// Where the trace is damaged, one sentence each.
    pub(crate) damage: Vec<String>,
    /// What is missing or not known, one sentence each.
    pub(crate) statements: Vec<String>,
}

/// What gives numbers their names.
pub(super) struct Naming<'a> {
    pub(super) file: &'a TraceFile,
    pub(super) decoder: &'a Decoder,
}

impl Naming<'_> {
    /// The last name of a task: from events, else from the file's saved names.
    fn comm(&self, pid: i32) -> Option<String> {
        self.decoder.comm(pid).or_else(|| self.file.comm(pid)).map(str::to_owned)
    }

    pub(super) fn sources(&self, tables: &ByCpu<(i32, Table)>) -> Vec<CpuSources> {
        let of_cpu = |(cpu, (tid, table)): (u32, &(i32, Table))| {
            let tid = Some(*tid).filter(|tid| *tid != NOBODY);
            let [exact, by_order, unknown] = table.known();
            let rows = table.attributed_rows(self.decoder.labels(), &|pid| self.comm(pid));
            CpuSources { cpu, tid, comm: tid.and_then(|tid| self.comm(tid)), exact, by_order, unknown, rows }
        };
        tables.iter().map(of_cpu).collect()
    }

    pub(super) fn paths(&self, paths: Paths) -> Vec<ThreadPaths> {
        let thread_paths = |(MeasuredCpu { cpu, tid }, sums): (MeasuredCpu, PathSums)| {
            let window = ("", ProbeKind::Wakeup);
            let path = sums.section(window, [cpu, 0], self.decoder.labels(), &|pid| self.comm(pid))?;
            Some(ThreadPaths { tid, comm: self.comm(tid).unwrap_or_default(), path })
        };
        paths.finish_threads().filter_map(thread_paths).collect()
    }
}
