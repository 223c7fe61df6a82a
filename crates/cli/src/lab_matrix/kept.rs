//! What a matrix keeps of each kernel.

use crate::lab_matrix::cell::Measured;
use crate::lab_matrix::profile::Profile;
use analysis::exposure::{Column, Exposure};
use clap::ValueEnum;
use report::MatrixKernel;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kernel as it is kept in the matrix's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub name: String,
    pub arch: String,
    pub release: String,
    pub package: Option<String>,
    /// Absent where the kernel does not provide it.
    pub config: Option<BTreeMap<String, String>>,
}

pub(super) fn exposure_of(measured: &Measured) -> Option<Exposure> {
    serde_json::from_value(measured.exposure.clone()).ok()
}

/// Why this kernel cannot have the profile.
pub(super) fn refused(measured: &Measured) -> String {
    let fallback = measured.isolation["fallback"].as_array().into_iter().flatten();
    let reasons: Vec<&str> = fallback.filter_map(|one| one["reason"].as_str()).collect();
    if reasons.is_empty() {
        "this kernel does not hold this placement".to_owned()
    } else {
        format!("this kernel does not hold this placement: {}", reasons.join("; "))
    }
}

pub(super) fn kernel(kept: Kept) -> MatrixKernel {
    MatrixKernel { name: kept.name, release: kept.release, package: kept.package, arch: kept.arch }
}

/// The ways of isolating that columns have, and what they are.
pub(crate) fn profiles_of(columns: &[Column]) -> Vec<(String, String)> {
    let used = |profile: &&Profile| columns.iter().any(|column| column.profile == profile.name());
    let name_and_title = |profile: &Profile| (profile.name().to_owned(), profile.title().to_owned());
    Profile::value_variants().iter().filter(used).map(name_and_title).collect()
}

pub(super) fn column(
    kernel: &str,
    profile: Profile,
    result: &Result<Measured, String>,
    kernels: &[Kept],
) -> Column {
    let config = kernels.iter().find(|kept| kept.name == kernel).and_then(|kept| kept.config.as_ref());
    let realtime = config.is_some_and(|config| config.contains_key("CONFIG_PREEMPT_RT"));
    let absent = |why: String| Column {
        kernel: kernel.to_owned(),
        profile: profile.name().to_owned(),
        realtime,
        absent: Some(why),
        void: false,
        unsteady: Vec::new(),
        verdict: Vec::new(),
        idle_per_s: BTreeMap::new(),
        rows: Vec::new(),
    };
    match result {
        Err(why) => absent(why.clone()),
        Ok(measured) => match exposure_of(measured) {
            None => absent(refused(measured)),
            Some(found) => Column::of(kernel, profile.name(), realtime, found),
        },
    }
}
