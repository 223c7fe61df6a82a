//! cyclictest's options as they are typed (rt-tests 2.4, `process_options()` of cyclictest.c): the
//! same letters, names, optional values and defaults, abbreviations of long names included. What
//! they mean is said in `plan`.

#![expect(
    clippy::option_option,
    reason = "an option that is absent, given, or given with a value: clap's own form"
)]

use clap::{ArgAction, Parser};
use std::path::PathBuf;

/// cyclictest's options, measured by stillcore: the output is cyclictest's, with comment lines for
/// what cyclictest does not count.
#[derive(Debug, Parser)]
#[command(
    name = "cyclictest",
    disable_help_flag = true,
    infer_long_args = true,
    args_override_self = true,
    max_term_width = 100
)]
pub(crate) struct Options {
    /// Pin thread N to the Nth CPU of the list, in turn; without a list, of all CPUs. !LIST names
    /// all others.
    #[arg(short, long, value_name = "CPUS")]
    pub(super) affinity: Option<Option<String>>,
    /// Release all threads from one instant on, each so much later than the one before it.
    #[arg(short = 'A', long, value_name = "USEC")]
    pub(super) aligned: Option<Option<u32>>,
    /// End at the first latency above this.
    #[arg(short, long, value_name = "USEC", default_value_t = 0)]
    pub(super) breaktrace: u32,
    /// Clock of the releases: 0 is CLOCK_MONOTONIC, 1 CLOCK_REALTIME.
    #[arg(short, long, value_name = "0|1", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(super) clock: u8,
    /// Leave power management as it is.
    #[arg(long)]
    pub(super) default_system: bool,
    /// What each further thread's interval is longer by; with a histogram 0 [default: 500].
    #[arg(short, long, value_name = "USEC")]
    pub(super) distance: Option<u32>,
    /// How long to measure, in seconds, or with m, h or d.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = seconds, default_value = "0")]
    pub(super) duration: u64,
    /// Not done: no named pipe is served.
    #[arg(short = 'F', long, value_name = "PATH")]
    pub(super) fifo: Option<PathBuf>,
    /// Print a histogram of so many bins of 1 us (of 1 ns with -N).
    #[arg(short = 'h', long, value_name = "BINS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) histogram: Option<u32>,
    /// The same with a column for all threads.
    #[arg(short = 'H', long, value_name = "BINS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) histofall: Option<u32>,
    /// Where to write the histogram instead.
    #[arg(long, value_name = "PATH")]
    pub(super) histfile: Option<PathBuf>,
    /// Distance of the first thread's releases.
    #[arg(short, long, value_name = "USEC", default_value_t = 1000)]
    pub(super) interval: u32,
    /// Where to write the results as JSON; - is standard output.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Leave power management as it is.
    #[arg(long)]
    pub(super) laptop: bool,
    /// What to write to /dev/cpu_dma_latency for the length of the measurement.
    #[arg(long, value_name = "USEC", default_value_t = 0)]
    pub(super) latency: u32,
    /// End when a thread has so many samples; 0: never.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub(super) loops: u64,
    /// CPUs of the process that stores the samples.
    #[arg(long, value_name = "CPUS")]
    pub(super) mainaffinity: Option<String>,
    /// No effect: memory is always locked.
    #[arg(short, long)]
    pub(super) mlockall: bool,
    /// Refresh the screen when a maximum has grown only.
    #[arg(short = 'M', long = "refresh_on_max")]
    pub(super) refresh_on_max: bool,
    /// No effect: clock_nanosleep is what is used.
    #[arg(short, long)]
    pub(super) nanosleep: bool,
    /// Figures in ns.
    #[arg(short = 'N', long)]
    pub(super) nsecs: bool,
    /// With -v, the largest of so many samples.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) oscope: u32,
    /// Priority of the first thread; 0 is SCHED_OTHER.
    #[arg(short, long, value_name = "PRIO", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=99))]
    pub(super) priority: u32,
    /// other, normal, batch, idle, fifo or rr; SCHED_FIFO where there is a priority.
    #[arg(long, value_name = "NAME", value_parser = ["other", "normal", "batch", "idle", "fifo", "rr"], ignore_case = true)]
    pub(super) policy: Option<String>,
    /// Each further thread has a priority lower by one.
    #[arg(long)]
    pub(super) priospread: bool,
    /// Print a summary at the end only.
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// No effect: releases are absolute.
    #[arg(short, long)]
    pub(super) relative: bool,
    /// No effect: what a clock read costs is in the run directory.
    #[arg(short = 'R', long)]
    pub(super) resolution: bool,
    /// First releases at the next full second, and so much later.
    #[arg(long, value_name = "USEC", conflicts_with = "aligned")]
    pub(super) secaligned: Option<Option<u32>>,
    /// Not done: SMIs are not counted.
    #[arg(long)]
    pub(super) smi: bool,
    /// One thread a CPU, pinned.
    #[arg(short = 'S', long)]
    pub(super) smp: bool,
    /// List the samples above this.
    #[arg(long, value_name = "USEC", default_value_t = 0)]
    pub(super) spike: u32,
    /// How many of them.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(super) spike_nodes: usize,
    /// No effect: clock_nanosleep is what is used.
    #[arg(short, long)]
    pub(super) system: bool,
    /// Number of threads; without a number, one a CPU [default: 1].
    #[arg(short, long, value_name = "N")]
    pub(super) threads: Option<Option<u32>>,
    /// No effect: the kernel's trace goes on.
    #[arg(long)]
    pub(super) tracemark: bool,
    /// No effect: output is never held back.
    #[arg(short, long)]
    pub(super) unbuffered: bool,
    /// Print every sample: thread, number, value.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// No effect.
    #[arg(long = "dbg_cyclictest")]
    pub(super) dbg_cyclictest: bool,
    /// No effect: clock_nanosleep is what is used.
    #[arg(short = 'x', long = "posix_timers")]
    pub(super) posix_timers: bool,
    /// Print this.
    #[arg(long, action = ArgAction::Help)]
    pub(super) help: Option<bool>,
    /// stillcore's own: keep the samples and a report in this new or empty directory.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// stillcore's own: directory for the journal.
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
}

