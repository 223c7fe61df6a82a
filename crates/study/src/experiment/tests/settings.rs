//! Results of different kernels, boot lines and machines, which are never combined silently.

use super::*;
use crate::experiment::factors::SETTING;
use crate::experiment::result::Under;
use crate::experiment::under::apart;

/// An experiment with a boot line in its levels, on machines as they stand.
fn declared() -> Experiment {
    read(
        &TEXT.replace("boot = \"isolcpus=\", isolated = false", "boot = \"isolcpus=\"").replace(
            "{ name = \"boot\", isolated = true }",
            "{ name = \"boot\", boot = \"isolcpus={cpus}\" }",
        ),
    )
}

fn under(release: &str, cmdline: &str) -> Under {
    Under {
        kernel: release.rsplit_once('.').unwrap().0.to_owned(),
        release: release.to_owned(),
        version: "#1".to_owned(),
        cmdline: cmdline.to_owned(),
        ignored: Vec::new(),
        processor: "a processor".to_owned(),
        online: "0-3".to_owned(),
        measured: "2,3".to_owned(),
        housekeeping: "0,1".to_owned(),
        memory_mib: Some(1024),
    }
}

/// Results of both boot lines; `release` is that of each repetition, `line` what else stands on the
/// line of each.
fn results(release: [&str; 2], line: [&str; 2]) -> Vec<(Cell, CellResult)> {
    let plan = Plan::of(&declared(), &[], 2, 1.0).unwrap();
    let of = |one: &Planned| {
        let at = one.cell.repetition as usize;
        let isolated = one.cell.factors["isolation"] == "boot";
        let boot = if isolated { "isolcpus=2-3" } else { "" };
        let under = under(release[at], &format!("root=/dev/sda{isolated} {boot} {}", line[at]));
        CellResult { under: Some(under), ..result(Some(if isolated { 1.0 } else { 2.0 + at as f64 }), false) }
    };
    plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect()
}

#[test]
fn the_boot_lines_of_levels_are_no_other_setting_and_what_else_differs_is() {
    let experiment = declared();
    let same = apart(&experiment, &results(["6.1.0", "6.1.0"], ["quiet", "quiet"]));
    assert_eq!((same.settings.len(), same.notes.len()), (0, 0), "{same:?}");
    assert!(same.results.iter().all(|(cell, _)| cell.factors["kernel"] == "6.1"));
    let conclusion = conclude(&experiment, &numbers(), &same.results);
    assert_eq!((conclusion.groups.len(), conclusion.claims[0].figures[0].n), (8, 8));
    for (release, line, differs) in [
        (["6.1.0", "6.1.1"], ["quiet", "quiet"], "6.1.1"),
        (["6.1.0", "6.1.0"], ["quiet", "quiet mitigations=off"], "mitigations=off"),
    ] {
        let found = apart(&experiment, &results(release, line));
        assert!(found.settings.len() == 2 && found.settings[1].contains(differs), "{found:?}");
        let conclusion = conclude(&experiment, &numbers(), &found.results);
        // No median is made of two of them.
        assert_eq!(conclusion.groups.len(), 16);
        assert!(conclusion.groups.iter().all(|group| group.cells == 1 && group.levels.contains_key(SETTING)));
        let sheet = &sheets(&experiment, &conclusion)[0];
        assert_eq!(sheet.head[..4], ["period", "kernel", "isolation", "setting"].map(str::to_owned));
        let claims: Vec<_> =
            conclusion.claims.iter().map(|one| (one.condition.as_str(), one.figures[0].n)).collect();
        assert_eq!(claims, [("6.1 A", 4), ("6.1 B", 4)], "one verdict a setting");
        // One answer a setting to a published number.
        assert_eq!(conclusion.published.len(), 2);
        assert!(
            conclusion.published.iter().all(|one| one.at.contains_key(SETTING) && one.measured.n == 2),
            "{conclusion:?}"
        );
    }
}

#[test]
fn results_of_two_machines_without_a_common_setting_are_no_pairs() {
    let experiment = declared();
    let mut mixed = results(["6.1.0", "6.1.0"], ["quiet", "quiet"]);
    for (cell, result) in &mut mixed {
        if cell.factors["isolation"] == "boot" {
            result.under.as_mut().unwrap().processor = "another".to_owned();
        }
    }
    let conclusion = conclude(&experiment, &numbers(), &apart(&experiment, &mixed).results);
    assert!(conclusion.claims.iter().all(|one| one.judgement == Judgement::NotApplicable), "{conclusion:?}");
}

#[test]
fn kernels_that_contradict_one_another_are_not_averaged() {
    let experiment = declared();
    let plan = Plan::of(&experiment, &["6.1".to_owned(), "6.12".to_owned()], 3, 1.0).unwrap();
    let of = |one: &Planned| {
        let boot = one.cell.factors["isolation"] == "boot";
        let less = (one.cell.factors["kernel"] == "6.1") == boot;
        // Of the second kernel only the first repetition: the first has the greater number of
        // pairs.
        let there = one.cell.factors["kernel"] == "6.1" || one.cell.repetition == 0;
        result(there.then_some(if less { 1.0 } else { 2.0 }), false)
    };
    let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect();
    let conclusion = conclude(&experiment, &numbers(), &results);
    let words: Vec<_> = conclusion.claims.iter().map(|one| (one.condition.as_str(), one.judgement)).collect();
    assert_eq!(words, [("6.1", Judgement::Agrees), ("6.12", Judgement::Inconclusive)]);
}

#[test]
fn machines_and_boot_lines_that_are_put_together_are_named() {
    let experiment = declared();
    let mut fleet = results(["6.1.0", "6.1.0"], ["quiet", "quiet"]);
    for (cell, result) in &mut fleet {
        result.place = format!("{}, 6.1.0", if cell.repetition == 0 { "left" } else { "right" });
        if cell.repetition == 1 && cell.factors["isolation"] == "boot" {
            let under = result.under.as_mut().unwrap();
            under.cmdline = under.cmdline.replace("isolcpus=2-3", "isolcpus=1-3");
        }
    }
    let found = apart(&experiment, &fleet);
    assert!(found.settings.is_empty());
    assert!(found.notes[0].contains("2 machines") && found.notes[0].contains("left, right"), "{found:?}");
    let lines: Vec<&String> =
        found.notes.iter().filter(|note| note.contains("different boot lines")).collect();
    assert!(lines.len() == 4 && lines[0].contains("isolcpus=1-3"), "{found:?}");
}
