//! What holds for every verb: exit statuses, environment variables, files. The manual pages and the
//! generated pages of docs/ print these tables.

/// A name, and what it means.
pub(crate) struct Convention {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

pub(crate) const STATUSES: &[Convention] = &[
    Convention { name: "0", meaning: "No finding, as far as the run could observe." },
    Convention { name: "1", meaning: "An error, also of usage: one sentence on standard error." },
    Convention { name: "2", meaning: "A finding, or a threshold that failed." },
];

pub(crate) const ENVIRONMENT: &[Convention] = &[
    Convention {
        name: "HOME",
        meaning: "Without root, the journal is in .local/state/stillcore of this directory, if the user may enter it.",
    },
    Convention {
        name: "XDG_CACHE_HOME",
        meaning: "Kernels and packages for guests are kept in stillcore of this directory, else in .cache/stillcore of HOME.",
    },
    Convention { name: "NO_COLOR", meaning: "If it is not empty, \"--color auto\" uses no colours." },
    Convention {
        name: "NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID",
        meaning: "Set by a service manager: \"isolate hold\" tells it that it is ready, alive and how it is.",
    },
    Convention { name: "PATH", meaning: "Where commands to run, and ansible-playbook, are looked up." },
    Convention {
        name: "ANSIBLE_SSH_EXTRA_ARGS",
        meaning: "Arguments for ssh of \"study run --hosts\", passed on.",
    },
];

pub(crate) const FILES: &[Convention] = &[
    Convention {
        name: "/etc/stillcore/config.toml",
        meaning: "Defaults of this machine. The command line counts first, then the file of --config, then this file, then the built-in default.",
    },
    Convention {
        name: "/var/lib/stillcore",
        meaning: "Journals of changes that are in force, and what undoes them.",
    },
];
