//! The files in which boot loaders keep command lines: each form as lines that can be exchanged
//! while every other byte stays.
//!
//! Sources: the Boot Loader Specification (type 1 entries); Syslinux `doc/extlinux.txt` and U-Boot
//! `doc/README.pxe` (`append`); GRUB's manual, "Simple configuration"; the Raspberry Pi
//! documentation, "Kernel command line" (`cmdline.txt`: one line); kernel-install(8)
//! (`/etc/kernel/cmdline`); Armbian's documentation, "U-Boot and boot environment"
//! (`armbianEnv.txt`), and U-Boot's `env import -t` (a line a variable, the last one counts);
//! Debian's raspi-firmware (`raspi-extra-cmdline`).

/// How a file keeps command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The whole file is one line.
    Whole,
    /// As `Whole`, and blank space may be line ends as well.
    Blanks,
    /// As `Whole`, but the end of a line of which the loader's generator has the rest: it may be
    /// empty or absent.
    End,
    /// The value of the variable `extraargs`, the end of the line.
    Extraargs,
    /// The values of `options` lines, which belong together.
    Options,
    /// Each `append` line is a line of its own.
    Append,
    /// Shell assignments of `GRUB_CMDLINE_LINUX` and `GRUB_CMDLINE_LINUX_DEFAULT`, which belong
    /// together.
    Grub,
}

/// GRUB's variables: the one for every entry, and the one for entries that are no rescue.
const GRUB: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// Where a command line, or a part of one, stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    start: usize,
    end: usize,
}

/// The command lines of a file.
pub(crate) fn lines(form: Form, text: &str) -> Vec<String> {
    let parts = parts(form, text).unwrap_or_default();
    let texts = parts.iter().map(|part| text[part.start..part.end].to_owned());
    if form == Form::Append {
        return texts.collect();
    }
    let whole = texts.collect::<Vec<_>>().join(" ");
    if parts.is_empty() { Vec::new() } else { vec![whole] }
}

/// The file with every command line changed. Where a line has several parts, new words of a
/// parameter go where one of its words stood, else into the first part. Error: the reason why the
/// file cannot be changed.
pub(crate) fn change(form: Form, text: &str, edit: &dyn Fn(&str) -> String) -> Result<String, String> {
    let parts = parts(form, text)?;
    if parts.is_empty() {
        return match (form, edit("")) {
            (_, new) if new.is_empty() => Ok(text.to_owned()),
            (Form::Options, new) => Ok(added(text, &format!("options {new}"))),
            (Form::Grub, new) => Ok(added(text, &format!("{}=\"{new}\"", GRUB[0]))),
            (Form::Extraargs, new) => Ok(added(text, &format!("{EXTRAARGS}={new}"))),
            (Form::End, new) => Ok(format!("{new}\n")),
            (Form::Append, _) => Err("it has no append line".to_owned()),
            (Form::Whole | Form::Blanks, _) => Err("it is empty".to_owned()),
        };
    }
    let mut changed = text.to_owned();
    if form == Form::Append || parts.len() == 1 {
        for part in parts.iter().rev() {
            changed.replace_range(part.start..part.end, &edit(&text[part.start..part.end]));
        }
        return Ok(changed);
    }
    for (part, new) in parts.iter().zip(spread(text, &parts, edit)).rev() {
        changed.replace_range(part.start..part.end, &new);
    }
    Ok(changed)
}

/// The parts after the change of the line that they make together.
fn spread(text: &str, parts: &[Part], edit: &dyn Fn(&str) -> String) -> Vec<String> {
    use super::super::edit::between;
    use super::super::line::{exchange, words_of};
    let mut now: Vec<String> = parts.iter().map(|part| text[part.start..part.end].to_owned()).collect();
    let whole = now.join(" ");
    for edit in between(&whole, &edit(&whole)) {
        let first = now.iter().position(|part| !words_of(part, &edit.name).is_empty()).unwrap_or(0);
        for (at, part) in now.iter_mut().enumerate() {
            *part = exchange(part, &edit.name, if at == first { &edit.new } else { &[] });
        }
    }
    now
}

fn added(text: &str, line: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}{line}\n")
}

fn parts(form: Form, text: &str) -> Result<Vec<Part>, String> {
    match form {
        Form::Whole | Form::End if text.trim_end().contains('\n') => {
            Err("it has more than one line, and the loader reads the first alone".to_owned())
        }
        Form::Whole | Form::Blanks | Form::End if text.trim().is_empty() => Ok(Vec::new()),
        Form::Whole | Form::Blanks | Form::End => Ok(vec![Part { start: 0, end: text.trim_end().len() }]),
        Form::Options => {
            let parts = keyed(text, "options", false);
            if parts.iter().any(|part| text[part.start..part.end].contains('$')) {
                return Err("its options are variables of the boot loader's environment".to_owned());
            }
            Ok(parts)
        }
        Form::Append => Ok(keyed(text, "append", true)),
        Form::Extraargs => Ok(extraargs(text).into_iter().collect()),
        Form::Grub => grub(text),
    }
}

/// The values of lines that begin with a keyword and a blank.
fn keyed(text: &str, key: &str, any_case: bool) -> Vec<Part> {
    let mut found = Vec::new();
    for (start, line) in starts(text) {
        let body = line.trim_start();
        let Some((word, value)) = body.split_once([' ', '\t']) else { continue };
        let is_key = if any_case { word.eq_ignore_ascii_case(key) } else { word == key };
        if is_key {
            let end = start + line.trim_end().len();
            let value = value.trim_start();
            found.push(Part { start: (start + line.len() - value.len()).min(end), end });
        }
    }
    found
}

