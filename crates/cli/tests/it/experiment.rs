//! Experiments of `stillcore study`: a file runs cell by cell, resumes after a kill, and an invalid
//! file starts nothing.

use crate::support::shares::{declared, experiment, standing, undoes};
use crate::support::{Place, eventually, read_json, stillcore, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn study(place: &Place, out: &str, arguments: &[&str]) -> Command {
    let mut command = stillcore(&["study", "run"]);
    command.arg(place.path("shares.toml")).arg("--state").arg(place.state());
    command.arg("--out").arg(place.path(out)).args(arguments);
    command
}

fn answer(place: &Place, out: &str) -> Value {
    read_json(&place.path(out).join("study.json"))
}

#[test]
fn cells_are_run_and_those_that_cannot_be_are_reported_and_no_failure() {
    let place = Place::new();
    declared(&place);
    let output = study(&place, "out", &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json, answer(&place, "out"));
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 6);
    for group in groups {
        let (share, nothing) = (&group["values"]["share"], &group["values"]["nothing"]);
        assert_eq!(nothing["n"], 0);
        match group["levels"]["way"].as_str().unwrap() {
            "plain" => {
                assert_eq!((&group["ok"], &share["n"]), (&2.into(), &2.into()), "{group}");
                assert!(
                    share["median"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
                    "{group}"
                );
            }
            "absent" => assert!(text_of(&group["reasons"]).contains("4095"), "{group}"),
            // Where the machine has isolated CPUs it is a cell like any other.
            _ => assert!(
                group["ok"] == 2 || text_of(&group["reasons"]).contains("needs isolated CPUs"),
                "{group}"
            ),
        }
    }
    for name in ["study.md", "study.csv"] {
        assert!(fs::read_to_string(place.path("out").join(name)).unwrap().contains("plain"), "{name}");
    }
    let chart = fs::read_to_string(place.path("out/figures/share.svg")).unwrap();
    assert!(chart.contains("class=\"bar k0\"") && chart.contains("xmlns="), "{chart}");
    assert!(!place.path("out/figures/nothing.svg").exists(), "what was not measured is not drawn");
    let page = fs::read_to_string(place.path("out/study.html")).unwrap();
    assert!(page.contains("<svg class=\"chart\"") && page.contains("n/a"), "{page}");
    let again = study(&place, "out", &["--json"]).output().unwrap();
    assert!(text(&again.stderr).contains("0 of 12 cells to run"), "{}", text(&again.stderr));
    assert_eq!(again.stdout, output.stdout);
    assert!(!text(&again.stderr).contains("left out"), "{}", text(&again.stderr));
    let scaled = study(&place, "out", &["--scale", "0.5"]).output().unwrap();
    let stderr = text(&scaled.stderr);
    assert!(stderr.contains("12 stored cells are not of this plan"), "{stderr}");
    // The verdict first and the next command last, in text as on the page.
    let said = text(&scaled.stdout);
    let verdict = said.lines().nth(3).unwrap().to_owned();
    assert!(verdict.starts_with("Of ") || verdict.starts_with("Nothing of it was published"), "{said}");
    assert!(said.trim_end().lines().rev().nth(1).unwrap().starts_with("next: stillcore study "), "{said}");
    let markdown = fs::read_to_string(place.path("out/study.md")).unwrap();
    assert_eq!(markdown.lines().nth(2), Some(verdict.as_str()), "{markdown}");
}

/// Whether this machine has isolated CPUs.
fn has_isolated_cpus() -> bool {
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated");
    isolated.is_ok_and(|list| !list.trim().is_empty())
}

fn text_of(value: &Value) -> String {
    value.to_string()
}

#[test]
fn a_study_that_was_killed_ends_as_one_that_was_not() {
    let place = Place::new();
    declared(&place);
    assert!(study(&place, "whole", &[]).output().unwrap().status.success());
    let mut child = study(&place, "killed", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let cells = place.path("killed").join("cells");
    let stored = || fs::read_dir(&cells).map_or(0, Iterator::count);
    eventually("two cells", || (stored() >= 2).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let output = study(&place, "killed", &["--resume"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("12 of 12 cells to run"), "{said}");
    assert_eq!(answer(&place, "killed"), answer(&place, "whole"));
}

#[test]
fn a_mistake_in_a_file_is_one_sentence_with_its_place_and_nothing_is_started() {
    let place = Place::new();
    let file = declared(&place);
    let good = fs::read_to_string(&file).unwrap();
    for (from, to, expected) in [
        ("{sets}\"", "{set}\"", "line 21, column 7: {set} stands for nothing"),
        ("repetitions = 2", "repetitions = 2.5", "line 7, column 15"),
        ("[[value]]", "[[valu]]", "line 23, column 3: unknown field `valu`"),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(&file, good.replacen(from, to, 1)).unwrap();
        let output = study(&place, "out", &[]).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{expected}: {stderr}");
        assert!(!place.path("out").exists());
    }
    fs::write(&file, good).unwrap();
    for (arguments, expected) in [
        (["--resume", "--json"], "does not exist"),
        (["--scale", "0"], "invalid scale \"0\""),
        (["--duration", "1s"], "--duration"),
        (["--lab", "--plan"], "the file names none"),
    ] {
        let output = study(&place, "none", &arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{expected}: {stderr}");
        assert!(!place.path("none").exists());
    }
}

#[test]
fn a_class_that_this_machine_lacks_is_refused_and_its_cell_does_not_apply() {
    let place = Place::new();
    for (class, why) in
        [("cobalt", "/proc/xenomai"), ("evl", "/dev/evl/control"), ("litmus:P-FP", "/proc/litmus")]
    {
        let out = place.path("run");
        for verb in [&["measure", "wakeup"][..], &["graph", "run", "small-single"]] {
            let mut command = stillcore(verb);
            command.args(["--class", class, "--duration", "1s", "--quiet", "--out"]).arg(&out);
            let output = command.arg("--state").arg(place.state()).output().unwrap();
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(
                stderr.contains(why) && stderr.contains("expected") && stderr.lines().count() == 1,
                "{stderr}"
            );
            assert!(!out.exists(), "{stderr}");
        }
    }
    declared(&place);
    let text_of_file = fs::read_to_string(place.path("shares.toml")).unwrap();
    let step = text_of_file.split("run = ").nth(1).unwrap().lines().next().unwrap();
    let asked = "[\"measure\", \"wakeup\", \"--class\", \"cobalt\", \"--out\", \"{out}\"]";
    fs::write(place.path("shares.toml"), text_of_file.replace(step, asked)).unwrap();
    assert!(study(&place, "out", &[]).output().unwrap().status.success());
    let json = answer(&place, "out");
    let plain =
        json["groups"].as_array().unwrap().iter().find(|group| group["levels"]["way"] == "plain").unwrap();
    assert!(text_of(&plain["reasons"]).contains("no Cobalt core"), "{plain}");
    for cell in fs::read_dir(place.path("out/cells")).unwrap() {
        let cell = read_json(&cell.unwrap().path());
        let unisolated = cell["cell"]["factors"]["way"] == "isolated" && !has_isolated_cpus();
        let state = if unisolated { "needs" } else { "not-applicable" };
        assert_eq!(cell["result"]["state"], state, "{cell}");
    }
}

#[test]
fn a_study_of_which_every_cell_failed_is_an_error_with_its_answer_stored() {
    let place = Place::new();
    declared(&place);
    let file = fs::read_to_string(place.path("shares.toml")).unwrap();
    let step = file.split("run = ").nth(1).unwrap().lines().next().unwrap();
    let file = file.replace(step, "[\"report\", \"{dir}/nothing\"]").replace(
        ", { name = \"absent\", before = [[\"isolate\", \"apply\", \"--cpus\", \"4095\", \"--json\"]] }",
        "",
    );
    fs::write(place.path("shares.toml"), file).unwrap();
    let output = study(&place, "out", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("every cell that was run failed"), "{}", text(&output.stderr));
    assert!(answer(&place, "out")["groups"].is_array());
}

#[test]
fn a_plan_starts_nothing() {
    let place = Place::new();
    declared(&place);
    let output = study(&place, "out", &["--plan", "--scale", "0.5"]).output().unwrap();
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("12 cells, 0 boots"), "{stdout}");
    // Cells that this boot cannot run are counted, with their requirement.
    let isolated = has_isolated_cpus();
    assert_eq!(stdout.contains("- 4 cells: isolated CPUs"), !isolated, "{stdout}");
    assert!(!place.path("out").exists());
}

/// A cell that measures for long and then undoes the isolation in force.
fn long(place: &Place, standing: &Path) {
    let text = experiment(&place.path("curves.toml"))
        .replace("repetitions = 2", "repetitions = 1")
        .replace("[\"isolate\", \"apply\", \"--cpus\", \"4095\", \"--json\"]]", "[\"study\", \"list\"]]")
        .replace("before = [", &format!("{}, before = [", undoes(standing)))
        .replace("levels = [\"plain\", {", "levels = [{")
        .replace("{ name = \"isolated\", isolated = true }, ", "")
        .replace("[\"0\", \"1\"]", "[\"0\"]");
    let step = text.split("run = ").nth(1).unwrap().lines().next().unwrap();
    let measure = format!(
        "[\"measure\", \"wakeup\", \"--duration\", \"60s\", \"--quiet\", \"--out\", \"{{out}}\", \"--state\", \"{}\"]",
        place.state().display()
    );
    fs::write(place.path("shares.toml"), text.replace(step, &measure)).unwrap();
}

#[test]
fn what_a_cell_changed_is_undone_after_ctrl_c_and_by_the_next_call_after_a_kill() {
    for end in ["INT", "KILL"] {
        let place = Place::new();
        declared(&place);
        let (stands, out) = (standing(&place), place.path("out"));
        long(&place, &stands);
        let mut child =
            study(&place, "out", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let measuring =
            || fs::read_dir(out.join("runs")).ok()?.flatten().find(|cell| cell.path().join("run").exists());
        eventually("a window", measuring);
        assert!(stands.exists());
        crate::support::signal(child.id(), end);
        assert!(!child.wait().unwrap().success());
        assert_eq!(stands.exists(), end == "KILL", "{end}");
        if end == "KILL" {
            let mut next = study(&place, "out", &["--resume"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            eventually("what was given back", || (!stands.exists()).then_some(()));
            crate::support::signal(next.id(), "INT");
            next.wait().unwrap();
        }
        eventually("nothing left", || place.leftovers().is_empty().then_some(()));
    }
}

/// The built-in ablation of boot parameters, with the shortest windows.
fn ablation(place: &Place, arguments: &[&str]) -> std::process::Output {
    let mut command =
        stillcore(&["study", "run", "ablation", "--here", "--scale", "0.00001", "--repetitions", "1"]);
    command.arg("--state").arg(place.state()).arg("--out").arg(place.path("out"));
    command.args(arguments).output().unwrap()
}

#[test]
fn subsets_of_boot_parameters_under_one_command_line_are_one_at_most_and_no_set_is_called_sufficient() {
    let place = Place::new();
    let plan = ablation(&place, &["--plan"]);
    let stdout = text(&plan.stdout);
    assert_eq!(plan.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("16 cells, 0 boots"), "{stdout}");
    // Further boots are listed by their parameters, and other kernels.
    assert!(
        stdout.contains("- 1 cell: a boot: kernel") && stdout.contains("isolcpus=domain,managed_irq,"),
        "{stdout}"
    );
    assert!(stdout.contains("each other kernel of the file would add"), "{stdout}");
    let boots = stdout.lines().filter(|line| line.starts_with("- 1 cell: a boot")).count();
    assert!(boots >= 15, "{stdout}");
    assert!(!place.path("out").exists());

    let output = ablation(&place, &[]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout} {}", text(&output.stderr));
    assert!(stdout.contains("no set is called sufficient"), "{stdout}");
    assert!(!stdout.contains("smallest sufficient:"), "{stdout}");
    assert!(!stdout.contains("left out of all"), "a side of each was not measured: {stdout}");
    let mut states = Vec::new();
    for cell in fs::read_dir(place.path("out/cells")).unwrap() {
        let cell = read_json(&cell.unwrap().path());
        let result = &cell["result"];
        states.push(result["state"].as_str().unwrap().to_owned());
        if result["state"] == "needs" {
            assert!(text_of(&result["reason"]).starts_with("\"needs "), "{cell}");
            assert_eq!(result["commands"].as_array().unwrap().len(), 0, "{cell}");
        }
        // The current boot, whether the cell was run or not.
        let line = fs::read_to_string("/proc/cmdline").unwrap();
        assert_eq!(result["under"]["cmdline"], line.trim(), "{cell}");
        assert_eq!(cell["cell"]["factors"]["kernel"], result["under"]["kernel"], "{cell}");
    }
    assert_eq!(states.len(), 16);
    assert!(states.iter().filter(|state| *state != "needs").count() <= 1, "{states:?}");
    let ablation_of = &answer(&place, "out")["ablation"][0];
    assert!(
        ablation_of["sufficient"].is_null() && ablation_of["left_out"] == serde_json::json!([]),
        "{ablation_of}"
    );
    // A requirement that is still missing is not tried again.
    let again = ablation(&place, &["--resume"]);
    assert!(text(&again.stderr).contains("0 of 16 cells to run"), "{}", text(&again.stderr));
}

#[test]
fn cells_of_another_kernel_and_boot_line_are_kept_apart_from_those_of_this_one() {
    let place = Place::new();
    declared(&place);
    assert!(study(&place, "out", &[]).output().unwrap().status.success());
    // Every second repetition as if stored under another kernel and boot line.
    for cell in fs::read_dir(place.path("out/cells")).unwrap() {
        let path = cell.unwrap().path();
        let mut cell = read_json(&path);
        if cell["cell"]["repetition"] == 1 {
            cell["result"]["under"]["release"] = "4.19.0-another".into();
            cell["result"]["under"]["cmdline"] = "mitigations=off".into();
            fs::write(&path, cell.to_string()).unwrap();
        }
    }
    let output = study(&place, "out", &["--resume"]).output().unwrap();
    let (stdout, answer) = (text(&output.stdout), answer(&place, "out"));
    assert_eq!(output.status.code(), Some(0), "{stdout} {}", text(&output.stderr));
    assert!(stdout.contains("are kept apart") && stdout.contains("4.19.0-another"), "{stdout}");
    assert_eq!(answer["settings"].as_array().unwrap().len(), 2, "{answer}");
    let plain = |group: &&Value| group["levels"]["way"] == "plain";
    let groups: Vec<&Value> = answer["groups"].as_array().unwrap().iter().filter(plain).collect();
    assert_eq!(groups.len(), 4);
    assert!(
        groups.iter().all(|group| group["ok"] == 1 && group["levels"]["setting"].is_string()),
        "{groups:?}"
    );
}
