//! What a mechanism did to the events that it is said to take away: one word from two counts, the
//! same wherever counts stand.

/// At most this share is left: it worked.
const WORKED: f64 = 0.2;
/// Less than this share is left: it worked in part.
const IN_PART: f64 = 0.7;
/// As many times as many: it does the opposite.
const MORE: f64 = 2.0;
/// Fewer events than this can be chance.
const FEW: u64 = 5;

/// What counting before and after came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A fifth is left at most.
    Worked,
    /// Less than 70 % are left.
    InPart,
    /// More is left.
    None,
    /// There are twice as many at least.
    Opposite,
    /// So few before that nothing follows.
    TooFew,
}

impl Effect {
    /// Of two counts of events, under the same provocation.
    pub fn of_counts(before: u64, after: u64) -> Self {
        match (before, after) {
            (0..FEW, 0..FEW) => Self::TooFew,
            (0, _) => Self::Opposite,
            (before, after) => Self::of_share(after as f64 / before as f64),
        }
    }

    /// Of the share of events that is left, 0 to any number.
    pub fn of_share(left: f64) -> Self {
        match left {
            left if left <= WORKED => Self::Worked,
            left if left < IN_PART => Self::InPart,
            left if left < MORE => Self::None,
            _ => Self::Opposite,
        }
    }

    /// The word of the tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worked => "worked",
            Self::InPart => "in part",
            Self::None => "did not work",
            Self::Opposite => "the opposite",
            Self::TooFew => "too few to say",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Effect::{self, InPart, None, Opposite, TooFew, Worked};

    #[test]
    fn words_follow_from_counts() {
        for (before, after, effect) in [
            (20, 0, Worked),
            (20, 4, Worked),
            (20, 5, InPart),
            (20, 13, InPart),
            (20, 14, None),
            (20, 39, None),
            (20, 40, Opposite),
            (5, 0, Worked),
            (4, 0, TooFew),
            (0, 4, TooFew),
            (0, 5, Opposite),
            (4, 20, Opposite),
        ] {
            assert_eq!(Effect::of_counts(before, after), effect, "{before} {after}");
        }
        assert_eq!(Effect::of_share(0.7).word(), "did not work");
    }
}
