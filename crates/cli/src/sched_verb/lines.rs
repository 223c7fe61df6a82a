//! Files of lines: each read, answered and told by itself.

use anyhow::Context;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Calls `each` with the number, from 1, and the text of every line that is not blank.
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
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let read = input.read_line(&mut line);
        if read.with_context(|| format!("cannot read {}, line {number}", path.display()))? == 0 {
            break;
        }
        if !line.trim().is_empty() {
            each(number, &line)?;
        }
    }
    Ok(())
}
