//! The picture of README: two confirmed findings as bars, in counts of a stored result, for light
//! and for dark pages. `cargo xtask docs` writes it; `tidy` fails where it is stale.

use std::fmt::Write;

use super::{Broken, result_of, row_of};
use crate::results::Results;
use result::text::fixed;

/// The result that the picture shows.
const RESULT: &str = "lab-remedies";

const WIDTH: u32 = 900;
const HEIGHT: u32 = 300;
/// Where bars begin, and how long the longest is.
const LEFT: u32 = 90;
const LENGTH: f64 = 560.0;

/// Colours of a page.
struct Theme {
    path: &'static str,
    text: &'static str,
    faint: &'static str,
    line: &'static str,
    before: &'static str,
    after: &'static str,
}

const THEMES: [Theme; 2] = [
    Theme {
        path: "docs/pictures/finding-light.svg",
        text: "#1f2328",
        faint: "#59636e",
        line: "#d1d9e0",
        before: "#cf222e",
        after: "#1a7f37",
    },
    Theme {
        path: "docs/pictures/finding-dark.svg",
        text: "#f0f6fc",
        faint: "#9198a1",
        line: "#3d444d",
        before: "#f85149",
        after: "#3fb950",
    },
];

/// A finding, and the setting that ended it.
struct Finding {
    title: &'static str,
    /// Rows of the result: `STORY, before: WHAT` and `STORY, after: WHAT`.
    story: &'static str,
    what: &'static str,
    /// What `n` of the rows counts, and whether the value is a share of it.
    of: &'static str,
    is_share: bool,
    setting: &'static str,
}

const FINDINGS: [Finding; 2] = [
    Finding {
        title: "Wake-ups on CPU 2 that waited until CPU 0 had run their timer",
        story: "timer-migration",
        what: "timer-late on another CPU",
        of: "wake-ups",
        is_share: true,
        setting: "timer_migration",
    },
    Finding {
        title: "Interruptions of CPU 2 by the period timer of real-time throttling",
        story: "throttling",
        what: "timer.hrtimer sched_rt_period_timer",
        of: "s",
        is_share: false,
        setting: "sched_rt_runtime",
    },
];

/// The pictures with their paths.
pub(crate) fn pictures(results: &Results) -> Result<Vec<(&'static str, String)>, Broken> {
    THEMES.iter().map(|theme| Ok((theme.path, picture(theme, results)?))).collect()
}

fn picture(theme: &Theme, results: &Results) -> Result<String, Broken> {
    let stored = result_of(results, RESULT)?;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\" font-size=\"15\">\n\
         <title>Two findings on isolated CPU 2, before and after the setting that stillcore proposed</title>\n"
    );
    for (finding, top) in FINDINGS.iter().zip([0, 150]) {
        let title = " font-weight=\"600\" font-size=\"17\"";
        label(&mut svg, (10, top + 26), theme.text, title, finding.title);
        let command = format!("stillcore isolate apply --cpus 2 --with {}", finding.setting);
        let mono = " font-family=\"ui-monospace, monospace\" font-size=\"13\"";
        label(&mut svg, (10, top + 136), theme.faint, mono, &command);
        let before = Bar::of(stored, finding, "before")?;
        let after = Bar::of(stored, finding, "after")?;
        for (name, bar, color, y) in
            [("before", &before, theme.before, top + 44), ("after", &after, theme.after, top + 82)]
        {
            let whole = if finding.is_share { bar.n } else { before.count };
            let width = (bar.count / whole * LENGTH).round();
            label(&mut svg, (10, y + 21), theme.faint, "", name);
            let link = if finding.is_share { "of" } else { "in" };
            let count = format!("{} {link} {} {}", fixed(bar.count, 0), fixed(bar.n, 0), finding.of);
            label(&mut svg, (LEFT + width as u32 + 12, y + 21), theme.text, "", &count);
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width}\" height=\"30\" rx=\"3\" fill=\"{color}\"/>"
            );
        }
        let _ = writeln!(svg, "<path d=\"M{LEFT} {} v76\" stroke=\"{}\"/>", top + 40, theme.line);
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn label(svg: &mut String, (x, y): (u32, u32), fill: &str, more: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\"{more}>{text}</text>");
}

/// A count, and of or in how much.
struct Bar {
    count: f64,
    n: f64,
}

impl Bar {
    fn of(stored: &result::Stored, finding: &Finding, when: &str) -> Result<Self, Broken> {
        let row = row_of(stored, &format!("{}, {when}: {}", finding.story, finding.what))?;
        match (row.value, row.n) {
            (Some(count), Some(n)) if n > 0 => Ok(Self { count, n: n as f64 }),
            _ => Err(Broken::new(format!("`{}` without value and n", row.what), "both")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::stored;
    use result::Row;

    fn results(before: f64) -> Results {
        let row = |what: &str, value, n| Row::new(what, value, "").n(n);
        let rows = vec![
            row("timer-migration, before: timer-late on another CPU", before, 1597),
            row("timer-migration, after: timer-late on another CPU", 0.0, 1721),
            row("throttling, before: timer.hrtimer sched_rt_period_timer", 30.0, 35),
            row("throttling, after: timer.hrtimer sched_rt_period_timer", 0.0, 35),
        ];
        Results::from([(RESULT.to_owned(), Ok(stored(RESULT, rows)))])
    }

    #[test]
    fn the_picture_has_the_counts_of_the_result() {
        let light = |before| pictures(&results(before)).unwrap().remove(0).1;
        assert!(light(1592.0).contains(">1,592 of 1,597 wake-ups<"), "{}", light(1592.0));
        assert!(light(1592.0).contains(">0 of 1,721 wake-ups<") && light(1592.0).contains(">30 in 35 s<"));
        assert_ne!(light(1592.0), light(800.0));
    }

    #[test]
    fn without_the_result_there_is_no_picture() {
        assert!(pictures(&Results::new()).is_err());
    }
}
