//! Sentences in lines that the terminal shows whole.

use crate::terminal;

/// A line in lines of at most 100 columns, fewer where the terminal has fewer; the later ones
/// behind `indent`.
pub(crate) fn folded(line: &str, indent: &str) -> String {
    folded_at(usize::from(terminal::to_read()), line, indent)
}

fn folded_at(columns: usize, line: &str, indent: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    let start = line.len() - line.trim_start().len();
    text.push_str(&line[..start]);
    width += start;
    for (at, word) in line.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && width + 1 + length > columns {
            text.push('\n');
            text.push_str(indent);
            width = indent.len();
        } else if at > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_behind_their_indent() {
        let words = vec!["word"; 40].join(" ");
        let text = folded_at(100, &format!("  {words}"), "    ");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(text.split_whitespace().count(), 40);
        assert!(folded_at(80, &words, "").lines().all(|line| line.len() <= 80));
    }
}
