//! The figures of an experiment: panels of the crate `study` drawn by the parts of the crate
//! `report`, as files and for the study's page.

use model::{Error, store};
use report::StudyFigure;
use report::svg::{self, Course, LaneSpan, Line, Measure, Over, OverAsked, OverPoint, Style, Upright};
use stats::slots::Slot;
use std::fs;
use std::path::Path;
use study::Cell;
use study::experiment::{
    Bins, CellResult, Concluded, Curve, Drawn, Experiment, Figure, Kind, Panel, Quantiles, Span, Spread,
    Trail, ValueOf, panels,
};

/// Draws the figures into `figures/` of the study and returns them for its page.
pub(super) fn draw(
    experiment: &Experiment,
    concluded: &Concluded,
    results: &[(Cell, CellResult)],
    out: &Path,
) -> anyhow::Result<Vec<StudyFigure>> {
    let dir = out.join("figures");
    let mut figures = Vec::new();
    for figure in &experiment.figures {
        let panels = panels(experiment, figure, concluded, results);
        let mut study_figure = StudyFigure {
            title: title(experiment, figure),
            panels: Vec::new(),
            half: matches!(figure.kind, Kind::Spread | Kind::Course | Kind::Qq),
        };
        for (at, panel) in panels.iter().enumerate() {
            let name = file_name(figure, panel, panels.len(), at);
            let Some(chart) = chart(experiment, figure, panel, &name) else { continue };
            fs::create_dir_all(&dir).map_err(|source| Error::io("create", &dir, source))?;
            store::write_whole(&dir.join(format!("{name}.svg")), svg::standalone(&chart).as_bytes())?;
            study_figure.panels.push((chart, caption(figure, panel, concluded)));
        }
        if !study_figure.panels.is_empty() {
            figures.push(study_figure);
        }
    }
    Ok(figures)
}

fn title(experiment: &Experiment, figure: &Figure) -> String {
    figure.title.clone().unwrap_or_else(|| experiment.title.clone())
}

/// `fig6a`, or with what distinguishes the panel: `fig6a-6.1-samples`.
fn file_name(figure: &Figure, panel: &Panel, panels: usize, at: usize) -> String {
    let name = figure.name.get_ref();
    if panels == 1 {
        return name.clone();
    }
    let levels = panel.title.split(", ").map(|one| one.split_once(' ').map_or(one, |(_, level)| level));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let levels: String = levels.collect::<Vec<_>>().join("-").chars().map(plain).collect();
    if levels.is_empty() { format!("{name}-{at}") } else { format!("{name}-{levels}") }
}

/// What a reader has to know of the panel.
fn caption(figure: &Figure, panel: &Panel, concluded: &Concluded) -> String {
    let how = match figure.kind {
        Kind::Lines | Kind::Bars => "Medians of the repetitions, whiskers from the lowest to the highest.",
        Kind::Spread => {
            "From the least to the observed maximum of all repetitions, dot at the median; a bar ends at the quantile, a triangle is the published maximum."
        }
        Kind::Counts => {
            "Samples of each microsecond up to 1 ms, all repetitions together; what lies beyond shows in the observed maximum alone."
        }
        Kind::Course => "First repetition.",
        Kind::Lanes => "First repetition; what is shorter than can be seen is drawn as a stroke.",
        Kind::Qq => {
            "First repetition. Solid: where both are distributed alike; dashed: the line through the points, by least squares."
        }
    };
    let emulated = concluded.groups.iter().any(|group| group.emulated);
    let emulated = if emulated { " Emulated guest: its times are not those of a machine." } else { "" };
    let common = if panel.title.is_empty() { String::new() } else { format!("{}. ", panel.title) };
    format!("{common}{how}{emulated}")
}

fn chart(experiment: &Experiment, figure: &Figure, panel: &Panel, id: &str) -> Option<String> {
    let title = match panel.title.as_str() {
        "" => title(experiment, figure),
        common => format!("{}, {common}", title(experiment, figure)),
    };
    let value = figure.values.first().and_then(|name| experiment.value(name.get_ref()));
    match &panel.drawn {
        Drawn::Over { x, ticks, curves } => over(id, &title, figure, value, (x, ticks), curves),
        Drawn::Spread(rows) => spread(id, &title, value, rows),
        Drawn::Counts(lines) => counts(id, &title, figure, value, lines),
        Drawn::Course(trails) => course(id, &title, figure, trails),
        Drawn::Lanes(spans) => lanes(id, &title, spans),
        Drawn::Qq(quantiles) => qq(experiment, id, &title, figure, quantiles),
    }
}

/// How a chart shows a unit, and the factor of its numbers.
fn measure(unit: &str) -> (Measure, f64) {
    match unit {
        "ns" => (Measure::Ns, 1.0),
        "us" => (Measure::Ns, 1e3),
        "ms" => (Measure::Ns, 1e6),
        "s" => (Measure::Ns, 1e9),
        "%" => (Measure::Share, 0.01),
        _ => (Measure::Count, 1.0),
    }
}

