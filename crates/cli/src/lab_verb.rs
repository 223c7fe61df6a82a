//! `stillcore lab run`: a command in a guest kernel, as if it were another machine.
//!
//! What the guest prints on its console goes to stderr while it runs; the command's own stdout goes
//! to stdout at the end, and its exit code is ours. Relative paths of the command are under /root
//! of the guest, and all of /root comes back, under `root/` of the result directory.

use crate::run::progress::Reporter;
use crate::values::guest_time;
use crate::verbs::stop_on;
use anyhow::Context as _;
use clap::Args;
use lab::kernels::{self, Kernel};
use lab::spec::DEFAULT_MEMORY_MIB;
use lab::{Accel, Addition, Arch, Event, Nic, Outcome, Smp, Spec, Stop};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::signals::EndSignals;

/// More emulated machines than this at once wait for each other on hosts of today.
const MOST_JOBS: usize = 3;

/// Hidden first argument: become the words after it, bound to the process whose id comes first.
pub(crate) const EXEC_BOUND: &str = "__exec-bound";

/// Arguments of `stillcore lab run`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Guest architecture [default: this machine's].
    #[arg(long, value_name = "x86_64|aarch64")]
    arch: Option<Arch>,
    /// Kernel: 5.10, 5.10-rt, 6.1, 6.1-rt, 6.12, 6.12-rt, or the path of a kernel image.
    #[arg(long, default_value = "6.1")]
    kernel: String,
    /// Cores, or cores and threads such as 4x2.
    #[arg(long, default_value = "4")]
    smp: Smp,
    /// Guest memory, MiB.
    #[arg(long, value_name = "MIB", default_value_t = DEFAULT_MEMORY_MIB)]
    memory: u32,
    /// Words to append to the kernel command line.
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Add two network cards, connected only to each other, for disturbances that have clients.
    #[arg(long, value_name = "e1000|virtio")]
    nic: Option<Nic>,
    /// Kernel module to load before the command; repeatable.
    #[arg(long = "module", value_name = "NAME")]
    modules: Vec<String>,
    /// Debian packages to install in the guest.
    #[arg(long, value_delimiter = ',')]
    packages: Vec<String>,
    /// Static program that runs the command [default: this program].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// File or directory to copy into the guest; repeatable [default GUEST: /root/NAME].
    #[arg(long, value_name = "HOST[:GUEST]")]
    add: Vec<Addition>,
    /// Accelerator: tcg emulates; kvm is faster where available; auto tries kvm first. icount
    /// emulates one CPU whose clock counts instructions, 64 ns each or NS of icount:NS, and skips
    /// idle time, so it runs ahead of the host's.
    #[arg(long, default_value = "tcg")]
    accel: Accel,
    /// Kill the guest after this time, and its command after three quarters of it.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = guest_time)]
    timeout: Duration,
    /// Kill only the command after this time; its files are still copied back.
    #[arg(long, value_name = "TIME", value_parser = guest_time)]
    limit: Option<Duration>,
    /// New or empty directory for the results [default: lab-TIME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the outcome as one JSON object instead of the command's stdout.
    #[arg(long)]
    pub(crate) json: bool,
    /// Command to run: a program of the guest if it begins with /, else arguments of --binary.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the guest; returns the exit code of its command. A signal ends it early.
pub(crate) fn run(args: &RunArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    let spec = spec(args.clone())?;
    let outcome = lab::run(&spec, Path::new("/etc/apt"), &stop_on(signals)?, &mut |event| show(event))?;
    warn(&outcome);
    let mut stdout = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &outcome)?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(&std::fs::read(outcome.out.join("stdout")).unwrap_or_default())?;
    }
    stdout.flush()?;
    Ok(u8::try_from(outcome.exit_code).unwrap_or(1))
}

/// The hidden verb; returns only on failure. `words` are the parent's process id and the program.
pub(crate) fn exec_bound(words: &[OsString]) -> anyhow::Error {
    let parent = words.first().and_then(|word| word.to_str()).and_then(|word| word.parse().ok());
    match parent {
        Some(parent) => anyhow::Error::new(lab::guest::exec_bound(parent, &words[1..])),
        None => anyhow::anyhow!("{EXEC_BOUND} is for this program's own use"),
    }
}

