//! Figures for a paper: pgfplots tables, one file a curve, and a document that draws them, ready
//! for `pdflatex`.
//!
//! The data are plain columns with a header, as `\addplot table` reads them (pgfplots manual,
//! section 4.3.2), so that another figure of the same data needs no stillcore. The document is of
//! class `standalone`: its PDF is cut to the figure and goes into a paper as it is.

use analysis::distribution::Distribution;
use model::sample::ProbeKind;
use std::fmt::Write;

use crate::distribution::{maximum, quantile};
use crate::{Document, format, heading};

/// CPUs that are drawn: those with the largest maxima.
const CPUS: usize = 4;
/// Quantiles of the table.
const LEVELS: [f64; 3] = [0.5, 0.99, 0.999];
/// Of Okabe and Ito (2008), distinct in print and for readers who cannot distinguish hues.
const HUES: [(&str, &str); 4] = [("scA", "0072B2"), ("scB", "D55E00"), ("scC", "009E73"), ("scD", "CC79A7")];

/// Files by their names: the data, `figure.tex` and `table.tex`.
pub fn latex(document: &Document) -> Vec<(String, String)> {
    let drawn = named(drawn(document));
    let mut files = Vec::new();
    for (name, one) in &drawn {
        files.push((format!("exceedance-{name}.dat"), exceedance(one)));
        if !one.by_us.is_empty() {
            files.push((format!("latency-{name}.dat"), by_us(one)));
        }
    }
    files.push(("figure.tex".to_owned(), figure(document, &drawn)));
    files.push(("table.tex".to_owned(), table(document)));
    files
}

/// Wake-ups where there are any, else what else was sampled; of the CPUs with the largest maxima.
fn drawn(document: &Document) -> Vec<&Distribution> {
    let all = &document.analysis.distributions;
    let probe = [ProbeKind::Wakeup, ProbeKind::Noise]
        .into_iter()
        .find(|probe| all.iter().any(|one| one.probe == *probe && one.n > 0));
    let ours: Vec<&Distribution> =
        all.iter().filter(|one| Some(one.probe) == probe && one.n > 0 && one.thread == 0).collect();
    let worst = |cpu: u32| ours.iter().filter(|one| one.cpu == cpu).filter_map(|one| maximum(one)).max();
    let mut cpus: Vec<u32> = ours.iter().map(|one| one.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus.sort_by_key(|cpu| std::cmp::Reverse(worst(*cpu)));
    cpus.truncate(CPUS);
    ours.into_iter().filter(|one| cpus.contains(&one.cpu)).collect()
}

/// A curve with what its files are called: `wakeup-cpu3-disturbed`.
type Named<'a> = (String, &'a Distribution);

/// Of a phase's name only what every file system and TeX take, and a number where two phases differ
/// in the rest alone.
fn named(drawn: Vec<&Distribution>) -> Vec<Named<'_>> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut named: Vec<Named<'_>> = Vec::with_capacity(drawn.len());
    for one in drawn {
        let phase: String = one.phase.chars().map(plain).collect();
        let name = format!("{}-cpu{}-{phase}", one.probe.name(), one.cpu);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = |name: &String| named.iter().all(|(taken, _)| taken != name);
        let name = std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or(name);
        named.push((name, one));
    }
    named
}

/// Share of samples at or above each bucket's lower edge, then one sample at the observed maximum.
fn exceedance(one: &Distribution) -> String {
    let mut text = "us share\n".to_owned();
    let mut left: i64 = one.histogram.iter().map(|bucket| bucket.count).sum();
    let n = left.max(1) as f64;
    for bucket in one.histogram.iter().filter(|bucket| bucket.count > 0) {
        if bucket.low_ns > 0 {
            let _ = writeln!(text, "{} {:e}", bucket.low_ns as f64 / 1e3, left as f64 / n);
        }
        left -= bucket.count;
    }
    if let Some(max) = one.observed_max_ns.filter(|max| *max > 0) {
        let _ = writeln!(text, "{} {:e}", max as f64 / 1e3, 1.0 / n);
    }
    text
}

/// Samples of each microsecond.
fn by_us(one: &Distribution) -> String {
    let mut text = "us samples\n".to_owned();
    one.by_us.iter().for_each(|[us, count]| _ = writeln!(text, "{us} {count}"));
    text
}

