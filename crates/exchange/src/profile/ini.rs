//! Files of TuneD: sections of options, as Python's `configparser` reads them with `=` alone
//! between a name and its value.

use model::Error;

/// Options in their order; a later value takes the place of an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Options(Vec<(String, String)>);

impl Options {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The sections of a file, in their order. `first`: a section that is there from the beginning, for
/// files of variables, whose names may also stand without a value. Errors: a line that is none of
/// these.
pub(super) fn read(place: &str, text: &str, first: Option<&str>) -> Result<Vec<(String, Options)>, Error> {
    let mut sections: Vec<(String, Options)> =
        first.iter().map(|name| ((*name).to_owned(), Options::default())).collect();
    // The option that a line further in goes on with, and how far in that one is.
    let mut open: Option<(String, usize)> = None;
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str, expected: &str| {
            Error::invalid(format!("{place}: line {}", index + 1), what.to_owned(), expected)
        };
        let line = without_comment(line);
        let content = line.trim();
        if content.is_empty() {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if let (Some((name, from)), Some((_, options))) = (&open, sections.last_mut())
            && indent > *from
        {
            let longer = format!("{}\n{content}", options.get(name).unwrap_or_default());
            options.set(name, longer);
            continue;
        }
        if let Some(name) = content.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default().trim();
            if !sections.iter().any(|(known, _)| known == name) {
                sections.push((name.to_owned(), Options::default()));
            }
            // Options go to the last one.
            let at = sections.iter().position(|(known, _)| known == name).unwrap_or_default();
            let section = sections.remove(at);
            sections.push(section);
            open = None;
            continue;
        }
        let Some((_, options)) = sections.last_mut() else {
            return Err(wrong(content, "a section, such as [main], before it"));
        };
        let (name, value) = match content.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None if first.is_some() => (content, ""),
            None => return Err(wrong(content, "NAME=VALUE")),
        };
        options.set(name, value.to_owned());
        open = Some((name.to_owned(), indent));
    }
    Ok(sections)
}

/// `#` begins a comment at the beginning and behind white space, `;` at the beginning alone.
fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with(';') {
        return "";
    }
    let begins = |(at, _): &(usize, &str)| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    match line.match_indices('#').find(begins) {
        Some((at, _)) => &line[..at],
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        Options(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn sections_comments_and_values_over_several_lines() {
        let text = "# x\n[main]\ninclude = a # b\n; c\n\n[sysfs]\n/sys/a#b=1\n[main]\nsummary=x=y\n  more\n";
        let found = read("p", text, None).unwrap();
        assert_eq!(found[0], ("sysfs".to_owned(), options(&[("/sys/a#b", "1")])));
        assert_eq!(found[1], ("main".to_owned(), options(&[("include", "a"), ("summary", "x=y\nmore")])));
    }

    #[test]
    fn files_of_variables_have_no_section_and_names_without_values() {
        let found = read("v", "a=1\nb\na=2\n", Some("v")).unwrap();
        assert_eq!(found, [("v".to_owned(), options(&[("a", "2"), ("b", "")]))]);
    }

    #[test]
    fn the_line_that_is_none_is_named() {
        let error = read("p", "[a]\nb=1\nc\n", None).unwrap_err().to_string();
        assert!(error.contains("p: line 3") && error.contains("NAME=VALUE"), "{error}");
        assert!(read("p", "a=1\n", None).unwrap_err().to_string().contains("section"));
    }
}
