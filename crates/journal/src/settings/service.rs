//! systemd units, through systemctl(1): a stopped unit stays enabled, so that the next boot has it
//! again.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use sys::Error;

pub(super) fn read(unit: &str) -> Result<Option<String>, Error> {
    if !Path::new("/run/systemd/system").exists() {
        return Ok(None);
    }
    let output = systemctl(&["is-active", "--", unit])?;
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(match state.as_str() {
        "" | "unknown" => None,
        "active" | "activating" | "reloading" => Some("active".to_owned()),
        _ => Some("inactive".to_owned()),
    })
}

pub(super) fn write(unit: &str, value: &str) -> Result<(), Error> {
    let verb = if value == "active" { "start" } else { "stop" };
    let output = systemctl(&[verb, "--", unit])?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::failed(format!("systemctl {verb} {unit}"), stderr.lines().next().unwrap_or("no reason given")))
}

fn systemctl(words: &[&str]) -> Result<Output, Error> {
    let result = Command::new("systemctl").args(words).stdin(Stdio::null()).output();
    result.map_err(|error| Error::os("run", "systemctl", error))
}
