//! Whether a run has ended, and which files are its own.

use super::{Losses, Run};

/// Why a run is incomplete, written at its beginning: it stays there if the run is killed or cannot
/// write any more.
pub const CUT_OFF: &str = "the run is still being made, or was cut off: killed, or out of disk space";
/// The same, and as older versions wrote it.
const WRITTEN_FIRST: [&str; 2] = [CUT_OFF, "the run has not come to its end, or was killed"];

impl Run {
    /// Whether it ended in a way that it could write down, with all of its windows and at least
    /// one, or with losses that it counted; else it has not counted them.
    pub fn has_ended(&self) -> bool {
        let written = |reason: &str| !WRITTEN_FIRST.contains(&reason);
        let counted = !self.probes.is_empty() || self.losses != Losses::default();
        self.complete
            || self.incomplete_reason.as_deref().is_some_and(written)
                && counted
                && !self.probes.iter().any(|probe| probe.cut_off)
    }

    /// The files that it names, relative to its directory.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let machine = [Some(&self.machine_before), self.machine_after.as_ref()];
        let trace = self.trace.as_ref().map(|trace| &trace.file);
        let probes = self.probes.iter().flat_map(|probe| {
            let over = probe.over_threshold.as_ref();
            let contexts = over.and_then(|over| over.contexts_file.as_ref());
            [Some(&probe.file), probe.counters_file.as_ref(), contexts]
        });
        machine.into_iter().chain([trace]).chain(probes).flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_cut_off_has_not_ended() {
        let text = include_str!("../../../../fixtures/runs/small/run.json");
        let mut run: Run = serde_json::from_str(text).unwrap();
        assert!(run.complete && run.has_ended());
        run.complete = false;
        for (reason, ended) in [(Some("interrupted by SIGINT"), true), (None, false)]
            .into_iter()
            .chain(WRITTEN_FIRST.map(|reason| (Some(reason), false)))
        {
            run.incomplete_reason = reason.map(str::to_owned);
            assert_eq!(run.has_ended(), ended, "{reason:?}");
        }
        // Without a window nothing was counted, unless it says that something was.
        run.incomplete_reason = Some("interrupted by SIGINT".to_owned());
        (run.probes, run.losses) = (Vec::new(), Losses::default());
        assert!(!run.has_ended());
        run.losses.ring_samples = 1;
        assert!(run.has_ended());
    }
}