/// Seconds, or with a unit; cyclictest reads 90 and 90s alike.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no length of time; expected seconds, or a number with m, h or d");
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let scale = match text[end..].to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    number.checked_mul(scale).filter(|seconds| *seconds <= 366 * 86400).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Options {
        Options::try_parse_from(std::iter::once("cyclictest").chain(line.split_whitespace())).unwrap()
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn options_come_in_every_spelling() {
        for line in [
            "-mqp80 -t4 -i200 -l 10",
            "-m -q -p 80 -t 4 -i 200 -l10",
            "--mlock --quiet --priority=80 --threads=4 --inter 200 --loops 10",
        ] {
            let options = parsed(line);
            assert_eq!(
                (options.priority, options.threads, options.interval, options.loops),
                (80, Some(Some(4)), 200, 10),
                "{line}"
            );
            assert!(options.mlockall && options.quiet, "{line}");
        }
        let options = parsed("-Sp90 -a -t -h400 -D1m --secaligned -i 5 -i 6");
        assert_eq!((options.smp, options.affinity, options.threads), (true, Some(None), Some(None)));
        assert_eq!((options.histogram, options.duration, options.interval), (Some(400), 60, 6));
        assert_eq!(options.secaligned, Some(None));
        assert_eq!(parsed("-a 0 -A 50").affinity, Some(Some("0".to_owned())));
    }

    #[test]
    fn lengths_of_time() {
        for (text, expected) in [("90", 90), ("90s", 90), ("2m", 120), ("1H", 3600), ("1d", 86400)] {
            assert_eq!(seconds(text), Ok(expected));
        }
        for text in ["", "m", "1x", "-1", "1.5", "99999999999d"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
