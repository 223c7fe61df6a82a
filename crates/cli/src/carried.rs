//! Files of `experiments/` that this program carries: lists of name and text, each in the order of
//! the papers.

/// The text of the file of this name.
pub(crate) fn text(files: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Asserts that a list holds exactly the files of the directory whose text is of its kind.
#[cfg(test)]
pub(crate) fn assert_whole(files: &[(&str, &str)], is_one: impl Fn(&str) -> bool) {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        // Statements have a directory of their own.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if is_one(&text) {
            found.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), text));
        }
    }
    found.sort();
    let mut carried: Vec<_> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    carried.sort();
    assert_eq!(found, carried);
}
