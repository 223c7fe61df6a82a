//! The matrix as Markdown, to be kept with a project and linked to: a heading a stressor, and under
//! it what each kernel showed.

use super::{KINDS, Matrix, by_class, change, idle, warning};
use crate::exposure::operations;
use std::fmt::Write;

/// The page. `head`: what is to stand above it, such as the command and the machine.
pub fn matrix_markdown(matrix: &Matrix, head: &str) -> String {
    let mut page = String::from("# Exposure of kernels\n\n");
    if !head.is_empty() {
        let _ = writeln!(page, "{head}\n");
    }
    for (name, value) in &matrix.conditions {
        let _ = writeln!(page, "- {name}: {}", escaped(value));
    }
    page.push_str(
        "\nFigures: events on a measured CPU per successful operation, the idle background subtracted, by class, where they were seen; `<=`: \
         not seen, upper 95 % bound of all classes together.\n",
    );
    kernels(&mut page, matrix);
    options(&mut page, matrix);
    idles(&mut page, matrix);
    page.push_str("\n## What changed\n\nFrom a kernel to the next of its flavour, where the 95 % intervals have no point in common.\n");
    for (direction, title) in KINDS {
        let ours: Vec<_> = matrix.changes.iter().filter(|one| one.direction == direction).collect();
        if !ours.is_empty() {
            let _ = writeln!(page, "\n{}:\n", capital(title));
            ours.iter().for_each(|one| _ = writeln!(page, "- {}", escaped(&change(one))));
        }
    }
    page.push_str("\n## Stressors\n");
    for stressor in matrix.stressors() {
        table(&mut page, matrix, stressor);
    }
    page
}

fn kernels(page: &mut String, matrix: &Matrix) {
    page.push_str("\n## Kernels\n\n| kernel | release | package |\n|---|---|---|\n");
    for kernel in &matrix.kernels {
        let package = kernel.package.as_deref().unwrap_or("-");
        let _ =
            writeln!(page, "| {} | {} {} | {} |", kernel.name, kernel.release, kernel.arch, escaped(package));
    }
    page.push_str("\n| profile | what |\n|---|---|\n");
    for (profile, title) in &matrix.profiles {
        let _ = writeln!(page, "| {profile} | {} |", escaped(title));
    }
    for column in &matrix.columns {
        if let Some(reason) = warning(column) {
            let _ = writeln!(page, "\n- {} {}: {}", column.kernel, column.profile, escaped(&reason));
        }
    }
}

fn options(page: &mut String, matrix: &Matrix) {
    page.push_str("\n## Configuration\n\nOptions that bear on isolation and differ between these kernels; `n` is not set.\n\n| option |");
    matrix.kernels.iter().for_each(|kernel| _ = write!(page, " {} |", kernel.name));
    page.push_str(" what it changes |\n|---|");
    matrix.kernels.iter().for_each(|_| page.push_str("---|"));
    page.push_str("---|\n");
    for one in &matrix.options {
        let _ = write!(page, "| {} |", one.option.trim_start_matches("CONFIG_"));
        for kernel in &matrix.kernels {
            let _ = write!(page, " {} |", one.values.get(&kernel.name).map_or("?", String::as_str));
        }
        let _ = writeln!(page, " {} |", escaped(&one.why));
    }
}

fn idles(page: &mut String, matrix: &Matrix) {
    page.push_str("\n## Idle\n\nEvents a second on a measured CPU while nothing is done.\n\n| kernel |");
    matrix.profiles.iter().for_each(|(profile, _)| _ = write!(page, " {profile} |"));
    page.push_str("\n|---|");
    matrix.profiles.iter().for_each(|_| page.push_str("---|"));
    page.push('\n');
    for kernel in &matrix.kernels {
        let _ = write!(page, "| {} |", kernel.name);
        for (profile, _) in &matrix.profiles {
            let column = matrix.of_profile(profile).find(|column| column.kernel == kernel.name);
            let rates = column.filter(|column| column.absent.is_none()).map_or_else(|| "-".to_owned(), idle);
            let _ = write!(page, " {rates} |");
        }
        page.push('\n');
    }
}

fn table(page: &mut String, matrix: &Matrix, stressor: &str) {
    let _ = write!(page, "\n### {stressor}\n\n| kernel |");
    let profiles: Vec<&str> = matrix.profiles.iter().map(|(profile, _)| profile.as_str()).collect();
    profiles.iter().for_each(|profile| _ = write!(page, " {profile} | operations |"));
    page.push_str("\n|---|");
    profiles.iter().for_each(|_| page.push_str("---|---:|"));
    page.push('\n');
    for kernel in &matrix.kernels {
        let _ = write!(page, "| {} |", kernel.name);
        for profile in &profiles {
            let column = matrix.of_profile(profile).find(|column| column.kernel == kernel.name);
            let row = column.and_then(|column| column.rows.iter().find(|row| row.stressor == stressor));
            match row {
                Some(row) if row.is_weak() => {
                    let _ = write!(page, " {} | {} |", by_class(row), operations(row));
                }
                Some(row) => _ = write!(page, " {} | {} |", by_class(row), row.operations),
                None => page.push_str(" - | |"),
            }
        }
        page.push('\n');
    }
    let remarks = matrix.remarks(stressor);
    if !remarks.is_empty() {
        page.push('\n');
        remarks.iter().for_each(|remark| _ = writeln!(page, "- {}", escaped(remark)));
    }
}

/// Text of a machine, so that it is no markup.
pub(crate) fn escaped(text: &str) -> String {
    let special = |c: char| matches!(c, '|' | '*' | '_' | '<' | '>' | '[' | ']' | '`' | '\\');
    text.chars().fold(String::new(), |mut out, c| {
        if special(c) {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
        out
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
