//! The two JSON files of the lab: from the host to the guest's first program, and from the guest to
//! the host.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the configuration lies in the guest.
pub const CONFIG_PATH: &str = "/stillcore-lab.json";
/// Schema of the configuration.
pub const CONFIG_SCHEMA: &str = "stillcore.lab-guest/1";
/// Schema of `guest.json` among the results.
pub const REPORT_SCHEMA: &str = "stillcore.lab-result/1";
/// Name of the virtio-serial port that carries the results.
pub const PORT: &str = "stillcore.lab";
/// First line a guest prints. A program that holds these bytes can be the guest's first program;
/// the lab searches for them before it boots one that cannot.
pub const GREETING: &str = "stillcore-lab: first program of the guest";

/// `/stillcore-lab.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestConfig {
    /// `stillcore.lab-guest/1`.
    pub schema: String,
    /// Host name.
    pub hostname: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// Working directory; everything below it is brought back.
    pub cwd: String,
    /// Paths of module files, in loading order.
    pub modules: Vec<String>,
    /// virtio-serial port for the results.
    pub port: String,
    /// Serial device for the results where there is no such port.
    pub serial: Option<String>,
    /// The command is killed this many seconds after the kernel's start, so that there is time left
    /// to send what it made.
    pub deadline_s: u64,
    /// The command is killed this many seconds after its own start, if that comes first.
    pub limit_s: Option<u64>,
}

/// `guest.json`: how the command ended, and everything that did not go as it should.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    /// `stillcore.lab-result/1`.
    pub schema: String,
    /// `uname -r` of the guest.
    pub release: String,
    /// Exit code of the command, as a shell gives it: 128 + n if killed by signal n, 127 if it
    /// could not be started.
    pub exit_code: i32,
    /// The command was killed because its time was over.
    pub timed_out: bool,
    /// Steps of the start that failed (a mount, a module), one sentence each.
    pub problems: Vec<String>,
    /// Files that were not brought back, each with the reason.
    pub skipped: Vec<String>,
}
