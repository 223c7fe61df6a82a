//! The pods of `deploy/kubernetes` as containers of this machine, one of which is killed while it
//! isolates: `tests/pods.py`, which says what it does. Needs root, Podman, and the static program;
//! PyYAML comes from where the driver has put Ansible. `cargo xtask test-all pods`.

use crate::support::shares::{ansible, have_ansible};
use crate::support::{Place, is_root, text};
use std::path::Path;
use std::process::Command;

fn has(program: &str) -> bool {
    Command::new(program).arg("--help").output().is_ok()
}

#[test]
fn what_a_killed_pod_has_changed_is_undone_by_the_next_one() {
    if !have_ansible() {
        return;
    }
    if !is_root() || !has("podman") || !has("crun") || !has("busybox") {
        println!("skipped: takes root, podman, crun and busybox");
        return;
    }
    if !cfg!(target_feature = "crt-static") {
        println!("skipped: takes the static program (--target x86_64-unknown-linux-musl)");
        return;
    }
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pods.py");
    let mut command = Command::new(ansible().unwrap().join("python3"));
    command.arg("-B").arg(script).arg(env!("CARGO_BIN_EXE_stillcore")).arg(place.dir.path());
    let output = command.output().unwrap();
    print!("{}", text(&output.stdout));
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
