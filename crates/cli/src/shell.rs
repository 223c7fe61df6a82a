//! Words of commands as a shell takes them.

/// A word as it is where a shell changes nothing in it, else in quotes (POSIX.1-2024, XCU 2.2.2).
pub(crate) fn in_shell(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+%@".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_a_shell_as_they_are() {
        let words = ["run-1", "a b", "it's", ""].map(in_shell);
        assert_eq!(words, ["run-1", "'a b'", r"'it'\''s'", "''"]);
    }
}
