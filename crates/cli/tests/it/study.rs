//! `stillcore study` on this machine, whatever it can measure: what it refuses, what it leaves
//! behind, and that it resumes.

use crate::support::{Place, stillcore, text};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn exposure(place: &Place, arguments: &[&str]) -> Output {
    let mut command = stillcore(&["study", "run"]);
    command.arg("--state").arg(place.state()).arg("--out").arg(place.path("out")).args(arguments);
    command.output().unwrap()
}

#[test]
fn the_built_in_studies_are_listed() {
    let output = stillcore(&["study", "list", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["schema"], "stillcore.study-list/1");
    assert_eq!(list["studies"][0]["name"], "exposure");
}

#[test]
fn what_is_calculated_is_run_by_its_name_too() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let mut command = stillcore(&["study", "run", "replication-table7", "--scale", "0.01", "--out"]);
        command.arg(place.path("out")).args(more).output().unwrap()
    };
    let output = run(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((answer["name"].as_str(), answer["sets"].as_u64()), (Some("replication-table7"), Some(100)));
    assert!(place.path("out").join("curves.svg").exists());
    let refused = run(&["--lab", "6.1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("calculated, not measured"), "{}", text(&refused.stderr));
    let listed = stillcore(&["study", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let kind = |name: &str| {
        let studies = listed["studies"].as_array().unwrap();
        studies.iter().find(|one| one["name"] == name).map(|one| one["kind"].clone())
    };
    assert_eq!(kind("rtss24-fig8c-readings").unwrap(), "calculated");
    assert_eq!(kind("rtss24-fig5").unwrap(), "experiment");
}

#[test]
fn what_cannot_be_run_is_refused_in_a_sentence() {
    let place = Place::new();
    let declared = place.path("study.toml");
    let file = declared.to_str().unwrap().to_owned();
    let head = "schema = \"stillcore.experiment/1\"\nname = \"x\"\ntitle = \"x\"\nsource = \"x\"\nseed = 1\nrepetitions = 1\n";
    let rest = "[[step]]\nrun = [\"measure\", \"exposure\", \"{stressor}\"]\n[[value]]\nname = \"a\"\ntitle = \"a\"\nat = \"a\"\n";
    for (contents, expected) in [
        ("schema = \"stillcore.study/1\"\n".to_owned(), "a file of another kind; expected schema ="),
        (format!("{head}conclusion = \"expsoure\"\n{rest}"), "unknown variant `expsoure`"),
        (format!("{head}{rest}"), "{stressor} stands for nothing"),
        (format!("{head}conclusion = \n"), "line 7"),
    ] {
        fs::write(&declared, contents).unwrap();
        let output = exposure(&place, &[&file]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{expected}: {stderr}");
    }
    let stderr = text(&exposure(&place, &["exposre"]).stderr);
    assert!(
        stderr.contains("no study 'exposre': not a file here, not built in")
            && stderr.contains("hint: did you mean 'exposure'? built-in studies: stillcore study list"),
        "{stderr}"
    );
    let begun = exposure(&place, &["exposure", "--resume"]);
    assert_eq!(begun.status.code(), Some(1));
    let stderr = text(&begun.stderr);
    assert!(stderr.contains("--resume: no --out that exists"), "{stderr}");
    assert!(!place.path("out").exists());
}

#[test]
fn a_study_resumes_only_under_its_own_conditions() {
    let place = Place::new();
    let short = ["exposure", "--stressors", "calc_pi", "--duration", "200ms", "--json"];
    let first = exposure(&place, &short);
    let stderr = text(&first.stderr);
    // Where nothing can be recorded, or no CPU is quiet, the controls report it.
    assert!(matches!(first.status.code(), Some(0 | 2)), "{stderr}");
    let answer: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(answer["schema"], "stillcore.exposure/1");
    assert_eq!(answer["void"], first.status.code() == Some(2));
    let names: Vec<_> =
        answer["rows"].as_array().unwrap().iter().map(|row| row["stressor"].clone()).collect();
    assert!(names.contains(&"calc_pi".into()) && names.contains(&"tlb_span".into()), "{names:?}");

    let cells = || fs::read_dir(place.path("out/cells")).unwrap().count();
    let ran = cells();
    assert_eq!(ran, names.len());
    let again = exposure(&place, &short);
    assert_eq!(again.stdout, first.stdout);
    assert!(text(&again.stderr).contains("0 of "), "{}", text(&again.stderr));

    let other = exposure(&place, &["exposure", "--stressors", "calc_pi", "--duration", "300ms"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(
        text(&other.stderr).contains("duration was 200ms there and is 300ms now"),
        "{}",
        text(&other.stderr)
    );
    assert_eq!(cells(), ran);
    assert!(!place.path("out/runs").exists(), "run directories are removed once counted");
    assert_eq!(place.leftovers(), Vec::<String>::new());
}
