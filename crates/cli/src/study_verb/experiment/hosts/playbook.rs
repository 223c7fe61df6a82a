//! Ansible as a process: the role that this program carries, started, heard, and ended with it.

use crate::run::progress::Reporter;
use anyhow::Context;
use model::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use sys::process::Owner;
use sys::signals::{EndSignals, unblock_end};

/// Second word of the hidden verb that a playbook is started through.
pub(crate) const VERB: &str = "study-hosts";

/// `deploy/ansible/`: where it goes, and what it is. A test walks the directory.
const FILES: &[(&str, &str)] = &[
    ("run.yml", include_str!("../../../../../../deploy/ansible/run.yml")),
    ("collect.yml", include_str!("../../../../../../deploy/ansible/collect.yml")),
    (
        "callback_plugins/stillcore_events.py",
        include_str!("../../../../../../deploy/ansible/callback_plugins/stillcore_events.py"),
    ),
    (
        "roles/stillcore_study/defaults/main.yml",
        include_str!("../../../../../../deploy/ansible/roles/stillcore_study/defaults/main.yml"),
    ),
    (
        "roles/stillcore_study/meta/argument_specs.yml",
        include_str!("../../../../../../deploy/ansible/roles/stillcore_study/meta/argument_specs.yml"),
    ),
    (
        "roles/stillcore_study/tasks/main.yml",
        include_str!("../../../../../../deploy/ansible/roles/stillcore_study/tasks/main.yml"),
    ),
    (
        "roles/stillcore_study/tasks/place.yml",
        include_str!("../../../../../../deploy/ansible/roles/stillcore_study/tasks/place.yml"),
    ),
    (
        "roles/stillcore_study/tasks/stop.yml",
        include_str!("../../../../../../deploy/ansible/roles/stillcore_study/tasks/stop.yml"),
    ),
    (
        "roles/stillcore_study/tasks/collect.yml",
        include_str!("../../../../../../deploy/ansible/roles/stillcore_study/tasks/collect.yml"),
    ),
];

/// Arguments of ssh behind all others.
const SSH_ARGUMENTS: &str = "ANSIBLE_SSH_EXTRA_ARGS";
/// A machine that is gone says nothing: without this a connection to it stays open for a quarter of
/// an hour. ssh takes the first of two values, so that a user's own count.
const ALIVE: &str = "-o ServerAliveInterval=10 -o ServerAliveCountMax=3";
/// Most machines at a time.
const FORKS: usize = 500;
/// Interval between progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);
/// How long a playbook that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A playbook to run.
pub(super) struct Playbook<'a> {
    /// `run.yml` or `collect.yml`.
    pub(super) file: &'a str,
    pub(super) inventory: &'a Path,
    /// Directory of the study's machines.
    pub(super) here: &'a Path,
    /// Its machines.
    pub(super) hosts: usize,
    /// The study.
    pub(super) variables: &'a serde_json::Value,
}

/// What became of the machines.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Why a machine did not finish.
    pub(super) lost: BTreeMap<String, Lost>,
    /// The last message of Ansible itself, where it failed without naming a machine.
    pub(super) said: Option<String>,
    /// Whether a signal ended it.
    pub(super) interrupted: bool,
}

/// Why a machine did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// It could not be reached, or no longer.
    Unreachable(String),
    /// A task failed: which, and why.
    Failed(String, String),
}

/// A line of the plugin `stillcore_events`.
#[derive(Debug, Deserialize)]
struct Event {
    what: String,
    host: String,
    task: String,
    #[serde(default)]
    reason: String,
}

/// Writes the role to a directory of the study.
pub(super) fn unpack(here: &Path) -> anyhow::Result<PathBuf> {
    let role = here.join("ansible");
    for (name, text) in FILES {
        let path = role.join(name);
        let parent = path.parent().unwrap_or(&role);
        fs::create_dir_all(parent).map_err(|source| Error::io("create", parent, source))?;
        fs::write(&path, text).map_err(|source| Error::io("write", &path, source))?;
    }
    Ok(role)
}

/// A program of Ansible, to be started through this one: it dies with us, and its signals are not
/// blocked as ours are.
pub(super) fn ansible(program: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["internal", VERB, &std::process::id().to_string(), program]).stdin(Stdio::null());
    Ok(command)
}

/// The hidden verb; returns only on failure.
pub(crate) fn become_ansible(words: &[OsString]) -> anyhow::Error {
    unblock_end();
    crate::lab_verb::exec_bound(words)
}

/// Refuses where Ansible is not installed.
pub(super) fn installed() -> anyhow::Result<()> {
    let found = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
    };
    for name in ["ansible-playbook", "ansible-inventory"] {
        if !found(name) {
            let expected = "ansible-core: `python3 -m pip install ansible-core` in a virtual environment that PATH names";
            return Err(Error::invalid("--hosts", format!("no {name} on PATH"), expected).into());
        }
    }
    Ok(())
}

