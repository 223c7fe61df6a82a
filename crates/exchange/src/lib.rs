//! A desired state in the words of other tools, and a profile of another tool against one. Each
//! format is a file here and a row of [`FORMATS`]: a function of [`Desired`], which has every setting
//! in full.
//!
//! No other tool has all of it. What a format has no words for is in [`Export::left`] and in a
//! comment of its first file, never dropped in silence.

#![forbid(unsafe_code)]

mod ansible;
mod compare;
mod node_tuning;
mod profile;
mod rt_conf;
mod systemd;
mod tuned;
mod words;
mod yocto;

pub use compare::{Compared, Row, Verdict, compare};
pub use profile::{Profile, read as read_profile};

use audit::Desired;
use model::Error;

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path below the directory of the tool's files, or of the machine where it has none.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A desired state in one tool's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its files.
    pub files: Vec<File>,
    /// What it has no words for, a line each.
    pub left: Vec<String>,
}

/// A tool.
#[derive(Debug)]
pub struct Format {
    /// As on the command line.
    pub name: &'static str,
    /// What is written: a clause.
    pub about: &'static str,
    write: fn(&Desired, &str) -> Export,
}

/// Every tool.
pub const FORMATS: [Format; 6] = [
    Format { name: "tuned", about: "a profile of TuneD", write: tuned::write },
    Format {
        name: "performance-profile",
        about: "a PerformanceProfile and a Tuned of the Node Tuning Operator",
        write: node_tuning::write,
    },
    Format { name: "rt-conf", about: "the configuration of Ubuntu's rt-conf", write: rt_conf::write },
    Format {
        name: "ansible",
        about: "variables of linux-system-roles' kernel_settings and bootloader",
        write: ansible::write,
    },
    Format { name: "systemd", about: "drop-ins of systemd, sysctl.d and tmpfiles.d", write: systemd::write },
    Format { name: "yocto", about: "a kernel fragment and a configuration of Yocto", write: yocto::write },
];

/// The longest name, bytes: that of an object of Kubernetes.
const LONGEST_NAME: usize = 63;

impl Format {
    /// Writes a desired state under a name. Errors: a name that is no label of RFC 1123, which all
    /// tools take.
    pub fn write(&self, desired: &Desired, name: &str) -> Result<Export, Error> {
        let ends =
            |edge: Option<char>| edge.is_some_and(|one| one.is_ascii_lowercase() || one.is_ascii_digit());
        let inner = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
        let is_label = name.len() <= LONGEST_NAME && name.chars().all(inner);
        if !is_label || !ends(name.chars().next()) || !ends(name.chars().next_back()) {
            let expected = "letters a to z, digits and hyphens between them, at most 63";
            return Err(Error::invalid("--name", format!("{name:?}"), expected));
        }
        let mut all = (self.write)(desired, name);
        let head = words::head(self.name, desired, &all.left);
        for (index, file) in all.files.iter_mut().enumerate() {
            let head = if index == 0 { head.as_str() } else { words::MARK };
            file.text.insert_str(0, head);
        }
        Ok(all)
    }
}
