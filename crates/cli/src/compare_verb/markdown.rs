//! A comparison as Markdown: the summary that continuous integration shows.

use super::text::{Said, loss, missed, said, verdict};
use analysis::groups::best::Ranking;
use analysis::groups::condition::Judged;
use analysis::groups::{FigureComparison, GroupComparison};
use report::format;
use stats::decide::Verdict;
use std::fmt::Write;

/// Two groups.
pub(super) fn comparison(comparison: &GroupComparison, judged: &[Judged]) -> String {
    let mut text = opening(judged);
    for window in &comparison.windows {
        let _ = write!(
            text,
            "\n### {}, phase {}: {} and {} runs\n\n{HEAD}",
            window.probe.name(),
            escaped(&window.phase),
            comparison.base.len(),
            comparison.other.len()
        );
        window.figures.iter().for_each(|figure| text.push_str(&row(figure)));
        if let Some(line) = missed(window) {
            let _ = write!(text, "\n{}\n", escaped(&line));
        }
    }
    for (name, runs, kernel) in [
        ("base", &comparison.base, &comparison.kernels[0]),
        ("other", &comparison.other, &comparison.kernels[1]),
    ] {
        let kernel =
            kernel.as_deref().map(|kernel| format!(", kernel {}", escaped(kernel))).unwrap_or_default();
        let runs: Vec<String> = runs.iter().map(|run| format!("`{}`", code(run))).collect();
        let _ = write!(text, "\n{name}{kernel}: {}\n", runs.join(", "));
    }
    for warning in &comparison.warnings {
        let _ = write!(text, "\n> {}\n", escaped(warning));
    }
    text
}

/// Two commands by their wall times.
pub(super) fn times(commands: &[Vec<String>; 2], figure: &FigureComparison, judged: &[Judged]) -> String {
    let [base, other] = commands.each_ref().map(|words| code(&words.join(" ")));
    let [n, m] = figure.runs.each_ref().map(Vec::len);
    format!(
        "{}\n### wall time: {n} and {m} turns\n\n{HEAD}{}\nbase: `{base}`\n\nother: `{other}`\n",
        opening(judged),
        row(figure)
    )
}

const HEAD: &str =
    "| figure | base | other | difference | 95 % interval | verdict |\n|---|--:|--:|--:|--:|---|\n";

/// What came of the conditions.
fn opening(judged: &[Judged]) -> String {
    let failed = judged.iter().any(|one| one.holds == Some(true));
    let open = judged.iter().any(|one| one.holds.is_none());
    let undecided = judged.iter().any(|one| one.undecided);
    let head = match (judged.is_empty(), failed, open) {
        (true, ..) => "comparison",
        (false, true, _) => "failed",
        (false, false, true) => "cannot be judged",
        // What is not shown is not shown to be absent either.
        (false, false, false) if undecided => "passed, though the runs cannot tell",
        (false, false, false) => "passed",
    };
    let mut text = format!("## stillcore compare: {head}\n\n");
    for one in judged {
        let word = one.holds.map_or("cannot be judged", |holds| if holds { "**failed**" } else { "passed" });
        let _ = writeln!(text, "- `{}`: {word}: {}", code(&one.condition), escaped(&one.sentence));
    }
    text
}

fn row(figure: &FigureComparison) -> String {
    let Said { base, other, difference, interval, .. } = said(figure);
    let verdict = match (figure.verdict, figure.more_runs, &figure.why) {
        (Verdict::CannotTell, Some(more), _) => {
            format!("cannot tell: about {} a side", format::plural(more as u64, "more run"))
        }
        (Verdict::Withheld, _, Some(why)) => format!("withheld: {}", escaped(why)),
        (verdict, ..) => verdict.words().to_owned(),
    };
    format!("| {} | {base} | {other} | {difference} | {interval} | {verdict} |\n", figure.figure.name())
}

/// Configurations by their loss.
pub(super) fn ranking(ranking: &Ranking) -> String {
    let name = ranking.loss.name();
    let mut text = format!(
        "## stillcore compare: best by {name} of {}\n\n{}\n\n| configuration | runs | {name} | best with | verdict |\n|---|--:|--:|--:|---|\n",
        ranking.probe.name(),
        escaped(&verdict(ranking))
    );
    for one in &ranking.groups {
        let p = one.p_best.map_or("-".to_owned(), |p| format!("{:.1} %", p * 100.0));
        let word = if one.p_best.is_none() {
            "not judged"
        } else if one.may_be_best {
            "may be the best"
        } else {
            "worse"
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {p} | {word} |",
            escaped(&one.name),
            one.runs.len(),
            loss(one, ranking.unit)[0]
        );
    }
    for warning in &ranking.warnings {
        let _ = write!(text, "\n> {}\n", escaped(warning));
    }
    text
}

/// Names and paths are others' words: nothing in them may become markup.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '!' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
        out
    })
}

/// Within backquotes nothing is escaped, and a backquote would end them.
fn code(text: &str) -> String {
    text.chars().map(|c| if c == '`' || c == '|' || c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(escaped("<b>|x|\n![a](b)"), "&lt;b>\\|x\\| \\!\\[a\\](b)");
        assert_eq!(code("a`b|c\n"), "a?b?c?");
    }
}
