//! `stillcore lab matrix` without a guest: what it refuses, before anything is written.

use crate::support::{assert_refused, stillcore};

#[test]
fn what_cannot_be_run_is_refused_before_any_guest() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("matrix");
    let run = |more: &[&str]| stillcore(&["lab", "matrix", "--out"]).arg(&out).args(more).output().unwrap();
    assert_refused(&run(&["--kernels", "6.2"]), &["no kernel \"6.2\""]);
    assert_refused(&run(&["--stressors", "u_frok"]), &["u_frok"]);
    assert_refused(&run(&["--stressors", "cpu_hotplug"]), &["may harm the machine"]);
    assert_refused(&run(&["--suite", "nothing"]), &["nothing"]);
    assert_refused(&run(&["--smp", "1"]), &["at least two CPUs"]);
    assert!(!out.exists());
}
