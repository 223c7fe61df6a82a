//! The kernel command line of the next boot as text: each word that changes with the one that
//! stands there, then all to paste.

use model::boot::BootLine;
use std::fmt::Write;

/// Lines with two blanks before them; nothing where there is nothing to change or to say.
pub(crate) fn text(line: &BootLine) -> String {
    let mut page = String::new();
    if line.is_settled() && line.omitted.is_empty() {
        return page;
    }
    if let Some(reason) = &line.refused {
        let _ = writeln!(page, "  no kernel command line is proposed: {reason}");
    }
    if !line.changes.is_empty() {
        let _ = writeln!(page, "  kernel command line for Linux {}: {}", line.kernel, line.words());
    }
    for change in &line.changes {
        let _ = writeln!(page, "      {}  ({})", change.spelled(), change.why);
    }
    for omitted in &line.omitted {
        let _ = writeln!(page, "  not on it: {}: {}", omitted.parameter, omitted.reason);
    }
    for note in &line.notes {
        let _ = writeln!(page, "  note: {note}");
    }
    page
}
