//! Files of lines: each read, answered and told by itself.

use anyhow::Context;
use model::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Calls `each` with the number, from 1, and the text of every line that is not blank; a file without any is an error.
pub(super) fn for_each(
    path: &Path,
    mut each: impl FnMut(usize, &str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Box::new(BufReader::new(file))
    };
    let (mut line, mut told) = (String::new(), false);
    for number in 1.. {
        line.clear();
        let read = input.read_line(&mut line);
        if read.with_context(|| format!("cannot read {}, line {number}", path.display()))? == 0 {
            break;
        }
        if !line.trim().is_empty() {
            told = true;
            each(number, &line)?;
        }
    }
    if told { Ok(()) } else { Err(nothing(path)) }
}

/// That a file has no line.
pub(super) fn nothing(path: &Path) -> anyhow::Error {
    Error::invalid(path.display(), "nothing", "a JSON object a line").into()
}
