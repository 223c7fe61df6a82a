//! `kprobe_toggle`: a kernel probe armed and disarmed.
//!
//! Arming puts a breakpoint into kernel text and then, where the kernel can, a jump
//! (kernel/kprobes.c: `arm_kprobe`, `optimize_kprobe`, Documentation/trace/kprobes.rst), and every
//! CPU has to take part. The probe is on a system call that nobody else uses much, and its event is
//! enabled in an instance of its own and removed after it: removing an event that was enabled in a
//! buffer clears that buffer.

use super::trace_event::{OwnInstance, instance, refused};
use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::witness::Counter;
use record::changes::Kprobe;
use record::kprobe;
use std::fs;
use std::path::{Path, PathBuf};
use sys::tracefs;

/// `getpgid`, by the names that architectures and versions give it.
const SYMBOLS: [&str; 4] = ["__x64_sys_getpgid", "__arm64_sys_getpgid", "__riscv_sys_getpgid", "sys_getpgid"];
const GROUP: &str = "stillcore_stress";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "kprobe_toggle",
    title: "a kernel probe armed and disarmed through a tracing instance of its own",
    class: "poke",
    operation: "the probe armed, hit once, and disarmed",
    privilege: "root",
    needs: "tracefs with CONFIG_KPROBE_EVENTS; instances",
    kernel_paths: &[
        "arm_kprobe",
        "text_poke_bp",
        "on_each_cpu(do_sync_core)",
        "kprobe_optimizer",
        "synchronize_rcu_tasks",
    ],
    witness: "hits of the probe in kprobe_profile: one an operation",
    cleanup: "the instance is removed, and the event",
    danger: "a system call that is next to unused costs more",
    default_rate: Some(5.0),
    leaves: |mark| event(mark).into_iter().chain(instance(mark)).collect(),
    tracing: true,
    work,
    ..StressorSpec::PLAIN
};

fn event(mark: &Mark<'_>) -> Option<Leaving> {
    let file = mark.tracefs.as_deref()?.join("kprobe_events");
    let event = format!("{GROUP}/p{}", mark.id.replace('-', "_"));
    Some(Leaving::Kprobe(Kprobe { file, event }))
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let [probe, path] = &job.leaves[..] else {
        return Err(Error::absent("tracefs is mounted nowhere that this user may look"));
    };
    let path = PathBuf::from(path);
    let probe = Probe::define(probe)?;
    let instance = OwnInstance::create(&path, &job.cpus)?;
    let enable = path.join("events").join(&probe.event).join("enable");
    let before = job.begin_counting(Counter::read("kprobe_profile hits", || probe.hits())?)?;
    let done = job.repeat(|| {
        fs::write(&enable, "1")?;
        let hit = sys::process::group();
        fs::write(&enable, "0")?;
        hit.map(drop)
    });
    let witness = before.grown(done.tally.ok)?;
    // Before the event: what it was enabled in must be gone by then.
    drop(instance);
    Ok(done.account(job, witness))
}

/// A defined event that goes with its owner.
struct Probe {
    file: PathBuf,
    tracefs: PathBuf,
    /// `group/name`.
    event: String,
}

impl Probe {
    fn define(target: &str) -> Result<Self, Error> {
        let (events, event) = kprobe::of_target(target).unwrap_or((Path::new(""), ""));
        let probe = Self {
            file: events.to_owned(),
            tracefs: events.parent().unwrap_or(Path::new("")).to_owned(),
            event: event.to_owned(),
        };
        if !events.exists() {
            return Err(Error::absent("this kernel has no kernel probes as events"));
        }
        // Opening the file to truncate it would remove everybody's probes; this does not.
        let outcomes = SYMBOLS.map(|symbol| tracefs::write(events, &format!("p:{event} {symbol}\n")).is_ok());
        if outcomes.contains(&true) {
            return Ok(probe);
        }
        Err(Error::absent("this kernel takes no probe on getpgid"))
    }

    /// Lines of `kprobe_profile`: name, hits, misses.
    fn hits(&self) -> Result<u64, Error> {
        let text = tracefs::read(&self.tracefs.join("kprobe_profile")).map_err(refused)?;
        let name = self.event.rsplit('/').next().unwrap_or_default();
        Ok(hits(&text, name))
    }
}

fn hits(profile: &str, name: &str) -> u64 {
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.next()?.parse().ok())?
    };
    profile.lines().find_map(of).unwrap_or(0)
}

impl Drop for Probe {
    fn drop(&mut self) {
        // The supervisor removes what is left.
        let _ = kprobe::remove(&self.file, &self.event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_found_by_name() {
        let profile = "  p_other                          7               0\n  p12_0                         41               0\n";
        assert_eq!((hits(profile, "p12_0"), hits(profile, "p12")), (41, 0));
    }
}
