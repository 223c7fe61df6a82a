//! Events of our own where a kernel has none: probes on functions that send IPIs (before 6.4).
//! Linux Documentation/trace/kprobetrace.rst.
//!
//! They are defined for all of the kernel and enabled in the sender instance only, so that measured
//! CPUs do not pay for the recording; only where the user asked, because defining one patches
//! kernel text.

use model::events::EventSpec;
use std::io::ErrorKind;
use std::path::Path;
use sys::{Error, tracefs};

/// Where probes of the kernel are defined, and those of programs (Documentation/trace/uprobetracer.rst).
pub(crate) const KERNEL: &str = "kprobe_events";
pub(crate) const USER: &str = "uprobe_events";
/// Where all are, and probes beside events only there (Documentation/trace/eventprobes.rst).
pub(crate) const ANY: &str = "dynamic_events";

/// The file in which an event's probes are defined.
pub(crate) fn file_of(spec: &EventSpec) -> &'static str {
    if spec.eprobe.is_some() {
        ANY
    } else if spec.uprobes.is_empty() {
        KERNEL
    } else {
        USER
    }
}

/// The separator of file and event in the name of both.
const SEPARATOR: char = '#';

/// The name of an event `group/name` and the file `kprobe_events` it is defined in.
pub fn target_of(events: &Path, event: &str) -> String {
    format!("{}{SEPARATOR}{event}", events.display())
}

/// File and event of such a name.
pub fn of_target(target: &str) -> Option<(&Path, &str)> {
    target.rsplit_once(SEPARATOR).map(|(path, event)| (Path::new(path), event))
}

/// A probe at a function's return, for so many calls at once: more are not seen.
const RETURN: &str = "r256";

/// How the functions of system calls are called, and where their first arguments are in the
/// registers that these get (`struct pt_regs`: arch/x86/include/asm/ptrace.h,
/// arch/arm64/include/asm/ptrace.h).
const SYSCALL: [(&str, &str); 3] = if cfg!(target_arch = "x86_64") {
    [("{syscall}", "__x64_sys_"), ("{argument0}", "+112($arg1)"), ("{argument1}", "+104($arg1)")]
} else {
    [("{syscall}", "__arm64_sys_"), ("{argument0}", "+0($arg1)"), ("{argument1}", "+8($arg1)")]
};

/// Defines the event. `highest`: the last CPU that a mask may hold.
pub fn define(tracefs: &Path, spec: &EventSpec, highest: u32) -> Result<(), Error> {
    let probe = spec.kprobe.as_deref().unwrap_or_default();
    let return_address = if cfg!(target_arch = "x86_64") { "$stack0" } else { "%x30" };
    let words = highest / 64 + 1;
    let probe = probe.replace("{return}", return_address).replace("{words}", &words.to_string());
    let probe = SYSCALL.iter().fold(probe, |probe, (name, text)| probe.replace(name, text));
    let kind = if spec.returns { RETURN } else { "p" };
    let name = spec.name.replace(':', "/");
    if !spec.uprobes.is_empty() {
        // Of the same name and fields, each further one is added to the event (since 5.4).
        let kind = if spec.returns { "r" } else { "p" };
        let file = tracefs.join(USER);
        let define = |probe: &String| tracefs::write(&file, &format!("{kind}:{name} {probe}\n"));
        // An event with some of its probes would miss calls.
        return spec.uprobes.iter().try_for_each(define).inspect_err(|_| drop(remove(&file, &name)));
    }
    if let Some(probe) = &spec.eprobe {
        return tracefs::write(&tracefs.join(ANY), &format!("e:{name} {probe}\n"));
    }
    let line = format!("{kind}:{name} {probe}\n");
    // Opening the file to truncate it would remove everybody's probes; this does not.
    tracefs::write(&tracefs.join(KERNEL), &line)
}

/// Whether the event is defined in such a file; it is not where there is no such file.
/// An error where that cannot be read: then it may be.
pub fn is_defined(file: &Path, event: &str) -> Result<bool, Error> {
    match tracefs::read(file) {
        Ok(events) => Ok(events.lines().any(|line| line.contains(&format!(":{event} ")))),
        Err(Error::Os { source, .. })
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Takes [`define`] back; an event that is gone already is fine.
pub fn remove(file: &Path, event: &str) -> Result<(), Error> {
    if is_defined(file, event)? { tracefs::write(file, &format!("-:{event}\n")) } else { Ok(()) }
}
