//! The build options of a kernel, in the format of Documentation/kbuild/kconfig-language.rst
//! (`CONFIG_NAME=value`, and comments for what is not set).
//!
//! Packages of Debian, and of distributions with rpm, leave them beside the image as
//! `config-RELEASE`; the latter also keep them with the modules, as `config`. The kernel's own
//! `make modules_install` leaves a link `build` there, to the tree that it was built in.

use super::store::Kernel;
use crate::error::Result;
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Kernel {
    /// Options that are set, name (with `CONFIG_`) → `y`, `m` or value without quotes. `None` where
    /// no such file belongs to the image.
    pub fn config(&self) -> Result<Option<BTreeMap<String, String>>> {
        let text = self.config_text()?;
        Ok(text.map(|text| options(&String::from_utf8_lossy(&text))))
    }

    /// The file itself. `None` where there is none, or where the release is not known, without
    /// which nothing shows that a file is of this kernel.
    pub fn config_text(&self) -> Result<Option<Vec<u8>>> {
        if self.release.is_empty() {
            return Ok(None);
        }
        let beside = self.image.with_file_name(format!("config-{}", self.release));
        let with_modules =
            self.modules.iter().flat_map(|dir| [dir.join("config"), dir.join("build/.config")]);
        let places: Vec<PathBuf> = [beside].into_iter().chain(with_modules).collect();
        places.iter().find(|path| path.is_file()).map(|path| self.read(path)).transpose()
    }
}

fn options(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.trim().split_once('='));
    let set = lines.filter(|(name, _)| name.starts_with("CONFIG_"));
    set.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn options_that_are_set_and_nothing_else() {
        let text =
            "# CONFIG_NO_HZ_FULL is not set\nCONFIG_HZ=250\nCONFIG_LOCALVERSION=\"-x\"\nCONFIG_VFIO=m\n\n";
        let found = options(text);
        let expected = [("CONFIG_HZ", "250"), ("CONFIG_LOCALVERSION", "-x"), ("CONFIG_VFIO", "m")]
            .map(|(k, v)| (k.into(), v.into()));
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn they_are_looked_for_beside_the_image_of_a_known_release() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = Kernel {
            release: "6.1.0".into(),
            image: dir.path().join("vmlinuz-6.1.0"),
            modules: None,
            stored: None,
        };
        assert_eq!(kernel.config().unwrap(), None);
        fs::write(dir.path().join("config-6.1.0"), "CONFIG_SMP=y\n").unwrap();
        assert_eq!(kernel.config().unwrap().unwrap()["CONFIG_SMP"], "y");
        let nameless = Kernel { release: String::new(), ..kernel };
        fs::write(dir.path().join("config-"), "CONFIG_SMP=y\n").unwrap();
        assert_eq!(nameless.config().unwrap(), None);
    }

    #[test]
    fn they_are_looked_for_with_the_modules_too() {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().join("lib/modules/5.10.0-60.18.0.50.oe2203");
        fs::create_dir_all(modules.join("build")).unwrap();
        let kernel = Kernel {
            release: "5.10.0-60.18.0.50.oe2203".into(),
            image: dir.path().join("boot/vmlinuz-5.10.0-60.18.0.50.oe2203"),
            modules: Some(modules.clone()),
            stored: None,
        };
        let text = || kernel.config_text().unwrap().map(|text| String::from_utf8(text).unwrap());
        assert_eq!(text(), None);
        fs::write(modules.join("build/.config"), "CONFIG_HZ=100\n").unwrap();
        assert_eq!(text().unwrap(), "CONFIG_HZ=100\n");
        fs::write(modules.join("config"), "CONFIG_HZ=250\n").unwrap();
        assert_eq!(text().unwrap(), "CONFIG_HZ=250\n");
    }
}
