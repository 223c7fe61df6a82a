//! `stillcore disturb` killed by SIGKILL on real kernels, as root: whatever the stressor, nothing of it is left.
#![cfg(feature = "guest-tests")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use support::guest::{Boot, boot, the_same};
use support::read_json;

/// Modules that stressors need.
const MODULES: [&str; 11] = [
    "dummy",
    "veth",
    "wireguard",
    "bonding",
    "crc32c_generic",
    "loop",
    "ext4",
    "xfs",
    "ts_fsm",
    "msr",
    "af_packet",
];
/// All stressors, in an emulated machine that may have two others beside it.
const PATIENCE: &str = "2400s";

fn nothing_is_left(kernel: &str, which: &str, at_least: usize) {
    let modules = MODULES.iter().flat_map(|module| ["--module", module]);
    let more: Vec<&str> = modules.chain(["--nic", "e1000", "--timeout", PATIENCE]).collect();
    let arguments = &[which];
    let (_guest, root) =
        boot(&Boot { kernel, smp: "4", append: "", script: "guest_disturb_kill.sh", arguments, more: &more });
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let ran = read("ran");
    println!(
        "{kernel}: killed {}\nended by themselves: {}",
        ran.replace('\n', " "),
        read("ended").replace('\n', " ")
    );
    assert!(ran.lines().count() >= at_least, "{kernel}: only these ran: {ran}");
    let left: Vec<String> = read("left").lines().map(|name| format!("{name}: {}", read(name))).collect();
    assert!(left.is_empty(), "{kernel}: {left:?}");
    the_same(&state(&root.join("before.json")), &state(&root.join("after.json")), kernel);
}

/// What is to be as it was. A thread of an interrupt runs where the kernel serves the interrupt, which it chooses anew when a CPU is
/// unplugged (kernel/irq/cpuhotplug.c) and keeps afterwards: that is no setting, and nobody's to give back.
fn state(file: &Path) -> Value {
    let mut state = read_json(file);
    if let Some(threads) = state["kthread_affinity"].as_object_mut() {
        threads.retain(|name, _| !name.starts_with("irq/"));
    }
    state
}

#[test]
fn dangerous_ones_on_6_1() {
    nothing_is_left("6.1", "dangerous", 3);
}

/// By `make test-lab`: all stressors, each kernel.
#[cfg(feature = "guest-matrix")]
mod matrix {
    fn all(kernel: &str) {
        super::nothing_is_left(kernel, "all", 30);
    }

    crate::support::guest::each_kernel!(all);
}
