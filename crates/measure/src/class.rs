//! Scheduling classes that are not mainline's: LITMUS^RT, EVL (Xenomai 4) and Cobalt (Xenomai 3),
//! and whether this machine has them.
//!
//! LITMUS^RT names its active plug-in in `/proc/litmus/active_plugin`. EVL and Cobalt run threads
//! beside Linux. Their own libraries create these (`evl_attach_thread(3)`, libcobalt's
//! `pthread_create`), and a static program is not linked with them.

use machine::Root;
use model::Error;
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
    /// Refuses a class that this machine, or this program, does not have; gives the plug-in
    /// otherwise.
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
            Self::Cobalt if !root.at("proc/xenomai").exists() => {
                absent("this kernel has no Cobalt core: no /proc/xenomai", "a kernel of Xenomai 3")
            }
            Self::Cobalt => absent(
                "this program is not linked with libcobalt, which makes threads of Cobalt",
                "a POSIX policy",
            ),
        }
    }
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
        assert!(refusal("cobalt", &[("proc/xenomai/version", "3.1")]).unwrap().contains("libcobalt"));
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
