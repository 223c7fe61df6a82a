//! Build options of kernels that bear on isolation: the data is `catalogue/kernel-options.toml`,
//! whose header says what belongs there.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const TEXT: &str = include_str!("../../../catalogue/kernel-options.toml");
const PLACE: &str = "catalogue/kernel-options.toml";
const SCHEMA: &str = "stillcore.kernel-options/1";

/// One option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelOption {
    /// With `CONFIG_`.
    pub name: String,
    /// What it changes for an isolated CPU.
    pub why: String,
}

/// An option in which kernels differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionDifference {
    /// With `CONFIG_`.
    pub option: String,
    /// What it changes.
    pub why: String,
    /// Name of the kernel → value; `n` where it is not set.
    pub values: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct File {
    schema: String,
    option: Vec<KernelOption>,
}

/// All of them, in the order of the catalogue.
pub fn kernel_options() -> Result<Vec<KernelOption>, Error> {
    let invalid = |what: String| Error::invalid(PLACE, what, "the catalogue of kernel options");
    let file: File = toml::from_str(TEXT).map_err(|error| invalid(error.to_string()))?;
    if file.schema != SCHEMA {
        return Err(Error::invalid(PLACE, format!("schema {}", file.schema), SCHEMA));
    }
    Ok(file.option)
}

/// Those in which the given kernels differ: name of the kernel → options that are set. A kernel
/// whose options are not known is left to the caller to leave out.
pub fn option_differences(
    kernels: &BTreeMap<String, BTreeMap<String, String>>,
) -> Result<Vec<OptionDifference>, Error> {
    let mut found = Vec::new();
    for KernelOption { name, why } in kernel_options()? {
        let value = |set: &BTreeMap<String, String>| set.get(&name).map_or("n", String::as_str).to_owned();
        let values: BTreeMap<String, String> =
            kernels.iter().map(|(kernel, set)| (kernel.clone(), value(set))).collect();
        if values.values().collect::<BTreeSet<_>>().len() > 1 {
            found.push(OptionDifference { option: name, why, values });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_named_once_and_says_why() {
        let options = kernel_options().unwrap();
        let names: BTreeSet<_> = options.iter().map(|option| &option.name).collect();
        assert_eq!(names.len(), options.len());
        for option in &options {
            let fragment = option.why.chars().next().is_some_and(|first| !first.is_whitespace());
            assert!(
                option.name.starts_with("CONFIG_") && fragment && !option.why.ends_with('.'),
                "{option:?}"
            );
        }
    }

    #[test]
    fn only_what_differs_is_listed_and_what_is_not_set_is_n() {
        let set = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let kernels = BTreeMap::from([
            ("5.10".to_owned(), set(&[("CONFIG_HZ", "250"), ("CONFIG_USELESS", "y")])),
            ("6.1".to_owned(), set(&[("CONFIG_HZ", "250"), ("CONFIG_NO_HZ_FULL", "y")])),
        ]);
        let found = option_differences(&kernels).unwrap();
        let names: Vec<_> = found.iter().map(|one| one.option.as_str()).collect();
        assert_eq!(names, ["CONFIG_NO_HZ_FULL"]);
        assert_eq!(found[0].values, set(&[("5.10", "n"), ("6.1", "y")]));
    }
}
