//! The list of kernel fixes as a page to read: `docs/kernel-fixes.md`.

use super::{Fix, Fixes, Kind, Probe};
use std::fmt::Write;

const HEAD: &str = "# Interference that kernels have, lost and gained

What `stillcore audit` knows of the kernel itself (`catalogue/kernel-fixes.toml`): commits and series that removed an interference
with isolated CPUs, that brought one, that prepared the removal of one, and proposals that no kernel has. Where something on a running
kernel shows whether a commit is there (a file, a name in the kernel's type information, a call in its code, what it does), that
decides. Elsewhere the audit says \"by version, unproven\": stable kernels take fixes back. `stillcore explain COMMIT` prints one entry.

A test writes this page: `SNAPSHOTS=overwrite cargo test -p stillcore-audit --test it page`.
";

const KINDS: [(Kind, &str); 5] = [
    (Kind::Removes, "Removed: kernels without it have the interference"),
    (Kind::Adds, "Brought: kernels with it have the interference"),
    (Kind::Crash, "Crashes that isolation can meet"),
    (Kind::Groundwork, "Groundwork: of no effect by itself"),
    (Kind::Unmerged, "Proposed: no mainline kernel has it"),
];

/// Renders the page.
pub fn fixes_page(fixes: &Fixes) -> String {
    let mut page = HEAD.to_owned();
    for (kind, title) in KINDS {
        let mut of_kind = fixes.all.iter().filter(|fix| fix.kind == kind).peekable();
        if of_kind.peek().is_some() {
            let _ = write!(page, "\n## {title}\n");
        }
        of_kind.for_each(|fix| section(&mut page, fix));
    }
    page
}

fn section(page: &mut String, fix: &Fix) {
    let _ = write!(page, "\n### {}: {}\n\n", fix.commit, fix.title);
    let first = match &fix.first {
        Some(first) => format!("{}, first in {first}", fix.subsystem),
        None => fix.subsystem.clone(),
    };
    let classes: Vec<_> = fix.classes.iter().map(|class| format!("`{class}`")).collect();
    let mechanisms: Vec<_> = fix.mechanisms.iter().map(|id| format!("[{id}](mechanisms.md#{id})")).collect();
    let lines = [
        ("Where", first),
        ("Interference", fix.interference.clone()),
        ("Shows as", classes.join(", ")),
        ("Softened by", mechanisms.join(", ")),
        ("Shown by", shown_by(fix)),
        ("Works on", fix.cpu.as_ref().map_or_else(String::new, |cpu| format!("{cpu} processors"))),
        ("Only on", fix.arch.clone().unwrap_or_default()),
        ("Concerns", fix.only.map_or_else(String::new, |only| only.words().to_owned())),
        ("Checked", fix.checked.clone()),
        ("Note", fix.note.clone().unwrap_or_default()),
    ];
    for (name, text) in lines.iter().filter(|(_, text)| !text.is_empty()) {
        let _ = writeln!(page, "- {name}: {text}");
    }
}

fn shown_by(fix: &Fix) -> String {
    let judged = matches!(fix.kind, Kind::Removes | Kind::Adds | Kind::Crash);
    if fix.probe.is_empty() && judged {
        return "nothing: by version, unproven".to_owned();
    }
    fix.probe.iter().map(one).collect::<Vec<_>>().join("; or ")
}

fn one(probe: &Probe) -> String {
    let code =
        |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
    match probe {
        Probe::FileExists { path } => format!("the file `{}`", path.replace("{debugfs}", "DEBUGFS")),
        Probe::Name { names, beside: Some(_) } => format!("{} in the kernel's type information", code(names)),
        Probe::Name { names, beside: None } => {
            format!("{} in the kernel's type information, which a compiler may leave out", code(names))
        }
        Probe::NameGone { name, one_sided, .. } => {
            let less = if *one_sided { " (its presence shows nothing)" } else { "" };
            format!("that `{name}` is gone from the kernel's type information{less}")
        }
        Probe::Symbol { name, .. } => format!("the symbol `{name}`"),
        Probe::SymbolGone { name, .. } => format!("that the symbol `{name}` is gone"),
        Probe::Calls { functions, callees } => {
            format!("that {} calls {} (root)", code(functions), code(callees))
        }
        Probe::CallsNot { functions, callees } => {
            format!("that {} does not call {} (root)", code(functions), code(callees))
        }
        Probe::KthreadAvoids { thread } => format!("the affinity of the kernel thread `{thread}`"),
        Probe::ListsAvoid { path } => format!("the CPUs in `/{path}`, where some are isolated at boot"),
    }
}
