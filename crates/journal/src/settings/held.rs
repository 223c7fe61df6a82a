//! Values that hold as long as a process keeps a file open, such as the latency limit of
//! `/dev/cpu_dma_latency`.
//!
//! Source: Linux `Documentation/power/pm_qos_interface.rst`. The keeper is this same program in a
//! session of its own; it is found by its command line, so that a call that was killed right after
//! starting it leaves nothing unknown.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use sys::process::Owner;
use sys::{Error, signals};

/// The words by which a keeper is called, before its target.
const WORDS: [&str; 2] = ["internal", "hold"];

pub(super) fn read(target: &str) -> String {
    if keepers(target).is_empty() { "not held" } else { "held" }.to_owned()
}

pub(super) fn write(program: &std::path::Path, target: &str, value: &str) -> Result<(), Error> {
    if value != "held" {
        keepers(target).into_iter().for_each(Owner::kill);
        return await_keeper(target, false);
    }
    let mut command = Command::new(program);
    command.args(WORDS).arg(target).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| Error::os("start the keeper from", program.display(), error))?;
    await_keeper(target, true)
}

/// Waits until the keeper has the file open, or is gone.
fn await_keeper(target: &str, wanted: bool) -> Result<(), Error> {
    let path = target.split_once('=').map_or(target, |(path, _)| path);
    let holds = |owner: &Owner| {
        let files = fs::read_dir(format!("/proc/{}/fd", owner.pid)).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| link.as_os_str() == path)
    };
    let give_up = sys::clock::now_ns() + 3 * sys::clock::SECOND_NS;
    loop {
        let keepers = keepers(target);
        if if wanted { keepers.iter().any(holds) } else { keepers.is_empty() } {
            return Ok(());
        }
        if sys::clock::now_ns() > give_up {
            return Err(Error::failed(
                "the keeper",
                format!("{target} did not come to be {}", if wanted { "held" } else { "free" }),
            ));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn keepers(target: &str) -> Vec<Owner> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_keeper = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0).skip(1);
        WORDS.iter().all(|word| words.next() == Some(word.as_bytes()))
            && words.next() == Some(target.as_bytes())
    };
    pids.filter(is_keeper).filter_map(Owner::of).filter(|owner| owner.alive()).collect()
}

/// What the keeper does: open the file, write the value, wait to be killed. The device takes a
/// number as four bytes.
pub fn hold(target: &str) -> Result<(), Error> {
    let Some((path, value)) = target.split_once('=') else {
        return Err(Error::failed("the keeper", format!("no = in {target}")));
    };
    signals::ignore_end();
    let _ = rustix::process::setsid();
    let failed = |error| Error::os("hold", path, error);
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
    match value.parse::<i32>() {
        Ok(number) => file.write_all(&number.to_ne_bytes()),
        Err(_) => file.write_all(value.as_bytes()),
    }
    .map_err(failed)?;
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}
