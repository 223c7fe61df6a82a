//! Files, mistakes in them, plans, values, judgements.

mod drawn;
mod judged;
mod lists;
mod needs;
mod settings;

use super::*;
use crate::cell::Cell;
use std::collections::BTreeMap;

const NUMBERS: &str = "[paper.max]\nlinux = 104\nperiods = [391, 24]\ntext = 'x'\n";

const TEXT: &str = r#"
schema = "stillcore.experiment/1"
name = "max-latency"
title = "Observed maximum"
source = "a paper, Table 1"
seed = 3
repetitions = 2
takes = "loops"
each = "period"

[machine]
kernels = ["6.1"]

[quantities]
loops = { full = 100000, least = 100 }

[[factor]]
name = "load"
levels = ["idle", { name = "busy", words = ["--disturb", "suite:rtss24"] }]

[[factor]]
name = "isolation"
levels = [{ name = "none", boot = "isolcpus=", isolated = false }, { name = "boot", isolated = true }]

[[factor]]
name = "period"
levels = ["50us", "70us"]

[[step]]
run = ["measure", "wakeup", "--cpus", "{cpus}", "--period", "{period}", "--loops", "{loops}", "{load}", "--out", "{out}"]

[[value]]
name = "max"
title = "observed maximum"
unit = "us"
at = "threads/*/figures/max_ns"
take = "max"
times = 0.001
time = true

[[published]]
value = "max"
at = { period = "50us", load = "busy" }
key = "paper.max.linux"
system = "Linux 5.10"

[[claim]]
text = "isolated is less"
value = "max"
less = { isolation = "boot" }
than = { isolation = "none" }

[table]
rows = ["period"]
columns = ["load"]

[[series]]
name = "bins"
at = "threads/*/figures/by_us"
columns = ["0", "1"]

[[figure]]
name = "over"
kind = "lines"
x = "period"
curves = ["isolation"]
values = ["max"]

[[figure]]
name = "dist"
kind = "counts"
of = "bins"
values = ["max"]
curves = ["load"]
only = { period = "50us" }
"#;

fn numbers() -> Published {
    Published::from_toml(NUMBERS).unwrap()
}

fn read(text: &str) -> Experiment {
    Experiment::from_toml(text, &numbers()).unwrap()
}

fn wrong(text: &str) -> String {
    Experiment::from_toml(text, &numbers()).unwrap_err().to_string()
}

fn place() -> Place {
    Place { cpus: "2-3".to_owned(), housekeeping: "0-1".to_owned(), out: "d".to_owned() }
}

#[test]
fn a_cell_has_its_commands_boot_and_duration() {
    let experiment = read(TEXT);
    let plan = Plan::of(&experiment, &experiment.machine.kernels, 2, 0.01).unwrap();
    assert_eq!(plan.cells.len(), 2 * 2 * 2 * 2);
    let busy = |planned: &&Planned| {
        planned.cell.factors["load"] == "busy" && planned.cell.factors["period"] == "70us"
    };
    let planned = plan.cells.iter().find(busy).unwrap();
    let made = commands(&experiment, &planned.cell, 0.01, &place(), false);
    let words =
        "measure wakeup --cpus 2-3 --period 70us --loops 1000 --disturb suite:rtss24 --out d/run --json";
    assert_eq!(made.steps, [(String::new(), words.split(' ').map(str::to_owned).collect())]);
    assert_eq!(planned.takes, std::time::Duration::from_millis(70));
    assert_eq!(planned.boot.kernel.as_deref(), Some("6.1"));
    let boots = plan.boots();
    assert_eq!(boots.keys().map(|boot| boot.append.as_str()).collect::<Vec<_>>(), ["", "isolcpus="]);
    assert_eq!(boots.values().copied().collect::<Vec<_>>(), [8, 8]);
}

