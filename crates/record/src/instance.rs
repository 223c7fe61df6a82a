//! One private tracing instance: created, set up, switched, read for its accounts, removed.

use super::filter::Filter;
use model::Cpus;
use model::run::TraceCpu;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use sys::{Error, tracefs};

/// A directory under `instances/`.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The directory.
    pub path: PathBuf,
}

impl Instance {
    /// Where an instance of this name would be.
    pub fn path_of(tracefs: &Path, name: &str) -> PathBuf {
        tracefs.join("instances").join(name)
    }

    /// Makes the instance, silent and set to record only these CPUs on CLOCK_MONOTONIC.
    pub fn create(path: PathBuf, cpus: &Cpus, buffer_kib: u64) -> Result<Self, Error> {
        fs::create_dir(&path)
            .map_err(|source| Error::os("create the tracing instance", path.display(), source))?;
        let instance = Self { path };
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("tracing_cpumask", &cpus.to_hex())?;
        for cpu in cpus.iter() {
            instance.set(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &buffer_kib.to_string())?;
        }
        Ok(instance)
    }

    /// Whether the kernel has an event, `system:name`.
    pub fn has(&self, event: &str) -> bool {
        self.of(event).is_dir()
    }

    fn of(&self, event: &str) -> PathBuf {
        self.path.join("events").join(event.replace(':', "/"))
    }

    /// Enables an event with the first of the in-kernel filters that this kernel takes, and returns
    /// that filter. `None` where it does not have the event.
    pub fn enable<'f>(&self, event: &str, filters: &'f [Filter]) -> Result<Option<&'f Filter>, Error> {
        if !self.has(event) {
            return Ok(None);
        }
        let dir = self.of(event);
        let set = |filter: &Filter| {
            filter.text.as_ref().map_or(Ok(()), |text| tracefs::write(&dir.join("filter"), text))
        };
        let mut refused = None;
        for filter in filters {
            match set(filter) {
                Ok(()) => {
                    tracefs::write(&dir.join("enable"), "1")?;
                    return Ok(Some(filter));
                }
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(None), Err)
    }

    /// Enables an event as it is. `false` where the kernel does not have it.
    pub fn enable_all(&self, event: &str) -> Result<bool, Error> {
        Ok(self.enable(event, &[Filter::NONE])?.is_some())
    }

    /// Has the kernel's stack recorded behind each event of this name whose fields meet a condition
    /// (Documentation/trace/events.rst, `stacktrace`). `false` where the kernel has no such
    /// trigger. It also acts where recording is off, and on CPUs that are not recorded: there it
    /// costs its time for nothing.
    pub fn stack_behind(&self, event: &str, condition: &str) -> bool {
        let trigger = self.of(event).join("trigger");
        trigger.exists() && tracefs::write(&trigger, &format!("stacktrace if {condition}")).is_ok()
    }

    /// Whether the stack of user space is recorded behind each event of this instance
    /// (Documentation/trace/ftrace.rst, `userstacktrace`). `false` where the kernel has none.
    pub fn user_stacks(&self, on: bool) -> bool {
        let option = self.path.join("options/userstacktrace");
        option.exists() && tracefs::write(&option, if on { "1" } else { "0" }).is_ok()
    }

    /// Whether a stack of user space is among the first events that were recorded.
    pub(crate) fn has_user_stacks(&self) -> Result<bool, Error> {
        const ENOUGH: u64 = 64 << 10;
        const TITLE: &[u8] = b"<user stack trace>";
        let path = self.path.join("trace");
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(ENOUGH).read_to_end(&mut text));
        read.map_err(|source| Error::os("read", path.display(), source))?;
        Ok(text.windows(TITLE.len()).any(|part| part == TITLE))
    }

    /// Forgets what was recorded (Documentation/trace/ftrace.rst, `trace`).
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let path = self.path.join("trace");
        let opened = File::options().write(true).truncate(true).open(&path);
        opened.map(drop).map_err(|source| Error::os("clear", path.display(), source))
    }

    /// Records only what these tasks do, and what tasks do that they fork
    /// (Documentation/trace/events.rst, `set_event_pid`). Descendants first, so that none is missed
    /// that begins between the two writes.
    pub fn follow(&self, tids: &[i32]) -> Result<(), Error> {
        self.set("options/event-fork", "1")?;
        // One write a line: the kernel takes what fits into a page.
        tids.chunks(256).try_for_each(|some| {
            let words: Vec<_> = some.iter().map(i32::to_string).collect();
            tracefs::append(&self.path.join("set_event_pid"), &words.join(" "))
        })
    }

    /// Has full buffers overwrite their oldest events. That is a kernel's default, but instances
    /// inherit the options of the top one.
    pub fn overwrite(&self) -> Result<(), Error> {
        self.set("options/overwrite", "1")
    }

    /// Switches all events of the instance off.
    pub fn disable_events(&self) -> Result<(), Error> {
        self.set("events/enable", "0")
    }

    /// Starts and stops recording; nothing else changes inside a window.
    pub fn record(&self, on: bool) -> Result<(), Error> {
        self.set("tracing_on", if on { "1" } else { "0" })
    }

    /// The kernel's account of one CPU's buffer.
    pub fn account(&self, cpu: u32) -> Result<TraceCpu, Error> {
        let text = tracefs::read(&self.path.join(format!("per_cpu/cpu{cpu}/stats")))?;
        Ok(parse_stats(cpu, &text))
    }

    /// Removes the instance with its buffers.
    pub fn remove(&self) -> Result<(), Error> {
        remove(&self.path)
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        tracefs::write(&self.path.join(file), value)
    }
}

/// Removes an instance directory; one that is gone already is fine.
pub fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_dir(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::os("remove the tracing instance", path.display(), source))
        }
        _ => Ok(()),
    }
}

/// Reads `per_cpu/cpuN/stats`: lines `name: number`, of which kernels add new ones.
fn parse_stats(cpu: u32, text: &str) -> TraceCpu {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    TraceCpu {
        cpu,
        left: value("entries"),
        overrun: value("overrun"),
        commit_overrun: value("commit overrun"),
        dropped: value("dropped events"),
        read: value("read events"),
        ..TraceCpu::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_read_by_name() {
        let text = "entries: 3\noverrun: 4\ncommit overrun: 1\nbytes: 1160\noldest event ts:  5.1\nnow ts:  9.9\n\
                    dropped events: 2\nread events: 77\n";
        let expected = TraceCpu {
            cpu: 1,
            left: 3,
            overrun: 4,
            commit_overrun: 1,
            dropped: 2,
            read: 77,
            ..TraceCpu::default()
        };
        assert_eq!(parse_stats(1, text), expected);
    }
}
