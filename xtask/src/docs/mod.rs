//! Measured numbers and exercises in the pages: between markers, from files, never typed.
//!
//! A table: `<!-- result:NAME rows="PATTERN; PATTERN" … -->` on a line of its own, up to
//! `<!-- /result -->`. A number in a sentence: `<!--r:NAME/ROW/FIELD-->` up to `<!--/r-->` on one
//! line. A patch: `<!-- exercise:NAME -->` on a line of its own, up to `<!-- /exercise -->`. The
//! picture of README is made from a result, too. `cargo xtask docs` writes what is between; `tidy`
//! fails where a page has something else. CONTRIBUTING.md describes the attributes.

mod block;
#[cfg(test)]
mod effects;
mod inline;
mod pictures;

use std::path::Path;

use anyhow::{Context, Result};

use crate::repo::{Repo, has_extension};
use crate::results::{self, FOLDER, Results};

const RESULT: &str = "<!-- result:";
const EXERCISE: &str = "<!-- exercise:";

/// Where the patches are that pages show.
pub(crate) const EXERCISES: &str = "docs/exercises/";

/// How blocks begin and end.
const BLOCKS: [(&str, &str); 2] = [(RESULT, "<!-- /result -->"), (EXERCISE, "<!-- /exercise -->")];

/// Something wrong at a line of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Counted from 1.
    pub line: usize,
    pub what: String,
    pub expected: String,
}

/// A page with everything between markers as the files have it.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub text: String,
    /// Markers that cannot be filled.
    pub broken: Vec<Problem>,
    /// Places where the page has something else than its file.
    pub differs: Vec<Problem>,
}

/// The pages that may have markers.
pub(crate) fn is_page(path: &str) -> bool {
    has_extension(path, "md") && !path.starts_with("fixtures/")
}

/// Fills every marker of a page. `path`: of the page, from the root, for its links.
pub(crate) fn expand(path: &str, text: &str, results: &Results, repo: &Repo) -> Expanded {
    let mut out = Expanded { text: String::new(), broken: Vec::new(), differs: Vec::new() };
    let lines: Vec<&str> = text.lines().collect();
    let (mut at, mut fenced) = (0, false);
    while at < lines.len() {
        let line = lines[at];
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let block = BLOCKS.iter().find(|(begin, _)| !fenced && line.starts_with(begin));
        let Some((begin, end)) = block else {
            let filled = if fenced { line.to_owned() } else { inline_line(at + 1, line, results, &mut out) };
            out.push(&filled);
            at += 1;
            continue;
        };
        let Some(length) = lines[at..].iter().position(|line| line == end) else {
            out.broken.push(Problem {
                line: at + 1,
                what: "a block that does not end".into(),
                expected: format!("a line `{end}`"),
            });
            out.push(line);
            at += 1;
            continue;
        };
        out.push(line);
        let page = &lines[at + 1..at + length];
        let made = match *begin {
            EXERCISE => exercise(line, repo),
            _ => block::render(line, &link(path), results),
        };
        match made {
            Ok(made) => {
                out.compare(at + 2, page, &made);
                made.iter().for_each(|line| out.push(line));
            }
            Err(why) => {
                out.broken.push(Problem { line: at + 1, what: why.what, expected: why.expected });
                page.iter().for_each(|line| out.push(line));
            }
        }
        out.push(end);
        at += length + 1;
    }
    out
}

impl Expanded {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Notes the first line of a block that differs.
    fn compare(&mut self, first: usize, page: &[&str], made: &[String]) {
        let longer = page.len().max(made.len());
        let at = (0..longer).find(|&at| page.get(at).copied() != made.get(at).map(String::as_str));
        if let Some(at) = at {
            let show =
                |line: Option<&str>| line.map_or("the end of the block".to_owned(), |l| format!("`{l}`"));
            self.differs.push(Problem {
                line: first + at.min(page.len()),
                what: show(page.get(at).copied()),
                expected: format!(
                    "{}, as the file has it (cargo xtask docs)",
                    show(made.get(at).map(String::as_str))
                ),
            });
        }
    }
}

/// The lines of `<!-- exercise:NAME -->`: a patch as it is.
fn exercise(marker: &str, repo: &Repo) -> Result<Vec<String>, Broken> {
    let name = marker.strip_prefix(EXERCISE).and_then(|rest| rest.strip_suffix("-->")).unwrap_or_default();
    let path = format!("{EXERCISES}{}.patch", name.trim());
    let Some(Some(patch)) = repo.files.get(&path) else {
        return Err(Broken::new(format!("no exercise `{}`", name.trim()), path));
    };
    Ok(std::iter::once("```diff").chain(patch.lines()).chain(["```"]).map(str::to_owned).collect())
}