#[test]
fn a_scale_never_goes_below_the_floor_and_is_part_of_a_cells_identity() {
    let experiment = read(TEXT);
    let small = Plan::of(&experiment, &[], 1, 1e-9).unwrap();
    let made = commands(&experiment, &small.cells[0].cell, 1e-9, &place(), false);
    assert!(made.steps[0].1.windows(2).any(|pair| pair == ["--loops", "100"]), "{made:?}");
    let whole = Plan::of(&experiment, &[], 1, 1.0).unwrap();
    let ids = |plan: &Plan| {
        plan.cells.iter().map(|one| one.cell.id.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(ids(&small).is_disjoint(&ids(&whole)));
    let noted = read(&TEXT.replace("seed = 3", "seed = 3\nnotes = ['a note']"));
    assert_eq!(ids(&whole), ids(&Plan::of(&noted, &[], 1, 1.0).unwrap()), "a note changes no cell");
    let other = read(&TEXT.replace("\"wakeup\"", "\"spin\""));
    assert!(ids(&whole).is_disjoint(&ids(&Plan::of(&other, &[], 1, 1.0).unwrap())));
}

#[test]
fn every_mistake_is_one_sentence_with_its_place() {
    let cases = [
        (
            "schema = \"stillcore.experiment/1\"",
            "schema = \"x\"",
            "line 2, column 10: schema is \"x\"; expected",
        ),
        (
            "name = \"max-latency\"",
            "name = \"Max\"",
            "line 3, column 8: name \"Max\"; expected small letters",
        ),
        ("repetitions = 2", "repetitions = 0", "line 7, column 15: no repetitions"),
        ("seed = 3", "sead = 3", "line 6, column 1: unknown field `sead`"),
        ("title = \"Observed maximum\"", "title = 4", "line 4, column 9: "),
        (
            "takes = \"loops\"",
            "takes = \"loop\"",
            "line 8, column 9: takes \"loop\"; expected the name of a quantity",
        ),
        ("each = \"period\"", "each = \"load\"", "line 9, column 8: takes is a count"),
        ("full = 100000", "full = -1", "line 15, column 18: a count below 0"),
        ("full = 100000", "full = \"9\"", "line 15, column 18: \"9\" is no duration"),
        ("full = 100000", "full = \"9s\"", "line 15, column 18: quantity \"loops\"; expected two counts"),
        (
            "levels = [\"50us\", \"70us\"]",
            "levels = []",
            "line 27, column 10: factor \"period\" has no levels",
        ),
        ("\"70us\"]", "\"50us\"]", "line 27, column 10: factor \"period\" has level \"50us\" twice"),
        ("name = \"period\"", "name = \"load\"", "line 26, column 8: a factor named \"load\""),
        ("name = \"load\"", "name = \"kernel\"", "line 18, column 8: a factor named \"kernel\""),
        ("{loops}", "{lops}", "line 30, column 7: {lops} stands for nothing"),
        ("take = \"max\"", "take = \"most\"", "line 37, column 8: unknown variant `most`"),
        ("value = \"max\"\nat", "value = \"min\"\nat", "line 42, column 9: no value is called \"min\""),
        (
            "load = \"busy\" }\nkey",
            "load = \"full\" }\nkey",
            "line 43, column 32: factor \"load\" has no level \"full\"",
        ),
        (
            "load = \"busy\" }\nkey",
            "lod = \"busy\" }\nkey",
            "line 43, column 25: no factor is called \"lod\"",
        ),
        ("paper.max.linux", "paper.max.text", "line 44, column 7: \"paper.max.text\" names text"),
        ("paper.max.linux", "paper.min", "line 44, column 7: \"paper.min\" names nothing"),
        (
            "paper.max.linux",
            "paper.max.periods[2]",
            "line 44, column 7: \"paper.max.periods[2]\" names nothing",
        ),
        (
            "than = { isolation = \"none\" }",
            "than = { load = \"idle\" }",
            "line 49, column 9: a claim; expected the same",
        ),
        ("rows = [\"period\"]", "rows = [\"perod\"]", "line 54, column 9: no factor is called \"perod\""),
        ("[table]", "[tabel]", "line 53, column 2: unknown field `tabel`"),
        ("[[step]]", "[[step]", "line 29, column "),
        ("columns = [\"0\", \"1\"]", "columns = []", "line 60, column 11: no columns"),
        (
            "than = { isolation = \"none\" }",
            "than = { isolation = \"boot\" }",
            "line 49, column 9: a claim on cells against themselves",
        ),
        ("name = \"over\"", "name = \"Over\"", "line 63, column 8: a figure named \"Over\""),
        ("name = \"dist\"", "name = \"over\"", "line 70, column 8: a figure named \"over\""),
        ("kind = \"lines\"", "kind = \"line\"", "line 64, column 8: unknown variant `line`"),
        ("x = \"period\"", "x = \"perod\"", "line 65, column 5: no factor is called \"perod\""),
        ("x = \"period\"\n", "", "line 63, column 8: figure \"over\"; expected x, and values of one name"),
        ("values = [\"max\"]", "values = [\"most\"]", "line 67, column 11: no value is called \"most\""),
        ("of = \"bins\"", "of = \"bin\"", "line 72, column 6: no series is called \"bin\""),
        ("of = \"bins\"\n", "", "line 70, column 8: figure \"dist\"; expected of = a series"),
        (
            "only = { period = \"50us\" }",
            "only = { period = \"51us\" }",
            "line 75, column 19: factor \"period\" has no level",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(TEXT.contains(from), "{from}");
        let found = wrong(&TEXT.replacen(from, to, 1));
        assert!(found.starts_with(expected), "{to}: {found}");
        assert!(!found.contains('\n'), "{found}");
    }
    for cut in (0..TEXT.len()).step_by(7) {
        if let Err(fault) = Experiment::from_toml(&TEXT[..cut], &numbers()) {
            assert!(!fault.to_string().contains('\n'), "cut at {cut}: {fault}");
        }
    }
}

#[test]
fn figures_are_taken_from_json() {
    let value = serde_json::json!({ "a": [{ "b": 3 }, { "b": 5.5 }, { "c": 1 }], "ok": true, "m": { "x": 1, "y": 2 }, "p": [["n", 4], ["o", 5]] });
    let get = |path, take| taken(&value, path, take);
    assert_eq!(get("a/*/b", Take::Max), Some(5.5));
    assert_eq!(get("a/*/b", Take::Min), Some(3.0));
    assert_eq!(get("a/*/b", Take::Sum), Some(8.5));
    assert_eq!(get("a/*/b", Take::Mean), Some(4.25));
    assert_eq!(get("a/1/b", Take::First), Some(5.5));
    assert_eq!(get("a/*", Take::Count), Some(3.0));
    assert_eq!(get("m/*", Take::Sum), Some(3.0));
    assert_eq!(get("ok", Take::First), Some(1.0));
    assert_eq!(get("a/[b=3]/b", Take::First), Some(3.0));
    assert_eq!(get("a/[b!=3]", Take::Count), Some(2.0));
    assert_eq!(get("p/[0!=o]/1", Take::Sum), Some(4.0));
    assert_eq!(get("a/[c=1]", Take::Count), Some(1.0));
    assert_eq!(get("p/[0=o]/1", Take::First), Some(5.0));
    assert_eq!(get("a/[b]/b", Take::First), None);
    assert_eq!(get("a/9/b", Take::First), None);
    assert_eq!(get("nothing/*/at/all", Take::Max), None);
}

fn result(max: Option<f64>, emulated: bool) -> CellResult {
    CellResult {
        state: CellState::Ok,
        reason: None,
        values: BTreeMap::from([("max".to_owned(), max)]),
        ..CellResult::without(CellState::Ok, String::new(), "here", emulated, "0")
    }
}

#[test]
fn the_table_has_measured_and_published_side_by_side() {
    let experiment = read(&TEXT.replace("[machine]\nkernels = [\"6.1\"]", ""));
    let plan = Plan::of(&experiment, &[], 2, 1.0).unwrap();
    let of = |one: &Planned| result(Some(90.0 + f64::from(one.cell.repetition)), false);
    let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect();
    let sheet = &sheets(&experiment, &conclude(&experiment, &numbers(), &results))[0];
    assert_eq!(sheet.title, "observed maximum, us");
    assert_eq!(sheet.head, ["period", "isolation", "idle", "busy"]);
    assert_eq!(sheet.rows[0], ["50us", "none", "90.5 [90, 91]", "90.5 [90, 91] (104)"]);
    assert_eq!(sheet.rows.len(), 4);
    let flat = read(&TEXT.replace("columns = [\"load\"]", ""));
    let sheets = sheets(&flat, &conclude(&flat, &numbers(), &results));
    assert_eq!(sheets.len(), 1);
    assert_eq!(sheets[0].head.last().unwrap(), "max us");
    assert_eq!((sheets[0].rows.len(), sheets[0].title.as_str()), (8, "max: observed maximum"));
}

fn drawn_of(experiment: &Experiment, results: &[(Cell, CellResult)]) -> Vec<Vec<Panel>> {
    let concluded = conclude(experiment, &numbers(), results);
    experiment.figures.iter().map(|figure| panels(experiment, figure, &concluded, results)).collect()
}

fn measured(experiment: &Experiment, number: fn(&Cell) -> Option<f64>) -> Vec<(Cell, CellResult)> {
    let plan = Plan::of(experiment, &experiment.machine.kernels, 2, 1.0).unwrap();
    let json = serde_json::json!({ "threads": [
        { "figures": { "by_us": [[3, 5], [4, 1]] } },
        { "figures": { "by_us": [[4, 2], ["x", 1], [9, 7]] } },
    ] });
    let bins = rows(&json, &experiment.series[0]);
    assert_eq!((bins.rows.len(), bins.left_out), (4, 1));
    let series = BTreeMap::from([("bins".to_owned(), bins)]);
    let of = |one: &Planned| CellResult { series: series.clone(), ..result(number(&one.cell), false) };
    plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect()
}

#[test]
fn factors_that_are_neither_axis_nor_curve_are_panels_of_their_own() {
    let experiment = read(TEXT);
    let level = |cell: &Cell, name: &str| cell.factors[name].as_str().unwrap().to_owned();
    let number = |cell: &Cell| {
        let busy = f64::from(u8::from(cell.factors["load"] == "busy"));
        Some(100.0 * busy + f64::from(cell.repetition))
    };
    let results = measured(&experiment, number);
    let [over, dist] = <[Vec<Panel>; 2]>::try_from(drawn_of(&experiment, &results)).unwrap();
    assert_eq!(over.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>(), ["load idle", "load busy"]);
    let Drawn::Over { x, ticks, curves } = &over[1].drawn else { panic!("{over:?}") };
    assert_eq!((x.as_str(), ticks.as_slice()), ("period", ["50us".to_owned(), "70us".to_owned()].as_slice()));
    assert_eq!(curves.iter().map(|curve| curve.label.as_str()).collect::<Vec<_>>(), ["none", "boot"]);
    for curve in curves {
        assert_eq!(curve.points[0], Point { at: 0, median: 100.5, low: 100.0, high: 101.0 });
        assert_eq!(curve.points.len(), 2);
        assert_eq!(curve.published, [(0, 104.0)], "published for 50us and busy");
    }
    let Drawn::Over { curves, .. } = &over[0].drawn else { panic!("{over:?}") };
    assert!(curves.iter().all(|curve| curve.published.is_empty()));
    // Bins of threads and repetitions are one distribution.
    assert_eq!(dist.len(), 2, "isolation is neither axis nor curve");
    let Drawn::Counts(lines) = &dist[0].drawn else { panic!("{dist:?}") };
    assert_eq!(lines.iter().map(|line| line.label.as_str()).collect::<Vec<_>>(), ["idle", "busy"]);
    assert_eq!(lines[0].bins, [[3.0, 10.0], [4.0, 6.0], [9.0, 14.0]]);
    assert_eq!((lines[0].max, lines[1].max), (1.0, 101.0), "the largest of all repetitions");
    assert_eq!(level(&results[0].0, "kernel"), "6.1");
}

#[test]
fn what_was_not_measured_is_not_drawn() {
    let experiment = read(TEXT);
    assert!(drawn_of(&experiment, &[]).iter().all(Vec::is_empty));
    let only_idle = |cell: &Cell| (cell.factors["load"] == "idle").then_some(1.0);
    let over = drawn_of(&experiment, &measured(&experiment, only_idle)).swap_remove(0);
    assert_eq!(over.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>(), ["load idle"]);
}

/// Three mechanisms, of which `a` is needed, and either of `b` and `c`.
const ABLATION: &str = r#"
schema = "stillcore.experiment/1"
name = "worth"
title = "What each is worth"
source = "this test"
seed = 1
repetitions = 6

[[factor]]
name = "a"
levels = ["on", "off"]

[[factor]]
name = "b"
levels = ["on", "off"]

[[factor]]
name = "c"
levels = ["on", "off"]

[[step]]
run = ["audit"]

[[value]]
name = "max"
title = "events"
at = "events"

[[value]]
name = "done"
title = "operations"
at = "operations"

[ablation]
value = "max"
cost = "done"
factors = ["a", "b", "c"]
with = "on"
without = "off"
within = 0.1
"#;

#[test]
fn the_smallest_sufficient_sets_are_found_though_members_stand_in_for_one_another() {
    let experiment = read(ABLATION);
    let plan = Plan::of(&experiment, &[], 6, 1.0).unwrap();
    let of = |one: &Planned| {
        let on = |name: &str| one.cell.factors[name] == "on";
        let events = if on("a") && (on("b") || on("c")) { 100.0 } else { 1000.0 };
        let done = if on("a") { 60.0 } else { 80.0 };
        let noise = f64::from(one.cell.repetition) / 10.0;
        let values = [("max".to_owned(), Some(events + noise)), ("done".to_owned(), Some(done))];
        CellResult { values: BTreeMap::from(values), ..result(None, false) }
    };
    let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect();
    let found = ablated(&experiment, &conclude(&experiment, &numbers(), &results), &results);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].measured, [8, 8]);
    assert_eq!(found[0].sufficient.as_deref().unwrap(), [["a", "b"], ["a", "c"]]);
    let needed: Vec<Judgement> = found[0].left_out.iter().map(|one| one.needed).collect();
    assert_eq!(needed, [Judgement::Agrees, Judgement::Inconclusive, Judgement::Inconclusive]);
    assert_eq!(found[0].left_out[0].cost, Some(0.75));
    let sentences = found[0].sentences();
    assert!(
        sentences[0].contains("1000 instead of 100: needed") && sentences[0].contains("75 %"),
        "{sentences:?}"
    );
    assert!(
        sentences[3].contains("smallest sufficient: a + b, or a + c (8 of 8 subsets measured)"),
        "{sentences:?}"
    );
}

#[test]
fn an_ablation_says_what_was_not_measured_and_where_it_is_wrong() {
    let experiment = read(ABLATION);
    let plan = Plan::of(&experiment, &[], 1, 1.0).unwrap();
    // Only what has `a`: a set without it may be smaller, so that none is called sufficient.
    let of = |one: &Planned| result((one.cell.factors["a"] == "on").then_some(5.0), false);
    let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect();
    let found = ablated(&experiment, &conclude(&experiment, &numbers(), &results), &results);
    assert_eq!((found[0].measured, &found[0].sufficient), ([4, 8], &None));
    let lines = found[0].sentences();
    assert!(lines[2].starts_with("no set is called sufficient: 4 of 8 subsets"), "{lines:?}");
    assert_eq!(found[0].left_out.iter().map(|one| one.mechanism.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    assert!(ablated(&experiment, &conclude(&experiment, &numbers(), &[]), &[]).is_empty());
    for (from, to, expected) in [
        (
            "factors = [\"a\", \"b\", \"c\"]",
            "factors = []",
            "line 37, column 11: 0 mechanisms; expected 1 to 6",
        ),
        ("factors = [\"a\"", "factors = [\"x\"", "line 37, column 12: no factor is called \"x\""),
        ("without = \"off\"", "without = \"of\"", "line 39, column 11: factor \"a\" has no level \"of\""),
        ("cost = \"done\"", "cost = \"dune\"", "line 36, column 8: no value is called \"dune\""),
    ] {
        assert!(
            wrong(&ABLATION.replacen(from, to, 1)).starts_with(expected),
            "{}",
            wrong(&ABLATION.replacen(from, to, 1))
        );
    }
}

#[test]
fn a_figure_that_a_machine_cannot_have_is_not_applicable_with_its_reason() {
    let experiment = read(TEXT);
    let plan = Plan::of(&experiment, &[], 2, 1.0).unwrap();
    let why = "counter max is unavailable: this CPU has none";
    let concluded = |absent: bool| {
        let reasons =
            if absent { BTreeMap::from([("max".to_owned(), why.to_owned())]) } else { BTreeMap::new() };
        let result = CellResult { absent: reasons, ..result(None, false) };
        let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), result.clone())).collect();
        conclude(&experiment, &numbers(), &results)
    };
    let answer = concluded(true);
    assert_eq!(
        (answer.published[0].judgement, answer.published[0].why.as_str()),
        (Judgement::NotApplicable, why)
    );
    assert!(answer.groups.iter().all(|group| group.ok == 2 && group.absent["max"] == why));
    let shown = |concluded: &super::Concluded| format!("{:?}", super::sheets(&experiment, concluded));
    assert!(shown(&answer).contains("n/a"), "{}", shown(&answer));
    assert!(!shown(&concluded(false)).contains("n/a"), "{}", shown(&concluded(false)));
}

#[test]
fn the_expected_time_is_of_what_is_left_and_of_its_boots() {
    let experiment = read(TEXT);
    let kernels = ["6.1".to_owned(), "6.12".to_owned()];
    let plan = Plan::of(&experiment, &kernels, 1, 1.0).unwrap();
    let all: Vec<_> = plan.cells.iter().collect();
    let some: Vec<_> = all.iter().copied().filter(|one| one.boot.kernel.as_deref() == Some("6.1")).collect();
    let (whole, part) = (super::expected(&all), super::expected(&some));
    assert_eq!(whole, part * 2);
    let cells: std::time::Duration = some.iter().map(|one| one.expected()).sum();
    assert!(part > cells, "boots cost time, too");
    assert_eq!(super::expected(&[]), std::time::Duration::ZERO);
}
