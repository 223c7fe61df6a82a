//! Where the locking functions of a program are: the files in its memory that define them.

use super::{cost, programs};
use journal::session::Session;
use model::Cpus;
use model::events::EventSpec;
use model::locking;
use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use sys::{Error, clock};

/// Files in which the dynamic loader finds the C library, where the program has not been started:
/// glibc (before 2.34 with the threads in a library of their own), musl.
const DIRECTORIES: [&str; 6] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/libexec"];
const LIBRARIES: [&str; 4] =
    ["libc.so.6", "libpthread.so.0", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/// The most files that are looked into.
const MOST: usize = 64;

/// What is mapped and executable in processes, as these see it.
pub fn mapped(tgids: &BTreeSet<i32>) -> BTreeSet<PathBuf> {
    let of = |tgid: &i32| {
        let maps = fs::read_to_string(format!("/proc/{tgid}/maps")).unwrap_or_default();
        let tgid = tgid.cast_unsigned();
        programs::files(&maps).into_iter().map(move |path| programs::visible(tgid, &path)).collect::<Vec<_>>()
    };
    tgids.iter().flat_map(of).take(MOST).collect()
}

/// What a program that is not running yet may use: its own file, and the C libraries of this
/// machine.
pub fn of_program(program: &Path) -> BTreeSet<PathBuf> {
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    let places = DIRECTORIES.iter().flat_map(|dir| [PathBuf::from(dir), Path::new(dir).join(&triple)]);
    let libraries = places.flat_map(|dir| LIBRARIES.map(|name| dir.join(name)));
    let there = libraries.filter_map(|path| path.canonicalize().ok());
    there.chain(program.canonicalize().ok()).collect()
}

/// Probes on the locking functions that files define; empty where none does.
pub fn probes(files: &BTreeSet<PathBuf>) -> Vec<EventSpec> {
    let names = locking::FUNCTIONS.map(|(name, _)| name);
    let of = |file: &PathBuf| {
        // The kernel ends the path at the first white space.
        let text = file.to_str().filter(|text| !text.contains(char::is_whitespace)).map(str::to_owned);
        let found = if text.is_some() { programs::offsets(file, &names) } else { Vec::new() };
        found.into_iter().filter_map(move |(name, offset)| Some((name, text.clone()?, offset)))
    };
    let places: BTreeSet<_> = files.iter().filter(|file| is_roots(file)).flat_map(of).collect();
    locking::probes(&places.into_iter().collect::<Vec<_>>())
}

/// Whether nobody but root can put something else in the place of a file. The kernel opens it again
/// when a probe is set: in another file, a probe of this one's offsets would break code of others.
fn is_roots(file: &Path) -> bool {
    let is_safe = |path: &Path| {
        path.metadata().is_ok_and(|data| data.uid() == 0 && data.permissions().mode() & 0o022 == 0)
    };
    file.canonicalize().is_ok_and(|file| file.ancestors().all(is_safe))
}

/// Calls that are timed together, and how often: a probe of a program takes microseconds.
const BATCH: u32 = 50;
const BATCHES: u32 = 20;

/// Stand in for a program's locking and unlocking of a free lock.
#[inline(never)]
extern "C" fn lock(word: u64) -> i32 {
    black_box(word as i32)
}

#[inline(never)]
extern "C" fn unlock(word: u64) -> u64 {
    black_box(word.wrapping_mul(3))
}

/// What locking and unlocking a free lock costs more, ns, where it is recorded: minimum of many
/// batches. `None` where this kernel takes no probes of programs. Uses an instance of this name,
/// which it removes.
pub fn cost_ns(session: &mut Session, tracefs: &Path, name: &str, cpus: &Cpus) -> Result<Option<f64>, Error> {
    let place = |function: &'static str, address: *const ()| {
        let (file, offset) = programs::place_of(address as u64)?;
        Some((function, file, offset))
    };
    let [lock_at, unlock_at] = [lock as *const (), unlock as *const ()];
    let places = [place("pthread_mutex_lock", lock_at), place("pthread_mutex_unlock", unlock_at)];
    let places: Vec<_> = places.into_iter().flatten().collect();
    cost::probed_ns(session, tracefs, name, cpus, &locking::probes(&places), &|| {
        let batch = || {
            let start_ns = clock::now_ns();
            for word in 0..BATCH {
                black_box(lock(black_box(u64::from(word))));
                black_box(unlock(black_box(u64::from(word))));
            }
            (clock::now_ns() - start_ns) as f64 / f64::from(BATCH)
        };
        (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_running_may_use_the_c_library_of_this_machine() {
        let files = of_program(Path::new("/bin/sh"));
        if !files.iter().any(|file| file.ends_with("libc.so.6")) {
            println!("skipped: this machine has no glibc");
            return;
        }
        let probes = probes(&files);
        let ask = probes.iter().find(|event| event.name == locking::ASK).unwrap();
        assert!(ask.uprobes.iter().all(|one| one.starts_with('/') && one.contains(":0x")), "{ask:?}");
        assert!(probes.iter().any(|event| event.name == locking::RETURN && event.returns));
    }

    /// Its owner could put another file there before the kernel opens it.
    #[test]
    fn a_file_that_others_may_replace_is_not_probed() {
        let dir = tempfile::tempdir().unwrap();
        let libraries = of_program(Path::new("/bin/sh"));
        let Some(library) = libraries.iter().find(|file| file.ends_with("libc.so.6")) else {
            println!("skipped: this machine has no glibc");
            return;
        };
        let copy = dir.path().join("libc.so.6");
        fs::copy(library, &copy).unwrap();
        assert_eq!(probes(&BTreeSet::from([copy])), []);
    }

    #[test]
    fn files_without_such_functions_and_with_names_that_no_probe_takes_have_none() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("text");
        fs::write(&plain, "no program").unwrap();
        assert_eq!(probes(&BTreeSet::from([plain, dir.path().join("gone"), dir.path().join("a b")])), []);
    }
}
