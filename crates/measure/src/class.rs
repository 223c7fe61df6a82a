//! Scheduling classes that are not mainline's: LITMUS^RT, EVL (Xenomai 4) and Cobalt (Xenomai 3),
//! and whether this machine has them.
//!
//! LITMUS^RT names its active plug-in in `/proc/litmus/active_plugin`. EVL and Cobalt run threads
//! beside Linux, and take them back to it for each call of Linux: only a thread that does nothing
//! but sleep and look at a clock measures them. Threads of Cobalt are made by its own calls,
//! without libcobalt; threads of EVL by libevl alone (`evl_attach_thread(3)`), which a static
//! program is not linked with.

use machine::Root;
use model::Error;
use model::sample::Policy;
use std::str::FromStr;
use sys::litmus;

/// A class that can be requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// LITMUS^RT under this plug-in.
    Litmus(String),
    /// EVL.
    Evl,
    /// Cobalt.
    Cobalt,
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("litmus", plugin)) if !plugin.is_empty() => Ok(Self::Litmus(plugin.to_owned())),
            None if text == "evl" => Ok(Self::Evl),
            None if text == "cobalt" => Ok(Self::Cobalt),
            _ => Err(format!("{text:?} is no class; expected litmus:PLUGIN, evl or cobalt")),
        }
    }
}

impl Class {
    /// The policy of a thread that does nothing but sleep and look at a clock, where this class has
    /// one for it alone; refuses Cobalt where this machine does not have it.
    pub fn of_sleeper(&self, root: &Root, priority: u32) -> Result<Option<Policy>, Error> {
        if *self != Self::Cobalt {
            return Ok(None);
        }
        require_cobalt(root)?;
        Ok(Some(Policy::cobalt("SCHED_FIFO", priority)))
    }

    /// Refuses a class that this machine, or this program, does not have, and one that is for
    /// sleepers alone; gives the plug-in otherwise.
    pub fn plugin(&self, root: &Root) -> Result<&str, Error> {
        let absent = |what: &str, expected: &str| Err(Error::absent("--class", what, expected));
        match self {
            Self::Litmus(plugin) => match root.maybe("proc/litmus/active_plugin") {
                None => absent(
                    "this kernel is not LITMUS^RT: no /proc/litmus/active_plugin",
                    "a kernel with its patch",
                ),
                Some(active) if active.trim() != plugin => absent(
                    &format!("LITMUS^RT runs the plug-in {}", active.trim()),
                    &format!("{plugin}, made the active one by setsched {plugin}"),
                ),
                Some(_) => Ok(plugin),
            },
            Self::Evl if !root.at("dev/evl/control").exists() => {
                absent("this kernel has no EVL core: no /dev/evl/control", "a kernel of Xenomai 4")
            }
            Self::Evl => {
                absent("this program is not linked with libevl, which makes threads of EVL", "a POSIX policy")
            }
            Self::Cobalt => {
                require_cobalt(root)?;
                absent(
                    "these threads call Linux, which takes them out of Cobalt's scheduler",
                    "measure wakeup, or a POSIX policy",
                )
            }
        }
    }
}

fn require_cobalt(root: &Root) -> Result<(), Error> {
    if root.at("proc/xenomai").exists() {
        return Ok(());
    }
    let what = "this kernel has no Cobalt core: no /proc/xenomai";
    Err(Error::absent("--class", what, "a kernel of Xenomai 3.3"))
}

/// Whether tasks of a plug-in of LITMUS^RT stay on one CPU each.
pub fn is_partitioned(plugin: &str) -> bool {
    litmus::is_partitioned(plugin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [("proc/version", "Linux")].iter().chain(files) {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn refusal(class: &str, files: &[(&str, &str)]) -> Option<String> {
        let dir = machine(files);
        let root = Root::open(dir.path()).unwrap();
        class.parse::<Class>().unwrap().plugin(&root).err().map(|error| error.to_string())
    }

    #[test]
    fn each_class_is_refused_in_a_sentence_where_it_is_absent() {
        for (class, why) in
            [("litmus:P-FP", "not LITMUS^RT"), ("evl", "no EVL core"), ("cobalt", "no Cobalt core")]
        {
            let message = refusal(class, &[]).unwrap();
            assert!(
                message.starts_with("--class: ") && message.contains(why) && message.contains("; expected"),
                "{message}"
            );
        }
        assert!(refusal("evl", &[("dev/evl/control", "")]).unwrap().contains("libevl"));
    }

    #[test]
    fn cobalt_takes_sleepers_alone() {
        let with = [("proc/xenomai/version", "3.3")];
        assert!(refusal("cobalt", &with).unwrap().contains("measure wakeup"));
        let sleeper = |class: &str, files: &[(&str, &str)]| {
            let dir = machine(files);
            class.parse::<Class>().unwrap().of_sleeper(&Root::open(dir.path()).unwrap(), 80)
        };
        assert_eq!(sleeper("cobalt", &with).unwrap(), Some(Policy::cobalt("SCHED_FIFO", 80)));
        assert!(sleeper("cobalt", &[]).unwrap_err().to_string().contains("no Cobalt core"));
        assert_eq!(sleeper("litmus:P-FP", &with).unwrap(), None);
    }

    #[test]
    fn litmus_is_taken_under_its_active_plug_in_alone() {
        let active = [("proc/litmus/active_plugin", "PSN-EDF\n")];
        assert_eq!(refusal("litmus:PSN-EDF", &active), None);
        assert!(refusal("litmus:P-FP", &active).unwrap().contains("runs the plug-in PSN-EDF"));
        for text in ["litmus", "litmus:", "evl:x", "posix", ""] {
            assert!(text.parse::<Class>().is_err(), "{text}");
        }
    }
}
