//! The kernel command line as the kernel parses it (Linux `lib/cmdline.c`, `kernel/params.c`):
//! parameters end at blanks outside double quotes, `-` and `_` in names are the same, and what
//! follows `--` is for init.

/// The parameters in order: name and value, the value empty for one without.
pub fn parameters(cmdline: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut quoted = false;
    let words = cmdline.split(move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    let words = words.filter(|word| !word.is_empty()).take_while(|word| *word != "--");
    words.map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        (name.trim_matches('"'), value.trim_matches('"'))
    })
}

/// Whether two names are one to the kernel.
pub fn same_name(one: &str, other: &str) -> bool {
    let plain = |c: u8| if c == b'-' { b'_' } else { c };
    one.bytes().map(plain).eq(other.bytes().map(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_dashes_and_the_end_are_the_kernels() {
        let line = "quiet skew-tick=1 dyndbg=\"file a +p; file nohz_full=2\" \"x=a b\" -- isolcpus=3";
        let found: Vec<_> = parameters(line).collect();
        let wanted =
            [("quiet", ""), ("skew-tick", "1"), ("dyndbg", "file a +p; file nohz_full=2"), ("x", "a b")];
        assert_eq!(found, wanted);
        assert!(same_name("skew-tick", "skew_tick") && !same_name("skew", "skew_tick"));
    }
}
