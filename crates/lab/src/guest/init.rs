//! The command as the first program (pid 1) of a lab guest: start the machine, run what the host
//! ordered, send back what it made, power off. The steps are `crate::guest`'s, the formats `lab`'s;
//! here is only their order.

use super::FirstProgram;
use crate::frame::SealWriter;
use crate::guest_config::{CONFIG_PATH, GREETING, GuestConfig, GuestReport, REPORT_SCHEMA};
use crate::results::Listing;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// What the command printed, outside of its working directory.
const STDOUT: &str = "/run/stillcore-lab-stdout";
const STDERR: &str = "/run/stillcore-lab-stderr";

/// Whether this process is what a lab guest was booted for.
pub fn is_wanted() -> bool {
    FirstProgram::claim().is_some() && Path::new(CONFIG_PATH).exists()
}

/// Does everything and powers off. The console reports every failure, and the results do where that
/// still works.
pub fn run() -> ! {
    let Some(first) = FirstProgram::claim() else { std::process::exit(1) };
    println!("{GREETING}");
    if let Err(error) = serve(&first) {
        println!("stillcore-lab: {error}");
    }
    super::power_off(first)
}

fn serve(first: &FirstProgram) -> io::Result<()> {
    let config: GuestConfig = serde_json::from_slice(&fs::read(CONFIG_PATH)?)?;
    let mut report = GuestReport { schema: REPORT_SCHEMA.into(), ..GuestReport::default() };
    report.problems = start(first, &config);
    report.release = super::kernel_release();

    let ended = super::run_command(
        first,
        &super::Orders {
            argv: &config.argv,
            env: &config.env,
            cwd: Path::new(&config.cwd),
            limit: limit(&config),
            stdout: Path::new(STDOUT),
            stderr: Path::new(STDERR),
        },
    );
    report.exit_code = ended.exit_code;
    report.timed_out = ended.timed_out;
    report.problems.extend(ended.problem);
    for problem in &report.problems {
        println!("stillcore-lab: {problem}");
    }
    send(&config, report)
}

/// Time left for the command: until the deadline, or less if it has a limit of its own.
fn limit(config: &GuestConfig) -> Duration {
    let left = Duration::from_secs(config.deadline_s).saturating_sub(super::uptime());
    config.limit_s.map_or(left, |own| left.min(Duration::from_secs(own)))
}

/// Starts the machine; returns what failed, one sentence each.
fn start(first: &FirstProgram, config: &GuestConfig) -> Vec<String> {
    let mut problems = super::mount_all(first);
    problems.extend(super::set_hostname(first, &config.hostname).err());
    problems
        .extend(config.modules.iter().filter_map(|path| super::load_module(first, Path::new(path)).err()));
    problems.extend(super::loopback_up().err());
    problems.extend(fs::create_dir_all(&config.cwd).err().map(|error| format!("{}: {error}", config.cwd)));
    problems
}

/// Two passes over the same listing: one for length and digest, one for the bytes. Results may be
/// larger than memory would hold twice.
fn send(config: &GuestConfig, mut report: GuestReport) -> io::Result<()> {
    let mut listing = Listing::default();
    listing.add_tree(Path::new(&config.cwd), Path::new("root"));
    listing.add_file(Path::new(STDOUT), "stdout");
    listing.add_file(Path::new(STDERR), "stderr");
    report.skipped = std::mem::take(&mut listing.skipped);
    let (log, report) = (machine::kernel_log(), serde_json::to_vec_pretty(&report)?);
    let extra = [("dmesg", log.as_bytes()), ("guest.json", report.as_slice())];

    let mut seal = SealWriter::default();
    listing.pack(&extra, &mut seal)?;
    let channel =
        super::open_result_channel(&config.port, config.serial.as_deref()).map_err(io::Error::other)?;
    let mut channel = io::BufWriter::with_capacity(1 << 16, channel);
    channel.write_all(&seal.finish().header())?;
    listing.pack(&extra, &mut channel)?;
    channel.flush()
}
