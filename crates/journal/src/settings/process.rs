//! A daemon that no service manager controls: it is stopped (SIGSTOP) and later resumed (SIGCONT),
//! so that undoing restores the very same process.

use super::task::alive;
use machine::{Root, task_state};
use rustix::process::{Pid, Signal, kill_process};
use sys::Error;

pub(super) fn read(target: &str) -> Option<String> {
    let pid = alive(target)?;
    match task_state(&Root::live(), pid.unsigned_abs()) {
        Some('T') => Some("stopped".to_owned()),
        Some('Z' | 'X') | None => None,
        Some(_) => Some("running".to_owned()),
    }
}

pub(super) fn write(target: &str, value: &str) -> Result<(), Error> {
    let Some(pid) = alive(target).and_then(Pid::from_raw) else { return Ok(()) };
    let signal = if value == "stopped" { Signal::STOP } else { Signal::CONT };
    kill_process(pid, signal).map_err(|error| Error::os("signal", target, error))?;
    // The signal is taken when the process runs next.
    let give_up = sys::clock::now_ns() + sys::clock::SECOND_NS;
    while read(target).is_some_and(|now| now != value) && sys::clock::now_ns() < give_up {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::process::Owner;

    #[test]
    fn a_process_stops_and_goes_on() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let owner = Owner::of(child.id() as i32).unwrap();
        let target = format!("{}/{}/sleep", owner.pid, owner.start);
        assert_eq!(read(&target).as_deref(), Some("running"));
        write(&target, "stopped").unwrap();
        assert_eq!(read(&target).as_deref(), Some("stopped"));
        write(&target, "running").unwrap();
        assert_eq!(read(&target).as_deref(), Some("running"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(read(&target), None);
    }
}
