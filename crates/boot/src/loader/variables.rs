//! GRUB's two variables for the kernel command line as the shell makes them of several files, one
//! read after the other: a later file sets a variable anew, or adds to it
//! (`X="$X crashkernel=256M"`, as Debian's kdump-tools does).
//!
//! Source: GRUB's manual, "Simple configuration handling"; Debian's `grub-mkconfig` (which files).

use crate::line::words_of;

/// For every entry, and for entries that are no rescue.
const NAMES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// A file: its path and its text.
pub(crate) type Text = (String, String);

/// Why the variables are not known, or a file of our own would not be the last to change them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// The two values after all files.
pub(crate) fn read(files: &[Text]) -> Result<[String; 2], Unfit> {
    let mut values = [String::new(), String::new()];
    for (path, text) in files {
        for line in text.lines() {
            let Some(assigned) = assignment(line) else { continue };
            let Assigned { variable, before, after, adds } =
                assigned.map_err(|reason| Unfit { path: path.clone(), reason })?;
            let middle = if adds { values[variable].as_str() } else { "" };
            values[variable] = format!("{before}{middle}{after}");
        }
    }
    Ok(values)
}

/// Whether files that are read after ours would undo it, or add words of the same names.
pub(crate) fn overruled(later: &[Text], names: &[&str]) -> Result<(), Unfit> {
    for (path, text) in later {
        for assigned in text.lines().filter_map(assignment).flatten() {
            let name = NAMES[assigned.variable];
            let own = [assigned.before, assigned.after].join(" ");
            let word = names.iter().flat_map(|name| words_of(&own, name)).next();
            let reason = match word {
                Some(word) => format!("it is read after stillcore's file and adds {word}"),
                None if !assigned.adds => format!("it is read after stillcore's file and sets {name} anew"),
                None => continue,
            };
            return Err(Unfit { path: path.clone(), reason });
        }
    }
    Ok(())
}

struct Assigned<'a> {
    variable: usize,
    before: &'a str,
    after: &'a str,
    /// Whether the earlier value stands between the two.
    adds: bool,
}

/// What a line assigns to one of the variables; an error where only a shell could say.
fn assignment(line: &str) -> Option<Result<Assigned<'_>, String>> {
    let line = line.trim();
    let (variable, value) = NAMES.iter().enumerate().find_map(|(at, name)| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['=', '+']))?;
        Some((at, rest))
    })?;
    let bad = || Err(format!("its line {line:?} is more than a plain assignment"));
    let Some(value) = value.strip_prefix('=') else { return Some(bad()) };
    let inner = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)),
        _ => Some(value).filter(|value| !value.contains(|c: char| c.is_whitespace() || c == ';')),
    };
    let Some(inner) = inner else { return Some(bad()) };
    if value.starts_with('\'') {
        return Some(Ok(Assigned { variable, before: inner, after: "", adds: false }));
    }
    let own = [format!("${{{}}}", NAMES[variable]), format!("${}", NAMES[variable])];
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let split = own.iter().find_map(|own| inner.split_once(own.as_str()).filter(|(_, rest)| ends(rest)));
    let (before, after, adds) = match split {
        Some((before, after)) => (before, after, true),
        None => (inner, "", false),
    };
    if [before, after].iter().any(|part| part.contains(['$', '`'])) {
        return Some(bad());
    }
    Some(Ok(Assigned { variable, before, after, adds }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn files(all: &[(&str, &str)]) -> Vec<Text> {
        all.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn later_files_set_anew_or_add() {
        let debian = "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n";
        let kdump = "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=512M-:192M\"\n";
        let cloud = "GRUB_CMDLINE_LINUX=\"console=ttyS0\"\nexport GRUB_X=1\n";
        let braces = "  GRUB_CMDLINE_LINUX='a $x'\nGRUB_CMDLINE_LINUX=\"b ${GRUB_CMDLINE_LINUX} c\"\n";
        let read = |all: &[&str]| {
            let all: Vec<_> = all.iter().map(|text| ("f", *text)).collect();
            read(&files(&all)).map(|values| values.join("|"))
        };
        assert_eq!(read(&[debian, kdump]).unwrap(), "|quiet crashkernel=512M-:192M");
        assert_eq!(read(&[cloud, debian]).unwrap(), "|quiet");
        assert_eq!(read(&[debian, cloud]).unwrap(), "console=ttyS0|quiet");
        assert_eq!(read(&[braces]).unwrap(), "b a $x c|");
        assert_eq!(read(&["GRUB_CMDLINE_LINUX=quiet"]).unwrap(), "quiet|");
        for shell in [
            "GRUB_CMDLINE_LINUX=\"$OTHER\"",
            "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX_DEFAULT x\"",
            "GRUB_CMDLINE_LINUX+=\" x\"",
            "GRUB_CMDLINE_LINUX=\"a\" # b",
            "GRUB_CMDLINE_LINUX=`cat x`",
            "GRUB_CMDLINE_LINUX=\"a",
            "GRUB_CMDLINE_LINUX=a; x",
        ] {
            let error = read(&[shell]).unwrap_err();
            assert!(error.reason.contains("more than a plain assignment"), "{shell}");
        }
    }

    #[test]
    fn files_that_are_read_after_ours_may_add_other_words_alone() {
        let after =
            |text: &str| overruled(&files(&[("zz.cfg", text)]), &["isolcpus"]).map_err(|unfit| unfit.reason);
        assert_eq!(after("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=1\""), Ok(()));
        assert_eq!(after("GRUB_TIMEOUT=1"), Ok(()));
        assert!(after("GRUB_CMDLINE_LINUX=\"quiet\"").unwrap_err().contains("sets GRUB_CMDLINE_LINUX anew"));
        let adds = after("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=5\"").unwrap_err();
        assert!(adds.contains("adds isolcpus=5"), "{adds}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(GRUB_CMDLINE_LINUX(_DEFAULT)?=|[\"'$ {}a=\\n`é]){0,12}") {
            let all = files(&[("f", &text)]);
            let _ = read(&all);
            let _ = overruled(&all, &["a"]);
        }
    }
}
