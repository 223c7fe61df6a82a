//! Rule: docs/run-directory.md names every field of every file of a run, so that the page cannot
//! fall behind the code.

use super::Violation;
use crate::repo::Repo;

const PAGE: &str = "docs/run-directory.md";

/// The sources whose public fields are what the files hold.
const SHAPES: &[&str] = &[
    "crates/model/src/run.rs",
    "crates/model/src/probe.rs",
    "crates/model/src/usage.rs",
    "crates/model/src/machine.rs",
    "crates/model/src/stressor.rs",
    "crates/model/src/watch.rs",
    "crates/model/src/finding.rs",
    "crates/model/src/growth.rs",
    "crates/model/src/context.rs",
    "crates/graph/src/results/accounts.rs",
    "crates/graph/src/results/honest.rs",
    "crates/graph/src/results/tracker.rs",
    "crates/graph/src/run/usage.rs",
    "crates/attribution/src/attribute/watch/shape.rs",
    "crates/analysis/src/shape.rs",
    "crates/attribution/src/attribute/path_section.rs",
    "crates/analysis/src/tail/mod.rs",
    "crates/analysis/src/noise_causes/mod.rs",
    "crates/report/src/guarantee.rs",
    "crates/report/src/advice.rs",
    "crates/report/src/advice/next.rs",
    "crates/report/src/outcome.rs",
];

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let page = repo.files.get(PAGE).cloned().flatten().unwrap_or_default();
    let mut found = Vec::new();
    for (path, text) in repo.texts(|path| SHAPES.contains(&path)) {
        for (at, field) in fields(text) {
            if !page.contains(&format!("`{field}`")) {
                found.push(Violation::at(
                    path,
                    at,
                    format!("field `{field}`"),
                    format!("its name in {PAGE}"),
                ));
            }
        }
    }
    found
}

/// `(line, name)` of each public field of a struct that is serialised. What is flattened has no key
/// of its own.
fn fields(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut derived = false;
    let (mut serialised, mut flattened) = (false, false);
    text.lines().enumerate().filter_map(move |(at, line)| {
        if line.starts_with("#[derive(") {
            derived = line.contains("Serialize");
        } else if line.starts_with("pub struct ") || line.starts_with("struct ") {
            serialised = std::mem::take(&mut derived);
        }
        flattened |= line == "    #[serde(flatten)]";
        let (name, _) = line.strip_prefix("    pub ")?.split_once(':')?;
        let keyed = !std::mem::take(&mut flattened);
        let plain = keyed && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        (serialised && plain).then_some((at + 1, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_list_is_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let gone: Vec<_> = SHAPES.iter().filter(|path| !root.join(path).exists()).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }

    #[test]
    fn a_field_that_the_page_does_not_name_is_reported() {
        let shape = "#[derive(Debug, Serialize)]\npub struct A {\n    pub left: u64,\n    pub fresh: u64,\n}\n\
                     impl A {\n    pub fn f(&self) {}\n}\n#[derive(Debug)]\npub struct B {\n    pub inner: u64,\n}\n";
        let repo = Repo::of(&[(PAGE, "holds `left` and fresh"), (SHAPES[0], shape)]);
        let found = check(&repo);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].what.as_str()), (Some(4), "field `fresh`"));
    }
}