/// The folder of results as seen from a page.
fn link(page: &str) -> String {
    let up = "../".repeat(page.matches('/').count());
    match page.strip_prefix("docs/") {
        Some(rest) if !rest.contains('/') => "results".to_owned(),
        _ => format!("{up}{FOLDER}"),
    }
}

fn inline_line(at: usize, line: &str, results: &Results, out: &mut Expanded) -> String {
    let (filled, found) = inline::fill(line, results);
    for one in found {
        let problem = Problem { line: at, what: one.what, expected: one.expected };
        if one.broken { out.broken.push(problem) } else { out.differs.push(problem) }
    }
    filled
}

/// Why a marker cannot be filled.
#[derive(Debug)]
pub(crate) struct Broken {
    what: String,
    expected: String,
}

impl Broken {
    fn new(what: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { what: what.into(), expected: expected.into() }
    }
}

/// The result of this name, or why there is none.
fn result_of<'a>(results: &'a Results, name: &str) -> Result<&'a result::Stored, Broken> {
    match results.get(name) {
        Some(Ok(stored)) => Ok(stored),
        Some(Err(why)) => Err(Broken::new(format!("result `{name}`: {why}"), "a valid result")),
        None => Err(Broken::new(format!("no result `{name}`"), format!("{FOLDER}/{name}.json"))),
    }
}

/// The row of this name, or which come nearest.
fn row_of<'a>(stored: &'a result::Stored, what: &str) -> Result<&'a result::Row, Broken> {
    stored.row(what).ok_or_else(|| no_row(stored, what))
}

fn no_row(stored: &result::Stored, what: &str) -> Broken {
    let same = |row: &&result::Row| row.what.chars().zip(what.chars()).take_while(|(a, b)| a == b).count();
    let nearest =
        stored.rows.iter().max_by_key(same).map_or("any".to_owned(), |row| format!("`{}`", row.what));
    Broken::new(
        format!("`{}` has no row `{what}`", stored.name),
        format!("one of its rows, such as {nearest}"),
    )
}

/// Writes every page anew. `false` where a marker cannot be filled.
pub(crate) fn rewrite(root: &Path) -> Result<bool> {
    let results = results::read(root)?;
    let repo = Repo::read(root)?;
    let mut good = true;
    for (path, text) in repo.texts(is_page) {
        let new = expand(path, text, &results, &repo);
        for one in &new.broken {
            good = false;
            println!("{path}:{}: {}; expected {}", one.line, one.what, one.expected);
        }
        if new.text != text {
            std::fs::write(root.join(path), &new.text).with_context(|| format!("write {path}"))?;
            println!("written: {path}");
        }
    }
    match pictures::pictures(&results) {
        Ok(pictures) => {
            for (path, picture) in pictures {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap_or(root))?;
                if std::fs::read_to_string(&path).is_ok_and(|text| text == picture) {
                    continue;
                }
                std::fs::write(&path, picture).with_context(|| format!("write {}", path.display()))?;
                println!("written: {}", path.display());
            }
        }
        Err(why) => {
            good = false;
            println!("pictures: {}; expected {}", why.what, why.expected);
        }
    }
    Ok(good)
}