fn figure(document: &Document, drawn: &[Named<'_>]) -> String {
    let mut text = String::from(
        "% pdflatex figure.tex; the .dat files beside it are the data.\n\\documentclass{standalone}\n\\usepackage{pgfplots}\n\
         \\pgfplotsset{compat=1.16}\n",
    );
    HUES.iter().for_each(|(name, hex)| _ = writeln!(text, "\\definecolor{{{name}}}{{HTML}}{{{hex}}}"));
    let _ = write!(
        text,
        "\\begin{{document}}\n\\begin{{tikzpicture}}\n\\begin{{axis}}[\n  title={{{}}},\n  xmode=log, ymode=log,\n  \
         xlabel={{{}}}, ylabel={{share of samples at or above}},\n  width=12cm, height=7.5cm, grid=major,\n  \
         legend style={{font=\\small, at={{(1.02,1)}}, anchor=north west}}, legend cell align=left,\n{}]\n",
        escaped(&title(document)),
        escaped(what(drawn)),
        ticks(drawn),
    );
    let mut cpus: Vec<u32> = drawn.iter().map(|(_, one)| one.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for (name, one) in drawn {
        let hue = HUES[cpus.iter().position(|cpu| *cpu == one.cpu).unwrap_or(0) % HUES.len()].0;
        let phase = document.run.phases.iter().position(|phase| phase.name == one.phase).unwrap_or(0);
        let dash = ["solid", "densely dashed", "densely dotted"][phase % 3];
        let max = maximum(one).map_or_else(|| "-".to_owned(), format::ns);
        let _ = write!(
            text,
            "\\addplot[const plot mark right, {hue}, {dash}, thick] table[x=us, y=share] {{exceedance-{name}.dat}};\n\\addlegendentry{{{}}}\n",
            escaped(&format!("CPU {}, {}, max {max}", one.cpu, one.phase)),
        );
    }
    text.push_str("\\end{axis}\n\\end{tikzpicture}\n\\end{document}\n");
    text
}

/// Ticks at 1, 2 and 5 of each decade: of fewer than three decades pgfplots would make fractions of
/// a power. Of more it makes good ones.
fn ticks(drawn: &[Named<'_>]) -> String {
    let of = |one: &Distribution| {
        let least = one.histogram.iter().find(|bucket| bucket.low_ns > 0 && bucket.count > 0);
        least.map(|bucket| bucket.low_ns).zip(one.observed_max_ns)
    };
    let ends = drawn.iter().filter_map(|(_, one)| of(one)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((least, most)) = ends.filter(|(least, most)| most / least < 1000) else { return String::new() };
    let steps = (0..16).flat_map(|decade| [1, 2, 5].map(|step| step * 10_i64.pow(decade)));
    let inside = steps.filter(|ns| (least..=most).contains(ns));
    let us: Vec<String> = inside.map(|ns| (ns as f64 / 1e3).to_string()).collect();
    let us = us.join(",");
    format!("  xtick={{{us}}}, xticklabels={{{us}}},\n")
}

fn title(document: &Document) -> String {
    let kernel = &document.machine.machine.kernel;
    let title = heading::title(&document.run);
    let then = if title.ends_with('?') { "" } else { "," };
    format!("{title}{then} {} {}", kernel.release, kernel.arch)
}

fn what(drawn: &[Named<'_>]) -> &'static str {
    match drawn.first().map(|(_, one)| one.probe) {
        Some(ProbeKind::Noise) => "length of a gap [us]",
        _ => "wake-up latency [us]",
    }
}

/// A `tabular` for `\input`, with the rules of booktabs.
fn table(document: &Document) -> String {
    let mut text =
        String::from("% \\usepackage{booktabs}; times in microseconds, missed releases charged.\n");
    let names: Vec<String> = LEVELS.iter().map(|p| format::quantile_name(*p)).collect();
    let _ = write!(
        text,
        "\\begin{{tabular}}{{llr{}rr}}\n\\toprule\nwindow & CPU & n & {} & max & missed \\\\\n\\midrule\n",
        "r".repeat(LEVELS.len()),
        names.join(" & ")
    );
    let us =
        |value: Option<i64>| value.map_or_else(|| "--".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e3));
    for one in &document.analysis.distributions {
        let levels: Vec<String> = LEVELS.iter().map(|p| us(quantile(one, *p))).collect();
        let _ = writeln!(
            text,
            "{} {} & {} & {} & {} & {} & {} \\\\",
            one.probe.name(),
            escaped(&one.phase),
            one.cpu,
            one.n,
            levels.join(" & "),
            us(maximum(one)),
            one.missed
        );
    }
    text.push_str("\\bottomrule\n\\end{tabular}\n");
    text
}

/// Text of a machine as text of TeX; what pdflatex has no letter for is a question mark.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            // TeX's own fonts have other letters in the places of these.
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '[' => out.push_str("{[}"),
            ']' => out.push_str("{]}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' => out.push(c),
            _ => out.push('?'),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use analysis::distribution::Bucket;

    /// Braces and environments close in order; comments and escaped braces are none.
    fn assert_balanced(text: &str) {
        let mut open = Vec::new();
        let mut depth = 0i32;
        for line in text.lines() {
            let line = line.replace("\\\\", "").replace("\\{", "").replace("\\}", "").replace("\\%", "");
            let code = line.split('%').next().unwrap();
            for (at, c) in code.char_indices() {
                depth += i32::from(c == '{') - i32::from(c == '}');
                assert!(depth >= 0, "{line}");
                let name = |rest: &str| rest.split(['{', '}']).nth(1).unwrap_or_default().to_owned();
                if code[at..].starts_with("\\begin{") {
                    open.push(name(&code[at..]));
                } else if code[at..].starts_with("\\end{") {
                    assert_eq!(open.pop(), Some(name(&code[at..])), "{line}");
                }
            }
        }
        assert!(depth == 0 && open.is_empty(), "{open:?}");
    }

    #[test]
    fn the_document_is_whole_and_draws_only_what_is_there() {
        let mut document = fixture::document();
        document.machine.machine.kernel.release = "6.1_x%\\input{/etc/passwd}&~^\u{e9}".into();
        let files = latex(&document);
        for (name, text) in files.iter().filter(|(name, _)| !name.contains(".dat")) {
            assert_balanced(text);
            assert!(text.is_ascii() && !text.contains("\\input{/etc"), "{name}: {text}");
        }
        let figure = &files.iter().find(|(name, _)| name == "figure.tex").unwrap().1;
        let used: Vec<&str> =
            figure.split("y=share] {").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        assert_eq!(used.len(), 2 * 3, "two CPUs in three phases");
        assert!(used.iter().all(|name| files.iter().any(|(known, _)| known == name)));
    }

    #[test]
    fn few_decades_have_ticks_that_can_be_read() {
        let mut document = fixture::document();
        let figure = |document: &Document| {
            latex(document).into_iter().find(|(name, _)| name == "figure.tex").unwrap().1
        };
        for one in &mut document.analysis.distributions {
            one.histogram = vec![
                Bucket { low_ns: 1_500, high_ns: 2_000, count: 5 },
                Bucket { low_ns: 40_000, high_ns: 50_000, count: 1 },
            ];
            one.observed_max_ns = Some(45_000);
        }
        assert!(figure(&document).contains("xtick={2,5,10,20}, xticklabels={2,5,10,20},\n]"));
        document.analysis.distributions[0].observed_max_ns = Some(2_000_000);
        assert!(!figure(&document).contains("xtick"));
    }

    #[test]
    fn phases_that_differ_in_what_no_file_is_called_have_files_of_their_own() {
        let mut document = fixture::document();
        let phases = ["load <1>", "load |1|", "LOAD_-1-", "x"];
        let names: Vec<String> = document.run.phases.iter().map(|phase| phase.name.clone()).collect();
        for one in &mut document.analysis.distributions {
            one.phase = phases[names.iter().position(|name| *name == one.phase).unwrap()].to_owned();
        }
        let files = latex(&document);
        let different: std::collections::BTreeSet<&String> = files.iter().map(|(name, _)| name).collect();
        assert_eq!(different.len(), files.len(), "{different:?}");
        let figure = &files.iter().find(|(name, _)| name == "figure.tex").unwrap().1;
        assert!(
            different
                .iter()
                .filter(|name| name.starts_with("exceedance"))
                .all(|name| figure.contains(&format!("{{{name}}}")))
        );
        assert!(figure.contains("load \\textless{}1\\textgreater{}") && figure.contains("load \\textbar{}1"));
    }

    #[test]
    fn shares_fall_and_every_line_has_its_columns() {
        for (name, text) in latex(&fixture::document()).iter().filter(|(name, _)| name.contains(".dat")) {
            let rows: Vec<Vec<f64>> = text
                .lines()
                .skip(1)
                .map(|line| line.split(' ').map(|cell| cell.parse().unwrap()).collect())
                .collect();
            assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == 2), "{name}");
            assert!(
                rows.windows(2).all(|two| two[0][0] < two[1][0] || name.starts_with("exceedance")),
                "{name}"
            );
            if name.starts_with("exceedance") {
                assert!(rows.windows(2).all(|two| two[0][1] >= two[1][1]), "{name}: {text}");
                assert!((rows[0][1] - 1.0).abs() < 1e-9);
            }
        }
    }
}
