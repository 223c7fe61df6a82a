//! A script put through a lab guest, and the machine-states that it leaves compared.

use super::{stillcore, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A kernel, its topology and command line, and what runs in it.
pub(crate) struct Boot<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) smp: &'a str,
    pub(crate) append: &'a str,
    /// Under `tests/`; run by busybox sh as root in `/root`.
    pub(crate) script: &'a str,
    pub(crate) arguments: &'a [&'a str],
    /// Further arguments of `stillcore lab run`.
    pub(crate) more: &'a [&'a str],
}

/// How long a guest may take; emulated beside two others, one of eight CPUs takes its time.
const TIMEOUT: &str = if cfg!(feature = "guest-matrix") { "900s" } else { "300s" };

/// Boots, and returns where the guest's `/root` is afterwards. Emulated CPUs of a crowded host hang now and then: such a guest is
/// booted again.
pub(crate) fn boot(boot: &Boot) -> (tempfile::TempDir, PathBuf) {
    (0..3).find_map(|_| try_boot(boot)).expect("three guests in a row did not end in time")
}

fn try_boot(boot: &Boot) -> Option<(tempfile::TempDir, PathBuf)> {
    let place = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(boot.script);
    let out = place.path().join("lab");
    let mut command = stillcore(&["lab", "run", "--kernel", boot.kernel, "--smp", boot.smp]);
    command.args(["--append", boot.append, "--packages", "busybox-static"]).args(boot.more);
    if !boot.more.contains(&"--timeout") {
        command.args(["--timeout", TIMEOUT]);
    }
    command.arg("--add").arg(format!("{}:/root/guest.sh", script.display())).arg("--out").arg(&out);
    command.args(["--", "/bin/busybox", "sh", "/root/guest.sh"]).args(boot.arguments);
    let output = command.output().unwrap();
    let told = text(&output.stderr);
    if told.contains("did not finish within") || told.contains("because its time was over") {
        println!("{}: the guest did not end in time\n{told}", boot.kernel);
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
    let root = out.join("root");
    Some((place, root))
}

/// What differs between two states of a machine, for messages.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (table, before) in before.as_object().unwrap() {
        let (Some(was), Some(is)) = (before.as_object(), after[table].as_object()) else {
            if *before != after[table] {
                found.push(format!("{table}: {before} then {}", after[table]));
            }
            continue;
        };
        for key in was.keys().chain(is.keys()).collect::<std::collections::BTreeSet<_>>() {
            if was.get(key) != is.get(key) {
                found.push(format!("{table} {key}: {:?} then {:?}", was.get(key), is.get(key)));
            }
        }
    }
    found
}

pub(crate) fn the_same(before: &Value, after: &Value, what: &str) {
    let found = differences(before, after);
    assert!(found.is_empty(), "{what}: {found:?}");
}

/// A test for each kernel of the lab, which calls a function with the kernel's name.
#[allow(unused_macros, reason = "not every test has a matrix")]
macro_rules! each_kernel {
    ($check:ident) => {
        crate::support::guest::each_kernel! { $check:
            matrix_5_10 = "5.10", matrix_5_10_rt = "5.10-rt", matrix_6_1 = "6.1", matrix_6_1_rt = "6.1-rt",
            matrix_6_12 = "6.12", matrix_6_12_rt = "6.12-rt",
        }
    };
    ($check:ident: $($name:ident = $kernel:literal,)*) => {
        $(#[test]
        fn $name() {
            $check($kernel);
        })*
    };
}
#[allow(unused_imports, reason = "not every test has a matrix")]
pub(crate) use each_kernel;