/// Runs it to its end. Its own words go to a log; ours say how many machines are at work.
pub(super) fn run(playbook: &Playbook<'_>, signals: &EndSignals) -> anyhow::Result<Heard> {
    let role = unpack(playbook.here)?;
    let variables = playbook.here.join("variables.json");
    model::store::write_json(&variables, playbook.variables)?;
    let log = playbook.here.join("ansible.log");
    let open = File::options().create(true).append(true).open(&log);
    let mut log_file = open.map_err(|source| Error::io("open", &log, source))?;
    let mut with_file = OsString::from("@");
    with_file.push(&variables);
    let mut command = ansible("ansible-playbook")?;
    command.arg("--inventory").arg(playbook.inventory).arg("--extra-vars").arg(with_file);
    command.arg("--forks").arg(playbook.hosts.clamp(1, FORKS).to_string()).arg(role.join(playbook.file));
    // Only what this needs; all else is the user's own ansible.cfg.
    command.env("ANSIBLE_CALLBACK_PLUGINS", role.join("callback_plugins"));
    command.env("ANSIBLE_STDOUT_CALLBACK", "stillcore_events").env("ANSIBLE_RETRY_FILES_ENABLED", "false");
    command.env(SSH_ARGUMENTS, [users_ssh_arguments()?.as_str(), ALIVE].join(" ").trim());
    command.stdout(Stdio::piped()).stderr(log_file.try_clone()?);
    let mut child = command.spawn().context("cannot start ansible-playbook")?;
    let stdout = child.stdout.take().context("no output of ansible-playbook")?;
    let (send, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let mut heard = Heard::default();
    let begun = Instant::now();
    let (mut last_report, mut asked) = (Instant::now(), None);
    loop {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                writeln!(log_file, "{line}").map_err(|source| Error::io("write", &log, source))?;
                heard.line(&line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if asked.is_none() && signals.arrived().is_some() {
            heard.interrupted = true;
            asked = Some(Instant::now());
            interrupt(&child);
        }
        if asked.is_some_and(|asked| asked.elapsed() > PATIENCE) {
            let _ = child.kill();
        }
        if last_report.elapsed() > REPORT_INTERVAL {
            last_report = Instant::now();
            let lost = heard.lost.len();
            Reporter::say(&format!(
                "{} s: {} at work or done, {lost} lost",
                begun.elapsed().as_secs(),
                super::counted(playbook.hosts.saturating_sub(lost))
            ));
        }
    }
    let status = child.wait()?;
    let _ = reader.join();
    heard.interrupted |= signals.arrived().is_some();
    if !status.success() && heard.lost.is_empty() && !heard.interrupted {
        heard.said = Some(last_line(&log).unwrap_or_else(|| format!("it ended with {status}")));
    }
    Ok(heard)
}

/// What the user has ssh called with, by the environment or ansible.cfg: a variable of ours in its
/// place would drop it. What the inventory says goes before both.
fn users_ssh_arguments() -> anyhow::Result<String> {
    if let Ok(arguments) = std::env::var(SSH_ARGUMENTS) {
        return Ok(arguments);
    }
    let mut config = ansible("ansible-config")?;
    config.args(["dump", "--type", "connection", "--only-changed"]).env("ANSIBLE_NOCOLOR", "1");
    // Older versions may lack it; then nothing but the environment is known.
    let Ok(output) = config.stderr(Stdio::null()).output() else { return Ok(String::new()) };
    Ok(ssh_arguments_of(&String::from_utf8_lossy(&output.stdout)))
}

/// `ssh_extra_args(/etc/ansible/ansible.cfg) = -J gate`, in what `ansible-config dump` says.
fn ssh_arguments_of(dump: &str) -> String {
    let value = |line: &str| {
        let rest = line.trim().strip_prefix("ssh_extra_args(")?;
        rest.split_once(") = ").map(|(_, value)| value.trim().to_owned())
    };
    dump.lines().find_map(value).unwrap_or_default()
}

fn interrupt(child: &Child) {
    if let Some(owner) = Owner::of(child.id() as i32) {
        owner.interrupt();
    }
}

fn last_line(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    text.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

impl Heard {
    fn line(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Event>(line) else { return };
        let lost = match event.what.as_str() {
            "unreachable" => Lost::Unreachable(event.reason),
            "failed" => Lost::Failed(event.task, event.reason),
            _ => return,
        };
        Reporter::say(&format!("{}: {lost}", event.host));
        // The first is the cause; what fails after it is its consequence.
        self.lost.entry(event.host).or_insert(lost);
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "host unreachable: {why}"),
            Self::Failed(task, why) => {
                // Ansible puts the role's name before the task's.
                let task = task.rsplit_once(" : ").map_or(task.as_str(), |(_, task)| task);
                write!(f, "host failed: {task}: {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_role_is_carried() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ansible");
        let mut found = Vec::new();
        let mut left = vec![directory.clone()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    found.push(path.strip_prefix(&directory).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.retain(|name| !name.ends_with("requirements.txt") && !name.contains("__pycache__"));
        found.sort();
        let mut carried: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        carried.sort();
        assert_eq!(found, carried);
    }

    #[test]
    fn what_the_user_has_ssh_called_with_is_kept() {
        let dump = "\nssh:\n____\nssh_args(/etc/ansible/ansible.cfg) = -C\n\
                    ssh_extra_args(/srv/my (old)/ansible.cfg) = -J gate -o StrictHostKeyChecking=yes\n";
        assert_eq!(ssh_arguments_of(dump), "-J gate -o StrictHostKeyChecking=yes");
        assert_eq!(ssh_arguments_of("ssh:\n____\n"), "");
    }

    #[test]
    fn the_first_thing_that_goes_wrong_with_a_machine_is_its_reason() {
        let mut heard = Heard::default();
        for line in [
            r#"{"what": "ok", "host": "a", "task": "stillcore_study : Copy the study"}"#,
            r#"{"what": "failed", "host": "b", "task": "stillcore_study : Run the cells", "reason": "no"}"#,
            r#"{"what": "unreachable", "host": "b", "task": "Collect", "reason": "gone"}"#,
            r#"{"what": "unreachable", "host": "c", "task": "Collect", "reason": "timed out"}"#,
            "[WARNING]: something else",
        ] {
            heard.line(line);
        }
        let losses: Vec<String> = heard.lost.iter().map(|(host, lost)| format!("{host}: {lost}")).collect();
        assert_eq!(losses, ["b: host failed: Run the cells: no", "c: host unreachable: timed out"]);
    }
}
