//! The largest whole number with a property that holds up to some number and for none above it.

/// The largest below `late` with the property, by binary search. The property must hold for 0, and
/// must not hold for `late`.
pub(crate) fn largest(mut late: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let mut held = 0;
    while late - held > 1 {
        let middle = held + (late - held) / 2;
        if holds(middle) {
            held = middle;
        } else {
            late = middle;
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn each_edge_is_found() {
        for late in 1..40 {
            for edge in 0..late {
                assert_eq!(largest(late, |number| number <= edge), edge);
            }
        }
        assert_eq!(largest(u64::MAX, |_| true), u64::MAX - 1);
    }
}
