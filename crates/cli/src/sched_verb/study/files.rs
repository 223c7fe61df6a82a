//! The calculated tables and figures that this program carries: those files of `experiments/` that
//! declare schedulability curves.

use serde::Deserialize;

/// Name and text, in the order of the papers. A test walks the directory.
const FILES: &[(&str, &str)] = &[
    ("rtss24-fig8a", include_str!("../../../../../experiments/rtss24-fig8a.toml")),
    ("rtss24-fig8b", include_str!("../../../../../experiments/rtss24-fig8b.toml")),
    ("rtss24-fig8c", include_str!("../../../../../experiments/rtss24-fig8c.toml")),
    ("rtss24-fig8c-readings", include_str!("../../../../../experiments/rtss24-fig8c-readings.toml")),
    ("rtss24-fig8d", include_str!("../../../../../experiments/rtss24-fig8d.toml")),
    ("rtss24-fig8d-readings", include_str!("../../../../../experiments/rtss24-fig8d-readings.toml")),
    ("rtss24-fig8e", include_str!("../../../../../experiments/rtss24-fig8e.toml")),
    ("rtss24-fig8e-readings", include_str!("../../../../../experiments/rtss24-fig8e-readings.toml")),
    ("rtss24-fig8f", include_str!("../../../../../experiments/rtss24-fig8f.toml")),
    ("rtss24-fig8f-readings", include_str!("../../../../../experiments/rtss24-fig8f-readings.toml")),
    ("rtss24-fig8-analyses", include_str!("../../../../../experiments/rtss24-fig8-analyses.toml")),
    ("replication-table7", include_str!("../../../../../experiments/replication-table7.toml")),
    ("replication-cores", include_str!("../../../../../experiments/replication-cores.toml")),
    ("ospert13-sets", include_str!("../../../../../experiments/ospert13-sets.toml")),
];

/// The text of the study of this name.
pub(crate) fn built_in(name: &str) -> Option<&'static str> {
    crate::carried::text(FILES, name)
}

/// Name and title of each.
pub(crate) fn titles() -> anyhow::Result<Vec<(String, String)>> {
    #[derive(Deserialize)]
    struct Titled {
        title: String,
    }
    let titled = |(name, text): &(&str, &str)| {
        let titled: Titled = toml::from_str(text)?;
        Ok(((*name).to_owned(), format!("{} (calculated)", titled.title)))
    };
    FILES.iter().map(titled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_of_curves_is_carried_under_its_name() {
        crate::carried::assert_whole(FILES, super::super::is_one);
        for (name, text) in FILES {
            assert!(super::super::read(text, Path::new(name)).is_ok(), "{name}");
        }
        assert_eq!(titles().unwrap().len(), FILES.len());
    }
}
