//! The tracks of a timeline: one for the events of each CPU, one for the samples of each probe on
//! it, each with its lanes.

use super::lanes::Lanes;
use model::sample::ProbeKind;
use std::collections::BTreeMap;

/// A track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Track {
    /// The CPU.
    pub(super) cpu: u32,
    /// The probe whose samples it shows; `None` for what the kernel ran.
    pub(super) probe: Option<ProbeKind>,
}

impl Track {
    /// What viewers show beside it.
    pub(super) fn name(self) -> String {
        match self.probe {
            Some(probe) => format!("CPU {} {} samples", self.cpu, probe.name()),
            None => format!("CPU {}", self.cpu),
        }
    }

    /// A number for each track and lane, from 1, by CPU, what ran before what was measured.
    fn number(self, lane: usize) -> u64 {
        let kind = self.probe.map_or(0, |probe| probe as u64 + 1);
        1 + (u64::from(self.cpu) * 8 + kind) * 32 + lane as u64
    }

    /// A number for the counter beside it, apart from those of all lanes.
    pub(super) fn counter(self) -> u64 {
        self.number(31)
    }
}

/// Where a span goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of track and lane.
    pub(super) number: u64,
    /// Whether this is the first span there.
    pub(super) first: bool,
    /// When it ends, for spans that have a length and a place for it.
    pub(super) end_ns: Option<i64>,
}

/// All tracks.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    lanes: BTreeMap<Track, Lanes>,
}

impl Tracks {
    /// A place for a span from `t0_ns` to `t1_ns`.
    pub(super) fn place(&mut self, track: Track, t0_ns: i64, t1_ns: i64) -> Place {
        let known = self.lanes.contains_key(&track);
        let lanes = self.lanes.entry(track).or_default();
        let placed = if t1_ns > t0_ns { lanes.place(t0_ns, t1_ns) } else { None };
        match placed {
            Some((lane, first)) => Place {
                number: track.number(lane),
                first: if lane == 0 { !known } else { first },
                end_ns: Some(t1_ns),
            },
            None => Place { number: track.number(0), first: !known, end_ns: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_track_and_lane_has_a_number_of_its_own() {
        let probes = [None, Some(ProbeKind::Wakeup), Some(ProbeKind::Noise), Some(ProbeKind::Overheads)];
        let tracks = || (0..40).flat_map(|cpu| probes.map(|probe| Track { cpu, probe }));
        let numbers = tracks().flat_map(|track| (0..16).map(move |lane| track.number(lane)));
        let all: BTreeSet<u64> = numbers.chain(tracks().map(Track::counter)).collect();
        assert_eq!(all.len(), 40 * 4 * 17);
        assert!(!all.contains(&0));
    }

    #[test]
    fn a_lane_is_first_once_whatever_comes_first() {
        let track = Track { cpu: 3, probe: None };
        let mut tracks = Tracks::default();
        let places = [(5, 5), (6, 20), (10, 30), (12, 13)].map(|(t0, t1)| tracks.place(track, t0, t1));
        assert_eq!(places.map(|place| place.first), [true, false, true, false]);
        assert_eq!(places.map(|place| place.end_ns), [None, Some(20), Some(30), Some(13)]);
        assert_eq!((places[0].number, places[1].number), (places[3].number, places[3].number));
    }
}
