//! What `monitor start` takes.

use clap::Args;
use model::Cpus;
use model::quantity::{bytes, duration};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `monitor start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// CPUs to watch, as a list such as 2,3 or 4-7 [default: the isolated CPUs, else the highest].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Watch the wake-ups of threads with this name, whatever their policy; repeat it for several
    /// [default: all real-time threads].
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Vec<String>,
    /// A wake-up that takes longer is a breach.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    pub(crate) over: Duration,
    /// An interrupt, softirq or other interference that lasts longer is a breach, too.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) interference_over: Option<Duration>,
    /// How much of the time before a breach is kept with it.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    pub(crate) before: Duration,
    /// Most disk space of all breaches together, such as 64M or 2G; the oldest give way.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub(crate) quota: u64,
    /// Keep at most so many breaches an hour; others are counted.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) per_hour: u32,
    /// Address of the metrics, or none.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9469", value_parser = address)]
    pub(crate) listen: Listen,
    /// Also write the metrics to stillcore.prom in this directory, every ten seconds.
    #[arg(long, value_name = "DIR")]
    pub(crate) textfile: Option<PathBuf>,
    /// Also record kernel stacks on these CPUs: shows which kernel code delayed a thread.
    #[arg(long)]
    pub(crate) stacks: bool,
    /// Users, by number, whose programs may report that they were late, beside root.
    #[arg(long, value_name = "UID")]
    pub(crate) reporter: Vec<u32>,
    /// Keep a history of so many days, a line every ten minutes; 0 for none.
    #[arg(long, value_name = "DAYS", default_value_t = 35, value_parser = clap::value_parser!(u32).range(0..=3660))]
    pub(crate) history: u32,
    /// Name of the machine in its history, for a container, which has another [default: its host
    /// name].
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Program that is started for each breach that is kept, with the breach as JSON on its
    /// standard input; nobody but root may be able to change it.
    #[arg(long, value_name = "PATH")]
    pub(crate) on_breach: Option<PathBuf>,
    /// User and group of that program, by number.
    #[arg(long, value_name = "UID", default_value_t = 65534)]
    pub(crate) on_breach_user: u32,
    /// Stop after this time.
    #[arg(long, short = 'D', value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Directory of the journal; breaches go into its subdirectory monitor [default:
    /// /var/lib/stillcore].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Write a systemd unit that makes this call after each boot.
    #[arg(long, conflicts_with_all = ["remove", "duration", "json"])]
    pub(crate) install: bool,
    /// Remove that unit.
    #[arg(long)]
    pub(crate) remove: bool,
    /// With --install: only print the unit.
    #[arg(long, requires = "install")]
    pub(crate) print: bool,
    /// With --install: program that the unit starts [default: this one].
    #[arg(long, value_name = "PATH", requires = "install")]
    pub(crate) program: Option<PathBuf>,
    /// Print one JSON object per breach.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where metrics are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listen {
    Nowhere,
    At(SocketAddr),
}

fn address(text: &str) -> Result<Listen, String> {
    if text == "none" {
        return Ok(Listen::Nowhere);
    }
    let wrong = || {
        format!("invalid address {text:?}: expected none, or an address with a port, such as 127.0.0.1:9469")
    };
    text.parse().map(Listen::At).map_err(|_| wrong())
}

fn size(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 20;
    let wrong = || format!("invalid size {text:?}: expected a number with M or G, such as 64M");
    match bytes(text).ok_or_else(wrong)? {
        size if size < LEAST => Err(format!("{size} bytes hold too little: expected at least 1M")),
        size => Ok(size),
    }
}
