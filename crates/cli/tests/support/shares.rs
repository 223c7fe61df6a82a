//! A small experiment whose results depend only on its file: shares of task sets that a test
//! accepts, twice three ways.

use super::Place;
use std::fs;
use std::path::{Path, PathBuf};

/// Cells that compute: their results depend only on the file.
const CURVES: &str = r#"
schema = "stillcore.sched-curves/1"
name = "small"
title = "small"
seed = 1
sets = 40

[generate]
tasks = 5
periods = "uniform:10ms:100ms"

[axis]
of = "utilization"
values = [0.7, 0.9]

[[curve]]
name = "none"
test = "fp-rta"
jitter = "0us"

[[curve]]
name = "some"
test = "fp-rta"
jitter = "5ms"
"#;

/// The experiment on those curves.
pub(crate) fn experiment(curves: &Path) -> String {
    format!(
        r#"
schema = "stillcore.experiment/1"
name = "shares"
title = "Shares of sets"
source = "this test"
seed = 5
repetitions = 2

[quantities]
sets = {{ full = 40, least = 5 }}

[[factor]]
name = "curve"
levels = ["0", "1"]

[[factor]]
name = "way"
levels = ["plain", {{ name = "isolated", isolated = true }}, {{ name = "absent", before = [["isolate", "apply", "--cpus", "4095", "--json"]] }}]

[[step]]
run = ["sched", "study", "{}", "--sets", "{{sets}}", "--out", "{{out}}"]

[[value]]
name = "share"
title = "share of sets"
at = "curves/1/points/0/share"

[[value]]
name = "nothing"
title = "what is not there"
at = "curves/9/share"

[[figure]]
name = "share"
kind = "bars"
x = "curve"
curves = ["way"]
values = ["share"]

[[figure]]
name = "nothing"
kind = "lines"
x = "curve"
values = ["nothing"]
"#,
        curves.display()
    )
}

/// Writes both files to this place; returns the experiment's path.
pub(crate) fn declared(place: &Place) -> PathBuf {
    fs::write(place.path("curves.toml"), CURVES).unwrap();
    let file = place.path("shares.toml");
    fs::write(&file, experiment(&place.path("curves.toml"))).unwrap();
    file
}

/// The journal of an isolation of an earlier boot that is still to be undone; undoing removes it.
pub(crate) fn standing(place: &Place) -> PathBuf {
    let (boot, head) = (
        "an-earlier-boot",
        r#"{"cpus":"1","isolated":"1","housekeeping":"0","placement":"affinity","started_ticks":0}"#,
    );
    let text = format!("0\0{boot}\0isolation\0cpus\0{:?}\0{:?}\0Intent", None::<String>, Some(head));
    let entry = serde_json::json!({
        "seq": 0, "boot_id": boot, "id": "isolation", "target": "cpus", "old": null, "new": head, "phase": "intent",
        "crc": crc32fast::hash(text.as_bytes()),
    });
    fs::create_dir(place.path("stands")).unwrap();
    let journal = place.path("stands/isolation.jsonl");
    fs::write(&journal, format!("{entry}\n")).unwrap();
    journal
}

/// The step of an experiment that undoes it.
pub(crate) fn undoes(journal: &Path) -> String {
    format!("after = [[\"isolate\", \"undo\", \"--state\", \"{}\"]]", journal.parent().unwrap().display())
}

/// An experiment whose cells measure for a minute each, and then undo that isolation.
pub(crate) fn long(place: &Place, repetitions: u32, standing: &Path) {
    let text = format!(
        r#"
schema = "stillcore.experiment/1"
name = "long"
title = "t"
source = "s"
seed = 1
repetitions = {repetitions}
[[factor]]
name = "way"
levels = [{{ name = "changed", {} }}]
[[step]]
run = ["measure", "wakeup", "--duration", "60s", "--quiet", "--out", "{{out}}", "--state", "{}"]
[[value]]
name = "n"
title = "n"
at = "threads"
take = "count"
"#,
        undoes(standing),
        place.state().display()
    );
    fs::write(place.path("shares.toml"), text).unwrap();
}

/// Where the driver has installed Ansible: `hosts/venv/bin` of cargo's target directory.
pub(crate) fn ansible() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_stillcore"));
    let places = program.ancestors().map(|dir| dir.join("hosts/venv/bin"));
    places.into_iter().find(|bin| bin.join("ansible-playbook").exists())
}

/// Whether there is Ansible; where not, the test is skipped.
pub(crate) fn have_ansible() -> bool {
    let have = ansible().is_some();
    if !have {
        println!("skipped: needs Ansible in the target directory (cargo xtask hosts)");
    }
    have
}
