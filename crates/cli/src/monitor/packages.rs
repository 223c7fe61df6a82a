//! The packages of a machine, a file a day beside its history, so that machines can be compared by
//! them later and elsewhere.

use machine::Root;
use model::monitor_history::{PACKAGES, Packages};
use model::{Error, store};
use std::collections::BTreeMap;
use std::path::Path;

/// What is installed, and what was (dpkg(1)): paragraphs with `Package`, `Status` and `Version`.
const DPKG_STATUS: &str = "var/lib/dpkg/status";
/// The end of a file's name behind the day.
pub(super) const ENDING: &str = ".packages.json";
/// The longest file that is read, bytes.
const MOST: u64 = 16 << 20;

/// Writes what is installed now. None where no package manager that is known here has a list.
pub(super) fn write(dir: &Path, day: &str, host: &str, at: &str) -> anyhow::Result<()> {
    let Some(text) = Root::live().maybe(DPKG_STATUS) else { return Ok(()) };
    let packages = of_dpkg(&text);
    let list = Packages { schema: PACKAGES.to_owned(), at: at.to_owned(), host: host.to_owned(), packages };
    Ok(store::write_json(&dir.join(format!("{day}{ENDING}")), &list)?)
}

/// Those of one day; `None` where there is no list.
pub(super) fn read(dir: &Path, day: &str) -> anyhow::Result<Option<Packages>> {
    let path = dir.join(format!("{day}{ENDING}"));
    if !path.exists() {
        return Ok(None);
    }
    let bytes = store::read_whole(&path, MOST)?;
    let list = serde_json::from_slice(&bytes);
    list.map(Some).map_err(|error| Error::invalid(path.display(), error, "a list of packages").into())
}

/// Names with versions of those that are installed.
fn of_dpkg(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
        };
        if let (Some(name), Some(version), Some("install ok installed" | "hold ok installed")) =
            (field("Package"), field("Version"), field("Status"))
        {
            found.insert(name.to_owned(), version.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "\
Package: irqbalance
Status: install ok installed
Version: 1.9.3-2
Description: of interrupts
 Version: not this one

Package: held
Status: hold ok installed
Version: 2:1

Package: gone
Status: deinstall ok config-files
Version: 3
";

    #[test]
    fn what_is_installed_is_there_and_what_was_is_not() {
        let found = of_dpkg(STATUS);
        let found: Vec<_> = found.iter().map(|(name, version)| format!("{name} {version}")).collect();
        assert_eq!(found, ["held 2:1", "irqbalance 1.9.3-2"]);
        assert!(of_dpkg("").is_empty());
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path(), "2026-01-01").unwrap(), None);
        let path = dir.path().join("2026-01-01.packages.json");
        let list = Packages { packages: of_dpkg(STATUS), ..Packages::default() };
        store::write_json(&path, &list).unwrap();
        assert_eq!(read(dir.path(), "2026-01-01").unwrap(), Some(list));
        std::fs::write(&path, "{").unwrap();
        let said = read(dir.path(), "2026-01-01").unwrap_err().to_string();
        assert!(said.contains("2026-01-01.packages.json") && said.contains("a list of packages"), "{said}");
    }
}
