//! Fits by hand, and what holds for every stream.

use super::*;
use proptest::prelude::*;

fn fitted(releases: &[i64], fit: Fit) -> PeriodicModel {
    let mut periodic = Periodic::in_batches(fit, 16);
    releases.iter().for_each(|at| periodic.add(Window::at(*at)).unwrap());
    periodic.model().unwrap()
}

/// The example of the reference's own documentation.
#[test]
fn the_example_of_the_reference_is_found() {
    let releases = [
        135, 249, 354, 473, 526, 657, 729, 823, 935, 1041, 1144, 1258, 1368, 1434, 1534, 1653, 1753, 1834,
        1944, 2057,
    ];
    let mut periodic = Periodic::new(Fit::Certain);
    releases[..3].iter().for_each(|at| periodic.add(Window::at(*at)).unwrap());
    assert_eq!(periodic.model(), Some(PeriodicModel { period_ns: 110, offset_ns: 134, jitter_ns: 5 }));
    releases[3..].iter().for_each(|at| periodic.add(Window::at(*at)).unwrap());
    assert_eq!(periodic.model(), Some(PeriodicModel { period_ns: 100, offset_ns: 123, jitter_ns: 50 }));
}

#[test]
fn one_release_has_no_period() {
    let mut periodic = Periodic::new(Fit::Certain);
    assert_eq!(periodic.model(), None);
    periodic.add(Window::at(5)).unwrap();
    assert_eq!(periodic.model(), None);
}

#[test]
fn releases_that_were_left_out_are_counted_by_their_numbers() {
    let mut periodic = Periodic::in_batches(Fit::Certain, 4);
    for index in [0, 1, 2, 5, 6, 9, 10] {
        periodic.add_at(index, Window::at(7 + 1000 * index)).unwrap();
    }
    let expected = PeriodicModel { period_ns: 1000, offset_ns: 7, jitter_ns: 0 };
    assert_eq!(periodic.model(), Some(expected));
}

#[test]
fn releases_out_of_order_are_refused() {
    let mut periodic = Periodic::new(Fit::Certain);
    periodic.add(Window::at(5)).unwrap();
    assert_eq!(periodic.add(Window::at(4)), Err(Disorder));
}

proptest! {
    #[test]
    fn a_certain_fit_covers_every_release(
        gaps in prop::collection::vec(1i64..1_000_000, 2..100),
    ) {
        let releases: Vec<i64> =
            gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let PeriodicModel { period_ns, offset_ns, jitter_ns } = fitted(&releases, Fit::Certain);
        for (index, at) in (0..).zip(releases) {
            let late_ns = at - offset_ns - index * period_ns;
            prop_assert!((0..=jitter_ns).contains(&late_ns));
        }
    }
}
