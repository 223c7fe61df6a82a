//! In a cpuset without some CPUs, as a container has: the CPUs measured by default are in it, and
//! unavailable ones are reported.

use crate::support::{Place, is_root, text};
use machine::{Root, mounts};
use model::Cpus;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Removed when it is dropped.
struct Cpuset(PathBuf);

impl Cpuset {
    /// With these CPUs; `None` where this machine has no cpusets for us.
    fn of(cpus: &Cpus) -> Option<Self> {
        let all = mounts(&Root::live());
        let v1 = all.iter().find(|mount| {
            mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "cpuset")
        });
        let v2 = all.iter().find(|mount| {
            let handed = fs::read_to_string(format!("{}/cgroup.subtree_control", mount.target));
            mount.kind == "cgroup2"
                && handed.is_ok_and(|text| text.split_whitespace().any(|it| it == "cpuset"))
        });
        let dir = PathBuf::from(&v1.or(v2)?.target).join(format!("test-of-stillcore-{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        let made = Self(dir);
        fs::write(made.0.join("cpuset.cpus"), cpus.to_string()).ok()?;
        // Version 1 takes no task without memory nodes; version 2 has those of the group above.
        let above = made.0.parent().map(|above| fs::read_to_string(above.join("cpuset.mems")));
        if let (Some(_), Some(Ok(nodes))) = (v1, above) {
            fs::write(made.0.join("cpuset.mems"), nodes.trim()).ok()?;
        }
        Some(made)
    }

    fn measure(&self, place: &Place, more: &[&str]) -> Output {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", "echo $$ >\"$0\"/cgroup.procs; exec \"$@\""]).arg(&self.0);
        command.arg(env!("CARGO_BIN_EXE_stillcore")).args(["measure", "wakeup", "--duration", "200ms"]);
        command.arg("--state").arg(place.state()).arg("--out").arg(place.path("run")).args(more);
        command.output().unwrap()
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn what_is_measured_by_default_is_in_the_cpuset_of_the_caller() {
    if !is_root() {
        println!("skipped: making a cpuset takes root");
        return;
    }
    let online = machine::read(&Root::live()).unwrap().topology.online;
    let last = online.iter().max().map(Cpus::one).unwrap();
    let within = online.minus(&last);
    if within.is_empty() {
        println!("skipped: one CPU");
        return;
    }
    let Some(cpuset) = Cpuset::of(&within) else {
        println!("skipped: no cpuset can be made");
        return;
    };
    let place = Place::new();
    let output = cpuset.measure(&place, &[]);
    let why = text(&output.stderr);
    if within.len() > 1 && output.status.success() {
        let run = model::run::stored::read_run(&place.path("run")).unwrap();
        assert!(run.measured_cpus.is_subset(&within), "{} of {within}", run.measured_cpus);
        assert!(run.housekeeping_cpus.is_subset(&within), "{} of {within}", run.housekeeping_cpus);
    } else {
        // Too few of them to keep one free.
        assert!(
            output.status.code() == Some(1) && why.contains("the cpuset of this process has only"),
            "{why}"
        );
    }
    let output = cpuset.measure(&Place::new(), &["--cpus", &last.to_string()]);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{why}");
    assert!(why.contains("the cpuset of this process") && why.contains(&format!("CPU {last}")), "{why}");
    assert!(!why.contains("Invalid argument"), "{why}");
}