/// Pictures that are missing or not those of the results, with what is expected.
pub(crate) fn stale_pictures(repo: &Repo, results: &Results) -> Vec<(String, String)> {
    let made = match pictures::pictures(results) {
        Ok(made) => made,
        Err(why) => return vec![(why.what, why.expected)],
    };
    let is_stale =
        |(path, picture): &(&str, String)| repo.files.get(*path).cloned().flatten().as_ref() != Some(picture);
    let stale = made.into_iter().filter(is_stale);
    stale
        .map(|(path, _)| (path.to_owned(), "the counts of its result (cargo xtask docs)".to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::stored;
    use result::Row;

    const PATCH: &str = "$ stillcore x\n\n--- a/x\n+++ b/x\n+```\n";

    fn expand(path: &str, text: &str, results: &Results) -> Expanded {
        super::expand(path, text, results, &Repo::of(&[("docs/exercises/x.patch", PATCH)]))
    }

    fn results() -> Results {
        let rows = vec![
            Row::new("wake-up, minimum", 17_904.0, "ns").n(48),
            Row::new("noise loop", 98.75, "M per s"),
        ];
        Results::from([
            ("bench-x".into(), Ok(stored("bench-x", rows))),
            ("bench-torn".into(), Err("line 3: torn".into())),
        ])
    }

    const PAGE: &str = "# Page\n\n<!-- result:bench-x rows=\"*\" -->\nold\n<!-- /result -->\n\nThe minimum is \
        <!--r:bench-x/wake-up, minimum/value-->1<!--/r--> ns.\n";

    #[test]
    fn tables_and_numbers_are_written_and_then_nothing_differs() {
        let new = expand("docs/a.md", PAGE, &results());
        assert_eq!(new.broken, []);
        assert_eq!(new.differs.iter().map(|one| one.line).collect::<Vec<_>>(), [4, 7]);
        assert!(new.text.contains("| wake-up, minimum | 17,904 ns | 48 |\n"), "{}", new.text);
        assert!(new.text.contains("Measured 2026-11-22 at cac34fc"), "{}", new.text);
        assert!(new.text.contains("(results/bench-x.json)"), "{}", new.text);
        assert!(new.text.contains("value-->17,904<!--/r--> ns."), "{}", new.text);
        let again = expand("docs/a.md", &new.text, &results());
        assert_eq!((again.text.as_str(), again.differs.len()), (new.text.as_str(), 0));
    }

    #[test]
    fn a_planted_wrong_number_is_found_in_a_table_and_in_a_sentence() {
        let good = expand("docs/a.md", PAGE, &results()).text;
        for (from, to) in
            [("| 17,904 ns", "| 17,905 ns"), ("-->17,904<", "-->17,940<"), ("2026-11-22 at", "2026-11-23 at")]
        {
            let line = good.lines().position(|line| line.contains(from)).unwrap() + 1;
            let found = expand("docs/a.md", &good.replacen(from, to, 1), &results()).differs;
            assert_eq!(found.iter().map(|one| one.line).collect::<Vec<_>>(), [line], "{from}");
            assert!(found[0].expected.contains("cargo xtask docs"), "{found:?}");
        }
    }

    #[test]
    fn what_cannot_be_filled_is_an_error_with_its_line_and_changes_nothing() {
        for (from, to, line, what) in [
            ("result:bench-x", "result:bench-y", 3, "no result `bench-y`"),
            ("result:bench-x", "result:bench-torn", 3, "line 3: torn"),
            ("rows=\"*\"", "rows=\"nothing\"", 3, "no row `nothing`"),
            ("rows=\"*\"", "rows=\"*", 3, "attributes"),
            ("rows=\"*\"", "lines=\"*\"", 3, "`lines`"),
            ("rows=\"*\"", "rows=\"*\" columns=\"what,colour\"", 3, "column `colour`"),
            ("<!-- /result -->\n", "", 3, "does not end"),
            ("r:bench-x/wake-up, minimum", "r:bench-x/wake-up, maximum", 7, "no row `wake-up, maximum`"),
            ("minimum/value", "minimum/colour", 7, "field `colour`"),
            ("minimum/value", "minimum/peer.value", 7, "no peer.value"),
            ("r:bench-x/wake-up, minimum/value", "r:bench-x", 7, "NAME/ROW/FIELD"),
            ("<!--/r-->", "", 7, "does not end"),
        ] {
            let page = PAGE.replacen(from, to, 1);
            let new = expand("docs/a.md", &page, &results());
            assert_eq!(new.broken.len(), 1, "{to}: {:?}", new.broken);
            let line = line - usize::from(to.is_empty() && line > 5 && from.ends_with('\n'));
            assert_eq!(new.broken[0].line, line, "{to}");
            assert!(new.broken[0].what.contains(what), "{to}: {:?}", new.broken);
        }
    }

    #[test]
    fn code_is_left_alone_and_links_follow_the_page() {
        let page = "```\n<!-- result:gone -->\n```\nWrite `<!--r:gone/a/value-->1<!--/r-->` there.\n";
        let new = expand("README.md", page, &results());
        assert_eq!((new.text.as_str(), new.broken.len()), (page, 0));
        let link = |path| expand(path, PAGE, &results()).text;
        assert!(link("README.md").contains("(docs/results/bench-x.json)"));
        assert!(link("crates/a/README.md").contains("(../../docs/results/bench-x.json)"));
    }

    #[test]
    fn a_patch_is_shown_as_it_is() {
        let page = "# A\n\n<!-- exercise:x -->\nold\n<!-- /exercise -->\nEnd.\n";
        let new = expand("a.md", page, &results());
        assert_eq!(new.text, page.replace("old\n", &format!("```diff\n{PATCH}```\n")));
        assert_eq!((new.broken.len(), new.differs.len()), (0, 1));
        assert_eq!(expand("a.md", &new.text, &results()).differs, []);
        for (from, to, what) in [
            ("exercise:x", "exercise:y", "no exercise `y`"),
            ("<!-- /exercise -->", "<!-- /result -->", "does not end"),
        ] {
            let new = expand("a.md", &page.replace(from, to), &results());
            assert!(new.broken[0].line == 3 && new.broken[0].what.contains(what), "{:?}", new.broken);
        }
    }

    #[test]
    fn a_number_at_the_beginning_of_a_line_would_hide_the_line() {
        let page = "<!--r:bench-x/noise loop/value-->98.8<!--/r--> is a **rate**.\n";
        let new = expand("docs/a.md", page, &results());
        assert!(new.broken[0].what.contains("begins the line"), "{:?}", new.broken);
    }
}
