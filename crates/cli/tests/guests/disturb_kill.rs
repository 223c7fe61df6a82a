//! `stillcore disturb` killed by SIGKILL on real kernels, as root: whatever the stressor, nothing
//! of it is left.

use crate::machine::Guest;
use crate::state::the_same;
use crate::support::read_json;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Nothing is left of any stressor that was killed.
pub(crate) fn nothing_is_left(guest: &Guest) {
    let (root, kernel) = (&guest.root, guest.kernel());
    let at_least = if guest.case.arguments == ["dangerous"] { 3 } else { 30 };
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

/// State that must be restored. A thread of an interrupt runs where the kernel serves the
/// interrupt. The kernel chooses that CPU anew when one is unplugged (kernel/irq/cpuhotplug.c) and
/// keeps it: that is no setting to restore.
fn state(file: &Path) -> Value {
    let mut state = read_json(file);
    if let Some(threads) = state["kthread_affinity"].as_object_mut() {
        threads.retain(|name, _| !name.starts_with("irq/"));
    }
    state
}
