//! A profile of TuneD with all that it includes, put together: sections of options, and variables.
//!
//! Sources: tuned.conf(5), tuned-profiles(7); TuneD 2.20 and 2.25, `tuned/profiles/*.py` (the order
//! of files, how sections are put together).

use super::expand::Variables;
use super::ini::{self, Options};
use machine::Root;
use model::{Cpus, Error, store};

/// Where profiles are, the first first: those of the administrator, and of 2.23 and later.
const PLACES: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// The variable of profiles that isolate CPUs, and its value where it is to be set elsewhere.
const ISOLATED: &str = "isolated_cores";
const ITSELF: &str = "${isolated_cores}";
/// The largest file of a profile, bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The most files of a profile.
const MOST_FILES: usize = 32;

/// A section of a profile.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    pub(super) name: String,
    /// Which plugin it is for.
    pub(super) kind: String,
    pub(super) enabled: bool,
    /// The devices that it is for: names with `*`, a `!` before those that are not meant.
    pub(super) devices: String,
    /// Expressions that the machine's processor and system are to match, by what they are called.
    pub(super) only_where: Vec<(&'static str, String)>,
    /// Programs before and behind it.
    pub(super) scripts: Vec<String>,
    pub(super) options: Options,
}

/// A profile put together.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Its files, in the order in which they are put together.
    pub(super) files: Vec<String>,
    pub(super) units: Vec<Unit>,
    variables: Options,
}

/// Reads a profile by its name, or by the path of its directory. Errors: none of that name, a
/// circle, a file that is none.
pub(super) fn load(root: &Root, name: &str) -> Result<Whole, Error> {
    let mut whole = Whole::default();
    // Beside one that is named by its path are those that it includes.
    let dir = name.strip_suffix("tuned.conf").unwrap_or(name).trim_end_matches('/');
    let near = dir.rsplit_once('/').map(|(near, _)| near);
    let places: Vec<&str> = near.into_iter().chain(PLACES).collect();
    whole.include(root, &places, name, &mut Vec::new())?;
    Ok(whole)
}

impl Whole {
    fn include(
        &mut self,
        root: &Root,
        places: &[&str],
        name: &str,
        begun: &mut Vec<String>,
    ) -> Result<(), Error> {
        // A minus: no error where there is none.
        let (name, optional) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
        let Some(file) = find(root, places, name, begun) else {
            let again = !name.contains('/')
                && begun.iter().any(|file| file.ends_with(&format!("/{name}/tuned.conf")));
            if optional || again {
                return Ok(());
            }
            let expected = format!("one of {}", known(root, places).join(", "));
            return Err(Error::invalid("profile of tuned", format!("{name:?}"), expected));
        };
        if begun.len() == MOST_FILES {
            return Err(Error::invalid(&file, "more files are included", format!("at most {MOST_FILES}")));
        }
        begun.push(file.clone());
        let text = text(root, &file)?;
        let dir = file.rsplit_once('/').map_or("", |(dir, _)| dir);
        let mut sections = ini::read(&file, &text, None)?;
        if let Some((_, main)) = sections.iter_mut().find(|(name, _)| name == "main")
            && let Some(includes) = main.take("include")
        {
            for include in includes.split([',', ';']).map(str::trim).filter(|name| !name.is_empty()) {
                self.include(root, places, include, begun)?;
            }
        }
        self.files.push(file.clone());
        for (name, options) in sections {
            let mut here = Options::default();
            options.iter().for_each(|(name, value)| here.set(name, value.replace("${i:PROFILE_DIR}", dir)));
            match name.as_str() {
                "main" => {}
                "variables" => {
                    here.iter().for_each(|(name, value)| self.variables.set(name, value.to_owned()));
                }
                _ => self.add(&name, here),
            }
        }
        Ok(())
    }

