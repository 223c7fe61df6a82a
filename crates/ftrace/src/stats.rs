//! The kernel's own statistics of one CPU's buffer: the text of `per_cpu/cpuN/stats`.
//!
//! They are exact where the flags on the pages are not: once a buffer is drained with tracing off,
//! `read_events + overrun + dropped_events` is what was written. Source: kernel/trace/trace.c
//! (`tracing_stats_read`).

/// Statistics of one CPU's buffer. What a kernel does not print is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// Events in the buffer, not yet read.
    pub entries: u64,
    /// Events overwritten by newer ones.
    pub overrun: u64,
    /// Events lost because an interrupted writer had not finished when the buffer wrapped.
    pub commit_overrun: u64,
    /// Bytes not yet read.
    pub bytes: u64,
    /// Events dropped because the buffer was full and must not be overwritten.
    pub dropped_events: u64,
    /// Events read.
    pub read_events: u64,
}

impl CpuStats {
    /// Reads "key: value" lines; unknown keys are left out.
    pub fn parse(text: &str) -> Self {
        let mut stats = Self::default();
        for (key, value) in text.lines().filter_map(|l| l.split_once(':')) {
            let Ok(value) = value.trim().parse() else { continue };
            match key.trim() {
                "entries" => stats.entries = value,
                "overrun" => stats.overrun = value,
                "commit overrun" => stats.commit_overrun = value,
                "bytes" => stats.bytes = value,
                "dropped events" => stats.dropped_events = value,
                "read events" => stats.read_events = value,
                _ => {}
            }
        }
        stats
    }

    /// Events that were written and can no longer be read.
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped_events)
    }
}

/// Statistics from the CPUSTAT options of a file, with the name of the buffer and the CPU.
///
/// An option holds "CPU: N" and the kernel's text; one with "Buffer: NAME" names the buffer of
/// those that follow.
pub(crate) fn of_options(options: &[String]) -> Vec<(String, u32, CpuStats)> {
    let mut buffer = String::new();
    let mut all = Vec::new();
    for text in options {
        let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
        if let Some(name) = value("Buffer:") {
            name.clone_into(&mut buffer);
        }
        if let Some(cpu) = value("CPU:").and_then(|v| v.parse().ok()) {
            all.push((buffer.clone(), cpu, CpuStats::parse(text)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "entries: 3\noverrun: 1038\ncommit overrun: 2\nbytes: 96\noldest event ts:  1379.770592\n\
                        now ts:  1380.216545\ndropped events: 4\nread events: 331\n";

    #[test]
    fn reads_the_kernels_text() {
        let stats = CpuStats::parse(TEXT);
        let expected = CpuStats {
            entries: 3,
            overrun: 1038,
            commit_overrun: 2,
            bytes: 96,
            dropped_events: 4,
            read_events: 331,
        };
        assert_eq!(stats, expected);
        assert_eq!(stats.lost(), 1044);
        assert_eq!(CpuStats::parse("nothing here"), CpuStats::default());
    }

    #[test]
    fn options_name_buffer_and_cpu() {
        let options = [
            format!("CPU: 2\n{TEXT}"),
            "\n\nBuffer: sender\n\n".to_owned(),
            "CPU: 5\nentries: 1\n".to_owned(),
        ];
        let all = of_options(&options);
        assert_eq!(
            all.iter().map(|(b, c, s)| (b.as_str(), *c, s.entries)).collect::<Vec<_>>(),
            [("", 2, 3), ("sender", 5, 1)]
        );
    }
}
