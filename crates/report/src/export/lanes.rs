//! Which lane of a track a span is drawn in, so that those of a lane are nested or apart.
//!
//! Viewers draw the spans of a track as a stack of calls: one that begins inside another must end
//! inside it. Interrupts and tasks of a CPU do. The waits of a task so late that its next release
//! passed do not; they get a second lane.

/// The most lanes; what finds no place in any of them is drawn without its length.
const MOST: usize = 16;

/// The lanes of one track.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Ends of what is open in each lane, outermost first.
    open: Vec<Vec<i64>>,
}

impl Lanes {
    /// The lane for a span, and whether it is used for the first time; `None` where all are taken.
    /// Starts ascend.
    pub(super) fn place(&mut self, t0_ns: i64, t1_ns: i64) -> Option<(usize, bool)> {
        for (number, lane) in self.open.iter_mut().enumerate() {
            while lane.last().is_some_and(|end| *end <= t0_ns) {
                lane.pop();
            }
            if lane.last().is_none_or(|end| t1_ns <= *end) {
                lane.push(t1_ns);
                return Some((number, false));
            }
        }
        if self.open.len() == MOST {
            return None;
        }
        self.open.push(vec![t1_ns]);
        Some((self.open.len() - 1, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nested_spans_share_a_lane_and_crossing_ones_do_not() {
        let mut lanes = Lanes::default();
        let placed: Vec<_> = [(0, 100), (10, 20), (20, 100), (50, 120), (60, 70), (100, 110)]
            .into_iter()
            .map(|(t0, t1)| lanes.place(t0, t1).unwrap())
            .collect();
        assert_eq!(placed, [(0, true), (0, false), (0, false), (1, true), (0, false), (0, false)]);
    }

    proptest! {
        #[test]
        fn in_a_lane_no_two_cross(mut spans in proptest::collection::vec((0i64..200, 1i64..60), 0..80)) {
            spans.sort_unstable();
            let mut lanes = Lanes::default();
            let mut drawn: Vec<(usize, i64, i64)> = Vec::new();
            for (t0, length) in spans {
                let t1 = t0 + length;
                let Some((lane, _)) = lanes.place(t0, t1) else { continue };
                let cross = |&&(other, a, b): &&(usize, i64, i64)| {
                    other == lane && a < t0 && t0 < b && b < t1
                };
                prop_assert!(drawn.iter().find(cross).is_none(), "{:?} and {:?}", drawn, (lane, t0, t1));
                drawn.push((lane, t0, t1));
            }
        }
    }
}
