//! Swap areas in use: `/proc/swaps` (proc(5)).

use super::Root;
use model::Error;

/// One area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapArea {
    /// Its file or device, as the kernel spells it: blanks in octal.
    pub path: String,
    /// `partition` or `file`.
    pub kind: String,
    /// Its size.
    pub size_kib: u64,
    /// Its priority; below zero the kernel's own.
    pub priority: i32,
}

/// The areas, in the kernel's order; `None` for a kernel without swap.
pub fn swaps(root: &Root) -> Result<Option<Vec<SwapArea>>, Error> {
    let area = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [path, kind, size, _used, priority] = words[..] else { return None };
        let (size_kib, priority) = (size.parse().ok()?, priority.parse().ok()?);
        Some(SwapArea { path: path.to_owned(), kind: kind.to_owned(), size_kib, priority })
    };
    let text = root.text("proc/swaps")?;
    Ok(text.map(|text| text.lines().skip(1).filter_map(area).collect()))
}
