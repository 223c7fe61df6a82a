//! One lab run from beginning to end: kernel, modules, initial file system, boot, results.

use crate::arch::Arch;
use crate::error::{Error, IoContext, Result};
use crate::frame::{self, FrameError};
use crate::guest_config::{CONFIG_SCHEMA, GuestConfig, GuestReport, PORT};
use crate::kernels::{self, Kernel};
use crate::modules::{self, Module};
use crate::program::Program;
use crate::qemu::{self, Boot};
use crate::spec::{Accel, Nic, Spec};
use crate::stop::Stop;
use crate::vm::{End, Limits, Vm};
use crate::workdir::WorkDir;
use crate::{initramfs, packages, results};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the result channel needs in the guest.
const CHANNEL_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];
/// A guest under KVM that has printed nothing for so long is given up (INTERFACES, "Lab").
const KVM_SILENCE: Duration = Duration::from_secs(10);
/// The console as it came, in the result directory.
const CONSOLE_LOG: &str = "console.log";
/// Schema of `lab.json`.
const SCHEMA: &str = "stillcore.lab/1";

/// What happens meanwhile, for whoever shows it.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Something the user may want to know, one line.
    Note(&'a str),
    /// Bytes from the guest's console.
    Console(&'a [u8]),
}

/// `lab.json`: what was booted, how, and how it ended.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// `stillcore.lab/1`.
    pub schema: &'static str,
    /// `uname -r` as the guest itself said.
    pub release: String,
    /// Package and version of the kernel; `None` for one given by path.
    pub package: Option<String>,
    /// SHA-256 of the kernel image.
    pub kernel_sha256: String,
    /// Guest architecture.
    pub arch: Arch,
    /// "tcg", "kvm" or "icount": what the result was made with.
    pub accel: &'static str,
    /// KVM was tried first and showed no sign of life.
    pub fell_back: bool,
    /// First line of `qemu-system-… --version`.
    pub qemu_version: String,
    /// The QEMU command line.
    pub qemu: Vec<String>,
    /// From the start of QEMU to its end, seconds. Says nothing about the guest's own clock.
    pub wall_s: f64,
    /// Exit code of the command.
    pub exit_code: i32,
    /// The command was killed because its time was over.
    pub timed_out: bool,
    /// What did not go as it should in the guest.
    pub problems: Vec<String>,
    /// Files that were not brought back.
    pub skipped: Vec<String>,
    /// Where the results are.
    pub out: PathBuf,
}

