//! Kernel names the lab knows, and the order in which packages are tried for one.
//!
//! Debian names a kernel package after the kernel's release: `linux-image-6.1.0-50-rt-amd64`,
//! `linux-image-6.12.117+deb13-amd64`, each with variants `-unsigned` (same contents), `-dbg`
//! (symbols) and `cloud` (without most drivers). A release names one suite, because each stable
//! suite carries one kernel series.

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::version;
use std::fmt;
use std::str::FromStr;

/// Series and the Debian suite that carries it.
const SERIES: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];

/// A kernel by name: a series, with or without PREEMPT_RT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelName {
    /// "6.1".
    pub series: &'static str,
    /// Debian suite.
    pub suite: &'static str,
    /// The PREEMPT_RT flavour.
    pub rt: bool,
}

impl KernelName {
    /// Every name there is, for messages and completion.
    pub fn known() -> String {
        SERIES.map(|(series, _)| format!("{series}, {series}-rt")).join(", ")
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.series, if self.rt { "-rt" } else { "" })
    }
}

impl FromStr for KernelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (wanted, rt) = text.strip_suffix("-rt").map_or((text, false), |series| (series, true));
        SERIES
            .into_iter()
            .find(|(series, _)| *series == wanted)
            .map(|(series, suite)| Self { series, suite, rt })
            .ok_or_else(|| Error::UnknownKernel { name: text.into(), known: Self::known() })
    }
}

/// Of the given package names those that hold this kernel for this architecture, the newest first,
/// the signed package before the unsigned of the same release.
pub fn candidates(names: &[String], kernel: KernelName, arch: Arch) -> Vec<String> {
    let mut found: Vec<(&str, bool, &String)> = names
        .iter()
        .filter_map(|name| {
            let (release, unsigned) = release_number(name, kernel, arch)?;
            Some((release, unsigned, name))
        })
        .collect();
    found.sort_by(|a, b| version::compare(b.0, a.0).then(a.1.cmp(&b.1)));
    found.into_iter().map(|(_, _, name)| name.clone()).collect()
}

/// `6.1.0-50` of `linux-image-6.1.0-50-rt-amd64`, if the flavour is exactly the wanted one.
fn release_number(package: &str, kernel: KernelName, arch: Arch) -> Option<(&str, bool)> {
    let release = package.strip_prefix("linux-image-")?;
    let (release, unsigned) =
        release.strip_suffix("-unsigned").map_or((release, false), |release| (release, true));
    let release = release.strip_suffix(arch.debian())?.strip_suffix('-')?;
    let (release, rt) = release.strip_suffix("-rt").map_or((release, false), |release| (release, true));
    let rest = release.strip_prefix(kernel.series)?.strip_prefix('.')?;
    // What is left must be numbers ("0-50", "117+deb13"): "0-50-cloud" is another flavour.
    let numeric = rest.split('-').all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    (rt == kernel.rt && numeric).then_some((release, unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn newest_first_and_only_the_flavour_asked_for() {
        let all = names(&[
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-50-amd64",
            "linux-image-6.1.0-50-amd64-dbg",
            "linux-image-6.1.0-50-amd64-unsigned",
            "linux-image-6.1.0-50-cloud-amd64",
            "linux-image-6.1.0-50-rt-amd64",
            "linux-image-6.1.0-50-arm64",
            "linux-image-6.10.3-amd64",
            "linux-image-6.1.0-0.deb11.50-amd64",
            "linux-image-amd64",
        ]);
        let stock = candidates(&all, "6.1".parse().unwrap(), Arch::X86_64);
        assert_eq!(
            stock,
            [
                "linux-image-6.1.0-50-amd64",
                "linux-image-6.1.0-50-amd64-unsigned",
                "linux-image-6.1.0-9-amd64",
                "linux-image-6.1.0-0.deb11.50-amd64"
            ]
        );
        assert_eq!(
            candidates(&all, "6.1-rt".parse().unwrap(), Arch::X86_64),
            ["linux-image-6.1.0-50-rt-amd64"]
        );
        assert_eq!(candidates(&all, "6.1".parse().unwrap(), Arch::Aarch64), ["linux-image-6.1.0-50-arm64"]);
    }

    #[test]
    fn releases_with_plus() {
        let all = names(&[
            "linux-image-6.12.115+deb13.1-amd64",
            "linux-image-6.12.116+deb13-amd64",
            "linux-image-6.12.115+deb13-amd64",
        ]);
        let found = candidates(&all, "6.12".parse().unwrap(), Arch::X86_64);
        assert_eq!(
            found,
            [
                "linux-image-6.12.116+deb13-amd64",
                "linux-image-6.12.115+deb13.1-amd64",
                "linux-image-6.12.115+deb13-amd64"
            ]
        );
    }

    #[test]
    fn names_print_as_they_parse_and_others_are_listed() {
        for name in KernelName::known().split(", ") {
            assert_eq!(name.parse::<KernelName>().unwrap().to_string(), name);
        }
        let error = "6.2".parse::<KernelName>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no kernel \"6.2\": expected one of 5.10, 5.10-rt, 6.1, 6.1-rt, 6.12, 6.12-rt, or the path of a kernel image (vmlinuz)"
        );
    }
}
