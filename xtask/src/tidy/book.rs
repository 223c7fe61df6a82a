//! Rule: the book has every page of docs/ once, so that each can be found by its kind.

use super::Violation;
use crate::repo::{Repo, has_extension};

const CONTENTS: &str = "docs/SUMMARY.md";

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let Some(Some(contents)) = repo.files.get(CONTENTS) else { return Vec::new() };
    let is_page = |path: &&str| {
        let name = path.strip_prefix("docs/").unwrap_or("/");
        has_extension(path, "md") && !name.contains('/') && **path != *CONTENTS
    };
    let pages = repo.files.keys().map(String::as_str).filter(is_page);
    let times = |page: &str| {
        let name = page.strip_prefix("docs/").unwrap_or_default();
        contents.matches(&format!("]({name})")).count()
    };
    let wrong = pages.map(|page| (page, times(page))).filter(|(_, times)| *times != 1);
    let says = |(page, times): (&str, usize)| {
        Violation::file(
            page,
            format!("{times} times in {CONTENTS}"),
            "it once, under the kind of page that it is",
        )
    };
    wrong.map(says).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_missing_or_there_twice_is_reported() {
        let contents = "- [A](a.md)\n- [B](b.md)\n- [B again](b.md)\n";
        let repo = Repo::of(&[
            (CONTENTS, contents),
            ("docs/a.md", ""),
            ("docs/b.md", ""),
            ("docs/c.md", ""),
            ("docs/results/x.md", ""),
        ]);
        let found: Vec<String> =
            check(&repo).into_iter().map(|one| format!("{} {}", one.path, one.what)).collect();
        assert_eq!(found, ["docs/b.md 2 times in docs/SUMMARY.md", "docs/c.md 0 times in docs/SUMMARY.md"]);
    }
}