/// The programs of a guest.
pub(crate) struct Programs {
    /// Its first one.
    pub(crate) init: PathBuf,
    /// What runs the command, if another.
    pub(crate) binary: Option<PathBuf>,
}

/// This program as the guest's first, unless the guest is of another architecture.
pub(crate) fn programs(arch: Arch, binary: Option<PathBuf>) -> anyhow::Result<Programs> {
    let own = own()?;
    // A guest of another architecture needs another build of us; --binary is then both.
    let init = if Arch::host() == Some(arch) { own } else { binary.clone().unwrap_or(own) };
    let binary = binary.filter(|binary| *binary != init);
    Ok(Programs { init, binary })
}

/// The same for guests without packages; refuses what they cannot run.
pub(crate) fn programs_alone(arch: Arch, binary: Option<PathBuf>) -> anyhow::Result<Programs> {
    let programs = programs(arch, binary)?;
    lab::initramfs::check_program(&programs.init, arch, true)?;
    programs.binary.iter().try_for_each(|binary| lab::initramfs::check_program(binary, arch, false))?;
    Ok(programs)
}

fn own() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's own file")
}

/// Guests at a time where nothing is said.
pub(crate) fn spare() -> NonZeroUsize {
    let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cpus.saturating_sub(1).clamp(1, MOST_JOBS)).unwrap_or(NonZeroUsize::MIN)
}

/// Fetches every kernel before the first guest is booted, so that a missing one is known at once.
pub(crate) fn fetch(names: &[String], arch: Arch, stop: &Stop) -> anyhow::Result<BTreeMap<String, Kernel>> {
    let cache = cache()?;
    let mut found = BTreeMap::new();
    for name in names {
        let mut note = |text: &str| Reporter::say(&format!("lab: {text}"));
        let kernel = match name.parse() {
            Ok(known) => kernels::fetch(&cache, Path::new("/etc/apt"), known, arch, stop, &mut note)?,
            Err(_) => kernels::given(Path::new(name), Path::new("/"))?,
        };
        found.insert(name.clone(), kernel);
    }
    Ok(found)
}

/// Refuses a name that is neither a kernel of the lab's nor a file.
pub(crate) fn known(names: &[String]) -> Result<(), lab::Error> {
    let unknown = names.iter().filter(|name| !Path::new(name).exists());
    unknown.into_iter().try_for_each(|name| name.parse::<lab::kernels::KernelName>().map(|_| ()))
}

/// What makes an emulator die with this process.
pub(crate) fn launcher() -> anyhow::Result<Vec<OsString>> {
    Ok(vec![own()?.into(), EXEC_BOUND.into(), std::process::id().to_string().into()])
}

/// The lab's cache.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    Ok(lab::cache::dir(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?)
}

fn spec(args: RunArgs) -> anyhow::Result<Spec> {
    let arch =
        args.arch.or_else(Arch::host).context("no guests for this machine's architecture: give --arch")?;
    let Programs { init, binary } = programs(arch, args.binary)?;
    Ok(Spec {
        arch,
        kernel: args.kernel,
        smp: args.smp,
        memory_mib: args.memory,
        append: args.append,
        nic: args.nic,
        modules: args.modules,
        packages: args.packages,
        init,
        binary,
        add: args.add,
        accel: args.accel,
        timeout: args.timeout,
        limit: args.limit,
        out: args.out.unwrap_or_else(default_out),
        cache: cache()?,
        launcher: launcher()?,
        command: args.command,
    })
}

fn default_out() -> PathBuf {
    format!("lab-{}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ")).into()
}

/// A closed stderr is no reason to stop a guest.
fn show(event: Event<'_>) {
    let mut stderr = io::stderr().lock();
    let _ = match event {
        Event::Note(text) => writeln!(stderr, "lab: {text}"),
        Event::Console(bytes) => stderr.write_all(bytes),
    };
}

fn warn(outcome: &Outcome) {
    if outcome.timed_out {
        show(Event::Note("the command was killed in the guest because its time was over"));
    }
    for skipped in &outcome.skipped {
        show(Event::Note(&format!("not brought back: {skipped}")));
    }
    let accel = outcome.accel;
    let text = format!(
        "kernel {} under {accel}, exit code {}, {:.1} s, results in {}",
        outcome.release,
        outcome.exit_code,
        outcome.wall_s,
        outcome.out.display()
    );
    show(Event::Note(&text));
}
