//! Rule: everything between markers of a page is as its file has it, every result is valid and has
//! its job, and `docs/results` has nothing else but the sample report.

use super::Violation;
use crate::docs::{expand, is_page, stale_pictures};
use crate::jobs::{self, Jobs};
use crate::repo::{Repo, has_extension};
use crate::results::{FOLDER, Results, name_of, parse};

/// The one page that stays, so that a reader sees a report without running anything.
const SAMPLE: &str = "docs/results/sample-report.html";

/// Results of a session of which no job can be made; the file says what was typed.
const BY_HAND: &str = "hand-";

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    let results = stored(repo, &mut found);
    for (path, text) in repo.texts(is_page) {
        let new = expand(path, text, &results, repo);
        for one in new.broken.into_iter().chain(new.differs) {
            found.push(Violation::at(path, one.line, one.what, one.expected));
        }
    }
    // Small trees of tests have no README with pictures.
    let shows = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("docs/pictures/"));
    if repo.files.get("README.md").is_some_and(shows) {
        let stale = stale_pictures(repo, &results).into_iter();
        found.extend(stale.map(|(path, expected)| Violation::file(&path, "a stale picture", expected)));
    }
    found
}

/// All results; notes those that are invalid or have no job, and files that are no results.
fn stored(repo: &Repo, found: &mut Vec<Violation>) -> Results {
    let mut results = Results::new();
    let jobs = match repo.files.get(jobs::FILE) {
        Some(Some(text)) => match Jobs::parse(text) {
            Ok(jobs) => jobs.jobs.into_iter().map(|job| job.name).collect(),
            Err(why) => {
                found.push(Violation::file(
                    jobs::FILE,
                    format!("{why:#}").replace('\n', " "),
                    "a list of jobs",
                ));
                Vec::new()
            }
        },
        _ => Vec::new(),
    };
    let folder = format!("{FOLDER}/");
    for (path, text) in repo.files.iter().filter(|(path, _)| path.starts_with(&folder)) {
        let Some(name) = name_of(path) else {
            if path != SAMPLE && !has_extension(path, "json") {
                found.push(Violation::file(
                    path,
                    "no result",
                    "NAME.json, one a name; pages and logs are made anew",
                ));
            }
            continue;
        };
        let read = parse(name, text.as_deref().unwrap_or_default());
        if let Err(why) = &read {
            found.push(Violation::file(path, why.clone(), "a result of `stillcore.result/1`"));
        }
        if !name.starts_with(BY_HAND) && !jobs.iter().any(|job| job == name) {
            found.push(Violation::file(
                path,
                format!("no job `{name}`"),
                format!("a [[job]] in {}", jobs::FILE),
            ));
        }
        results.insert(name.to_owned(), read);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::stored;
    use result::Row;

    const JOBS: &str = "[[job]]\nname = \"bench-x\"\nkind = \"bench\"\nabout = \"x\"\nminutes = 1\nprogram = true\nrun = [[\"true\"]]\n";

    fn check_with(page: &str, more: &[(&str, &str)]) -> Vec<String> {
        let json = stored("bench-x", vec![Row::new("rate", 16.25, "times")]).write().unwrap();
        let mut files = vec![(jobs::FILE, JOBS), ("docs/results/bench-x.json", &json), ("docs/a.md", page)];
        files.extend(more);
        check(&Repo::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_true_page_passes_and_a_planted_wrong_number_fails_with_page_and_line() {
        let page = "# A\n\nIt is <!--r:bench-x/rate/value:1-->16.2<!--/r--> times.\n";
        assert_eq!(check_with(page, &[]), Vec::<String>::new());
        let found = check_with(&page.replace("16.2<", "15.1<"), &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("docs/a.md:3: `15.1`; expected `16.2`"), "{found:?}");
        let found = check_with(&page.replace("bench-x", "bench-gone"), &[]);
        assert!(found[0].starts_with("docs/a.md:3: no result `bench-gone`"), "{found:?}");
    }

    #[test]
    fn what_is_no_result_or_has_no_job_is_reported() {
        let other = stored("bench-old", Vec::new()).write().unwrap();
        for (path, text, wanted) in [
            ("docs/results/bench-old.json", other.as_str(), "no job `bench-old`"),
            ("docs/results/bench-2.json", "{}", "missing field"),
            ("docs/results/bench-2026.txt", "log", "no result"),
            ("docs/results/full/a.html", "page", "no result"),
        ] {
            let found = check_with("# A\n", &[(path, text)]);
            assert!(found.iter().any(|line| line.contains(wanted)), "{path}: {found:?}");
        }
        assert_eq!(
            check_with("# A\n", &[(SAMPLE, "page"), ("docs/results/make-test.json", "{}")]),
            Vec::<String>::new()
        );
    }
}
