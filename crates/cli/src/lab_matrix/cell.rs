//! One cell of the matrix on the host's side: boots a guest, gives it its order and reads its
//! results; up to three times.

use super::inside::{self, Ended, Order};
use super::profile::Profile;
use crate::lab_verb;
use crate::run::progress::Reporter;
use anyhow::Context;
use lab::kernels::Kernel;
use lab::{Accel, Arch, Event, Smp, Spec, Stop, modules};
use model::{Error, store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Emulated CPUs of a crowded host hang now and then; such a guest is booted again.
const TRIES: u32 = 3;

/// What all cells of a call share.
pub(super) struct Asking<'a> {
    pub(super) arch: Arch,
    pub(super) smp: Smp,
    pub(super) memory_mib: u32,
    pub(super) accel: Accel,
    pub(super) binary: Option<PathBuf>,
    pub(super) timeout: Duration,
    pub(super) stressors: Vec<String>,
    pub(super) cpus: String,
    pub(super) window: Duration,
    pub(super) out: &'a Path,
    pub(super) kernels: BTreeMap<String, Kernel>,
    pub(super) stop: &'a Stop,
}

/// The conditions of a cell: a result of other conditions is not this cell's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Conditions {
    pub(super) tool_version: String,
    kernel: String,
    package: Option<String>,
    append: String,
    pub(super) smp: String,
    pub(super) memory_mib: u32,
    pub(super) accel: String,
    pub(super) measured: String,
    pub(super) window_ns: u64,
    pub(super) stressors: Vec<String>,
}

/// The stored result of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// What it was measured under.
    pub(super) conditions: Conditions,
    /// How both verbs ended in the guest.
    pub(super) ended: Ended,
    /// What `isolate apply` said; null where nothing was to be applied.
    pub(super) isolation: Value,
    /// The object of `exposure.json`; null where this kernel cannot have the profile.
    pub(super) exposure: Value,
    /// Guests that were booted for it, the last one included.
    pub(super) tries: u32,
    /// Why the others failed.
    pub(super) failed: Vec<String>,
    /// From the start of QEMU to its end, s: depends on this machine and is no result.
    pub(super) wall_s: f64,
    /// First line of `qemu-system-... --version`.
    pub(super) qemu: String,
}

impl Asking<'_> {
    pub(super) fn conditions(&self, kernel: &str, profile: Profile) -> Conditions {
        let found = self.kernels.get(kernel);
        let package = found.and_then(|kernel| kernel.stored.as_ref());
        Conditions {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: found.map_or_else(String::new, |kernel| kernel.release.clone()),
            package: package.map(|(_, manifest)| format!("{} {}", manifest.package, manifest.version)),
            append: profile.append().to_owned(),
            smp: self.smp.to_string(),
            memory_mib: self.memory_mib,
            accel: self.accel.name().to_owned(),
            measured: self.cpus.clone(),
            window_ns: self.window.as_nanos() as u64,
            stressors: self.stressors.clone(),
        }
    }
}

/// The first condition that differs, in words.
pub(super) fn differing(old: &Conditions, new: &Conditions) -> Option<String> {
    let text = |conditions: &Conditions| serde_json::to_value(conditions).unwrap_or_default();
    let (old, new) = (text(old), text(new));
    let mut pairs = new.as_object().into_iter().flatten();
    let (key, value) = pairs.find(|(key, value)| old[key.as_str()] != **value)?;
    Some(format!("{key} was {} there and is {value} now", old[key.as_str()]))
}

/// Boots until a guest ends in time and brings a result, three times at most.
pub(super) fn measure(asking: &Asking<'_>, kernel: &str, profile: Profile) -> anyhow::Result<Measured> {
    let name = format!("{kernel} {}", profile.name());
    let mut failed = Vec::new();
    for tries in 1..=TRIES {
        Reporter::say(&format!("{name}: booting, try {tries} of {TRIES}"));
        match try_once(asking, kernel, profile, tries) {
            Ok(result) => return Ok(Measured { tries, failed, ..result }),
            Err(error) if asking.stop.is_asked() => return Err(error),
            Err(error) => {
                let why = crate::failure::sentence(&error);
                Reporter::say(&format!("{name}: {why}"));
                failed.push(why);
            }
        }
    }
    anyhow::bail!("{TRIES} guests failed: {}", failed.join("; "))
}

