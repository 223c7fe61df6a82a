//! What a set of CPUs becomes when some are isolated: itself without them, and no more than that. A
//! mask of "all but these" would give the kernel back what somebody else has taken from it:
//! another's isolated CPUs are missing from the old mask, and from nothing else here.

use model::Cpus;

/// The CPUs of a machine as isolation divides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Division {
    /// Those to isolate for this order, with their SMT siblings, and nobody else's.
    pub(super) isolated: Cpus,
    /// Those for everything else.
    pub(super) housekeeping: Cpus,
    /// Those that are online.
    pub(super) online: Cpus,
}

/// A set of CPUs that was narrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Narrowed {
    pub(super) cpus: Cpus,
    /// Nothing that is online was left of it, so it is all housekeeping CPUs.
    pub(super) replaced: bool,
}

impl Narrowed {
    /// What a plan says of a set that could not be narrowed.
    pub(super) fn note(&self) -> Option<String> {
        self.replaced.then(|| "it has no other CPU online, so it gets the housekeeping CPUs".to_owned())
    }
}

impl Division {
    /// A set without the isolated CPUs. One that has none of them stays as it is, the empty set
    /// too: for some files it means "off".
    pub(super) fn narrow(&self, old: &Cpus) -> Narrowed {
        let left = old.minus(&self.isolated);
        let replaced = left != *old && left.and(&self.online).is_empty();
        Narrowed { cpus: if replaced { self.housekeeping.clone() } else { left }, replaced }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cpus(list: &str) -> Cpus {
        list.parse().unwrap()
    }

    #[test]
    fn what_somebody_else_has_taken_out_stays_out() {
        let division = Division { isolated: cpus("6,7"), housekeeping: cpus("0-3"), online: cpus("0-7") };
        for (old, new, replaced) in [
            ("0-7", "0-5", false),
            ("0-3,6-7", "0-3", false),
            ("4,6", "4", false),
            ("0-63", "0-5,8-63", false),
            ("6", "0-3", true),
            ("6,8", "0-3", true),
            ("1", "1", false),
            ("", "", false),
        ] {
            let narrowed = division.narrow(&cpus(old));
            assert_eq!((narrowed.cpus, narrowed.replaced), (cpus(new), replaced), "{old}");
        }
    }

    fn sets() -> impl Strategy<Value = Cpus> {
        proptest::collection::btree_set(0u32..10, 0..10).prop_map(Cpus)
    }

    proptest! {
        #[test]
        fn nothing_is_added_unless_nothing_is_left(old in sets(), isolated in sets(), online in sets()) {
            let housekeeping = online.minus(&isolated);
            let narrowed = Division { isolated: isolated.clone(), housekeeping, online }.narrow(&old);
            prop_assert!(narrowed.cpus.and(&isolated).is_empty());
            prop_assert!(narrowed.replaced || narrowed.cpus == old.minus(&isolated));
        }
    }
}
