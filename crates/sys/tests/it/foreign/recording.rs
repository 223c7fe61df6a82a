//! A stored recording: comments that say of what it is, then a call a line; where a program has
//! several threads, each under a line of its own.

use std::path::Path;

/// How the line above a thread's calls begins.
pub(crate) const THREAD: &str = "thread";

#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) lines: Vec<String>,
}

impl Recording {
    /// The recording `fixtures/foreign/NAME.calls`.
    pub(crate) fn stored(name: &str) -> std::io::Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign");
        let text = std::fs::read_to_string(folder.join(format!("{name}.calls")))?;
        let calls = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(Self { lines: calls.map(str::to_owned).collect() })
    }
}

/// The calls of each thread, in the order of their first ones.
pub(crate) fn by_thread(lines: &[String]) -> Vec<Vec<String>> {
    let is_head = |line: &String| line.split(' ').next() == Some(THREAD);
    let parts = lines.split(is_head).skip(1);
    parts.map(<[String]>::to_vec).collect()
}

/// The first call in which two recordings differ, argument by argument; `None` where none does.
pub(crate) fn difference(library: &[String], ours: &[String]) -> Option<String> {
    let length = library.len().max(ours.len());
    (0..length).find_map(|at| {
        let what = match (library.get(at), ours.get(at)) {
            (Some(theirs), Some(ours)) if theirs == ours => return None,
            (Some(theirs), Some(ours)) => arguments(theirs, ours),
            (Some(theirs), None) => format!("the library goes on with {theirs:?}"),
            (None, ours) => format!("the library has ended, ours: {ours:?}"),
        };
        Some(format!("call {}: {what}", at + 1))
    })
}

fn arguments(theirs: &str, ours: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (theirs.split(' ').collect(), ours.split(' ').collect());
    if a[0] != b[0] || a.len() != b.len() {
        return format!("the library {theirs:?}, ours {ours:?}");
    }
    let differ = a.iter().zip(&b).filter(|(theirs, ours)| theirs != ours);
    let words: Vec<_> = differ.map(|(theirs, ours)| format!("{theirs} (ours {ours})")).collect();
    format!("{}: {}", a[0], words.join(", "))
}
