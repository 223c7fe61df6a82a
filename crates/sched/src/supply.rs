//! What a core supplies at least: a budget in every period, wherever in the period it comes.
//!
//! The periodic resource of Shin and Lee, "Periodic resource model for compositional real-time
//! guarantees", RTSS 2003: in any interval at least the service after the longest gap, which is
//! 2(P - Q): the budget came first in one period and comes last in the next.

/// A reservation: at least `budget_ns` in every `period_ns`, while work is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Supply {
    /// At least 1, at most the period, ns.
    pub budget_ns: u64,
    /// At most [`crate::MAX_NS`], ns.
    pub period_ns: u64,
}

impl Supply {
    /// The least service in any interval of this length, ns.
    pub fn service(self, interval_ns: u64) -> u64 {
        let gap = self.period_ns - self.budget_ns;
        let Some(after) = interval_ns.checked_sub(gap) else { return 0 };
        let (whole, rest) = (after / self.period_ns, after % self.period_ns);
        whole * self.budget_ns + rest.saturating_sub(gap)
    }

    /// The shortest interval in which so much service is sure, ns: the inverse of
    /// [`Supply::service`]. Saturates.
    pub fn time_for(self, service_ns: u64) -> u64 {
        if service_ns == 0 {
            return 0;
        }
        let gap = self.period_ns - self.budget_ns;
        let (whole, rest) = (service_ns / self.budget_ns, service_ns % self.budget_ns);
        let last = if rest > 0 { gap + rest } else { 0 };
        whole.saturating_mul(self.period_ns).saturating_add(gap + last)
    }

    /// Share of a core.
    pub fn share(self) -> f64 {
        self.budget_ns as f64 / self.period_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_gap_is_twice_what_is_left_of_a_period() {
        let supply = Supply { budget_ns: 3, period_ns: 5 };
        let service: Vec<u64> = (0..=15).map(|interval| supply.service(interval)).collect();
        assert_eq!(service, [0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6, 7]);
        assert_eq!([0, 1, 3, 4, 6, 7].map(|service| supply.time_for(service)), [0, 5, 7, 10, 12, 15]);
        let whole = Supply { budget_ns: 5, period_ns: 5 };
        assert_eq!((whole.service(7), whole.time_for(7)), (7, 7));
        assert_eq!(Supply { budget_ns: 1, period_ns: crate::MAX_NS }.time_for(u64::MAX), u64::MAX);
    }

    proptest! {
        /// By definition: the budget first in one period and last in the next ones, from each
        /// moment on.
        #[test]
        fn least_service_is_that_of_the_worst_moment(budget in 1u64..9, more in 0u64..9, length in 1u64..60) {
            let supply = Supply { budget_ns: budget, period_ns: budget + more };
            let served = |moment: u64| {
                let (period, at) = (moment / supply.period_ns, moment % supply.period_ns);
                if period == 0 { at < budget } else { at >= more }
            };
            let least = (0..supply.period_ns)
                .map(|from| (from..from + length).filter(|&moment| served(moment)).count() as u64)
                .min();
            prop_assert_eq!(Some(supply.service(length)), least);
            prop_assert!(supply.service(supply.time_for(length)) >= length);
            prop_assert!(supply.service(supply.time_for(length) - 1) < length);
        }
    }
}
