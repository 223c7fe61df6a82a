//! One flag of a file that lists many: read as `NAME` or `NO_NAME` among the words, written as that
//! one word.
//!
//! Source: Linux `kernel/sched/debug.c` (sched_feat_show, sched_feat_write).

use machine::flag;
use std::fs;
use std::io::ErrorKind;
use sys::Error;

/// `FILE#NAME`.
fn split(target: &str) -> Result<(&str, &str), Error> {
    target.rsplit_once('#').ok_or_else(|| Error::failed("flag", format!("no # in {target}")))
}

pub(super) fn read(target: &str) -> Result<Option<String>, Error> {
    let (file, name) = split(target)?;
    match fs::read_to_string(file) {
        Ok(text) => Ok(flag(&text, name).map(|on| if on { "on" } else { "off" }.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::os("read", file, error)),
    }
}

pub(super) fn write(target: &str, value: &str) -> Result<(), Error> {
    let (file, name) = split(target)?;
    let word = if value == "on" { name.to_owned() } else { format!("NO_{name}") };
    super::file::write(file, &word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_a_word_among_others() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("features");
        fs::write(&file, "START_DEBIT NO_HRTICK HRTICK_DL\n").unwrap();
        let target = |name: &str| format!("{}#{name}", file.display());
        let state = |name: &str| read(&target(name)).unwrap();
        assert_eq!(state("HRTICK").as_deref(), Some("off"));
        assert_eq!(state("HRTICK_DL").as_deref(), Some("on"));
        assert_eq!(state("DEBIT"), None, "no part of a word");
        write(&target("HRTICK"), "on").unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "HRTICK",
            "the kernel takes one word and keeps the rest"
        );
        write(&target("HRTICK"), "off").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "NO_HRTICK");
        assert_eq!(read("/nowhere#X").unwrap(), None);
        assert!(read("nowhere").is_err());
    }
}
