//! Values by name, and the median.

use super::*;

/// A graph's answer: topics with several subscribers, each edge with its own maximum.
const EDGES: &str = r#"{"edges": [
    {"topic": "pose", "max_ns": 3000}, {"topic": "pose", "max_ns": 7000}, {"topic": "map", "max_ns": 5000},
    {"topic": "quiet", "max_ns": null}, {"max_ns": 9000}
]}"#;

const LIST: &str = "\n[[list]]\nname = \"topics\"\ntitle = \"maximum of each topic\"\nunit = \"us\"\nover = \"edges/*\"\nby = \"topic\"\nat = \"max_ns\"\ntake = \"max\"\ntimes = 0.001\n";

#[test]
fn the_median_of_an_even_number_is_between_two() {
    let answer: serde_json::Value = serde_json::from_str(EDGES).unwrap();
    assert_eq!(taken(&answer, "edges/*/max_ns", Take::Median), Some(6000.0));
    assert_eq!(taken(&answer, "edges/[topic=pose]/max_ns", Take::Median), Some(5000.0));
    assert_eq!(taken(&answer, "edges/[topic=quiet]/max_ns", Take::Median), None);
}

#[test]
fn a_list_has_a_row_a_name_and_repetitions_together() {
    let text = format!("{TEXT}{LIST}");
    let experiment = Experiment::from_toml(&text, &numbers()).unwrap();
    let answer: serde_json::Value = serde_json::from_str(EDGES).unwrap();
    let figures = listed(&answer, &experiment.lists[0]);
    assert_eq!(figures, BTreeMap::from([("map".to_owned(), 5.0), ("pose".to_owned(), 7.0)]));
    let plan = Plan::of(&experiment, &["6.1".to_owned()], 2, 1.0).unwrap();
    let results: Vec<_> = plan
        .cells
        .iter()
        .map(|planned| {
            let mut result = CellResult::without(CellState::Ok, String::new(), "6.1", true, "0");
            let more = f64::from(planned.cell.repetition);
            let figures = figures.iter().map(|(name, figure)| (name.clone(), figure + more));
            result.lists.insert("topics".to_owned(), figures.collect());
            (planned.cell.clone(), result)
        })
        .collect();
    let concluded = conclude(&experiment, &numbers(), &results);
    assert_eq!(
        concluded.groups[0].lists["topics"]["pose"],
        Summary { n: 2, median: Some(7.5), low: Some(7.0), high: Some(8.0) }
    );
    let sheets = sheets(&experiment, &concluded);
    let sheet = sheets.last().unwrap();
    assert_eq!(sheet.title, "maximum of each topic, us");
    assert!(sheet.head.contains(&"topic".to_owned()), "{:?}", sheet.head);
    assert!(sheet.rows.iter().all(|row| row.len() == sheet.head.len()));
    let of = |name: &str| sheet.rows.iter().filter(|row| row.iter().any(|cell| cell == name)).count();
    assert!(of("pose") > 0 && of("pose") == of("map") && of("quiet") == 0);
    assert!(sheet.rows.iter().flatten().any(|cell| cell == "7.50 [7, 8]"), "{:?}", sheet.rows);
}

#[test]
fn a_list_has_a_name_of_its_own() {
    let text = format!("{TEXT}{}", LIST.replace("\"topics\"", "\"max\""));
    let fault = Experiment::from_toml(&text, &numbers()).unwrap_err();
    assert!(fault.to_string().contains("no value and no other list"), "{fault}");
}
