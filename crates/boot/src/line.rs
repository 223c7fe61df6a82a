//! A kernel command line as words that can be exchanged while every other byte stays.
//!
//! Source: Linux `lib/cmdline.c` (`next_arg`), `kernel/params.c` (`parse_args`).

use machine::same_name;

/// A parameter of the line: where it stands, its name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    start: usize,
    /// As it stands, quotes included.
    pub(crate) text: &'a str,
    pub(crate) name: &'a str,
    /// `None` for a word without `=`.
    pub(crate) value: Option<&'a str>,
}

/// The kernel's parameters in order. What follows `--` is for init.
pub(crate) fn words(line: &str) -> Vec<Word<'_>> {
    all_words(line).take_while(|word| word.text != "--").collect()
}

fn all_words(line: &str) -> impl Iterator<Item = Word<'_>> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + line[rest..].find(|c: char| !c.is_whitespace())?;
        let mut quoted = false;
        let end = line[start..].find(|c: char| {
            quoted ^= c == '"';
            c.is_whitespace() && !quoted
        });
        rest = end.map_or(line.len(), |length| start + length);
        let text = &line[start..rest];
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        Some(Word {
            start,
            text,
            name: name.trim_matches('"'),
            value: value.map(|value| value.trim_matches('"')),
        })
    })
}

/// The name as the kernel compares it: `-` and `_` are the same.
pub(crate) fn plain_name(name: &str) -> String {
    name.replace('-', "_")
}

/// The words of one parameter, as they stand.
pub(crate) fn words_of<'a>(line: &'a str, name: &str) -> Vec<&'a str> {
    words(line).into_iter().filter(|word| same_name(word.name, name)).map(|word| word.text).collect()
}

/// Puts `new` in the place of every word of the parameter: where the first one stood, else at the
/// end of the kernel's part. Without a change the line stays byte for byte.
pub(crate) fn exchange(line: &str, name: &str, new: &[String]) -> String {
    let old: Vec<_> = words(line).into_iter().filter(|word| same_name(word.name, name)).collect();
    if old.iter().map(|word| word.text).eq(new.iter().map(String::as_str)) {
        return line.to_owned();
    }
    let Some(first) = old.first() else { return append(line, &new.join(" ")) };
    let mut text = line.to_owned();
    // From the end, so that what stands before keeps its place.
    for word in old.iter().skip(1).rev() {
        cut(&mut text, word);
    }
    if new.is_empty() {
        cut(&mut text, first);
    } else {
        text.replace_range(first.start..first.start + first.text.len(), &new.join(" "));
    }
    text
}

/// Takes a word out with the blank before it, or the one after it where it is the first.
fn cut(text: &mut String, word: &Word) {
    let (mut start, mut end) = (word.start, word.start + word.text.len());
    if text[..start].ends_with([' ', '\t']) {
        start -= 1;
    } else if text[end..].starts_with([' ', '\t']) {
        end += 1;
    }
    text.replace_range(start..end, "");
}

fn append(line: &str, new: &str) -> String {
    if new.is_empty() {
        return line.to_owned();
    }
    if let Some(dashes) = all_words(line).find(|word| word.text == "--") {
        return format!("{}{new} {}", &line[..dashes.start], &line[dashes.start..]);
    }
    let body = line.trim_end();
    let blank = if body.is_empty() { "" } else { " " };
    format!("{body}{blank}{new}{}", &line[body.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exchanged(line: &str, name: &str, new: &[&str]) -> String {
        exchange(line, name, &new.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_words_of_the_parameter_change() {
        for (line, name, new, expected) in [
            ("ro quiet", "isolcpus", vec!["isolcpus=2"], "ro quiet isolcpus=2"),
            ("ro quiet\n", "isolcpus", vec!["isolcpus=2"], "ro quiet isolcpus=2\n"),
            ("", "isolcpus", vec!["isolcpus=2"], "isolcpus=2"),
            ("a isolcpus=1 b  isolcpus=2 c", "isolcpus", vec!["isolcpus=3"], "a isolcpus=3 b  c"),
            ("isolcpus=1 b", "isolcpus", vec![], "b"),
            ("a isolcpus=1", "isolcpus", vec![], "a"),
            ("nohz-full=1 b", "nohz_full", vec!["nohz_full=2"], "nohz_full=2 b"),
            ("a -- isolcpus=1", "isolcpus", vec!["isolcpus=2"], "a isolcpus=2 -- isolcpus=1"),
            ("x=\"a isolcpus=1\" b", "isolcpus", vec!["isolcpus=2"], "x=\"a isolcpus=1\" b isolcpus=2"),
            ("isolcpus=\"1, 2\" b", "isolcpus", vec!["isolcpus=3"], "isolcpus=3 b"),
        ] {
            assert_eq!(exchanged(line, name, &new), expected, "{line}");
        }
    }

    proptest! {
        /// Words put into the place of nothing can be taken out again, and all else stays.
        #[test]
        fn exchange_and_back(line in "([a-z]{1,4}(=[0-9,]{1,4})?( |  )){0,6}[a-z]{1,3}") {
            let with = exchanged(&line, "isolcpus", &["isolcpus=2-5"]);
            prop_assert_eq!(words_of(&with, "isolcpus"), vec!["isolcpus=2-5"]);
            prop_assert_eq!(exchanged(&with, "isolcpus", &[]), line);
        }

        #[test]
        fn no_line_panics(line in ".{0,60}", name in "[a-z\"=-]{0,3}") {
            let _ = exchanged(&line, &name, &["a=b"]);
            let _ = exchanged(&line, &name, &[]);
        }
    }
}
