//! Rule: a link in the docs leads somewhere: to a file or folder of the repository, and with
//! `#heading` to a heading of that page (GitHub's anchors). Links to other sites are not followed:
//! there may be no network.

use super::Violation;
use crate::repo::{Repo, has_extension};

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for (page, text) in repo.texts(|path| has_extension(path, "md") && !path.starts_with("fixtures/")) {
        for (line, target) in links(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').map_or((target, None), |(p, a)| (p, Some(a)));
            let there = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
            let Some(there) = there.filter(|path| exists(repo, path)) else {
                found.push(Violation::at(
                    page,
                    line,
                    format!("link to `{target}`"),
                    "a file of the repository",
                ));
                continue;
            };
            let headed = |anchor: &str| match repo.files.get(&there) {
                Some(Some(text)) => anchors(text).iter().any(|a| a == anchor),
                _ => false,
            };
            if anchor.is_some_and(|a| !headed(a)) {
                found.push(Violation::at(
                    page,
                    line,
                    format!("link to `{target}`"),
                    format!("a heading of {there}"),
                ));
            }
        }
    }
    found
}

/// `(line, target)` of each inline link outside code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        // Odd pieces between backquotes are code.
        for piece in line.split('`').step_by(2) {
            for (start, mark) in piece.match_indices("](") {
                let rest = &piece[start + mark.len()..];
                let target = rest.split([')', ' ']).next().unwrap_or_default();
                found.push((at + 1, target.trim_matches(['<', '>'])));
            }
        }
    }
    found
}

/// Numbered lines outside fenced code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The anchors GitHub gives the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let slug = |title: &str| -> String {
        let kept = title.trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| slug(line.trim_start_matches('#')))
        .collect()
}

/// `target` as seen from `page`; `None` when it leaves the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn exists(repo: &Repo, path: &str) -> bool {
    let folder = format!("{path}/");
    repo.files.contains_key(path) || repo.files.keys().any(|p| p.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_page(text: &str) -> Vec<Violation> {
        check(&Repo::of(&[
            ("docs/a.md", text),
            ("docs/b.md", "# Title\n## The way of `one` sample\n"),
            ("README.md", ""),
        ]))
    }

    #[test]
    fn links_that_lead_somewhere_are_free() {
        let text = "[b](b.md), [up](../README.md) [folder](../docs/) [web](https://kernel.org) `[no](code.md)`\n\
                    [heading](b.md#the-way-of-one-sample)\n```\n[fenced](gone.md)\n```\n";
        assert_eq!(check_page(text), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_reported_with_their_line() {
        for bad in ["gone.md", "../../outside.md", "b.md#no-such-heading", "#nothing-here"] {
            let found = check_page(&format!("# A\n\n[x]({bad})\n"));
            assert_eq!(found.len(), 1, "{bad}");
            assert_eq!(found[0].line, Some(3), "{bad}");
        }
    }
}