/// Boots a guest, runs the command there and brings the results back. Blocks; `stop` ends it from
/// elsewhere.
pub fn run(spec: &Spec, etc_apt: &Path, stop: &Stop, events: &mut dyn FnMut(Event<'_>)) -> Result<Outcome> {
    check(spec)?;
    let qemu_version = qemu_version(spec.arch, stop)?;
    let work = WorkDir::create(&spec.cache, stop)?;
    let initramfs = work.join("initramfs");
    let (kernel, package_mib) = files(spec, etc_apt, &work, &initramfs, stop, events)?;
    results::prepare_dir(&spec.out)?;

    let boot = Boot {
        arch: spec.arch,
        accel: if matches!(spec.accel, Accel::Icount { .. }) { spec.accel } else { Accel::Tcg },
        smp: spec.smp,
        // Once in the archive and once unpacked, until the kernel frees the archive.
        memory_mib: spec.memory_mib + 3 * package_mib,
        nic: spec.nic,
        kernel: kernel.image.clone(),
        initramfs,
        append: qemu::kernel_command_line(spec.arch, spec.smp, &spec.append),
        port_file: work.join("port"),
        serial_file: work.join("serial"),
    };
    let (boot, booted) = boot_with_fallback(spec, boot, stop, events)?;
    let report = collect(spec, &boot, &booted)?;
    let outcome = Outcome { qemu_version, ..outcome(spec, &kernel, &boot, &booted, report)? };
    let json =
        serde_json::to_vec_pretty(&outcome).map_err(std::io::Error::other).context("encode", &spec.out)?;
    fs::write(spec.out.join("lab.json"), json).context("write", spec.out.join("lab.json"))?;
    Ok(outcome)
}

/// Writes what a guest starts from to `initramfs`, for one that is booted by other means; gives the
/// kernel's image.
pub fn prepare(
    spec: &Spec,
    etc_apt: &Path,
    initramfs: &Path,
    stop: &Stop,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<PathBuf> {
    check(spec)?;
    let work = WorkDir::create(&spec.cache, stop)?;
    Ok(files(spec, etc_apt, &work, initramfs, stop, events)?.0.image)
}

/// The kernel, the modules that the guest needs of it, the packages, and the initial file system
/// made of them; gives the size of the packages too, MiB.
fn files(
    spec: &Spec,
    etc_apt: &Path,
    work: &WorkDir,
    initramfs: &Path,
    stop: &Stop,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(Kernel, u32)> {
    let kernel = find_kernel(spec, etc_apt, stop, events)?;
    let modules = guest_modules(&kernel, spec, events)?;
    let trees =
        packages::unpack(spec, etc_apt, &work.join("packages"), stop, &mut |note| events(Event::Note(note)))?;
    let options = kernel_options(&kernel, events)?;
    write_initramfs(spec, &modules, options, &trees, initramfs)?;
    Ok((kernel, (packages::size(&trees) >> 20) as u32))
}

/// What can be refused before anything is fetched or written.
fn check(spec: &Spec) -> Result<()> {
    if spec.command.is_empty() {
        return Err(Error::Argument {
            what: "command",
            value: String::new(),
            expected: "a command after --".into(),
        });
    }
    if matches!(spec.accel, Accel::Icount { .. }) && spec.smp.cpus() > 1 {
        return Err(Error::Argument {
            what: "smp",
            value: spec.smp.to_string(),
            expected: "1 with --accel icount (with more the emulator does not come up)".into(),
        });
    }
    if let Err(unknown) = spec.kernel.parse::<kernels::KernelName>()
        && !Path::new(&spec.kernel).exists()
    {
        return Err(unknown);
    }
    initramfs::check_program(&spec.init, spec.arch, true)?;
    if let Some(binary) = &spec.binary {
        // With packages in the guest there may be a dynamic loader.
        if spec.packages.is_empty() {
            initramfs::check_program(binary, spec.arch, false)?;
        }
    }
    for addition in &spec.add {
        fs::metadata(&addition.host).context("read", &addition.host)?;
    }
    if spec.out.is_dir() && fs::read_dir(&spec.out).context("read", &spec.out)?.next().is_some() {
        return Err(Error::OutputNotEmpty { path: spec.out.clone() });
    }
    Ok(())
}

/// First line of the emulator's `--version`. Checked before any download, so that a missing
/// emulator is reported first.
pub fn qemu_version(arch: Arch, stop: &Stop) -> Result<String> {
    let (name, package) = arch.qemu();
    let qemu = Program { name, package };
    let text = qemu.run(&mut qemu.command(["--version"]), stop)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn find_kernel(
    spec: &Spec,
    etc_apt: &Path,
    stop: &Stop,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Kernel> {
    let path = Path::new(&spec.kernel);
    match spec.kernel.parse() {
        Ok(name) => {
            kernels::fetch(&spec.cache, etc_apt, name, spec.arch, stop, &mut |note| events(Event::Note(note)))
        }
        Err(_) => kernels::given(path, Path::new("/")),
    }
}

/// The modules of the channel and of the network cards, and the user's. A kernel given without
/// modules is taken to have the channel built in.
fn guest_modules(kernel: &Kernel, spec: &Spec, events: &mut dyn FnMut(Event<'_>)) -> Result<Vec<Module>> {
    let driver = spec.nic.map(Nic::module);
    let wanted = driver.into_iter().chain(spec.modules.iter().map(String::as_str));
    if kernel.modules.is_some() {
        return modules::resolve(kernel, &CHANNEL_MODULES.into_iter().chain(wanted).collect::<Vec<_>>());
    }
    events(Event::Note("no modules found for this kernel: the result channel must be built into it"));
    modules::resolve(kernel, &wanted.collect::<Vec<_>>())
}

/// The kernel's build options for the guest, at the place where a distribution keeps them, so that
/// an audit there knows them.
fn kernel_options(kernel: &Kernel, events: &mut dyn FnMut(Event<'_>)) -> Result<Option<(String, Vec<u8>)>> {
    let text = kernel.config_text()?;
    if text.is_none() {
        events(Event::Note("no build options found for this kernel (config-RELEASE beside its image)"));
    }
    Ok(text.map(|text| (format!("boot/config-{}", kernel.release), text)))
}

fn write_initramfs(
    spec: &Spec,
    modules: &[Module],
    options: Option<(String, Vec<u8>)>,
    trees: &[PathBuf],
    path: &Path,
) -> Result<()> {
    let config = guest_config(spec, modules);
    let contents = initramfs::Contents {
        init: &spec.init,
        binary: spec.binary.as_deref(),
        config: &config,
        modules,
        options,
        add: &spec.add,
        trees,
    };
    initramfs::write(&contents, path)
}

fn guest_config(spec: &Spec, modules: &[Module]) -> GuestConfig {
    let mut argv = spec.command.clone();
    if !argv[0].starts_with('/') {
        argv.insert(0, initramfs::program_path(spec.binary.as_deref()));
    }
    let env = [
        ("HOME", "/root"),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("TERM", "dumb"),
        ("LANG", "C.UTF-8"),
    ];
    GuestConfig {
        schema: CONFIG_SCHEMA.into(),
        hostname: "stillcore-lab".into(),
        argv,
        env: env
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<BTreeMap<_, _>>(),
        cwd: "/root".into(),
        modules: initramfs::module_paths(modules),
        port: PORT.into(),
        serial: spec.arch.second_serial().map(str::to_owned),
        deadline_s: deadline_s(spec),
        limit_s: spec.limit.map(|limit| limit.as_secs()),
    }
}

/// By when the command has to have ended, on the guest's clock.
fn deadline_s(spec: &Spec) -> u64 {
    match spec.accel {
        // How much faster that clock runs is unknown; `timeout` is the host's.
        Accel::Icount { .. } => u64::from(u32::MAX),
        // The rest is for booting, sending and powering off.
        Accel::Tcg | Accel::Kvm | Accel::Auto => (spec.timeout.as_secs() * 3 / 4).max(1),
    }
}

/// One finished boot.
struct Booted {
    end: End,
    wall: Duration,
    complaints: String,
    last_line: String,
    pub fell_back: bool,
}

fn boot_with_fallback(
    spec: &Spec,
    mut boot: Boot,
    stop: &Stop,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(Boot, Booted)> {
    if matches!(spec.accel, Accel::Kvm | Accel::Auto) {
        let native = Arch::host() == Some(spec.arch);
        boot.accel = Accel::Kvm;
        let silence = (spec.accel == Accel::Auto).then_some(KVM_SILENCE);
        if spec.accel == Accel::Auto && !(native && Path::new("/dev/kvm").exists()) {
            events(Event::Note("no KVM for this guest here: it is emulated"));
        } else {
            let booted = boot_once(spec, &boot, silence, stop, events)?;
            let dead = booted.end == End::Silent || booted.last_line.is_empty();
            if spec.accel == Accel::Kvm || booted.end == End::Stopped || !dead {
                return Ok((boot, booted));
            }
            let reason =
                booted.complaints.lines().next().unwrap_or("nothing on the console for 10 s").to_owned();
            events(Event::Note(&format!(
                "the guest shows no sign of life under KVM ({reason}): it is emulated instead"
            )));
        }
        boot.accel = Accel::Tcg;
    }
    let fell_back = spec.accel == Accel::Auto;
    let booted = boot_once(spec, &boot, None, stop, events)?;
    Ok((boot, Booted { fell_back, ..booted }))
}

fn boot_once(
    spec: &Spec,
    boot: &Boot,
    silence: Option<Duration>,
    stop: &Stop,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<Booted> {
    let log_path = spec.out.join(CONSOLE_LOG);
    let mut log = File::create(&log_path).context("create", &log_path)?;
    let mut log_error = None;
    let mut last_line = LastLine::default();
    let words = qemu::command_line(boot)?;
    let mut vm = Vm::start(&spec.launcher, &words, spec.arch.qemu().1)?;
    let started = Instant::now();
    let end = vm.watch(Limits { timeout: spec.timeout, silence }, stop, &mut |bytes| {
        log_error = log_error.take().or(log.write_all(bytes).err());
        last_line.push(bytes);
        events(Event::Console(bytes));
    })?;
    let wall = started.elapsed();
    log_error.map_or(Ok(()), Err).context("write", &log_path)?;
    Ok(Booted { end, wall, complaints: vm.complaints(), last_line: last_line.text(), fell_back: false })
}

/// Checks the frame, unpacks it, and reads the guest's report.
fn collect(spec: &Spec, boot: &Boot, booted: &Booted) -> Result<GuestReport> {
    let console = spec.out.join(CONSOLE_LOG);
    match booted.end {
        End::Stopped => return Err(Error::Stopped { console }),
        End::Timeout | End::Silent => {
            return Err(Error::Timeout { timeout_s: spec.timeout.as_secs(), console });
        }
        End::Exited(_) => {}
    }
    let stream = sent(boot);
    let tar = frame::decode(&stream).map_err(|error| Error::NoResult {
        reason: reason(&error, booted),
        last_line: booted.last_line.clone(),
        console,
    })?;
    results::unpack(tar, &spec.out)?;
    let path = spec.out.join("guest.json");
    let bytes = fs::read(&path).context("read", &path)?;
    serde_json::from_slice(&bytes).map_err(|error| Error::Format {
        path,
        format: "guest report",
        reason: error.to_string(),
    })
}

/// What came over the port, or, if nothing did, over the serial line.
fn sent(boot: &Boot) -> Vec<u8> {
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    Some(read(&boot.port_file)).filter(|bytes| !bytes.is_empty()).unwrap_or_else(|| read(&boot.serial_file))
}

fn reason(error: &FrameError, booted: &Booted) -> String {
    match (booted.end, booted.complaints.lines().next_back()) {
        (End::Exited(status), Some(complaint)) if !status.success() => format!("QEMU: {complaint}"),
        _ => error.to_string(),
    }
}

fn outcome(
    spec: &Spec,
    kernel: &Kernel,
    boot: &Boot,
    booted: &Booted,
    report: GuestReport,
) -> Result<Outcome> {
    let image = kernel.read(&kernel.image)?;
    let (kernel_sha256, _) = frame::digest(&mut &image[..]).context("read", &kernel.image)?;
    Ok(Outcome {
        schema: SCHEMA,
        release: report.release,
        package: kernel
            .stored
            .as_ref()
            .map(|(_, manifest)| format!("{} {}", manifest.package, manifest.version)),
        kernel_sha256,
        arch: spec.arch,
        accel: boot.accel.name(),
        fell_back: booted.fell_back,
        qemu_version: String::new(),
        qemu: qemu::command_line(boot)?.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        wall_s: booted.wall.as_secs_f64(),
        exit_code: report.exit_code,
        timed_out: report.timed_out,
        problems: report.problems,
        skipped: report.skipped,
        out: spec.out.clone(),
    })
}

/// The last line with something on it, from a stream cut anywhere.
#[derive(Default)]
struct LastLine {
    current: Vec<u8>,
    last: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => {
                    if !self.current.trim_ascii().is_empty() {
                        self.last = std::mem::take(&mut self.current);
                    }
                    self.current.clear();
                }
                _ => self.current.push(*byte),
            }
        }
    }

    fn text(&self) -> String {
        let line = if self.current.trim_ascii().is_empty() { &self.last } else { &self.current };
        String::from_utf8_lossy(line).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn last_line_does_not_depend_on_the_cuts(text in "([a-c ]{0,5}(\r\n|\n)?){0,8}", cut in 1usize..6) {
            let mut line = LastLine::default();
            text.as_bytes().chunks(cut).for_each(|chunk| line.push(chunk));
            let expected = text.split(['\n', '\r']).rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
            prop_assert_eq!(line.text(), expected);
        }
    }
}
