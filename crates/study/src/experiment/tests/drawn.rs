//! Figures that are drawn of one repetition: lanes, and quantiles against quantiles.

use super::*;

/// What is declared behind the step of [`TEXT`]: a series and a figure of the first repetition.
fn with(figure: &str) -> String {
    let (head, _) = TEXT.split_once("[[published]]").unwrap();
    format!(
        "{head}\n[[series]]\nname = \"rows\"\nat = \"rows\"\ncolumns = [\"a\", \"b\"]\nlane = \"task\"\nlabel = \"state\"\n\n[[figure]]\nname = \"one\"\n{figure}\n"
    )
}

/// Every cell with the same rows, moved by its repetition, and the repetition as its value.
fn results(experiment: &Experiment) -> Vec<(Cell, CellResult)> {
    let plan = Plan::of(experiment, &experiment.machine.kernels, 2, 1.0).unwrap();
    let cell = |planned: &Planned| {
        let n = planned.cell.repetition;
        let answer = serde_json::json!({ "rows": [
            { "task": "1", "state": "running", "a": n, "b": 3 }, { "task": "2", "state": "waiting", "a": n + 1, "b": 5 },
        ] });
        let mut result = result(Some(f64::from(n)), false);
        result.series.insert("rows".to_owned(), rows(&answer, &experiment.series[0]));
        (planned.cell.clone(), result)
    };
    plan.cells.iter().map(cell).collect()
}

#[test]
fn a_lane_is_called_what_the_figure_says_that_it_is() {
    let experiment = read(&with(
        "kind = \"lanes\"\nof = \"rows\"\nwhat = \"task\"\nonly = { load = \"idle\", isolation = \"boot\", period = \"50us\" }",
    ));
    let results = results(&experiment);
    let panels = drawn_of(&experiment, &results).swap_remove(0);
    let [panel] = panels.as_slice() else { panic!("{panels:?}") };
    let Drawn::Lanes(spans) = &panel.drawn else { panic!("{panel:?}") };
    let first = results.iter().map(|(cell, _)| cell.repetition).min().unwrap();
    let lanes: Vec<_> =
        spans.iter().map(|span| (span.lane.as_str(), span.label.as_str(), span.from)).collect();
    assert_eq!(lanes, [("task 1", "running", f64::from(first)), ("task 2", "waiting", f64::from(first + 1))]);
}

#[test]
fn quantiles_and_their_line_are_of_one_repetition() {
    let text = with("kind = \"qq\"\nof = \"rows\"\nvalues = [\"max\", \"max\"]");
    let experiment = read(&text);
    let results = results(&experiment);
    let panels = drawn_of(&experiment, &results).swap_remove(0);
    assert_eq!(panels.len(), 8, "nothing is averaged over factors");
    let first = f64::from(results.iter().map(|(cell, _)| cell.repetition).min().unwrap());
    for panel in &panels {
        let points = vec![[first, 3.0], [first + 1.0, 5.0]];
        assert_eq!(panel.drawn, Drawn::Qq(Quantiles { points, line: Some([first; 2]) }));
    }
    let without = read(&text.replace("values = [\"max\", \"max\"]", ""));
    let panels = drawn_of(&without, &results).swap_remove(0);
    assert!(panels.iter().all(|panel| matches!(&panel.drawn, Drawn::Qq(Quantiles { line: None, .. }))));
    for more in ["values = [\"max\"]", "x = \"load\"", "curves = [\"load\"]"] {
        let fault = wrong(&text.replace("values = [\"max\", \"max\"]", more));
        assert!(
            fault.contains("figure \"one\"; expected of = a series, values of no or two names"),
            "{fault}"
        );
    }
}