fn try_once(asking: &Asking<'_>, kernel: &str, profile: Profile, tries: u32) -> anyhow::Result<Measured> {
    let out = asking.out.join("guests").join(format!("{kernel}-{}", profile.name()).replace('/', "_"));
    let out = out.join(format!("try-{tries}"));
    if let Err(error) = fs::remove_dir_all(&out)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Error::io("remove", &out, error).into());
    }
    let spec = spec(asking, kernel, profile, out)?;
    let mut notes = |event: Event<'_>| {
        // Guests run side by side: each console has its own file, and only notes are printed.
        if let Event::Note(text) = event {
            Reporter::say(&format!("{kernel} {}: {text}", profile.name()));
        }
    };
    let outcome = lab::run(&spec, Path::new("/etc/apt"), asking.stop, &mut notes)?;
    if outcome.timed_out {
        anyhow::bail!("the guest's command was killed because its time was over");
    }
    let root = outcome.out.join("root");
    let ended: Ended =
        store::read_json(&root.join(inside::ENDED)).with_context(|| last_line(&root, &outcome))?;
    let read = |name: &Path| -> anyhow::Result<Value> { Ok(store::read_json(&root.join(name))?) };
    let isolation = match ended.isolation {
        None => Value::Null,
        Some(1) => anyhow::bail!("isolate apply failed: {}", last_line(&root, &outcome)),
        Some(_) => read(Path::new(inside::ISOLATION))?,
    };
    let exposure = match ended.study {
        None => Value::Null,
        Some(0 | 2) => read(&Path::new(inside::STUDY).join("exposure.json"))?,
        Some(_) => anyhow::bail!("the study failed: {}", last_line(&root, &outcome)),
    };
    Ok(Measured {
        conditions: asking.conditions(kernel, profile),
        ended,
        isolation,
        exposure,
        tries: 0,
        failed: Vec::new(),
        wall_s: outcome.wall_s,
        qemu: outcome.qemu_version,
    })
}

/// The last thing that the guest's verbs said.
fn last_line(root: &Path, outcome: &lab::Outcome) -> String {
    let log = fs::read_to_string(root.join(inside::LOG)).unwrap_or_default();
    let said = log.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned);
    said.unwrap_or_else(|| format!("exit code {}, and nothing said", outcome.exit_code))
}

fn spec(asking: &Asking<'_>, kernel: &str, profile: Profile, out: PathBuf) -> anyhow::Result<Spec> {
    let found = asking.kernels.get(kernel).context("the kernel was not fetched")?;
    let mut loaded = Vec::new();
    for name in &asking.stressors {
        for module in disturb::catalogue::find(name)?.modules {
            // A module that this kernel lacks makes its stressor absent, not failed.
            if !loaded.iter().any(|one| one == module) && modules::has(found, module)? {
                loaded.push((*module).to_owned());
            }
        }
    }
    let order = Order {
        cpus: asking.cpus.clone(),
        placement: profile.placement().map(str::to_owned),
        study: vec![
            "--stressors".to_owned(),
            asking.stressors.join(","),
            "--duration".to_owned(),
            format!("{}ns", asking.window.as_nanos()),
        ],
    };
    let order = serde_json::to_string(&order)?;
    let programs = lab_verb::programs(asking.arch, asking.binary.clone())?;
    Ok(Spec {
        arch: asking.arch,
        kernel: kernel.to_owned(),
        smp: asking.smp,
        memory_mib: asking.memory_mib,
        append: profile.append().to_owned(),
        nic: None,
        modules: loaded,
        packages: Vec::new(),
        init: programs.init,
        binary: programs.binary,
        add: Vec::new(),
        accel: asking.accel,
        timeout: asking.timeout,
        limit: None,
        out,
        cache: lab_verb::cache()?,
        launcher: lab_verb::launcher()?,
        command: vec!["internal".to_owned(), inside::VERB.to_owned(), order],
    })
}
