//! Breaks a text into lines between its words.

/// Breaks at spaces; a word longer than a line is cut.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
        } else if used > 0 {
            append(&mut lines, &[' ']);
        }
        while word.len() > width {
            let rest = word.split_off(width);
            append(&mut lines, &word);
            lines.push(String::new());
            word = rest;
        }
        append(&mut lines, &word);
    }
    lines
}

fn append(lines: &mut [String], letters: &[char]) {
    if let Some(line) = lines.last_mut() {
        line.extend(letters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrapping_keeps_every_letter_and_the_width(text in "[a-z ]{0,200}", width in 8usize..60) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
