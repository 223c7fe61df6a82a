//! Sorted, disjoint stretches of time, asked about in nearly ascending order.

/// Half-open stretches `[t0, t1)`, ns, with a place to go on searching from: callers ask in nearly
/// ascending order.
#[derive(Debug, Clone, Default)]
pub struct Stretches {
    parts: Vec<[i64; 2]>,
    near: usize,
}

impl Stretches {
    /// From any list: sorted, empty ones dropped, overlapping ones joined.
    pub fn new(mut parts: Vec<[i64; 2]>) -> Self {
        parts.retain(|part| part[0] < part[1]);
        parts.sort_unstable();
        let mut joined: Vec<[i64; 2]> = Vec::with_capacity(parts.len());
        for part in parts {
            match joined.last_mut() {
                Some(last) if part[0] <= last[1] => last[1] = last[1].max(part[1]),
                _ => joined.push(part),
            }
        }
        Self { parts: joined, near: 0 }
    }

    /// The stretches, ascending.
    pub fn parts(&self) -> &[[i64; 2]] {
        &self.parts
    }

    /// Their length together, ns.
    pub fn length_ns(&self) -> u64 {
        self.parts.iter().map(|part| part[1].abs_diff(part[0])).fold(0, u64::saturating_add)
    }

    /// Whether an instant lies in a stretch.
    pub fn contains(&mut self, t_ns: i64) -> bool {
        self.seek(t_ns);
        self.parts.get(self.near).is_some_and(|part| part[0] <= t_ns)
    }

    /// How much of `[t0, t1)` lies in the stretches, ns.
    pub fn overlap_ns(&mut self, t0_ns: i64, t1_ns: i64) -> u64 {
        self.seek(t0_ns);
        let reached = self.parts[self.near..].iter().take_while(|part| part[0] < t1_ns);
        reached
            .map(|part| (part[1].min(t1_ns) - part[0].max(t0_ns)).max(0) as u64)
            .fold(0, u64::saturating_add)
    }

    /// What of them lies in other ones.
    #[must_use]
    pub fn within(&self, others: &[[i64; 2]]) -> Self {
        let both = |one: &[i64; 2]| {
            others.iter().map(move |other| [one[0].max(other[0]), one[1].min(other[1])]).collect::<Vec<_>>()
        };
        Self::new(self.parts.iter().flat_map(both).collect())
    }

    /// Moves to the first stretch that ends after `t_ns`.
    fn seek(&mut self, t_ns: i64) {
        while self.near > 0 && self.parts[self.near - 1][1] > t_ns {
            self.near -= 1;
        }
        while self.near < self.parts.len() && self.parts[self.near][1] <= t_ns {
            self.near += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_joined_and_sorted() {
        let stretches = Stretches::new(vec![[5, 7], [0, 2], [2, 3], [6, 9], [4, 4]]);
        assert_eq!(stretches.parts(), [[0, 3], [5, 9]]);
        assert_eq!(stretches.length_ns(), 7);
    }

    proptest! {
        #[test]
        fn within_is_what_both_hold(
            one in proptest::collection::vec((0i64..100, 0i64..20), 0..8),
            other in proptest::collection::vec((0i64..100, 0i64..20), 0..8),
        ) {
            let parts = |list: &[(i64, i64)]| list.iter().map(|&(t, n)| [t, t + n]).collect::<Vec<_>>();
            let (mut a, mut b) = (Stretches::new(parts(&one)), Stretches::new(parts(&other)));
            let mut both = a.within(b.clone().parts());
            for t in 0..130 {
                prop_assert_eq!(both.contains(t), a.contains(t) && b.contains(t));
            }
        }

        #[test]
        fn answers_do_not_depend_on_the_order_of_questions(
            parts in proptest::collection::vec((0i64..200, 0i64..20), 0..12),
            asked in proptest::collection::vec((0i64..220, 0i64..50), 1..30),
        ) {
            let parts: Vec<_> = parts.iter().map(|&(t, n)| [t, t + n]).collect();
            let mut stretches = Stretches::new(parts.clone());
            for (t0, n) in asked {
                let inside = |t: i64| parts.iter().any(|part| part[0] <= t && t < part[1]);
                prop_assert_eq!(stretches.contains(t0), inside(t0));
                let truth = (t0..t0 + n).filter(|&t| inside(t)).count() as u64;
                prop_assert_eq!(stretches.overlap_ns(t0, t0 + n), truth);
            }
        }
    }
}