    /// A section; a later one of the name adds to it, unless it says `replace`.
    fn add(&mut self, name: &str, mut options: Options) {
        let mut take = |name: &str| options.take(name);
        let is_true = |value: &String| matches!(value.as_str(), "1" | "true" | "True");
        let (kind, devices) = (take("type"), take("devices"));
        let (enabled, replace) = (take("enabled"), take("replace"));
        let drop = take("drop").unwrap_or_default();
        let only_where: Vec<_> = ["cpuinfo_regex", "uname_regex", "devices_udev_regex"]
            .into_iter()
            .filter_map(|what| Some((what, take(what)?)))
            .collect();
        let scripts: Vec<_> = ["script_pre", "script_post"].into_iter().filter_map(&mut take).collect();
        // In which order plugins work makes no difference here; files of variables are read apart.
        for other in ["priority", "prepend"] {
            take(other);
        }
        let unit = Unit {
            name: name.to_owned(),
            kind: kind.unwrap_or_else(|| name.to_owned()),
            enabled: enabled.as_ref().is_none_or(is_true),
            devices: devices.unwrap_or_else(|| "*".to_owned()),
            only_where,
            scripts,
            options,
        };
        let Some(known) = self.units.iter_mut().find(|known| known.name == name) else {
            self.units.push(unit);
            return;
        };
        if replace.as_ref().is_some_and(is_true) {
            *known = unit;
            return;
        }
        for option in drop.split([',', ';']).map(str::trim).filter(|option| !option.is_empty()) {
            known.options.take(option);
        }
        (known.kind, known.enabled, known.devices) = (unit.kind, unit.enabled, unit.devices);
        known.only_where.retain(|(what, _)| unit.only_where.iter().all(|(newer, _)| newer != what));
        known.only_where.extend(unit.only_where);
        known.scripts.extend(unit.scripts);
        for (option, value) in unit.options.iter() {
            // Programs of both are run.
            let before = known.options.get(option).filter(|_| name == "script" && option == "script");
            let both = before.map(|before| format!("{before}, {value}"));
            known.options.set(option, both.unwrap_or_else(|| value.to_owned()));
        }
    }

    /// Its variables, in the order in which they are set; a file of variables stands where it is
    /// named. `cpus`: the isolated ones, where none of them says.
    pub(super) fn variables<'a>(
        &self,
        profiles: &Root,
        machine: &'a Root,
        cpus: Option<&Cpus>,
        unknown: &mut Vec<String>,
    ) -> Result<Variables<'a>, Error> {
        let mut variables = Variables::new(machine);
        let says = |name: &str, value: &str| name == ISOLATED && !value.is_empty() && value != ITSELF;
        let mut is_said = false;
        if let Some(cpus) = cpus {
            variables.set(ISOLATED, &cpus.to_string());
        }
        for (name, value) in self.variables.iter() {
            if name != "include" {
                is_said |= says(name, value);
                variables.set(name, value);
                continue;
            }
            if !profiles.has(value) {
                unknown.push(format!("the file of variables {value} is not there"));
                continue;
            }
            for (_, options) in ini::read(value, &text(profiles, value)?, Some("variables"))? {
                is_said |= options.iter().any(|(name, value)| says(name, value));
                options.iter().for_each(|(name, value)| variables.set(name, value));
            }
        }
        if let Some(cpus) = cpus.filter(|_| !is_said && self.variables.get(ISOLATED).is_some()) {
            unknown.push(format!("{ISOLATED} is set nowhere; taken to be {cpus}"));
        }
        Ok(variables)
    }
}

/// A profile may be anybody's, and name a pipe or a device as a file of variables.
fn text(root: &Root, file: &str) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&store::read_whole(&root.at(file), MOST_BYTES)?).into_owned())
}

/// The first file of that name that has not been begun: a profile of the administrator may include
/// the one that it stands for.
fn find(root: &Root, places: &[&str], name: &str, begun: &[String]) -> Option<String> {
    if name.contains('/') {
        let dir = name.strip_suffix("tuned.conf").unwrap_or(name).trim_end_matches('/');
        return Some(format!("{dir}/tuned.conf")).filter(|file| !begun.contains(file) && root.has(file));
    }
    let is_one = !name.is_empty() && name != "." && name != "..";
    let mut files = places.iter().map(|place| format!("{place}/{name}/tuned.conf"));
    files.find(|file| is_one && !begun.contains(file) && root.has(file))
}

/// The names of all profiles that are there.
fn known(root: &Root, places: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = places
        .iter()
        .flat_map(|place| root.glob(&format!("{place}/*/tuned.conf")))
        .filter_map(|file| Some(file.rsplit('/').nth(1)?.to_owned()))
        .collect();
    all.sort();
    all.dedup();
    if all.is_empty() {
        all.push(format!("the directories in {}, of which there is none", places.join(", ")));
    }
    all
}
