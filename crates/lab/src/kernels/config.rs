//! The build options of a kernel, from its package: `boot/config-RELEASE` beside the image, in the
//! format of Documentation/kbuild/kconfig-language.rst (`CONFIG_NAME=value`, and comments for what
//! is not set).

use super::store::Kernel;
use crate::error::Result;
use std::collections::BTreeMap;

impl Kernel {
    /// Options that are set, name (with `CONFIG_`) → `y`, `m` or value without quotes. `None` where
    /// no such file is beside the image.
    pub fn config(&self) -> Result<Option<BTreeMap<String, String>>> {
        let path = self.image.with_file_name(format!("config-{}", self.release));
        if !path.exists() {
            return Ok(None);
        }
        let text = self.read(&path)?;
        Ok(Some(options(&String::from_utf8_lossy(&text))))
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
    fn they_are_looked_for_beside_the_image() {
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
    }
}
