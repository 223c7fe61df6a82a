//! The unit that watches CPUs from each boot on.
//!
//! Sources: systemd.service(5) (`Type=notify`, `WatchdogSec=`), systemd.exec(5) (what a service may
//! not do), systemd.kill(5): only the program itself is ended, since what undoes its tracing is a
//! process of its own. The monitor writes to its own tracing instances and below its state
//! directory, and nowhere else: the kernel's settings are read-only for it.

use crate::persist::Persistence;
use crate::unit::{MONITOR as UNIT, command_line, link_folder, quoted, take_away};
use machine::Root;
use std::path::Path;
use sys::Error;

const WANTED: &str = "etc/systemd/system/multi-user.target.wants/stillcore-monitor.service";

/// The first line: what does not have it is not ours.
const MARK: &str =
    "# Made by stillcore monitor start --install; stillcore monitor start --remove takes it away.";

/// What the service may not do.
const HARDENED: &str = "NoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\nPrivateDevices=yes\n\
     ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectControlGroups=yes\nProtectClock=yes\nProtectHostname=yes\n\
     StateDirectory=stillcore\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\nRestrictNamespaces=yes\n\
     RestrictSUIDSGID=yes\nRestrictRealtime=yes\nLockPersonality=yes\nMemoryDenyWriteExecute=yes\n\
     SystemCallArchitectures=native\n";

/// What it needs beyond being root: tracing (SYS_ADMIN), addresses of kernel functions (SYSLOG).
const CAPABILITIES: &str = "CAP_SYS_ADMIN CAP_SYSLOG";
/// And to start a program as another user, and to end it.
const TO_ACT: &str = " CAP_SETUID CAP_SETGID CAP_KILL";

/// Works out the unit that makes this call, or what to do by hand where there is no systemd.
/// `writable`: directories that it writes to beside the system's state directory; `acts`: whether
/// it starts a program for breaches.
pub fn unit(
    root: &Root,
    program: &Path,
    arguments: &[String],
    writable: &[&Path],
    acts: bool,
) -> Persistence {
    let program = program.display().to_string();
    let words = [program.as_str(), "monitor", "start"].into_iter();
    let call = command_line(words.chain(arguments.iter().map(String::as_str)));
    if !root.has("etc/systemd/system") {
        return Persistence::by_hand(format!("keep running from the end of each boot: {call}"));
    }
    let made = link_folder(root);
    let line = |dir: &&Path| format!("ReadWritePaths={}\n", quoted(&dir.display().to_string()));
    let writable = writable.iter().map(line).collect::<Vec<_>>().concat();
    let more = if acts { TO_ACT } else { "" };
    let text = format!(
        "{MARK}\n{made}[Unit]\nDescription=Watch CPUs, keep what is late (stillcore)\n\
         Documentation=man:stillcore-monitor(1)\nAfter=multi-user.target\n\n\
         [Service]\nType=notify\nNotifyAccess=main\nWatchdogSec=2min\nTimeoutStartSec=5min\nTimeoutStopSec=1min\n\
         KillMode=process\nRestart=on-failure\nRestartSec=10\nExecStart={call}\n\
         CapabilityBoundingSet={CAPABILITIES}{more}\n{HARDENED}{writable}\n[Install]\nWantedBy=multi-user.target\n"
    );
    Persistence::of_unit(root, UNIT, WANTED, text)
}

/// Takes it away; gives what was removed, and the commands that make that count.
pub fn remove(root: &Root) -> Result<(Vec<String>, Vec<Vec<String>>), Error> {
    take_away(root, UNIT, WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::install;
    use crate::unit::WANTS;
    use fixture::tree;

    #[test]
    fn it_comes_and_leaves_nothing() {
        let (_dir, root) = tree(&[("etc/systemd/system/.keep", "theirs")]);
        let words = ["--cpus", "2,3"].map(str::to_owned);
        let ours = unit(&root, Path::new("/usr/sbin/stillcore"), &words, &[Path::new("/srv/metrics")], false);
        install(&root, &ours).unwrap();
        install(&root, &ours).unwrap();
        let text = root.maybe(UNIT).unwrap();
        let call = "\nExecStart=/usr/sbin/stillcore monitor start --cpus 2,3\nCapabilityBoundingSet=";
        assert!(text.contains(call) && text.contains("\nType=notify\n"), "{text}");
        assert!(text.contains("\nReadWritePaths=/srv/metrics\n\n[Install]\n"), "{text}");
        assert!(!text.contains("  ") && text.lines().all(|line| !line.ends_with(' ')), "{text}");
        assert!(!text.contains("SETUID"), "{text}");
        let acting = unit(&root, Path::new("/usr/sbin/stillcore"), &words, &[], true);
        install(&root, &acting).unwrap();
        let acting = root.maybe(UNIT).unwrap();
        assert!(acting.contains("=CAP_SYS_ADMIN CAP_SYSLOG CAP_SETUID CAP_SETGID CAP_KILL\n"), "{acting}");
        assert!(root.at(WANTED).is_symlink());
        assert_eq!(remove(&root).unwrap().0.len(), 2);
        assert!(!root.has(WANTS) && !root.has(UNIT));
    }

    #[test]
    fn without_systemd_the_call_is_made_by_hand() {
        let (_dir, root) = tree(&[("etc/hostname", "x")]);
        let all = unit(&root, Path::new("/s"), &[], &[], false);
        assert_eq!(all.by_hand, ["keep running from the end of each boot: /s monitor start"]);
    }
}
