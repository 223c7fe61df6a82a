//! What must hold for every chart: it is one well-formed element, says its content in words, and
//! stays in its frame.

use super::*;
use analysis::distribution::Maximum;
use proptest::prelude::*;

fn curve(label: &str, style: usize, histogram: Vec<[i64; 3]>) -> Curve {
    let bucket = |[low_ns, high_ns, count]: [i64; 3]| Bucket { low_ns, high_ns, count };
    let histogram: Vec<Bucket> = histogram.into_iter().map(bucket).collect();
    let max_ns = histogram.last().map_or(0, |bucket| bucket.high_ns - 1);
    let total = histogram.iter().map(|bucket| bucket.count).sum::<i64>() as f64;
    Curve { label: label.into(), style, histogram, max_ns, total }
}

fn curves() -> Vec<Curve> {
    vec![
        curve("idle-before", 0, vec![[1_000, 1_122, 900], [1_122, 1_259, 90], [4_000, 4_500, 1]]),
        curve("disturbed", 1, vec![[1_000, 1_122, 700], [1_259, 1_413, 250], [90_000, 100_000, 2]]),
    ]
}

/// Every number that follows a letter of a path, and every x and y.
fn coordinates(svg: &str) -> Vec<f64> {
    let paths = svg.split(" d=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let numbers = paths.flat_map(|path| path.split(|c: char| c.is_ascii_alphabetic() || c == ' '));
    numbers.filter(|text| !text.is_empty()).map(|text| text.parse().unwrap()).collect()
}

#[test]
fn charts_say_in_words_what_they_show() {
    let svg = histogram("h", "Wake-up latency", "wake-up latency", &curves()).unwrap();
    assert!(svg.contains("<title id=\"h-t\">Wake-up latency</title>"));
    assert!(svg.contains("disturbed: observed maximum 100.0 us") || svg.contains("99.999"), "{svg}");
    assert!(svg.contains("role=\"img\" aria-labelledby=\"h-t h-d\""));
}

#[test]
fn an_exceedance_curve_falls_from_all_to_one() {
    let only = [curve("idle", 0, vec![[1_000, 2_000, 99], [2_000, 4_000, 1]])];
    let svg = exceedance("e", "t", "latency", Tail::Share, &only, None).unwrap();
    let path = svg.split("data-l=\"idle\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    let heights: Vec<f64> =
        path.split('V').skip(1).map(|part| part.split('H').next().unwrap().parse().unwrap()).collect();
    let start: f64 = path.split([' ', 'H']).nth(1).unwrap().parse().unwrap();
    assert!(heights.iter().all(|&height| height > start), "later points lie lower: {path}");
    assert!(heights.is_sorted(), "{path}");
    let dot = svg.split("cy=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(dot, path.rsplit('V').next().unwrap(), "the dot sits at the end of the curve");
}

#[test]
fn an_empty_bucket_falls_to_the_axis() {
    let with_hole = [curve("a", 0, vec![[10, 20, 5], [40, 80, 5]])];
    let without = [curve("a", 0, vec![[10, 20, 5], [20, 40, 5]])];
    let moves = |curves: &[Curve]| {
        let svg = histogram("h", "t", "x", curves).unwrap();
        svg.split("data-l=\"a\" d=\"").nth(1).unwrap().split('"').next().unwrap().matches('M').count()
    };
    assert_eq!((moves(&with_hole), moves(&without)), (2, 1));
}

#[test]
fn nothing_to_draw_is_no_chart() {
    assert_eq!(histogram("h", "t", "x", &[]), None);
    assert_eq!(histogram("h", "t", "x", &[curve("a", 0, vec![[-40, -20, 3], [0, 10, 1]])]), None);
    assert_eq!(exceedance("e", "t", "x", Tail::Share, &[curve("a", 0, Vec::new())], None), None);
    assert_eq!(timeline("t", "t", &[], &[]), None);
    assert_eq!(rates("r", "t", &[], &[]), None);
    assert_eq!(stolen("s", "t", &[], &[]), None);
}

#[test]
fn names_from_the_machine_are_escaped() {
    let svg = histogram("h", "a<b", "\"x\" & y", &[curve("<script>", 0, vec![[10, 20, 5]])]).unwrap();
    assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;"));
    assert!(svg.contains("a&lt;b") && svg.contains("&amp; y"));
    assert!(escape("a\u{1b}[2J").contains('\u{fffd}'));
}

#[test]
fn the_key_names_every_curve_with_its_maximum_on_a_line_of_its_own() {
    let same: Vec<Curve> =
        (0..3).map(|style| curve(&format!("phase {style}"), style, vec![[1_000, 2_000, 7]])).collect();
    let svg = exceedance("e", "t", "x", Tail::Share, &same, None).unwrap();
    let heights: std::collections::BTreeSet<&str> = svg
        .split("<text class=\"l e s")
        .skip(1)
        .filter(|text| text.contains(", max 1.999 µs<"))
        .filter_map(|text| text.split("y=\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(heights.len(), 3, "{heights:?}");
}

#[test]
fn a_class_never_seen_is_drawn_at_its_bound_and_an_unobservable_one_not_at_all() {
    let phases = ["idle".to_owned(), "disturbed".to_owned()];
    let row = |rates: Vec<Option<(f64, Option<f64>)>>| [RateRow { label: "tlb".into(), rates }];
    let svg = rates("r", "t", &phases, &row(vec![Some((0.0, Some(0.3))), Some((12.0, None))])).unwrap();
    assert_eq!(svg.matches("class=\"o s0\"").count(), 1);
    assert!(svg.contains("none seen (below 0.30/s), 12.00/s"), "{svg}");
    let svg = rates("r", "t", &phases, &row(vec![None, Some((12.0, None))])).unwrap();
    assert_eq!(svg.matches("class=\"o ").count(), 0);
}

#[test]
fn a_timeline_keeps_the_maximum_when_it_merges_slots() {
    let slot =
        |k: i64| Maximum { t_ns: k * 1_000_000, max_ns: if k == 2_718 { 77_000 } else { 1_000 }, n: 10 };
    let slots = (0..4_000).map(slot).collect();
    let band = Band { label: "idle".into(), style: 0, span_ns: [0, 4_000_000_000] };
    let stretch = Stretch { label: "wake-up".into(), style: 0, slots };
    let svg = timeline("t", "t", &[band], &[stretch]).unwrap();
    assert!(svg.contains("Largest of all: 77.00 us at 2.718 s"), "{svg}");
    assert!(svg.len() < 6_000, "{}", svg.len());
}

proptest! {
    #[test]
    fn every_coordinate_lies_in_the_frame(
        buckets in prop::collection::btree_map(1i64..1_000_000_000, 1i64..1_000_000, 1..40)
    ) {
        let histogram_ns: Vec<[i64; 3]> = buckets.iter().map(|(low, count)| [*low, low + 1 + low / 10, *count]).collect();
        let curves = [curve("a", 0, histogram_ns)];
        for svg in [
            histogram("h", "t", "x", &curves).unwrap(),
            exceedance("e", "t", "x", Tail::Share, &curves, None).unwrap(),
            exceedance("e", "t", "x", Tail::PerSecond, &curves, None).unwrap(),
        ] {
            prop_assert!(coordinates(&svg).iter().all(|v| (0.0..=760.0).contains(v)), "{svg}");
            prop_assert_eq!(svg.matches("<svg").count(), 1);
            prop_assert!(svg.ends_with("</svg>"));
        }
    }
}
