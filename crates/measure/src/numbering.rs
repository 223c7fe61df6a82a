//! Numbers for the samples of probes whose records carry the number of the release that they
//! served.

use model::Sample;
use model::sample::flag;

/// What is known of the samples so far.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    next_release: u64,
    seq: u64,
}

impl Numbering {
    /// The sample of a release, before which so many served ones were lost to a full ring; of those
    /// between the last sample and this one, the others were missed.
    pub(crate) fn sample(
        &mut self,
        release: u64,
        lost: u64,
        warm_up: bool,
        t_ns: i64,
        value_ns: i64,
    ) -> Sample {
        let missed = release.saturating_sub(self.next_release).saturating_sub(lost);
        let seq = self.seq + lost;
        let flags = [(seq == 0, flag::FIRST), (warm_up, flag::WARM_UP), (lost > 0, flag::RING_GAP)];
        let flags = flags.iter().filter(|(is, _)| *is).fold(0, |flags, (_, flag)| flags | flag);
        (self.next_release, self.seq) = (release + 1, seq + 1);
        Sample { t_ns, value_ns, seq, missed: u32::try_from(missed).unwrap_or(u32::MAX), flags }
    }
}
