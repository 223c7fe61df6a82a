//! Desired states of captured machines in the words of each tool.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use audit::{Catalogue, Desired, Purpose, Request, desired};
use exchange::{Export, FORMATS};
use machine::Root;
use std::path::{Path, PathBuf};
use std::process::Command;

mod profile;

/// Parameters of which the Node Tuning Operator puts its own on the line, from fields.
const OF_THE_OPERATOR: [&str; 5] = ["isolcpus", "nohz", "nohz_full", "rcu_nocbs", "skew_tick"];

fn machines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines")
}

fn of(root: &Root, request: &Request) -> Desired {
    let machine = machine::read(root).unwrap();
    desired(root, &machine, &Catalogue::embedded().unwrap(), request).unwrap()
}

/// Of the fixture of that name, with CPUs that it can isolate.
fn captured(name: &str, request: Request) -> Desired {
    let root = Root::open(&machines().join(name)).unwrap();
    let machine = machine::read(&root).unwrap();
    let cpus = machine::cpus_default(&machine, &machine.topology.online).unwrap();
    let last = cpus.iter().last().unwrap();
    let cpus = machine::cores(&machine, &last.to_string().parse().unwrap());
    of(&root, &Request { cpus, force: true, ..request })
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(machines()).unwrap().map(|entry| entry.unwrap());
    let trees = entries.filter(|entry| entry.path().join("proc").is_dir());
    trees.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn written(tool: &str, desired: &Desired) -> Export {
    FORMATS.iter().find(|format| format.name == tool).unwrap().write(desired, "stillcore").unwrap()
}

/// Its text, comments aside.
fn text(export: &Export) -> String {
    let lines = export.files.iter().flat_map(|file| file.text.lines());
    lines.filter(|line| !line.starts_with("# ")).fold(String::new(), |all, line| all + line + "\n")
}

/// Whether a setting stands on a line, or on two in YAML.
fn has(text: &str, path: &str, value: &str) -> bool {
    let dotted = path.strip_prefix("/proc/sys/").map(|name| name.replace('/', "."));
    let name = dotted.as_deref().unwrap_or(path);
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let one = [format!("{name}={value}"), format!("{name} = {value}"), format!("w {name} - - - - {value}")];
    let two = [format!("- name: \"{name}\""), format!("value: \"{value}\"")];
    lines.iter().any(|line| one.iter().any(|wanted| wanted == line))
        || lines.windows(2).any(|pair| pair[0] == two[0] && pair[1] == two[1])
}

#[test]
fn each_tool_has_every_setting_and_parameter_or_says_that_it_has_not() {
    let mut settings = 0;
    for name in names() {
        let desired = captured(&name, Request::default());
        for format in &FORMATS {
            let export = written(format.name, &desired);
            let (text, left) = (text(&export), export.left.join("\n"));
            for (path, setting) in &desired.files {
                let governed = path.ends_with("scaling_governor") && text.contains("scaling-governor: ");
                let is_left = left.contains(&format!("{path} = {}", setting.value))
                    || left.contains(&format!("{path}: {}", setting.value));
                let case = format!("{name}: {}: {path}: {setting:?}", format.name);
                assert!(governed || is_left || has(&text, path, &setting.value), "{case}");
                settings += 1;
            }
            for word in &desired.parameters {
                let (parameter, value) = word.split_once('=').unwrap_or((word, ""));
                let own = format.name == "performance-profile" && OF_THE_OPERATOR.contains(&parameter);
                let apart = format!("- name: \"{parameter}\"\n        value: \"{value}\"");
                let bare = format!("- name: \"{parameter}\"\n        state: present");
                let there =
                    text.contains(word) || text.contains(&apart) || value.is_empty() && text.contains(&bare);
                assert!(own || there || left.contains(word), "{name}: {}: {word}", format.name);
            }
            for line in &export.left {
                let head = format!("# - {line}");
                assert!(
                    export.files[0].text.lines().any(|one| one == head),
                    "{name}: {}: {line}",
                    format.name
                );
            }
        }
    }
    assert!(settings > 400, "{settings}");
}

/// What a machine has already is no less wanted of another.
#[test]
fn what_is_right_on_this_machine_is_in_it_too() {
    let isolated = captured("isolated-6.1", Request::default());
    let named = |name: &str| isolated.parameters.iter().any(|word| word.starts_with(name));
    assert!(named("isolcpus=") && named("nohz_full="), "{:?}", isolated.parameters);
    let changed: Vec<_> = isolated.plan.steps.iter().map(|step| &step.target).collect();
    let right = isolated.files.keys().filter(|path| !changed.contains(path)).count();
    assert!(right > 0, "{:?}", isolated.files);
    assert!(isolated.files.values().all(|setting| !setting.value.contains('[')), "{:?}", isolated.files);
}

#[test]
fn what_stays_is_spared_where_a_tool_can_be_told_and_named_where_not() {
    let keep = ["comm:rt app*", "irq:eth0"].map(|what| what.parse().unwrap());
    let purpose = Purpose { keep: keep.into(), ..Purpose::default() };
    let desired = captured("isolated-6.1", Request { purpose, ..Request::default() });
    let tuned = written("tuned", &desired);
    assert!(text(&tuned).contains("\nps_blacklist=(^|/)rt\\ app.*(\\s|$)\n"), "{}", text(&tuned));
    let kept = |export: &Export, what: &str| export.left.iter().any(|line| line.starts_with(what));
    assert!(kept(&tuned, "keep irq:eth0: ") && !kept(&tuned, "keep comm:"), "{:?}", tuned.left);
    assert!(kept(&written("rt-conf", &desired), "keep comm:rt app*: "));
}

#[test]
fn choices_are_made_by_the_request() {
    let with = vec!["sched_rt_runtime".to_owned(), "cpu_dma_latency".to_owned()];
    let without = vec!["user-tasks".to_owned(), "irq-affinity".to_owned()];
    let asked = Request { with, without, ..Request::default() };
    let chosen = captured("isolated-6.1", asked.clone());
    let unlimited = chosen.files.get("/proc/sys/kernel/sched_rt_runtime_us").map(|one| one.value.as_str());
    assert_eq!(unlimited, Some("-1"), "{:?}", chosen.files);
    let profile = text(&written("performance-profile", &chosen));
    assert!(profile.contains("    realTime: true\n"), "{profile}");
    let tuned = text(&written("tuned", &chosen));
    assert!(!tuned.contains("[scheduler]"), "{tuned}");
    // What a captured machine does not show is named, not dropped.
    let bare = written("tuned", &captured("smt-i7-6.1", asked));
    assert!(bare.left.iter().any(|line| line.starts_with("cpu_dma_latency: ")), "{:?}", bare.left);
    let by_default = text(&written("performance-profile", &captured("isolated-6.1", Request::default())));
    assert!(by_default.contains("    realTime: false\n"), "{by_default}");
}

#[test]
fn a_name_that_a_tool_would_refuse_is_refused() {
    let desired = captured("isolated-6.1", Request::default());
    for name in ["", "a b", "../x", "A", "-a", "a-", "a.b", "ä", &"a".repeat(64)] {
        for format in &FORMATS {
            assert!(format.write(&desired, name).is_err(), "{name:?}");
        }
    }
    assert!(FORMATS[0].write(&desired, "cpus-2-3").is_ok());
}

/// systemd-tmpfiles itself writes the settings, into a tree that has the files.
#[test]
fn systemd_writes_the_settings_that_it_is_given() {
    let desired = captured("isolated-6.1", Request::default());
    let export = written("systemd", &desired);
    let file = export.files.iter().find(|file| file.path.starts_with("etc/tmpfiles.d/")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let below = |path: &str| dir.path().join(path.trim_start_matches('/'));
    let settings: Vec<_> = desired.files.iter().filter(|(path, _)| path.starts_with("/sys/")).collect();
    for (path, _) in &settings {
        std::fs::create_dir_all(below(path).parent().unwrap()).unwrap();
        std::fs::write(below(path), "").unwrap();
    }
    std::fs::create_dir_all(below("etc/tmpfiles.d")).unwrap();
    std::fs::write(below(&file.path), &file.text).unwrap();
    let root = format!("--root={}", dir.path().display());
    let name = Path::new(&file.path).file_name().unwrap();
    let output = match Command::new("systemd-tmpfiles").args([&root, "--create"]).arg(name).output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: no systemd-tmpfiles ({error})"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for (path, setting) in settings {
        assert_eq!(std::fs::read_to_string(below(path)).unwrap().trim(), setting.value, "{path}: {said}");
    }
}