fn over(
    id: &str,
    title: &str,
    figure: &Figure,
    value: Option<&ValueOf>,
    (x, ticks): (&str, &[String]),
    curves: &[Curve],
) -> Option<String> {
    let unit = value.map_or("", |value| value.unit.as_str());
    let (measure, times) = measure(unit);
    let upwards = match (value, measure) {
        (Some(value), Measure::Count) if !unit.is_empty() => format!("{}, {unit}", value.title),
        (Some(value), _) if figure.x.is_some() => value.title.clone(),
        _ => figure.what.clone(),
    };
    let curve = |curve: &Curve| Over {
        label: curve.label.clone(),
        points: curve
            .points
            .iter()
            .map(|point| OverPoint {
                at: point.at,
                median: point.median * times,
                low: point.low * times,
                high: point.high * times,
            })
            .collect(),
        published: curve.published.iter().map(|(at, number)| (*at, number * times)).collect(),
    };
    let curves: Vec<Over> = curves.iter().map(curve).collect();
    let style = if figure.kind == Kind::Lines { Style::Lines } else { Style::Bars };
    let asked = OverAsked { axes: [x, &upwards], ticks, measure, style, log: figure.log };
    svg::over(id, title, &asked, &curves)
}

fn spread(id: &str, title: &str, value: Option<&ValueOf>, rows: &[Spread]) -> Option<String> {
    let (_, times) = measure(value.map_or("", |value| value.unit.as_str()));
    let ns = |number: f64| (number * times).round() as i64;
    let row = |row: &Spread| svg::Spread {
        label: row.label.clone(),
        min_ns: ns(row.min),
        median_ns: ns(row.median),
        p99_ns: row.quantile.map(ns),
        max_ns: ns(row.max),
        calculated_ns: row.published.map(ns),
        deadline_ns: None,
    };
    svg::spread(id, title, "time", &rows.iter().map(row).collect::<Vec<_>>(), svg::Room::Desk)
}

fn counts(id: &str, title: &str, figure: &Figure, value: Option<&ValueOf>, lines: &[Bins]) -> Option<String> {
    let (_, times) = measure(value.map_or("", |value| value.unit.as_str()));
    let whole = |bins: &Bins| -> Vec<[i64; 2]> {
        bins.bins.iter().map(|bin| bin.map(|number| number as i64)).collect()
    };
    let bins: Vec<Vec<[i64; 2]>> = lines.iter().map(whole).collect();
    let line = |(line, bins)| -> Line<'_> {
        let (line, bins): (&Bins, &Vec<[i64; 2]>) = (line, bins);
        // A cell does not store how many lie beyond the bins, so none are reported.
        let n = bins.iter().map(|bin| bin[1].max(0) as u64).sum();
        Line { label: line.label.clone(), bins, n, max_ns: (line.max * times).round() as i64 }
    };
    let lines: Vec<Line<'_>> = lines.iter().zip(&bins).map(line).collect();
    svg::linear(id, title, &figure.what, &lines)
}

fn course(id: &str, title: &str, figure: &Figure, trails: &[Trail]) -> Option<String> {
    let slots = |trail: &Trail| -> Vec<Slot> {
        let first = trail.points.first().map_or(0.0, |point| point[0]);
        let slot = |[t, value]: &[f64; 2]| Slot::single((t - first) as i64, *value as i64);
        trail.points.iter().map(slot).collect()
    };
    let slots: Vec<Vec<Slot>> = trails.iter().map(slots).collect();
    let courses: Vec<Course<'_>> = trails
        .iter()
        .zip(&slots)
        .enumerate()
        .map(|(at, (trail, slots))| Course { label: &trail.label, style: at, slots })
        .collect();
    let upright = if figure.log { Upright::Log } else { Upright::Linear };
    svg::course(id, title, &figure.what, upright, &courses)
}

fn lanes(id: &str, title: &str, spans: &[Span]) -> Option<String> {
    let span = |span: &Span| LaneSpan {
        lane: span.lane.clone(),
        label: span.label.clone(),
        from_ns: span.from,
        ns: span.length,
    };
    svg::lanes(id, title, &spans.iter().map(span).collect::<Vec<_>>(), svg::Room::Desk)
}

fn qq(
    experiment: &Experiment,
    id: &str,
    title: &str,
    figure: &Figure,
    quantiles: &Quantiles,
) -> Option<String> {
    let intercept = figure.values.get(1).and_then(|name| experiment.value(name.get_ref()));
    let (_, times) = measure(intercept.map_or("", |value| value.unit.as_str()));
    let line = quantiles.line.map(|[slope, intercept]| [slope, intercept * times]);
    let upwards = if figure.what.is_empty() { "quantile" } else { figure.what.as_str() };
    svg::qq(id, title, ["quantile of the reference", upwards], &quantiles.points, line)
}
