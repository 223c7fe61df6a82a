//! Mistakes of real-time programs, planted one a program (`tests/plants/mistakes.c`), and programs
//! without any, against what `trace watch --lint` finds.
//! `cargo bench -p stillcore --bench lint`; needs root and a C compiler.

mod common;

use common::plants::{compile, source};
use common::{Failed, option, run};
use result::{Limit, Of, Row};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    run("lint", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let plant = place.path().join("mistakes");
        let mut compiler = Command::new("cc");
        compile(compiler.args(["-O1", "-pthread", "-o"]).arg(&plant).arg(source("mistakes.c")).arg("-lrt"))?;
        let list = Command::new(&plant).arg("list").output().map_err(Failed::because)?;
        let (mut planted, mut found, mut clean, mut invented) = (0u64, 0u64, 0u64, 0u64);
        let mut not_judged = 0u64;
        for line in String::from_utf8_lossy(&list.stdout).lines() {
            let (name, rules) = line.split_once(' ').unwrap_or((line, ""));
            let all: BTreeSet<&str> = rules.split(',').filter(|rule| !rule.is_empty()).collect();
            // Signals of conditions are recorded only with every locking.
            let locks = if all.contains("condition") { "--locks=every" } else { "--locks=contended" };
            let output = Command::new(&program)
                .args(["trace", "watch", "--lint", locks, "--json", "--out"])
                .arg(place.path().join(name))
                .arg("--")
                .arg(&plant)
                .args([name, "1"])
                .output()
                .map_err(Failed::because)?;
            let said = String::from_utf8_lossy(&output.stderr);
            let answer: Value = serde_json::from_slice(&output.stdout)
                .map_err(|_| Failed(format!("{name}: {}", said.lines().last().unwrap_or_default())))?;
            let list = |key: &str| {
                let list = answer["watch"]["lint"][key].as_array().cloned();
                list.ok_or_else(|| Failed(format!("{name}: the answer has no watch.lint.{key}")))
            };
            let findings = list("findings")?;
            // What cannot be applied on this kernel is said, and not found.
            let not_applied = list("not_applied")?;
            let applies = |rule: &&str| not_applied.iter().all(|one| one["rule"] != **rule);
            let wanted: BTreeSet<&str> = all.iter().copied().filter(applies).collect();
            if wanted.len() < all.len() {
                not_judged += 1;
                continue;
            }
            let rules: BTreeSet<&str> = findings.iter().filter_map(|one| one["rule"].as_str()).collect();
            planted += u64::from(!wanted.is_empty());
            found += u64::from(!wanted.is_empty() && wanted.is_subset(&rules));
            clean += u64::from(wanted.is_empty());
            let more: Vec<_> = rules.difference(&wanted).collect();
            invented += more.len() as u64;
            if !more.is_empty() || !wanted.is_subset(&rules) {
                eprintln!("{name}: {rules:?} instead of {wanted:?}");
            }
        }
        let row = Row::new("programs with a mistake: found", found as f64, "").n(planted);
        rows.push(row.budget(Of::Value, Limit::AtLeast(planted as f64)))?;
        let row = Row::new("findings that no mistake explains", invented as f64, "").n(planted + clean);
        rows.push(row.budget(Of::Value, Limit::AtMost(0.0)))?;
        rows.push(Row::new("programs whose rule this kernel cannot show", not_judged as f64, ""))?;
        rows.push(Row::new("programs without a mistake", clean as f64, ""))?;
        Ok(())
    });
}
