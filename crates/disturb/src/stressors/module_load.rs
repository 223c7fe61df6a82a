//! `module_load`: a kernel module that nobody uses, loaded and unloaded.
//!
//! Loading makes memory executable, applies alternatives and static keys to the new text, and waits
//! for grace periods; unloading gives the memory back (kernel/module: `load_module`,
//! `free_module`): patches and kernel TLB flushes that every CPU takes part in. Only library
//! modules without devices are taken, and the one taken ends as it stood.

use crate::Error;
use crate::account::Account;
use crate::changes::LAB;
use crate::job::Job;
use crate::leaving::Leaving;
use crate::spec::StressorSpec;
use crate::witness::{Counter, uevents};
use std::path::{Path, PathBuf};
use std::{fs, io};
use sys::modules::{self, load, uses_here};

/// Small modules that do nothing by being there: text searches and checksums (lib/).
const HARMLESS: [&str; 7] = ["ts_fsm", "ts_bm", "ts_kmp", "crc7", "crc4", "crc_itu_t", "lru_cache"];
/// Below the modules of a kernel, where libraries are.
const LIBRARIES: &str = "kernel/lib";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "module_load",
    title: "a small kernel module that nobody uses, loaded and unloaded",
    class: "poke",
    operation: "a load and an unload",
    privilege: "root",
    needs: "loadable modules, not locked (kernel.modules_disabled), and one of those that do nothing by being there",
    kernel_paths: &[
        "load_module",
        "set_memory_x",
        "jump_label_module_notify",
        "free_module",
        "flush_tlb_kernel_range",
        "synchronize_rcu",
    ],
    witness: "growth of /sys/kernel/uevent_seqnum: two an operation",
    cleanup: "the module is loaded or not, as before",
    danger: "the kernel is marked as tainted by a module that is not signed; bounded to the libraries named in the source",
    default_rate: Some(2.0),
    modules: &["ts_fsm"],
    leaves: |_| candidate().into_iter().collect(),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let chosen = job.leaves.first().and_then(|target| modules::of_target(target));
    let Some((name, file)) = chosen else {
        return Err(Error::absent(
            "there is no unused module to load among those that do nothing by being there",
        ));
    };
    let (name, file) = (name.to_owned(), file.to_owned());
    let there = uses_here(&name).is_some();
    round(&name, &file, there)
        .map_err(|error| Error::absent(format!("module {name} cannot be loaded: {error}")))?;
    let before = job.begin_counting(Counter::read("/sys/kernel/uevent_seqnum", uevents)?)?;
    let done = job.repeat(|| round(&name, &file, there));
    let witness = before.grown(2 * done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// One load and one unload, in the order that ends where it began.
fn round(name: &str, file: &Path, there: bool) -> io::Result<()> {
    if there {
        modules::unload(name)?;
        return load(file);
    }
    load(file)?;
    modules::unload(name)
}

/// The first of the harmless modules that has a file here and that nobody uses.
fn candidate() -> Option<Leaving> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut dirs = vec![PathBuf::from(LAB)];
    dirs.extend(
        ["/lib/modules", "/usr/lib/modules"].map(|dir| Path::new(dir).join(&release).join(LIBRARIES)),
    );
    let files: Vec<PathBuf> = dirs.iter().flat_map(|dir| files(dir)).collect();
    let unused = |name: &&str| uses_here(name).is_none_or(|uses| uses == 0);
    HARMLESS.iter().copied().filter(unused).find_map(|name| {
        let file = files.iter().find(|file| is_module(file, name))?;
        Some(Leaving::Module(name, file.clone()))
    })
}

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// `NAME.ko`, perhaps compressed, and in a guest `NN-NAME.ko`. File names have dashes where module
/// names have underscores, or not.
fn is_module(file: &Path, name: &str) -> bool {
    let text = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().replace('-', "_");
    let Some((stem, end)) = text.split_once(".ko") else { return false };
    let number = |front: &str| !front.is_empty() && front.bytes().all(|byte| byte.is_ascii_digit());
    let named = stem
        .strip_suffix(name)
        .is_some_and(|front| front.is_empty() || front.strip_suffix('_').is_some_and(number));
    named && matches!(end, "" | ".xz" | ".zst" | ".gz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_the_names_that_modules_have_there() {
        let is = |file: &str| is_module(Path::new(file), "ts_fsm");
        assert!(["/l/ts_fsm.ko", "/l/ts-fsm.ko.xz", "/lab/03-ts_fsm.ko"].into_iter().all(is));
        assert!(
            !["/l/nts_fsm.ko", "/l/ts_fsm.txt", "/l/ts_fsm.ko.lz4", "/lab/a-ts_fsm.ko", "/l"]
                .into_iter()
                .any(is)
        );
    }
}