/// Armbian's variable.
const EXTRAARGS: &str = "extraargs";

fn extraargs(text: &str) -> Option<Part> {
    let assigned = |line: &str| line.strip_prefix(EXTRAARGS).is_some_and(|rest| rest.starts_with('='));
    let (start, line) = starts(text).into_iter().rfind(|(_, line)| assigned(line))?;
    let start = start + EXTRAARGS.len() + 1;
    Some(Part { start, end: start.max(start - EXTRAARGS.len() - 1 + line.trim_end().len()) })
}

/// The last assignment of each variable, inside its quotes.
fn grub(text: &str) -> Result<Vec<Part>, String> {
    let mut found = Vec::new();
    for name in GRUB {
        let assigned = |line: &str| {
            line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(['=', '+']))
        };
        let Some((start, line)) = starts(text).into_iter().rfind(|(_, line)| assigned(line)) else {
            continue;
        };
        let line = line.trim_end();
        let bad = || format!("its line {line:?} is more than a plain assignment");
        let (_, value) = line.split_once('=').ok_or_else(bad)?;
        let quote = value.chars().next().filter(|c| *c == '"' || *c == '\'');
        let inner = match quote {
            Some(quote) => {
                value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)).ok_or_else(bad)?
            }
            None if value.contains(char::is_whitespace) => return Err(bad()),
            None => value,
        };
        // A bare value cannot take a blank, and what the shell expands is not known here.
        if quote.is_none() || inner.contains(['$', '`']) || line.contains("+=") {
            return Err(bad());
        }
        let end = start + line.len() - 1;
        found.push(Part { start: end - inner.len(), end });
    }
    found.sort_by_key(|part| part.start);
    Ok(found)
}

/// The lines with their places.
fn starts(text: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        at += line.len();
        (at - line.len(), line)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::line::exchange;
    use super::*;
    use proptest::prelude::*;

    fn with(form: Form, text: &str) -> Result<String, String> {
        change(form, text, &|line| exchange(line, "isolcpus", &["isolcpus=2".to_owned()]))
    }

    #[test]
    fn each_form_changes_its_lines_and_nothing_else() {
        for (form, text, expected) in [
            (Form::Whole, "root=/dev/a rw\n", "root=/dev/a rw isolcpus=2\n"),
            (Form::Whole, "isolcpus=1 rw", "isolcpus=2 rw"),
            (Form::Blanks, "root=/dev/a\nrw\n", "root=/dev/a\nrw isolcpus=2\n"),
            (
                Form::Options,
                "title x\noptions\troot=/dev/a\nlinux /x\n",
                "title x\noptions\troot=/dev/a isolcpus=2\nlinux /x\n",
            ),
            (Form::Options, "options a\noptions isolcpus=1 b\n", "options a\noptions isolcpus=2 b\n"),
            (Form::Options, "linux /x", "linux /x\noptions isolcpus=2\n"),
            (
                Form::Append,
                "LABEL a\n  APPEND x\nlabel b\n\tappend isolcpus=1 y\n",
                "LABEL a\n  APPEND x isolcpus=2\nlabel b\n\tappend isolcpus=2 y\n",
            ),
            (
                Form::Grub,
                "A=1\nGRUB_CMDLINE_LINUX=\"\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n",
                "A=1\nGRUB_CMDLINE_LINUX=\"isolcpus=2\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n",
            ),
            (
                Form::Grub,
                "GRUB_CMDLINE_LINUX='x'\nGRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=1\"\n",
                "GRUB_CMDLINE_LINUX='x'\nGRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=2\"\n",
            ),
            (Form::End, "", "isolcpus=2\n"),
            (Form::End, "a isolcpus=1\n", "a isolcpus=2\n"),
            (Form::Extraargs, "verbosity=1\nextraargs=\nx=1\n", "verbosity=1\nextraargs=isolcpus=2\nx=1\n"),
            (
                Form::Extraargs,
                "extraargs=a\nextraargs=isolcpus=1 b\n",
                "extraargs=a\nextraargs=isolcpus=2 b\n",
            ),
            (Form::Extraargs, "verbosity=1", "verbosity=1\nextraargs=isolcpus=2\n"),
            (Form::Grub, "# none\n", "# none\nGRUB_CMDLINE_LINUX=\"isolcpus=2\"\n"),
        ] {
            assert_eq!(with(form, text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_changed_safely_is_refused() {
        for (form, text) in [
            (Form::Whole, "a\nb\n"),
            (Form::End, "a\nb\n"),
            (Form::Options, "options $kernelopts quiet\n"),
            (Form::Append, "LABEL a\nKERNEL x\n"),
            (Form::Grub, "GRUB_CMDLINE_LINUX=\"$X\"\n"),
            (Form::Grub, "GRUB_CMDLINE_LINUX+=\" x\"\n"),
            (Form::Grub, "GRUB_CMDLINE_LINUX=x\n"),
            (Form::Grub, "GRUB_CMDLINE_LINUX=\"a # b\n"),
        ] {
            assert!(with(form, text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(options |append |extraargs=|GRUB_CMDLINE_LINUX=|[\"' a=\\n$é]){0,12}") {
            let forms = [
                Form::Whole,
                Form::Blanks,
                Form::End,
                Form::Extraargs,
                Form::Options,
                Form::Append,
                Form::Grub,
            ];
            for form in forms {
                let _ = with(form, &text);
                let _ = lines(form, &text);
            }
        }
    }
}
