//! The unit that holds an isolation: it applies after each boot, and heals from then on.
//!
//! Sources: systemd.service(5) (`Type=notify`, `WatchdogSec=`), systemd.exec(5) (what a service may
//! not do), systemd.kill(5): only the program itself is ended, since what it keeps open for a
//! setting (`/dev/cpu_dma_latency`) and what undoes its tracing are processes of their own.

use crate::persist::Persistence;
use crate::unit::{HOLD as UNIT, command_line, link_folder, quoted, take_away};
use machine::Root;
use std::path::Path;
use sys::Error;

const WANTED: &str = "etc/systemd/system/multi-user.target.wants/stillcore-hold.service";

/// The first line: what does not have it is not ours.
const MARK: &str =
    "# Made by stillcore isolate hold --install; stillcore isolate hold --remove takes it away.";

/// What the service may not do. It writes settings of the kernel, so `ProtectKernelTunables`,
/// `ProtectControlGroups` and `PrivateDevices` cannot be among these.
const HARDENED: &str = "NoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\n\
     StateDirectory=stillcore\nRestrictAddressFamilies=AF_UNIX AF_NETLINK\nRestrictNamespaces=yes\n\
     RestrictSUIDSGID=yes\nLockPersonality=yes\nMemoryDenyWriteExecute=yes\nSystemCallArchitectures=native\n";

/// What it needs beyond being root: affinities of others (SYS_NICE), control groups, tracing,
/// fanotify and swap (SYS_ADMIN), what others' processes are (SYS_PTRACE, DAC), daemons that are
/// held where no service manager has them (KILL), queues of network devices (NET_ADMIN), the
/// kernel's log (SYSLOG).
const CAPABILITIES: &str = "CAP_SYS_NICE CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH \
     CAP_KILL CAP_NET_ADMIN CAP_SYSLOG";

/// Works out the unit that makes this call, or what to do by hand where there is no systemd.
/// `state` is the directory of the journal, where it is another one than the system's.
pub fn unit(root: &Root, program: &Path, arguments: &[String], state: Option<&Path>) -> Persistence {
    let program = program.display().to_string();
    let words = [program.as_str(), "isolate", "hold"].into_iter();
    let call = command_line(words.chain(arguments.iter().map(String::as_str)));
    if !root.has("etc/systemd/system") {
        return Persistence::by_hand(format!("keep running from the end of each boot: {call}"));
    }
    let made = link_folder(root);
    let writable = state.map(|state| format!("ReadWritePaths={}\n", quoted(&state.display().to_string())));
    // 2 says that something was left to another program.
    let text = format!(
        "{MARK}\n{made}[Unit]\nDescription=Hold the isolation of CPUs (stillcore)\n\
         Documentation=man:stillcore-isolate(1)\nAfter=multi-user.target stillcore-isolate.service\n\n\
         [Service]\nType=notify\nNotifyAccess=main\nWatchdogSec=2min\nTimeoutStartSec=5min\nKillMode=process\n\
         Restart=on-failure\nRestartSec=10\nSuccessExitStatus=2\nExecStart={call}\n\
         CapabilityBoundingSet={CAPABILITIES}\n{HARDENED}{}\n[Install]\nWantedBy=multi-user.target\n",
        writable.unwrap_or_default()
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
        let words = ["--profile", "/etc/stillcore/isolation.toml"].map(str::to_owned);
        let ours = unit(&root, Path::new("/usr/sbin/stillcore"), &words, Some(Path::new("/srv/state")));
        install(&root, &ours).unwrap();
        install(&root, &ours).unwrap();
        let text = root.maybe(UNIT).unwrap();
        let call = "\nExecStart=/usr/sbin/stillcore isolate hold --profile /etc/stillcore/isolation.toml\nCapabilityBoundingSet=";
        assert!(text.contains(call) && text.contains("\nType=notify\n"), "{text}");
        assert!(text.contains("\nReadWritePaths=/srv/state\n\n[Install]\n"), "{text}");
        assert!(!text.contains("  ") && text.lines().all(|line| !line.ends_with(' ')), "{text}");
        assert!(root.at(WANTED).is_symlink());
        assert_eq!(remove(&root).unwrap().0.len(), 2);
        assert!(!root.has(WANTS) && !root.has(UNIT));
        assert!(remove(&root).unwrap().0.is_empty());
    }

    #[test]
    fn without_systemd_the_call_is_made_by_hand() {
        let (_dir, root) = tree(&[("etc/hostname", "x")]);
        let all = unit(&root, Path::new("/s"), &[], None);
        assert_eq!(all.by_hand, ["keep running from the end of each boot: /s isolate hold"]);
    }
}
