//! What a profile of TuneD does on a machine, worked out from its files without TuneD.

mod expand;
mod functions;
mod ini;
mod load;
mod plugins;

use machine::Root;
use model::{Cpus, Error};
use std::collections::{BTreeMap, BTreeSet};

/// What a profile does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// As it was asked for.
    pub name: String,
    /// The files that it was read from, those that are included first.
    pub read: Vec<String>,
    /// Files of `/proc/sys` and `/sys` that it writes, each with the value.
    pub files: BTreeMap<String, String>,
    /// Words for the kernel command line.
    pub parameters: Vec<String>,
    /// What an assertion of its own asks for and does not find: TuneD refuses the profile then.
    pub refused: Vec<String>,
    /// Options by which some tasks stay where they are.
    pub spared: Vec<String>,
    /// CPUs that it moves tasks away from.
    pub isolated: Cpus,
    /// CPUs that it moves interrupts away from.
    pub quiet: Cpus,
    /// The latency of idle states that it holds, microseconds.
    pub latency_us: Option<String>,
    /// Units that it stops.
    pub stopped: BTreeSet<String>,
    /// What else it does, one line each.
    pub more: Vec<String>,
    /// What could not be worked out, one line each with the reason.
    pub unknown: Vec<String>,
}

/// Works out what the profile of that name does on a machine; a name with a slash is the path of
/// its directory. `profiles`: where its files are; `cpus`: those to isolate, where its variables do
/// not say. Errors: there is none, or one of its files cannot be read.
pub fn read(profiles: &Root, machine: &Root, name: &str, cpus: Option<&Cpus>) -> Result<Profile, Error> {
    let whole = load::load(profiles, name)?;
    let mut profile = Profile { name: name.to_owned(), read: whole.files.clone(), ..Profile::default() };
    let mut variables = whole.variables(profiles, machine, cpus, &mut profile.unknown)?;
    for unit in whole.units.iter().filter(|unit| unit.enabled) {
        plugins::does(unit, &mut variables, machine, &mut profile);
    }
    profile.refused = variables.failed;
    Ok(profile)
}
